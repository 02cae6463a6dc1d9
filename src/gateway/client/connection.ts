// One connection to the upstream, and on it one call at a time: writes the request, reads the answer, tells the call's
// listener. It serves another call only where both ends are known to be at the same place: the request was sent whole,
// the answer was read whole, and not a byte came after it. Whatever else happens on the socket ends the connection, so
// that nobody ever gets another's bytes.
import { connect, isIP, type Socket } from 'node:net';
import { connect as connectSecure } from 'node:tls';
import { readAnswerHead, type AnswerHead, type Framing } from './answer-head.ts';
import { createChunks, type Chunks } from './chunks.ts';
import type { Slab, Slabs } from './slabs.ts';
import type { UpstreamFailure, UpstreamListener, UpstreamRequest, UpstreamTimeouts } from './transport.ts';
import { startUpload, type Upload } from './upload.ts';

/** One request on its way, over as many connections as it takes. */
export type Job = {
  readonly request: UpstreamRequest;
  /** The request's head as it is written. */
  readonly head: string;
  readonly listener: UpstreamListener;
  connection: Connection | undefined;
  paused: boolean;
  /** Aborted, failed or whole: nothing more is said of it. */
  over: boolean;
  /** Until when it waits for a connection, in milliseconds of the pool's clock. */
  deadline: number;
  /** Until when all of it has to be over. */
  readonly endsAt: number;
  /** It was sent on a connection that had been used before; it may be sent once more on a new one. */
  retried: boolean;
};

export type ConnectionHooks = {
  readonly now: () => number;
  /** It may serve another job. */
  readonly onIdle: (connection: Connection) => void;
  readonly onClosed: (connection: Connection) => void;
  /** `job` ended without a byte of an answer on a connection that had served others. */
  readonly onStale: (job: Job, failure: UpstreamFailure) => void;
};

export type Connection = {
  /** Sends `job`; only on a new connection and from `onIdle` on. */
  readonly start: (job: Job) => void;
  readonly isUsable: () => boolean;
  /** Ends what has taken too long by `now`. */
  readonly sweep: (now: number) => void;
  readonly resume: () => void;
  /** The job's pause or resume changed what there is to wait for. */
  readonly wait: () => void;
  /** Ends the connection without a word to its job. */
  readonly destroy: () => void;
  /** Ends the connection; its job fails. */
  readonly close: (detail: string) => void;
};

export type Endpoint = { readonly host: string; readonly port: number; readonly secure: boolean };

/** Below the 5 s after which Node and uvicorn close an idle connection: one that we close first is never found dead. */
export const POOL_IDLE_MS = 4000;
const HEAD_BYTES = 64 * 1024;
const END_OF_HEAD = Buffer.from('\r\n\r\n');
const INFORMATIONAL = 32;
/** Below this a piece of a long body is not worth a slab of its own. */
const OWNED_BYTES = 16 * 1024;
/** What is kept of an answer that is held. */
const STASH_BYTES = 64 * 1024;
const NEVER = Infinity;

export function openConnection(
  endpoint: Endpoint,
  first: Job,
  timeouts: UpstreamTimeouts,
  slabs: Slabs,
  hooks: ConnectionHooks,
): Connection {
  const { now } = hooks;
  let job: Job | undefined = first;
  let upload: Upload | undefined;
  let connected = false;
  let closed = false;
  let uses = 0;
  let deadline = first.deadline;
  let trouble: NodeJS.ErrnoException | undefined;

  // Of the answer being read.
  let answered = false;
  let sent = false;
  let reading: 'head' | Framing = 'head';
  let keepAlive = false;
  let bytesLeft = 0;
  let chunks: Chunks | undefined;
  let informational = 0;
  let partial: Buffer | undefined;
  let partialBytes = 0;
  /** Read while the job was paused. */
  let stash: Buffer | undefined;
  let stopped = false;
  let ended = false;
  let begun = false;
  let slab: Slab | undefined;
  let filled = false;

  const socket = openSocket();
  const self: Connection = { start, isUsable, sweep, resume, wait, destroy, close };
  first.connection = self;
  return self;

  function openSocket(): Socket {
    const { host, port, secure } = endpoint;
    // A tunnel takes its socket over as a stream; everything else is read into memory that is used again.
    const way = first.request.upgrade ? {} : { onread: { buffer: nextBuffer, callback: onRead } };
    const opened = secure
      ? connectSecure({
          host,
          port,
          ...way,
          ALPNProtocols: ['http/1.1'],
          ...(isIP(host) === 0 ? { servername: host } : {}),
        })
      : connect({ host, port, noDelay: true, ...way });
    if (secure) opened.setNoDelay(true);
    opened.once(secure ? 'secureConnect' : 'connect', onConnected);
    if (first.request.upgrade) opened.on('data', onData);
    opened.on('drain', onDrain);
    opened.on('end', onFin);
    opened.on('error', onError);
    opened.on('close', onClose);
    return opened;
  }

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
    reading = 'head';
    informational = 0;
    begun = false;
    const { request, head } = next;
    sent = request.body === undefined;
    if (request.body === undefined) socket.write(head, 'latin1');
    else upload = startUpload(socket, head, request.body, request.headers, { onSent, onProgress: wait, onBroken });
    wait();
  }

  function onSent(): void {
    sent = true;
    upload = undefined;
    wait();
  }

  function onBroken(detail: string): void {
    fail('upstream_unreachable', detail);
  }

  function onDrain(): void {
    upload?.onDrain();
    wait();
  }

  /** Whoever has to do the next thing, from now on. */
  function wait(): void {
    if (!connected) return;
    if (job === undefined) deadline = now() + POOL_IDLE_MS;
    else if (job.paused && reading !== 'head') deadline = NEVER;
    else deadline = now() + (sent && reading === 'head' ? timeouts.headersMs : timeouts.idleMs);
  }

  function sweep(at: number): void {
    if (closed) return;
    if (job !== undefined && at >= job.endsAt) return fail('upstream_timeout', 'the whole took too long');
    if (at < deadline) return;
    if (job === undefined) return destroy();
    if (!connected) return fail('upstream_timeout', 'no connection to the upstream in time');
    // The upstream took everything that came: it is the client who stopped, and whoever listens to it ends it.
    if (!sent && reading === 'head' && socket.writableLength === 0) return wait();
    fail('upstream_timeout', reading === 'head' ? 'no answer in time' : 'the answer stopped in the middle');
  }

  // Reading.

  function nextBuffer(): Buffer {
    if (slab !== undefined) {
      if (reading === 'head') return giveBack(slab);
      if (slab.users > 1) {
        slab.release();
        slab = slabs.take();
      }
      return slab.bytes;
    }
    if (!filled || reading === 'head') return slabs.shared;
    filled = false;
    slab = slabs.take();
    return slab.bytes;
  }

  function giveBack(own: Slab): Buffer {
    own.release();
    slab = undefined;
    return slabs.shared;
  }

  function onRead(size: number, bytes: Uint8Array): boolean {
    const own = slab?.bytes ?? slabs.shared;
    filled = size === bytes.length;
    take(own, size);
    if (!isFull()) return true;
    stopped = true;
    return false;
  }

  /** While an answer is held, its beginning is read on, so that an upstream that dies meanwhile is noticed. */
  function isFull(): boolean {
    return job?.paused === true && (begun || (stash !== undefined && stash.length >= STASH_BYTES));
  }

  function onData(chunk: Buffer): void {
    take(chunk, chunk.length);
    if (!isFull()) return;
    stopped = true;
    socket.pause();
  }

  function take(bytes: Buffer, size: number): void {
    if (job === undefined) return destroy();
    answered = true;
    if (job.paused && reading !== 'head') {
      const rest = bytes.subarray(0, size);
      stash = stash === undefined ? Buffer.from(rest) : Buffer.concat([stash, rest]);
      return;
    }
    if (reading !== 'head') deadline = now() + timeouts.idleMs;
    read(job, bytes, 0, size);
  }

  /** Reads on until the bytes are used up, the job is paused or over. */
  function read(current: Job, bytes: Buffer, from: number, end: number): void {
    let at = from;
    while (at < end) {
      if (current.paused && reading !== 'head') {
        stash = Buffer.from(bytes.subarray(at, end));
        return;
      }
      switch (reading) {
        case 'head':
          at = readHead(current, bytes, at, end);
          break;
        case 'length': {
          const upTo = Math.min(end, at + bytesLeft);
          bytesLeft -= upTo - at;
          deliver(current, bytes.subarray(at, upTo));
          at = upTo;
          if (bytesLeft === 0) return finish(current, at < end);
          break;
        }
        case 'chunked': {
          const decoder = (chunks ??= createChunks());
          at = decoder.read(bytes, at, end, (piece) => {
            deliver(current, piece);
            return job === current && !current.paused;
          });
          if (job !== current) return;
          const state = decoder.state();
          if (state === 'broken') return fail('upstream_unreachable', 'the chunked coding of the answer is broken');
          if (state === 'whole') return finish(current, at < end);
          break;
        }
        case 'close':
          deliver(current, bytes.subarray(at, end));
          at = end;
          break;
        case 'none':
          return finish(current, true);
        default:
          return reading satisfies never;
      }
      if (job !== current) return;
    }
  }

  function deliver(current: Job, piece: Buffer): void {
    begun = true;
    const own = slab;
    if (own === undefined || piece.buffer !== own.bytes.buffer || piece.length < OWNED_BYTES) {
      current.listener.onData(piece, undefined);
      return;
    }
    own.users++;
    let out = true;
    current.listener.onData(piece, () => {
      // Given back twice, it would be written by two answers at once.
      if (out) own.release();
      out = false;
    });
  }

  function readHead(current: Job, bytes: Buffer, at: number, end: number): number {
    let text: string;
    let after = end;
    if (partial === undefined) {
      const stop = bytes.indexOf(END_OF_HEAD, at);
      if (stop < 0 || stop + 4 > end) {
        gather(bytes, at, end);
        return end;
      }
      text = bytes.toString('latin1', at, stop + 2);
      after = stop + 4;
    } else {
      const before = partialBytes;
      const whole = gather(bytes, at, end);
      if (whole === undefined) return end;
      const stop = whole.indexOf(END_OF_HEAD, Math.max(0, before - 3));
      if (stop < 0 || stop + 4 > partialBytes) return end;
      text = whole.toString('latin1', 0, stop + 2);
      after = at + stop + 4 - before;
      partial = undefined;
      partialBytes = 0;
    }
    const head =
      text.length > HEAD_BYTES
        ? 'the head of the answer is too large'
        : readAnswerHead(text, current.request.method === 'HEAD');
    if (typeof head === 'string') fail('upstream_unreachable', head);
    else if (head.status < 200) onInformation(current, head, bytes, after, end);
    else onHead(current, head, after < end);
    return after;
  }

  /** Keeps the beginning of a head until the rest is there; undefined where it cannot become one. */
  function gather(bytes: Buffer, at: number, end: number): Buffer | undefined {
    const size = partialBytes + end - at;
    if (size > HEAD_BYTES) {
      fail('upstream_unreachable', 'the head of the answer is too large');
      return undefined;
    }
    if (partial === undefined || partial.length < size) {
      const larger = Buffer.alloc(Math.max(1024, 2 * size));
      partial?.copy(larger, 0, 0, partialBytes);
      partial = larger;
    }
    bytes.copy(partial, partialBytes, at, end);
    // Something else than HTTP is told at once, not after a time-out.
    const known = Math.min(size, 7);
    const isHttp = partial.toString('latin1', 0, known) === 'HTTP/1.'.slice(0, known);
    const from = isHttp ? Math.max(1, partialBytes) : size;
    for (let i = from; i < size; i++) {
      if (partial[i] !== 0x0a || partial[i - 1] === 0x0d) continue;
      fail('upstream_unreachable', 'the head of the answer holds a bare line feed');
      return undefined;
    }
    partialBytes = size;
    if (isHttp) return partial;
    fail('upstream_unreachable', 'the answer does not begin with a status line of HTTP/1.0 or 1.1');
    return undefined;
  }

  function onInformation(current: Job, head: AnswerHead, bytes: Buffer, after: number, end: number): void {
    const { request, listener } = current;
    if (head.status === 101) {
      if (!request.upgrade) return fail('upstream_unreachable', 'the upstream switched protocols unasked');
      detach(current);
      listener.onUpgrade(head.headers, socket, Buffer.from(bytes.subarray(after, end)));
      return;
    }
    if (head.status < 100 || ++informational > INFORMATIONAL) {
      return fail('upstream_unreachable', `an answer with the status ${head.status}`);
    }
    if (head.status !== 100) listener.onInformation(head.status, head.headers);
  }

  function onHead(current: Job, head: AnswerHead, more: boolean): void {
    reading = head.framing;
    bytesLeft = head.length;
    keepAlive = head.keepAlive;
    chunks = undefined;
    wait();
    current.listener.onHead(head.status, head.headers, more || head.framing === 'none');
    if (job === current && head.framing === 'none') finish(current, more);
  }

  function finish(current: Job, surplus: boolean): void {
    const reusable = keepAlive && sent && !surplus && !closed && !ended && !first.request.upgrade;
    current.over = true;
    job = undefined;
    reading = 'head';
    if (reusable) {
      wait();
      if (stopped) resumeReading();
      hooks.onIdle(self);
    } else {
      destroy();
    }
    current.listener.onEnd();
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
    if (rest !== undefined) read(current, rest, 0, rest.length);
    if (job === current && ended) conclude();
    else if (stopped && job?.paused !== true) resumeReading();
  }

  function resumeReading(): void {
    stopped = false;
    socket.resume();
  }

  // Ends.

  function onFin(): void {
    ended = true;
    conclude();
  }

  /** No more comes: what was read before it still counts. */
  function conclude(): void {
    const current = job;
    if (current === undefined) return destroy();
    if (stash !== undefined && mayBeWhole(stash)) return;
    if (reading === 'close' && trouble === undefined) finish(current, false);
    else
      fail(
        'upstream_unreachable',
        trouble === undefined ? brokenOff() : `${trouble.code ?? 'error'}: ${trouble.message}`,
      );
  }

  /** Whether what waits to be read can be the rest of the answer. */
  function mayBeWhole(rest: Buffer): boolean {
    if (reading === 'length') return rest.length >= bytesLeft;
    return reading === 'chunked' ? rest.subarray(-4).equals(END_OF_HEAD) : trouble === undefined;
  }

  function onError(error: NodeJS.ErrnoException): void {
    trouble = error;
  }

  function onClose(): void {
    closed = true;
    // Cut off without an orderly end: the body of an answer that only an end delimits is not whole.
    if (!ended) trouble ??= Object.assign(new Error(brokenOff()), { code: 'ECONNRESET' });
    ended = true;
    conclude();
    if (slab !== undefined) giveBack(slab);
    hooks.onClosed(self);
  }

  function brokenOff(): string {
    return reading === 'head'
      ? 'the connection closed without an answer'
      : 'the upstream died in the middle of its answer';
  }

  function fail(code: UpstreamFailure['code'], detail: string): void {
    const current = job;
    if (current === undefined) return;
    const stale = code === 'upstream_unreachable' && uses > 1 && !answered;
    destroy();
    if (stale) {
      hooks.onStale(current, { code, detail });
      return;
    }
    current.over = true;
    current.listener.onFailure({ code, detail });
  }

  /** Hands the socket over: from here on it is somebody else's. */
  function detach(current: Job): void {
    current.over = true;
    job = undefined;
    closed = true;
    socket.pause();
    socket.removeListener('data', onData);
    socket.removeListener('drain', onDrain);
    socket.removeListener('end', onFin);
    socket.removeListener('close', onClose);
    hooks.onClosed(self);
  }

  function destroy(): void {
    job = undefined;
    upload?.stop();
    upload = undefined;
    socket.destroy();
  }

  function close(detail: string): void {
    fail('upstream_unreachable', detail);
    destroy();
  }

  function isUsable(): boolean {
    return !closed && !socket.destroyed && socket.writable && !socket.readableEnded;
  }
}
