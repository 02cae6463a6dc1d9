// The body of one request on its way from its stream to the upstream's socket, with back-pressure. It is read only when a
// connection is there for it. Pieces that came within one turn of the event loop leave in one write, the head with the
// first of them. A body that breaks off ends the request; it is never made to look whole.
import type { Socket } from 'node:net';
import { JOINED_BYTES, RequestWriter } from './request-writer.ts';
import type { CallFault, Outbox, RequestBody } from './transport.ts';

/** Hears of a body that has no connection yet: the first of it is there, or its end; or it broke off. */
export type GatheringListener = { onReady(): void; onBroken(fault: CallFault): void };
/** Hears of one that is sent: some of it leaves before the rest; the last byte was handed to the socket; it broke off. */
export type SendingListener = { onLeaving(): void; onSent(): void; onBroken(fault: CallFault): void };

const READ_BYTES = 64 * 1024;

type Sink = { readonly socket: Socket; readonly outbox: Outbox; readonly listener: SendingListener };

/** A class, because every request with a body makes one. */
export class Upload {
  private readonly stream: RequestBody;
  private readonly writer: RequestWriter;
  private readonly chunked: boolean;
  private readonly gathering: GatheringListener;
  private sink: Sink | undefined;
  private progress: 'nothing left' | 'leaving' | 'over' = 'nothing left';
  /** Something waits for the end of the turn. */
  private turnEnds = false;
  /** The stream's source is paused until then. */
  private sourceHeld = false;
  private quietSince: number | undefined;
  private readonly onReadable = (): void => {
    if (this.chunked) this.holdSource();
    if (this.sink === undefined) this.gathering.onReady();
    else if (!this.chunked) this.pump();
  };
  private readonly onEnd = (): void => {
    this.stream.removeListener('close', this.onClose);
    if (!this.writer.end()) this.onClose();
    else if (this.sink === undefined) this.gathering.onReady();
    else this.finish(this.sink);
  };
  private readonly onClose = (): void => this.breakOff('the body ended before it was whole');

  constructor(stream: RequestBody, head: string, framing: number | 'chunked', gathering: GatheringListener) {
    this.stream = stream;
    this.writer = new RequestWriter(head, framing);
    this.chunked = framing === 'chunked';
    this.gathering = gathering;
    stream.on('error', nothing);
    stream.on('end', this.onEnd);
    stream.on('close', this.onClose);
    stream.on('readable', this.onReadable);
  }

  /** Sends the request; once. */
  sendOn(socket: Socket, outbox: Outbox, listener: SendingListener): void {
    this.sink = { socket, outbox, listener };
    if (this.stream.readableEnded) this.finish(this.sink);
    else if (this.stream.destroyed) this.onClose();
    else this.onDrain();
  }

  /** The socket takes more. */
  onDrain(): void {
    this.pump();
    this.endTurnSoon();
  }

  /** For how long nothing of it came by `now`, to the time between two calls. */
  quietMs(now: number): number {
    if (this.stream.readableLength > 0 || this.sourceHeld) this.quietSince = now;
    this.quietSince ??= now;
    return now - this.quietSince;
  }

  /** Nothing more is read or written. */
  stop(): void {
    const { stream } = this;
    if (this.progress === 'over') return;
    this.progress = 'over';
    stream.removeListener('readable', this.onReadable);
    stream.removeListener('end', this.onEnd);
    stream.removeListener('close', this.onClose);
    this.wakeSource();
  }

  private pump(): void {
    const { stream, writer, sink } = this;
    if (sink === undefined) return;
    while (this.progress !== 'over' && !sink.socket.writableNeedDrain) {
      const piece = readJoined(stream);
      if (piece === undefined) return;
      this.quietSince = undefined;
      if (!writer.write(piece)) return this.breakOff('the body is longer than its Content-Length');
      if (writer.isWhole) return this.finish(sink);
      if (writer.readyBytes > JOINED_BYTES) this.write(writer.take(), sink);
      else this.endTurnSoon();
    }
  }

  /**
   * One read of a socket can hold ten thousand chunks, and a turn many reads: a chunked body is taken at the end of the
   * turn, and its source is read one buffer a turn, so that others are served in between.
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
    if (this.turnEnds || this.progress === 'over') return;
    this.turnEnds = true;
    setImmediate(() => this.endTurn());
  }

  /** All that came in this turn leaves together. */
  private endTurn(): void {
    const { sink } = this;
    this.turnEnds = false;
    this.pump();
    // Its end follows, and leaves with it.
    if (this.progress === 'over' || sink === undefined || this.stream.complete === true) return;
    this.write(this.writer.take(), sink);
    if (!sink.socket.writableNeedDrain) this.wakeSource();
  }

  private write(pieces: readonly (string | Buffer)[], { socket, listener }: Sink): void {
    if (pieces.length === 0) return;
    if (this.progress === 'nothing left') this.progress = 'leaving';
    listener.onLeaving();
    if (pieces.length > 1) socket.cork();
    for (const piece of pieces) {
      if (typeof piece === 'string') socket.write(piece, 'latin1');
      else socket.write(piece, () => free(piece));
    }
    if (pieces.length > 1) socket.uncork();
  }

  /** Only after its last byte was handed to the socket may the connection be used again. */
  private finish(sink: Sink): void {
    const { stream, progress } = this;
    const pieces = this.writer.take();
    this.stop();
    // It is whole: what is left of the stream is its end.
    stream.resume();
    const [text] = pieces;
    if (progress === 'nothing left' && pieces.length === 1 && typeof text === 'string') {
      // All of it leaves with other requests of this turn.
      sink.outbox.write(sink.socket, text, 'latin1', () => sink.listener.onSent());
    } else {
      this.write(pieces, sink);
      sink.listener.onSent();
    }
  }

  private breakOff(detail: string): void {
    if (this.progress === 'over') return;
    this.stop();
    (this.sink?.listener ?? this.gathering).onBroken({ code: 'upload_broken_off', detail });
  }
}

/** What is there of a stream, up to a limit, as one piece: very many small ones would each cost a chunk. */
function readJoined(stream: RequestBody): Buffer | undefined {
  const pieces: Buffer[] = [];
  for (let size = 0; size < READ_BYTES;) {
    const piece = stream.read() as Buffer | null;
    if (piece === null) break;
    size += piece.length;
    pieces.push(piece);
  }
  return pieces.length > 1 ? Buffer.concat(pieces) : pieces[0];
}

/**
 * Gives the memory of a written piece back at once, if it has its buffer to itself. Left to the garbage collector, an upload
 * of
 * 10 MB through a bare relay costs about 70 % more CPU.
 */
function free({ buffer, length }: Buffer): void {
  if (buffer instanceof ArrayBuffer && buffer.byteLength === length) buffer.transfer(0);
}

function nothing(): void {
  // Of an error `close` tells; a stream whose source is paused reads nothing.
}
