// One request on its way, over as many connections as it takes: what was asked, who listens, and how far it got. It is on
// one connection at a time, and its listener hears of one end. Below it, its body on the way.
import type { Socket } from 'node:net';
import { readFraming } from './framing.ts';
import type {
  CallFault,
  BatchedWrites,
  UpstreamCall,
  UpstreamListener,
  UpstreamRequest,
  RequestBody,
} from './transport.ts';
import { JOINED_BYTES, RequestWriter } from './request-writer.ts';

/** What a call needs of the connection that it is on. */
export type CallConnection = {
  /** What has to happen next has its whole time from here on. */
  moved(): void;
  resume(): void;
  destroy(): void;
};

const REPEATABLE = new Set(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE']);

/** A class, because every request makes one. */
export class PoolCall implements UpstreamCall, UploadListener {
  readonly request: UpstreamRequest;
  /** The request's head as it is written. */
  readonly head: string;
  readonly listener: UpstreamListener;
  /** Until when all of it has to be over, in milliseconds of the pool's clock. */
  readonly endsAt: number;
  /** Of a request with a body. */
  readonly upload: Upload | undefined;
  /** Until when it waits for the beginning of its body, or for a connection. */
  deadline = 0;
  paused = false;
  /** On this connection; `queued`: nothing of it left yet. */
  sending: 'queued' | 'body' | 'sent' = 'queued';
  /** A byte of it may have left, on this connection or the one before. */
  private hasLeft = false;
  private retried = false;
  private place: 'waiting' | CallConnection | 'over' = 'waiting';
  private readonly whenReady: (call: PoolCall) => void;

  /** `whenReady`: the first byte of its body is there. */
  constructor(
    request: UpstreamRequest,
    head: string,
    listener: UpstreamListener,
    endsAt: number,
    whenReady: (call: PoolCall) => void,
  ) {
    const { body, headers } = request;
    this.request = request;
    this.head = head;
    this.listener = listener;
    this.endsAt = endsAt;
    this.whenReady = whenReady;
    this.upload =
      body === undefined || head === '' ? undefined : new Upload(body, head, readFraming(headers) ?? 0, this);
  }

  get isOver(): boolean {
    return this.place === 'over';
  }

  moveTo(connection: CallConnection): void {
    this.place = connection;
  }

  sendOn(socket: Socket, writeBatch: BatchedWrites): void {
    this.sending = 'queued';
    if (this.upload === undefined) writeBatch.write(socket, this.head, 'latin1', () => this.onProgress('sent'));
    else this.upload.sendOn(socket, writeBatch);
  }

  pause(): void {
    this.paused = true;
  }

  resume(): void {
    this.paused = false;
    if (typeof this.place === 'object') this.place.resume();
  }

  abort(): void {
    const { place } = this;
    this.end();
    if (typeof place === 'object') place.destroy();
  }

  onProgress(progress: 'ready' | 'body' | 'sent'): void {
    if (progress === 'ready') return this.whenReady(this);
    this.sending = progress;
    this.hasLeft = true;
    if (typeof this.place === 'object') this.place.moved();
  }

  onBroken(fault: CallFault): void {
    this.abort();
    this.tell(fault);
  }

  /** True once, for a call that can be sent twice without a difference to anybody: idempotent and without a body. */
  takeRetry(): boolean {
    const { body, upgrade, method } = this.request;
    if (this.retried || body !== undefined || upgrade || !REPEATABLE.has(method)) return false;
    this.retried = true;
    return true;
  }

  /** Nothing more is said of it. */
  end(): void {
    this.place = 'over';
    this.upload?.stop();
  }

  fail(fault: CallFault): void {
    if (this.isOver) return;
    this.end();
    this.tell(fault);
  }

  private tell(fault: CallFault): void {
    this.listener.onFailure({ ...fault, sent: this.hasLeft });
  }
}

export function unreachable(detail: string): CallFault {
  return { code: 'upstream_unreachable', detail };
}

export function timeout(detail: string): CallFault {
  return { code: 'upstream_timeout', detail };
}

// The body goes from its stream to the upstream's socket with back-pressure. Before it has a connection only the first of it
// is read. Pieces that came within one turn of the event loop leave in one write, the head with the first of them. A body
// that breaks off ends the request; it is never made to look whole.

export type UploadListener = {
  /**
   * `ready`, and may be again: the first of it is there, or its end, and it has no connection. `body`: some of it leaves
   * before the rest. `sent`: its last byte was handed to the socket.
   */
  onProgress(progress: 'ready' | 'body' | 'sent'): void;
  onBroken(fault: CallFault): void;
};

type Sink = { readonly socket: Socket; readonly writeBatch: BatchedWrites };

/** A class, because every request with a body makes one. */
export class Upload {
  private readonly stream: RequestBody;
  private readonly writer: RequestWriter;
  private readonly chunked: boolean;
  private readonly listener: UploadListener;
  private sink: Sink | undefined;
  private progress: 'nothing left' | 'leaving' | 'over' = 'nothing left';
  /** Something waits for the end of the turn. */
  private turnEnds = false;
  /** The stream's source is paused until then. */
  private sourceHeld = false;
  private quietSince: number | undefined;

  constructor(stream: RequestBody, head: string, framing: number | 'chunked', listener: UploadListener) {
    this.stream = stream;
    this.writer = new RequestWriter(head, framing);
    this.chunked = framing === 'chunked';
    this.listener = listener;
    stream.on('error', nothing);
    stream.on('data', this.onData);
    stream.on('end', this.onEnd);
    stream.on('close', this.onClose);
    stream.resume();
  }

  /** Sends the request; once. */
  sendOn(socket: Socket, writeBatch: BatchedWrites): void {
    this.sink = { socket, writeBatch };
    if (this.writer.isWhole) this.finish(this.sink);
    else if (this.stream.destroyed) this.onClose();
    else this.onDrain();
  }

  /** The socket takes more. */
  onDrain(): void {
    if (this.progress === 'over') return;
    this.stream.resume();
    this.endTurnSoon();
  }

  /** For how long nothing of it came by `now`, to the time between two calls. */
  quietMs(now: number): number {
    if (this.stream.isPaused() || this.sourceHeld) this.quietSince = now;
    this.quietSince ??= now;
    return now - this.quietSince;
  }

  /** Nothing more is read or written. */
  stop(): void {
    const { stream } = this;
    if (this.progress === 'over') return;
    this.progress = 'over';
    stream.removeListener('data', this.onData);
    stream.removeListener('end', this.onEnd);
    stream.removeListener('close', this.onClose);
    this.wakeSource();
  }

  private readonly onData = (piece: Buffer): void => {
    const { stream, writer, sink } = this;
    this.quietSince = undefined;
    if (!writer.write(piece)) return this.breakOff('the body is longer than its Content-Length');
    if (this.chunked) this.holdSource();
    const isMuch = writer.readyBytes > JOINED_BYTES;
    if (sink === undefined) {
      if (isMuch) stream.pause();
      this.listener.onProgress('ready');
    } else if (writer.isWhole) {
      this.finish(sink);
    } else if (isMuch) {
      this.write(writer.take(), sink);
      if (sink.socket.writableNeedDrain) stream.pause();
    } else {
      this.endTurnSoon();
    }
  };

  private readonly onEnd = (): void => {
    if (!this.writer.end()) this.onClose();
    else if (this.sink === undefined) this.listener.onProgress('ready');
    else this.finish(this.sink);
  };

  private readonly onClose = (): void => {
    if (!this.writer.isWhole) this.breakOff('the body ended before it was whole');
  };

  /**
   * One read of a socket can hold ten thousand chunks, and a turn many reads: the source of a chunked body is read one
   * buffer a turn, so that others are served in between.
   */
  private holdSource(): void {
    const { stream } = this;
    this.endTurnSoon();
    if (this.sourceHeld || stream.socket === undefined || stream.complete === true) return;
    this.sourceHeld = true;
    // A stream that is read from asks its source for more.
    stream._read = nothing;
    stream.socket.pause();
  }

  private wakeSource(): void {
    if (!this.sourceHeld) return;
    this.sourceHeld = false;
    Reflect.deleteProperty(this.stream, '_read');
    this.stream.socket?.resume();
  }

  private endTurnSoon(): void {
    if (this.turnEnds) return;
    this.turnEnds = true;
    setImmediate(() => this.endTurn());
  }

  /** All that came in this turn leaves together. */
  private endTurn(): void {
    const { sink, stream } = this;
    this.turnEnds = false;
    // Of a stream that is complete the end follows, and leaves with it.
    if (this.progress === 'over' || sink === undefined || stream.complete === true) return;
    this.write(this.writer.take(), sink);
    if (sink.socket.writableNeedDrain) stream.pause();
    else this.wakeSource();
  }

  private write(pieces: readonly (string | Buffer)[], { socket }: Sink): void {
    if (pieces.length === 0) return;
    if (this.progress === 'nothing left') this.progress = 'leaving';
    this.listener.onProgress('body');
    if (pieces.length > 1) socket.cork();
    for (const piece of pieces) {
      if (typeof piece === 'string') socket.write(piece, 'latin1');
      else socket.write(piece, () => free(piece));
    }
    if (pieces.length > 1) socket.uncork();
  }

  /** Only after its last byte was handed to the socket may the connection be used again. */
  private finish(sink: Sink): void {
    const { stream, listener, progress } = this;
    const pieces = this.writer.take();
    this.stop();
    // It is whole: what is left of the stream is its end.
    stream.resume();
    const [text] = pieces;
    if (progress === 'nothing left' && pieces.length === 1 && typeof text === 'string') {
      // All of it leaves with other requests of this turn.
      sink.writeBatch.write(sink.socket, text, 'latin1', () => listener.onProgress('sent'));
    } else {
      this.write(pieces, sink);
      listener.onProgress('sent');
    }
  }

  private breakOff(detail: string): void {
    if (this.progress === 'over') return;
    this.stop();
    this.listener.onBroken({ code: 'upload_broken_off', detail });
  }
}

/**
 * Gives the memory of a written piece back at once, if it has its buffer to itself. Left to the garbage collector, an
 * upload of 10 MB takes twice the CPU (1.20 ms a MB in place of 0.60, without the `transfer`, `npm run bench -- --only
 * upload --rounds 5 --checkout ../without`).
 */
function free({ buffer, length }: Buffer): void {
  if (buffer instanceof ArrayBuffer && buffer.byteLength === length) buffer.transfer(0);
}

function nothing(): void {
  // Of an error `close` tells; a stream whose source is paused reads nothing.
}
