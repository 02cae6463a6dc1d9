// One connection to the upstream, and on it one call at a time: writes the request, reads the answer, tells the call's
// listener. It serves another call only where both ends are known to be at the same place: the request was sent whole,
// the answer was read whole, and not a byte came after it. Whatever else happens on the socket ends the connection, so
// that nobody ever gets another's bytes.
import { connect, isIP, type Socket } from 'node:net';
import { connect as connectSecure } from 'node:tls';
import type { AnswerHead, Lines } from './response-head.ts';
import { createAnswerReader } from './response-reader.ts';
import type { Job } from './job.ts';
import type { Slab, Slabs } from './slabs.ts';
import type { Outbox, UploadFailure, UpstreamFailure, UpstreamTimeouts } from './transport.ts';
import type { Upload } from './upload.ts';

export type ConnectionHooks = {
  readonly now: () => number;
  readonly outbox: Outbox;
  /** It may serve another job. */
  readonly onIdle: (connection: Connection) => void;
  readonly onClosed: (connection: Connection) => void;
  /** `job` ended without a byte of an answer on a connection that had served others. */
  readonly onStale: (job: Job, failure: UpstreamFailure) => void;
};

export type Connection = {
  /** Sends `job`; only from `onIdle` on. */
  readonly start: (job: Job) => void;
  readonly isUsable: () => boolean;
  /** Ends what has taken too long by `now`. */
  readonly sweep: (now: number) => void;
  /** The job was paused: nobody waits for the upstream. */
  readonly wait: () => void;
  readonly resume: () => void;
  /** Ends the connection without a word to its job. */
  readonly destroy: () => void;
  /** Ends the connection; its job fails. */
  readonly close: (detail: string) => void;
};

export type Endpoint = {
  readonly host: string;
  readonly place: { readonly host: string; readonly port: number } | { readonly path: string };
  readonly secure: boolean;
  /** Of its answers. */
  readonly lines: Lines;
};

/** Below the 5 s after which Node and uvicorn close an idle connection: one that we close first is never found dead. */
export const POOL_IDLE_MS = 4000;
const UPLOAD_MS = 30_000;
/** Below this a piece of a long body is not worth a slab of its own. */
const OWNED_BYTES = 16 * 1024;
/** What is read on of an answer that is held. */
const HELD_BYTES = 64 * 1024;

/** Connects and sends `first`. */
export function openConnection(
  endpoint: Endpoint,
  first: Job,
  timeouts: UpstreamTimeouts,
  slabs: Slabs,
  hooks: ConnectionHooks,
): Connection {
  const { now, outbox } = hooks;
  const { uploadMs = UPLOAD_MS } = timeouts;
  const uploads = { onLeft, onSent, onProgress: wait, onBroken: fail };
  const events = { onInformation, onHead, onData, onEnd, onBroken, wantsMore: () => !isPaused() };
  const reader = createAnswerReader(events, endpoint.lines);
  let job: Job | undefined = first;
  let upload: Upload | undefined;
  let trouble: NodeJS.ErrnoException | undefined;
  let connected = false;
  let closed = false;
  let uses = 0;
  let deadline = first.deadline;
  // Of the job: its request was sent whole; it may be on its way; a byte, or a piece of the body, of its answer is here.
  let sent = false;
  let left = false;
  let answered = false;
  let begun = false;
  let keepAlive = false;
  // Of the socket: nothing more comes; reading was stopped; what was read and is not wanted yet.
  let ended = false;
  let stopped = false;
  let stash: Buffer | undefined;
  let slab: Slab | undefined;
  let filled = false;
  // The last read filled its buffer: there may be more that came with it.
  let brimming = false;

  const socket = openSocket();
  const self: Connection = { start, isUsable, sweep, wait, resume, destroy, close };
  first.connection = self;
  return self;

  function openSocket(): Socket {
    const { host, place, secure } = endpoint;
    // A tunnel takes its socket over as a stream; everything else is read into memory that is used again.
    const way = first.request.upgrade ? {} : { onread: { buffer: nextBuffer, callback: onRead } };
    const name = isIP(host) === 0 ? { servername: host } : {};
    const opened = secure
      ? connectSecure({ ...place, ...way, ...name, ALPNProtocols: ['http/1.1'] })
      : connect({ ...place, ...way });
    opened.setNoDelay(true);
    opened.once(secure ? 'secureConnect' : 'connect', onConnected);
    if (first.request.upgrade) opened.on('data', onStream);
    opened.on('drain', onDrain);
    opened.on('end', onFin);
    opened.on('error', onError);
    opened.on('close', onClose);
    return opened;
  }

  // Sending.

  function onConnected(): void {
    connected = true;
    if (job === undefined) destroy();
    else start(job);
  }

  function start(next: Job): void {
    job = next;
    next.connection = self;
    uses++;
    answered = false;
    begun = false;
    const { request, head } = next;
    ({ upload } = next);
    reader.begin(request.method === 'HEAD');
    sent = upload === undefined;
    left = false;
    if (upload === undefined) outbox.write(socket, head, 'latin1', onLeft);
    else upload.sendOn(socket, head, uploads, outbox);
    wait();
  }

  function onLeft(): void {
    left = true;
    if (job !== undefined) job.sent = true;
  }

  function onSent(): void {
    sent = true;
    upload = undefined;
    wait();
  }

  function onDrain(): void {
    upload?.onDrain();
    wait();
  }

  /** From now on: how long whoever has to do the next thing may take. */
  function wait(): void {
    if (!connected) return;
    const waitsForHead = reader.phase() === 'head';
    if (job === undefined) deadline = now() + POOL_IDLE_MS;
    else if (job.paused && !waitsForHead) deadline = Infinity;
    else deadline = now() + (sent && waitsForHead ? timeouts.headersMs : timeouts.idleMs);
  }

  function sweep(at: number): void {
    if (closed) return;
    if (job !== undefined && at >= job.endsAt)
      return fail({ code: 'upstream_timeout', detail: 'the whole took too long' });
    // A client that heard the upstream already may have nothing more to say.
    if (connected && upload !== undefined && reader.phase() === 'head' && upload.quietMs(at) >= uploadMs)
      return fail({ code: 'upload_stalled', detail: 'nothing came of the body in time' });
    if (at < deadline) return;
    if (job === undefined) return destroy();
    if (!connected) return fail({ code: 'upstream_timeout', detail: 'no connection to the upstream in time' });
    if (reader.phase() !== 'head')
      return fail({ code: 'upstream_timeout', detail: 'the answer stopped in the middle' });
    // The upstream took everything that came: it is the client who stopped.
    if (!sent && socket.writableLength === 0) wait();
    else fail({ code: 'upstream_timeout', detail: 'no answer in time' });
  }

  // Reading.

  /** Where the next read goes: the shared buffer, or a slab of this connection's while a long body comes. */
  function nextBuffer(): Buffer {
    const inBody = reader.phase() !== 'head';
    if (slab !== undefined && (!inBody || slab.users > 1)) dropSlab();
    if (slab === undefined && inBody && filled) slab = slabs.take();
    return slab?.bytes ?? slabs.shared;
  }

  function dropSlab(): void {
    slab?.release();
    slab = undefined;
  }

  function onRead(size: number, bytes: Uint8Array): boolean {
    // A read that filled its buffer is one of many: further ones are worth larger buffers.
    brimming = size === bytes.length;
    filled = brimming || slab !== undefined;
    take(slab?.bytes ?? slabs.shared, size);
    stopped ||= isFull();
    return !stopped;
  }

  function onStream(chunk: Buffer): void {
    take(chunk, chunk.length);
    if (!isFull()) return;
    stopped = true;
    socket.pause();
  }

  function isPaused(): boolean {
    return job?.paused === true;
  }

  /** Of an answer that is held the beginning is read on, so that an upstream that dies meanwhile is noticed. */
  function isFull(): boolean {
    return isPaused() && (begun || (stash !== undefined && stash.length >= HELD_BYTES));
  }

  function take(bytes: Buffer, size: number): void {
    // Bytes that nobody asked for.
    if (job === undefined) return destroy();
    if (!left) return fail({ code: 'upstream_unreachable', detail: 'bytes came before the request was sent' });
    const current = job;
    answered = true;
    if (reader.phase() !== 'head' && !current.paused) deadline = now() + timeouts.idleMs;
    const at = stash === undefined ? reader.read(bytes, 0, size) : 0;
    if (job !== current || at === size) return;
    const rest = bytes.subarray(at, size);
    stash = stash === undefined ? Buffer.from(rest) : Buffer.concat([stash, rest]);
  }

  function onInformation(head: AnswerHead, bytes: Buffer, rest: number, end: number): void {
    const current = job;
    if (current === undefined) return;
    if (head.status === 101) {
      if (!current.request.upgrade)
        return fail({ code: 'upstream_unreachable', detail: 'the upstream switched protocols unasked' });
      handOver(current);
      current.listener.onUpgrade(head.headers, socket, Buffer.from(bytes.subarray(rest, end)));
    } else if (head.status !== 100) {
      current.listener.onInformation(head.status, head.headers);
    }
  }

  function onHead(head: AnswerHead, more: boolean): void {
    keepAlive = head.keepAlive;
    wait();
    job?.listener.onHead(head.status, head.headers, more);
  }

  function onData(piece: Buffer): void {
    begun = true;
    const own = slab;
    if (own === undefined || piece.buffer !== own.bytes.buffer || piece.length < OWNED_BYTES) {
      job?.listener.onData(piece, undefined);
      return;
    }
    own.users++;
    let out = true;
    job?.listener.onData(piece, () => {
      // Given back twice, it would be written by two answers at once.
      if (out) own.release();
      out = false;
    });
  }

  function onEnd(surplus: boolean): void {
    const current = job;
    if (current === undefined) return;
    current.over = true;
    job = undefined;
    if (keepAlive && sent && !surplus && !ended && !first.request.upgrade) {
      wait();
      // What came with this answer and is nobody's may not have been read yet: only the next polls show.
      const unread = stopped || brimming;
      if (stopped) readAgain();
      if (unread) setImmediate(setImmediate, offer);
      else hooks.onIdle(self);
    } else {
      destroy();
    }
    current.listener.onEnd();
  }

  function offer(): void {
    if (job === undefined && isUsable()) hooks.onIdle(self);
  }

  function onBroken(detail: string): void {
    fail({ code: 'upstream_unreachable', detail });
  }

  function resume(): void {
    wait();
    if (stash !== undefined || stopped) process.nextTick(readOn);
  }

  function readOn(): void {
    const current = job;
    if (current === undefined || current.paused) return;
    const rest = stash;
    stash = undefined;
    const at = rest === undefined ? 0 : reader.read(rest, 0, rest.length);
    if (job !== current) return;
    if (rest !== undefined && at < rest.length) stash = rest.subarray(at);
    else if (ended) conclude();
    if (stopped && !isPaused()) readAgain();
  }

  function readAgain(): void {
    stopped = false;
    socket.resume();
  }

  // Ends.

  function onFin(): void {
    ended = true;
    conclude();
  }

  function onError(error: NodeJS.ErrnoException): void {
    trouble = error;
  }

  function onClose(): void {
    closed = true;
    // Without an orderly end, a body that only the end delimits is not whole.
    if (!ended) trouble ??= Object.assign(new Error(brokenOff()), { code: 'ECONNRESET' });
    ended = true;
    conclude();
    dropSlab();
    hooks.onClosed(self);
  }

  /** No more comes; what was read before that still counts. */
  function conclude(): void {
    if (job === undefined) return destroy();
    if (stash !== undefined && trouble === undefined && reader.mayEndWith(stash)) return;
    if (reader.phase() === 'close' && trouble === undefined) onEnd(false);
    else
      fail({
        code: 'upstream_unreachable',
        detail: trouble === undefined ? brokenOff() : `${trouble.code ?? 'error'}: ${trouble.message}`,
      });
  }

  function brokenOff(): string {
    return reader.phase() === 'head'
      ? 'the connection closed without an answer'
      : 'the upstream died in the middle of its answer';
  }

  function fail(failure: UpstreamFailure | UploadFailure): void {
    const current = job;
    if (current === undefined) return;
    destroy();
    if (failure.code === 'upstream_unreachable' && uses > 1 && !answered) {
      hooks.onStale(current, { code: failure.code, detail: failure.detail });
      return;
    }
    current.over = true;
    current.listener.onFailure({ ...failure, sent: current.sent });
  }

  /** From here on the socket is somebody else's. */
  function handOver(current: Job): void {
    current.over = true;
    job = undefined;
    closed = true;
    reader.stop();
    socket.pause();
    socket.removeListener('data', onStream);
    socket.removeListener('drain', onDrain);
    socket.removeListener('end', onFin);
    socket.removeListener('close', onClose);
    hooks.onClosed(self);
  }

  function destroy(): void {
    job = undefined;
    stash = undefined;
    reader.stop();
    upload?.stop();
    upload = undefined;
    socket.destroy();
  }

  function close(detail: string): void {
    fail({ code: 'upstream_unreachable', detail });
    destroy();
  }

  function isUsable(): boolean {
    return !ended && !socket.destroyed && socket.writable;
  }
}
