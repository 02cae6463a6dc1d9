// One order from the client to the upstream and its answer back: streams both ways with back-pressure, holds the answer
// where a settlement has to come first, and ends in exactly one outcome. An answer that broke off never looks whole to
// the client, nothing of it is sent before `beforeResponse` said so, and nobody's bytes but this call's are written.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Clock } from '../host/clock.ts';
import type { Log } from '../host/log.ts';
import type { WriteBatch } from '../host/outbox.ts';
import { respond, type Answer } from '../host/respond.ts';
import { breakOff, ClientAnswer, type ClientAnswerListener } from './client-answer.ts';
import type { CallFault, Transport, UploadFault, UpstreamCall, UpstreamListener } from '../http/transport.ts';
import type { ClientGone, ForwardOrder, ForwardOutcome, ResponseVerdict, Tunnel } from './forward-order.ts';
import { hasBody } from './headers.ts';
import type { KeptResponse } from './kept-responses.ts';

export type RelayContext = {
  readonly transport: Transport;
  readonly outbox: WriteBatch;
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly log: Log;
};

export function relay(
  context: RelayContext,
  req: IncomingMessage,
  res: ServerResponse,
  order: ForwardOrder,
  tunnel?: Tunnel,
): void {
  new Relaying(context, req, res, order, tunnel).send();
}

/** An answer that waits for its verdict, and what became of it meanwhile. */
type Held = { readonly since: number; ended: boolean; failure: CallFault | undefined };

type Aside = NonNullable<Extract<ResponseVerdict, { kind: 'replace' }>['keep']>;

/** A class, because every request makes one: closures would be made anew for each, and most requests need few of them. */
class Relaying implements UpstreamListener, ClientAnswerListener {
  private readonly context: RelayContext;
  private readonly req: IncomingMessage;
  private readonly res: ServerResponse;
  private readonly order: ForwardOrder;
  private readonly tunnel: Tunnel | undefined;
  private readonly sentAt: number;
  private readonly headOnly: boolean;
  private readonly answer: ClientAnswer;
  private call: UpstreamCall | undefined;
  private kept: KeptResponse | undefined;
  /** Where a response is read into that was replaced for the client. */
  private aside: Aside | undefined;
  private held: Held | undefined;
  private heldMs = 0;
  private wholeAt: number | undefined;
  private status: number | undefined;
  private replaced = false;
  private finished = false;
  private gone = false;
  /** The client's socket is a tunnel's. */
  private handedOver = false;
  private over = false;
  private upload: ClientGone['upload'] = 'whole';

  constructor(
    context: RelayContext,
    req: IncomingMessage,
    res: ServerResponse,
    order: ForwardOrder,
    tunnel: Tunnel | undefined,
  ) {
    this.context = context;
    this.req = req;
    this.res = res;
    this.order = order;
    this.tunnel = tunnel;
    this.headOnly = req.method === 'HEAD';
    this.answer = new ClientAnswer(req, res, context.outbox, this);
    this.sentAt = context.clock.monotonic();
    if (order.keep !== undefined) this.keepIn(order.keep);
  }

  send(): void {
    const { req, res, order, tunnel } = this;
    res.on('finish', () => this.onFinish());
    res.on('close', () => this.onClose());
    // Whoever expects a 100 gets it when the request is on its way upstream, and a refusal never has one in front of it.
    if (req.headers.expect !== undefined && req.httpVersionMinor === 1 && tunnel === undefined) res.writeContinue();
    this.call = this.context.transport.send(
      {
        method: req.method ?? 'GET',
        target: order.target,
        headers: tunnel === undefined ? order.headers : [...order.headers, ...tunnel.offer],
        body: hasBody(req) ? req : undefined,
        upgrade: tunnel !== undefined,
      },
      this,
    );
  }

  onInformation(informational: number, raw: readonly string[]): void {
    const { req, res, order, tunnel } = this;
    if (informational !== 103 || order.beforeResponse !== undefined || tunnel !== undefined || this.gone) return;
    if (req.httpVersionMinor === 1) res.socket?.write(earlyHints(raw), 'latin1');
  }

  onHead(status: number, raw: string[]): void {
    const { order } = this;
    this.status = status;
    if (order.beforeResponse === undefined) {
      this.begin(status, order.responseHeaders(status, raw));
      // A body that is there leaves in one write with its head; one that is slow must not hold the head back.
      process.nextTick(flushHead, this);
      return;
    }
    this.call?.pause();
    this.hold(order.beforeResponse({ status, headers: raw }), (added, { ended }) => {
      this.call?.resume();
      this.begin(status, [...order.responseHeaders(status, raw), ...added]);
      if (ended) this.onEnd();
      else process.nextTick(flushHead, this);
    });
  }

  onUpgrade(raw: string[], upstream: Socket, head: Buffer): void {
    const { order, tunnel } = this;
    this.status = 101;
    // It may die while the answer is held; nothing may be thrown then.
    upstream.on('error', () => upstream.destroy());
    if (tunnel === undefined || !tunnel.accepts(raw)) {
      upstream.destroy();
      this.onFailure({ code: 'upstream_unreachable', detail: 'a 101 for a protocol that was not asked for' });
      return;
    }
    const open = (added: readonly string[]): void => {
      if (this.gone) {
        upstream.destroy();
        this.leave();
        return;
      }
      if (upstream.destroyed) {
        this.onFailure({ code: 'upstream_unreachable', detail: 'the upstream died after its 101' });
        return;
      }
      // The tunnel's own sockets tell from here on.
      this.handedOver = true;
      tunnel.open([...order.responseHeaders(101, raw), ...added], upstream, head, (delivered) => {
        if (delivered) this.settle({ kind: 'delivered', status: 101, upstreamMs: this.upstreamMs(), kept: undefined });
        else this.leave();
      });
    };
    if (order.beforeResponse === undefined) open([]);
    else this.hold(order.beforeResponse({ status: 101, headers: raw }), open, upstream);
  }

  private hold(
    pending: Promise<ResponseVerdict>,
    proceed: (added: readonly string[], held: Held) => void,
    upstream?: Socket,
  ): void {
    const { clock, log } = this.context;
    const held: Held = { since: clock.monotonic(), ended: false, failure: undefined };
    this.held = held;
    pending
      .then((verdict) => {
        this.held = undefined;
        this.heldMs += clock.monotonic() - held.since;
        switch (verdict.kind) {
          case 'stream':
            if (verdict.keep !== undefined) this.keepIn(verdict.keep);
            if (held.failure !== undefined) this.onFailure(held.failure);
            else if (this.gone && !this.isKept && upstream === undefined) this.leave();
            else proceed(verdict.headers, held);
            return;
          case 'replace':
            upstream?.destroy();
            this.replace(verdict.answer, upstream === undefined ? verdict.keep : undefined);
            if (this.aside === undefined) return;
            if (held.failure !== undefined) this.endAside(false);
            else proceed([], held);
            return;
          default:
            verdict satisfies never;
        }
      })
      .catch((error: unknown) => {
        log.error('the decision about an answer failed', { error });
        this.held = undefined;
        upstream?.destroy();
        this.call?.abort();
        this.onFailure({ code: 'upstream_unreachable', detail: 'the decision about the answer failed' });
      });
  }

  /** `aside`: where the response is read into all the same. */
  private replace(answer: Answer, aside: Aside | undefined): void {
    this.aside = aside;
    if (aside === undefined) this.call?.abort();
    this.replaced = true;
    this.status = answer.status;
    this.wholeAt = this.context.clock.monotonic();
    if (this.gone) this.leave();
    else respond(this.res, answer, this.headOnly);
  }

  private endAside(whole: boolean): void {
    const { aside } = this;
    this.aside = undefined;
    this.call?.abort();
    aside?.ended(whole);
  }

  private begin(status: number, headers: string[]): void {
    if (this.aside !== undefined) return this.aside.response.begin(status, headers);
    this.kept?.begin(status, headers);
    if (!this.gone) this.answer.begin(status, headers);
  }

  flushHead(): void {
    if (!this.replaced && !this.over && !this.gone) this.answer.flushHead();
  }

  onUnwritable(detail: string): void {
    this.call?.abort();
    this.onFailure({ code: 'upstream_unreachable', detail });
  }

  onDrain(): void {
    this.call?.resume();
  }

  onData(chunk: Buffer): void {
    if (this.aside !== undefined) {
      this.aside.response.add(chunk);
      if (!this.aside.response.isKept) this.endAside(false);
      return;
    }
    this.kept?.add(chunk);
    if (!this.gone) {
      if (!this.answer.write(chunk)) this.call?.pause();
      return;
    }
    if (!this.isKept) this.leave();
  }

  private keepIn(kept: KeptResponse): void {
    // An answer to HEAD is nothing that could be kept.
    if (!this.headOnly) this.kept = kept;
  }

  private get isKept(): boolean {
    return this.kept?.isKept === true;
  }

  onEnd(): void {
    if (this.aside !== undefined) return this.endAside(true);
    if (this.over) return;
    // An answer without a body ends while it is held: nothing of it may reach the client before the verdict.
    if (this.held !== undefined) {
      this.held.ended = true;
      return;
    }
    this.wholeAt = this.context.clock.monotonic();
    if (this.gone) this.leave(true);
    else this.answer.end();
  }

  onFailure(failure: CallFault): void {
    const { req, res } = this;
    if (this.aside !== undefined) return this.endAside(false);
    if (this.over) return;
    if (this.held !== undefined) {
      this.held.failure = failure;
    } else if (isOfUpload(failure)) {
      this.onUploadFailure(failure.code);
    } else if (this.gone) {
      this.leave(false, true);
    } else {
      const headersSent = this.answer.begun;
      if (headersSent) breakOff(req, res);
      // The caller answers on the bare socket again.
      else if (this.tunnel !== undefined) res.detachSocket(req.socket);
      this.settle({ kind: 'failed', headersSent, status: this.status, ...failure });
    }
  }

  /** The upstream is not to blame, and has nothing to say any more. */
  private onUploadFailure(code: UploadFault['code']): void {
    this.upload = code === 'upload_stalled' && !this.gone ? 'stalled' : 'broken_off';
    if (this.answer.begun) breakOff(this.req, this.res);
    this.leave();
  }

  private onFinish(): void {
    // Older Nodes report a finish for a socket that was destroyed with bytes still in it.
    this.finished = !this.req.socket.destroyed;
  }

  private onClose(): void {
    if (this.over || this.handedOver) return;
    const { status } = this;
    if (this.finished && status !== undefined) {
      const upstreamMs = this.upstreamMs();
      if (this.replaced) this.settle({ kind: 'replaced', status, upstreamMs });
      else this.settle({ kind: 'delivered', status, upstreamMs, kept: this.takeKept() });
      return;
    }
    this.gone = true;
    const { req } = this;
    if (!req.complete && req.destroyed && hasBody(req)) this.upload = 'broken_off';
    if (this.held !== undefined) return;
    // What the upstream still has to say is read on for the payer; what it has said whole is kept as it is.
    if (this.isKept && !this.replaced && this.wholeAt === undefined) this.call?.resume();
    else this.leave(this.wholeAt !== undefined && !this.replaced);
  }

  private leave(whole = false, failed = false): void {
    if (this.aside === undefined) this.call?.abort();
    this.settle({
      kind: 'client_gone',
      status: this.status,
      headSent: this.handedOver || this.answer.sent,
      failed,
      upload: this.upload,
      kept: whole ? this.takeKept() : undefined,
    });
  }

  /** Whole, and not ours any more. */
  private takeKept(): KeptResponse | undefined {
    const { kept } = this;
    if (kept === undefined || !kept.isKept || this.status === undefined) return undefined;
    this.kept = undefined;
    return kept;
  }

  private upstreamMs(): number {
    return (this.wholeAt ?? this.context.clock.monotonic()) - this.sentAt - this.heldMs;
  }

  private settle(outcome: ForwardOutcome): void {
    if (this.over) return;
    this.over = true;
    this.kept?.drop();
    // What is left of an upload that nobody reads any more; the listener bounds how long that may take.
    if (!this.req.complete) this.req.resume();
    try {
      this.order.done(outcome);
    } catch (error) {
      this.context.log.error('the end of a request failed', { error });
      this.req.socket.destroy();
    }
  }
}

function flushHead(relaying: Relaying): void {
  relaying.flushHead();
}

function isOfUpload(failure: CallFault): failure is UploadFault {
  return failure.code === 'upload_broken_off' || failure.code === 'upload_stalled';
}

/** Only links: the rest of a 103 is for the final answer to say. */
function earlyHints(raw: readonly string[]): string {
  let text = 'HTTP/1.1 103 Early Hints\r\n';
  for (let i = 0; i + 1 < raw.length; i += 2) {
    if (raw[i]?.toLowerCase() === 'link') text += `Link: ${raw[i + 1]}\r\n`;
  }
  return `${text}\r\n`;
}
