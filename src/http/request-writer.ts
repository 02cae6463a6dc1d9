// Writes one request: the head exactly as it was decided, the body framed as the head announces it. A head that could
// be read as two requests is not written: no line break, no space in the target, no malformed name. `RequestWriter` is
// pure: pieces of the body go in, bytes come out. `Upload` carries them from the body's stream to the socket.
import type { Socket } from 'node:net';
import { NAME, VALUE } from './header-syntax.ts';
import type { UpstreamRequest, BatchedWrites, CallFault, RequestBody } from './transport.ts';

const METHOD = /^[A-Z][A-Z0-9!#$%&'*+.^_`|~-]*$/;
const TARGET = /^[\x21-\x7e]+$/;
const WHOLE_NAME = new RegExp(`^${NAME}$`);
const WHOLE_VALUE = new RegExp(`^${VALUE}$`);
/** Up to this size a piece is joined to what is written with it, which costs less than a write of its own. */
const JOINED_BYTES = 16 * 1024;

/** The head with its empty line, one character a byte; undefined if it cannot be written. */
export function writeHead({ method, target, headers }: UpstreamRequest): string | undefined {
  if (!METHOD.test(method) || !TARGET.test(target)) return undefined;
  let head = `${method} ${target} HTTP/1.1\r\n`;
  for (let i = 0; i + 1 < headers.length; i += 2) {
    const name = headers[i] ?? '';
    const value = headers[i + 1] ?? '';
    if (!WHOLE_NAME.test(name) || !WHOLE_VALUE.test(value)) return undefined;
    head += `${name}: ${value}\r\n`;
  }
  return `${head}\r\n`;
}

/** Reads what `headers` announce of a body: a length in bytes, `chunked`, or undefined for none. */
export function readFraming(headers: readonly string[]): number | 'chunked' | undefined {
  for (let i = headers.length - 2; i >= 0; i -= 2) {
    const name = headers[i];
    const size = name?.length;
    if (size === 14 && name?.toLowerCase() === 'content-length') return Number(headers[i + 1]);
    if (size === 17 && name?.toLowerCase() === 'transfer-encoding') return 'chunked';
  }
  return undefined;
}

/** A request with a body. A class, because every such request makes one. */
export class RequestWriter {
  /** Number of bytes of the body that are still to come; undefined: it is chunked. */
  private left: number | undefined;
  private ended = false;
  private out: (string | Buffer)[] = [];
  /** Text that follows `out`, one character a byte; then small pieces of the body, which leave as one chunk. */
  private text: string;
  private small = '';

  constructor(head: string, framing: number | 'chunked') {
    this.text = head;
    this.left = framing === 'chunked' ? undefined : framing;
  }

  /** The next piece of the body; false: it is longer than announced. */
  write(piece: Buffer): boolean {
    const { length } = piece;
    if (this.left !== undefined) {
      const isTooLong = length > this.left;
      this.left = Math.max(0, this.left - length);
      if (isTooLong) return false;
    }
    if (length <= JOINED_BYTES) {
      this.small += piece.toString('latin1');
      return true;
    }
    this.frameSmall();
    const chunked = this.left === undefined;
    this.out.push(chunked ? `${this.text}${length.toString(16)}\r\n` : this.text, piece);
    this.text = chunked ? '\r\n' : '';
    return true;
  }

  /** Ends the body; false: it is shorter than announced. */
  end(): boolean {
    this.ended = true;
    this.frameSmall();
    if (this.left === undefined) this.text += '0\r\n\r\n';
    return this.isWhole;
  }

  /** Whether all that was announced is here; a chunked body is whole only at its end. */
  get isWhole(): boolean {
    return this.left === undefined ? this.ended : this.left === 0;
  }

  /** Number of bytes that are ready to be written. */
  get readyBytes(): number {
    return this.out.length > 0 ? Infinity : this.text.length + this.small.length;
  }

  /** Takes out what is to be written now, in this order. */
  take(): readonly (string | Buffer)[] {
    this.frameSmall();
    const { out, text } = this;
    if (text !== '') out.push(text);
    this.out = [];
    this.text = '';
    return out;
  }

  private frameSmall(): void {
    const { small, left } = this;
    if (small === '') return;
    this.text += left === undefined ? `${small.length.toString(16)}\r\n${small}\r\n` : small;
    this.small = '';
  }
}

// The body goes from its stream to the upstream's socket with back-pressure. Without a connection only its beginning is
// read. Pieces of one turn of the event loop leave in one write, the head with the first of them. A body that breaks off
// ends the request; it is never made to look whole.

export type UploadListener = {
  /**
   * Hears of progress. `ready`, maybe again: the body or its end begins to come, and it has no connection. `body`: some
   * of it leaves before the rest. `sent`: its last byte was handed to the socket.
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

  /** Tells for how long nothing of the body came by `now`, to the time between two calls. */
  quietMs(now: number): number {
    if (this.stream.isPaused() || this.sourceHeld) this.quietSince = now;
    this.quietSince ??= now;
    return now - this.quietSince;
  }

  /** Stops reading and writing. */
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
   * Reads the source of a chunked body one buffer a turn, and others are served in between. One read of a socket can
   * hold ten thousand chunks, and one turn many reads.
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

  /** Sends all that came in this turn together. */
  private endTurn(): void {
    const { sink, stream } = this;
    this.turnEnds = false;
    // A stream that is complete ends next, and its end leaves with this piece.
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

  /** Finishes the request. The connection may be used again only after its last byte was handed to the socket. */
  private finish(sink: Sink): void {
    const { stream, listener, progress } = this;
    const pieces = this.writer.take();
    this.stop();
    // The body is whole: what is left of the stream is its end.
    stream.resume();
    const [text] = pieces;
    if (progress === 'nothing left' && pieces.length === 1 && typeof text === 'string') {
      // The whole request leaves with other requests of this turn.
      sink.writeBatch.write(sink.socket, text, 'latin1', this);
    } else {
      this.write(pieces, sink);
      listener.onProgress('sent');
    }
  }

  onLeaving(): void {
    this.listener.onProgress('sent');
  }

  private breakOff(detail: string): void {
    if (this.progress === 'over') return;
    this.stop();
    this.listener.onBroken({ code: 'upload_broken_off', detail });
  }
}

/**
 * Gives the memory of a written piece back at once, if it has its buffer to itself. Left to the garbage collector, an
 * upload of 10 MB takes twice the CPU: without the `transfer` 1.20 ms a MB in place of 0.60 (`npm run bench -- --only
 * upload --rounds 5 --checkout ../without`).
 */
function free({ buffer, length }: Buffer): void {
  if (buffer instanceof ArrayBuffer && buffer.byteLength === length) buffer.transfer(0);
}

function nothing(): void {
  // The event `close` tells of an error; a stream whose source is paused reads nothing.
}
