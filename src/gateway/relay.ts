// One order from the client to the upstream and its answer back: streams both ways with back-pressure, holds the answer
// where a settlement has to come first, and ends in exactly one outcome. An answer that broke off never looks whole to
// the client, nothing of it is sent before `beforeResponse` said so, and nobody's bytes but this call's are written.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Clock } from '../host/clock.ts';
import type { Log } from '../host/log.ts';
import { respond, type Answer } from '../host/respond.ts';
import type { Transport, UpstreamFailure } from './client/transport.ts';
import type { Permit } from './permit.ts';

export type ResponseVerdict =
  | {
      readonly kind: 'stream';
      /** Added to the answer's head: flat name, value pairs. */
      readonly headers: readonly string[];
      /** As in the order, from here on. */
      readonly keepBytes?: number;
    }
  /** The upstream's answer is dropped for this one. */
  | { readonly kind: 'replace'; readonly answer: Answer };

export type ForwardOutcome =
  /** The last byte was handed to the client's socket without error. `upstreamMs`: to the answer's end, holding not counted. */
  | { readonly kind: 'delivered'; readonly status: number; readonly upstreamMs: number }
  | { readonly kind: 'replaced'; readonly status: number; readonly upstreamMs: number }
  /** The client went away first. `kept` is the answer it would have had, whole, where `keepBytes` was given and held it. */
  | { readonly kind: 'client_gone'; readonly status: number | undefined; readonly kept: Answer | undefined }
  /** `headersSent` false: nothing was written, the caller answers. True: the client's connection was destroyed. */
  | ({ readonly kind: 'failed'; readonly headersSent: boolean } & UpstreamFailure);

export type ForwardOrder = {
  /** Nothing goes upstream without one. */
  readonly permit: Permit;
  /** Canonical path and query, sent byte for byte. */
  readonly target: string;
  /** Complete, from headers.ts: flat name, value pairs. */
  readonly headers: readonly string[];
  /** From headers.ts: what of the answer's head crosses back to the client. */
  readonly responseHeaders: (status: number, raw: readonly string[]) => string[];
  /**
   * For a request that is paid already: an answer of up to this many bytes is kept until it is delivered, and where the
   * client goes first the upstream is not aborted until the answer is whole or turns out larger.
   */
  readonly keepBytes?: number;
  readonly hooks: {
    /** Told the upstream's final status (or 101) before anything of it reaches the client. Absent: no await. Must not reject. */
    readonly beforeResponse?: (head: { status: number; headers: readonly string[] }) => Promise<ResponseVerdict>;
    /** Exactly once, when all is over; for an upgrade when the 101 was handed over. */
    readonly done: (outcome: ForwardOutcome) => void;
  };
};

export type RelayContext = {
  readonly transport: Transport;
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly log: Log;
};

/** What becomes of an upstream's 101; see upgrade.ts. */
export type Tunnel = {
  readonly accepts: (headers: readonly string[]) => boolean;
  /** Takes both sockets over; `handed` tells once whether the client has the 101. */
  readonly open: (
    headers: readonly string[],
    upstream: Socket,
    head: Buffer,
    handed: (delivered: boolean) => void,
  ) => void;
};

/** Up to this size a piece of a body is joined to what is written with it. */
const JOINED_BYTES = 16 * 1024;

export function relay(
  { transport, clock, log }: RelayContext,
  req: IncomingMessage,
  res: ServerResponse,
  order: ForwardOrder,
  tunnel?: Tunnel,
): void {
  const { hooks } = order;
  const headOnly = req.method === 'HEAD';
  const sentAt = clock.monotonic();
  let heldMs = 0;
  let wholeAt: number | undefined;
  let status: number | undefined;
  let holding = false;
  let endedHeld = false;
  let failure: UpstreamFailure | undefined;
  let replaced = false;
  let started = false;
  let bytesLeft = -1;
  let waits = false;
  let finished = false;
  let gone = false;
  let over = false;
  // Below 0: nothing is kept.
  let keepLeft = headOnly ? -1 : (order.keepBytes ?? -1);
  let kept: Buffer[] = [];
  let keptHeaders: readonly string[] = [];

  res.on('finish', onFinish);
  res.on('close', onClose);
  // Whoever expects a 100 gets it when the request is on its way upstream, and a refusal never has one in front of it.
  if (req.headers.expect !== undefined && req.httpVersionMinor === 1 && tunnel === undefined) res.writeContinue();
  const call = transport.send(
    {
      method: req.method ?? 'GET',
      target: order.target,
      headers: order.headers,
      body: hasBody(req) ? req : undefined,
      upgrade: tunnel !== undefined,
    },
    { onInformation, onHead, onData, onEnd, onUpgrade, onFailure },
  );

  function onInformation(informational: number, raw: readonly string[]): void {
    if (informational !== 103 || hooks.beforeResponse !== undefined || tunnel !== undefined || gone) return;
    if (req.httpVersionMinor === 1) res.socket?.write(earlyHints(raw), 'latin1');
  }

  function onHead(upstreamStatus: number, raw: readonly string[], more: boolean): void {
    status = upstreamStatus;
    if (hooks.beforeResponse === undefined) {
      begin(upstreamStatus, order.responseHeaders(upstreamStatus, raw));
      // A body that is there leaves in one write with its head; one that is slow must not hold the head back.
      if (!more) flushHead();
      return;
    }
    call.pause();
    hold(hooks.beforeResponse({ status: upstreamStatus, headers: raw }), (added) => {
      call.resume();
      begin(upstreamStatus, [...order.responseHeaders(upstreamStatus, raw), ...added]);
      if (endedHeld) onEnd();
      else process.nextTick(flushHead);
    });
  }

  function onUpgrade(raw: readonly string[], upstream: Socket, head: Buffer): void {
    status = 101;
    // It may die while the answer is held; nothing may be thrown then.
    upstream.on('error', () => upstream.destroy());
    if (tunnel === undefined || !tunnel.accepts(raw)) {
      upstream.destroy();
      onFailure({ code: 'upstream_unreachable', detail: 'a 101 for a protocol that was not asked for' });
      return;
    }
    const open = (added: readonly string[]): void => {
      if (gone) {
        upstream.destroy();
        leave();
        return;
      }
      if (upstream.destroyed) {
        onFailure({ code: 'upstream_unreachable', detail: 'the upstream died after its 101' });
        return;
      }
      res.removeListener('close', onClose);
      tunnel.open([...order.responseHeaders(101, raw), ...added], upstream, head, (delivered) => {
        if (delivered) settle({ kind: 'delivered', status: 101, upstreamMs: upstreamMs() });
        else leave();
      });
    };
    if (hooks.beforeResponse === undefined) open([]);
    else hold(hooks.beforeResponse({ status: 101, headers: raw }), open, upstream);
  }

  function hold(
    pending: Promise<ResponseVerdict>,
    proceed: (added: readonly string[]) => void,
    upstream?: Socket,
  ): void {
    holding = true;
    const heldAt = clock.monotonic();
    pending
      .then((verdict) => {
        holding = false;
        heldMs += clock.monotonic() - heldAt;
        switch (verdict.kind) {
          case 'stream':
            if (!headOnly) keepLeft = verdict.keepBytes ?? keepLeft;
            if (failure !== undefined) onFailure(failure);
            else if (gone && keepLeft < 0 && upstream === undefined) leave();
            else proceed(verdict.headers);
            return;
          case 'replace':
            upstream?.destroy();
            replace(verdict.answer);
            return;
          default:
            verdict satisfies never;
        }
      })
      .catch((error: unknown) => {
        log.error('the decision about an answer failed', { error });
        holding = false;
        upstream?.destroy();
        call.abort();
        onFailure({ code: 'upstream_unreachable', detail: 'the decision about the answer failed' });
      });
  }

  function replace(answer: Answer): void {
    call.abort();
    replaced = true;
    status = answer.status;
    wholeAt = clock.monotonic();
    if (gone) leave();
    else respond(res, answer, headOnly);
  }

  function begin(finalStatus: number, headers: string[]): void {
    if (keepLeft >= 0) keptHeaders = headers;
    if (gone) return;
    try {
      res.writeHead(finalStatus, headers);
    } catch (error) {
      call.abort();
      onFailure({ code: 'upstream_unreachable', detail: error instanceof Error ? error.message : 'an invalid head' });
      return;
    }
    if (!headOnly && finalStatus !== 204 && finalStatus !== 304) bytesLeft = contentLength(headers);
  }

  function flushHead(): void {
    // As latin1, as they came; flushHeaders would write them as UTF-8.
    if (!started && !over && !res.writableEnded && !res.destroyed) res.write('', 'latin1');
  }

  function onData(chunk: Buffer, release: (() => void) | undefined): void {
    started = true;
    if (keepLeft >= 0) keep(chunk);
    if (gone) {
      release?.();
      return;
    }
    const last = bytesLeft === chunk.length;
    bytesLeft -= chunk.length;
    // A small piece is copied as text, so that the whole answer is one string and one write; a larger one as bytes.
    if (release === undefined && chunk.length <= JOINED_BYTES) {
      const text = chunk.toString('latin1');
      if (last) res.end(text, 'latin1');
      else takesMore(res.write(text, 'latin1'));
      return;
    }
    const owned = release === undefined ? Buffer.from(chunk) : chunk;
    if (last) res.end(owned, release);
    else takesMore(res.write(owned, release));
  }

  function takesMore(more: boolean): void {
    if (more) return;
    call.pause();
    if (waits) return;
    waits = true;
    res.on('drain', call.resume);
  }

  function keep(chunk: Buffer): void {
    keepLeft -= chunk.length;
    if (keepLeft >= 0) {
      kept.push(Buffer.from(chunk));
      return;
    }
    kept = [];
    if (gone) leave();
  }

  function onEnd(): void {
    if (over) return;
    // An answer without a body ends while it is held: nothing of it may reach the client before the verdict.
    if (holding) {
      endedHeld = true;
      return;
    }
    wholeAt = clock.monotonic();
    if (gone) leave(true);
    else if (!res.writableEnded) res.end();
  }

  function onFailure(given: UpstreamFailure): void {
    if (over) return;
    if (holding) {
      failure = given;
    } else if (gone) {
      leave();
    } else {
      const { headersSent } = res;
      if (headersSent) cut(req, res);
      // The caller answers on the bare socket again.
      else if (tunnel !== undefined) res.detachSocket(req.socket);
      settle({ kind: 'failed', headersSent, ...given });
    }
  }

  function onFinish(): void {
    // Older Nodes report a finish for a socket that was destroyed with bytes still in it.
    finished = !req.socket.destroyed;
  }

  function onClose(): void {
    if (over) return;
    if (finished && status !== undefined) {
      settle({ kind: replaced ? 'replaced' : 'delivered', status, upstreamMs: upstreamMs() });
      return;
    }
    gone = true;
    if (holding) return;
    // What the upstream still has to say is read on for the payer; what it has said whole is kept as it is.
    if (keepLeft >= 0 && !replaced && wholeAt === undefined) call.resume();
    else leave(wholeAt !== undefined && !replaced);
  }

  function leave(whole = false): void {
    call.abort();
    settle({ kind: 'client_gone', status, kept: whole && keepLeft >= 0 ? keptAnswer() : undefined });
  }

  function keptAnswer(): Answer | undefined {
    if (status === undefined) return undefined;
    return { status, headers: withoutLength(keptHeaders), body: Buffer.concat(kept) };
  }

  function upstreamMs(): number {
    return (wholeAt ?? clock.monotonic()) - sentAt - heldMs;
  }

  function settle(outcome: ForwardOutcome): void {
    if (over) return;
    over = true;
    // What is left of an upload that nobody reads any more; the listener bounds how long that may take.
    if (!req.complete) req.resume();
    try {
      hooks.done(outcome);
    } catch (error) {
      log.error('the end of a request failed', { error });
      req.socket.destroy();
    }
  }
}

function hasBody(req: IncomingMessage): boolean {
  const length = req.headers['content-length'];
  return req.headers['transfer-encoding'] !== undefined || (length !== undefined && length !== '0');
}

/** Without a length an HTTP/1.0 client takes the end of the connection for the end of the body: it has to be a reset. */
function cut(req: IncomingMessage, res: ServerResponse): void {
  if (req.httpVersionMinor === 0) req.socket.resetAndDestroy();
  else res.destroy();
}

function contentLength(headers: readonly string[]): number {
  for (let i = headers.length - 2; i >= 0; i -= 2) {
    const name = headers[i];
    if (name?.length === 14 && name.toLowerCase() === 'content-length') return Number(headers[i + 1]);
  }
  return -1;
}

function withoutLength(headers: readonly string[]): readonly string[] {
  return headers.filter((_, i) => headers[i - (i % 2)]?.toLowerCase() !== 'content-length');
}

/** Only links: the rest of a 103 is for the final answer to say. */
function earlyHints(raw: readonly string[]): string {
  let text = 'HTTP/1.1 103 Early Hints\r\n';
  for (let i = 0; i + 1 < raw.length; i += 2) {
    if (raw[i]?.toLowerCase() === 'link') text += `Link: ${raw[i + 1]}\r\n`;
  }
  return `${text}\r\n`;
}
