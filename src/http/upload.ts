// The body of one request on its way to an upstream's socket, framed as its headers say and never otherwise. What is read
// of it and what was announced are counted here alone: a body that ends short of its length or grows past it breaks the
// request off; it is never made to look whole. It is read before there is a connection only until something is there to
// send. Pieces that came within one turn leave in one write, the head with the first of them, so that a body of many small
// pieces costs its bytes and not its pieces.
import type { Socket } from 'node:net';
import type { Outbox, RequestBody, UploadFailure } from './transport.ts';

/** For whoever has no connection for it yet. */
export type GatheringListener = {
  /** Something is there to send. */
  readonly onReady: () => void;
  /** The body cannot be sent as it was announced. */
  readonly onBroken: (failure: UploadFailure) => void;
};

/** For the connection that it is sent on. */
export type SendingListener = {
  /** The first byte of the request is about to be handed to the socket. */
  readonly onLeft: () => void;
  /** More of the body went on its way. */
  readonly onProgress: () => void;
  /** The last byte was handed to the socket. */
  readonly onSent: () => void;
  readonly onBroken: (failure: UploadFailure) => void;
};

export type Upload = {
  /** Sends `head` and the body to `socket`; once. */
  readonly sendOn: (socket: Socket, head: string, listener: SendingListener, outbox: Outbox) => void;
  /** The socket takes more. */
  readonly onDrain: () => void;
  /** For how long nothing came by `now` although it was waited for, to the time between two calls. */
  readonly quietMs: (now: number) => number;
  /** Nothing more is read or written. */
  readonly stop: () => void;
};

/** Up to this size pieces are joined to what is written with them, which costs less than a second write. */
const JOINED_BYTES = 16 * 1024;
/** After so many pieces in one turn the rest wait for the next, and the client's socket until none of them is left. */
const PIECES_A_TURN = 1024;

/**
 * Gives the memory of a chunk back at once. Every read of an upload has a buffer of its own, and collecting them costs as
 * much as sending them; only a chunk that has its buffer to itself is let go.
 */
function free({ buffer, length }: Buffer): void {
  if (buffer instanceof ArrayBuffer && buffer.byteLength === length) buffer.transfer(0);
}

/** The length that `headers` announce, 'chunked', or undefined where they announce no body. */
export function readFraming(headers: readonly string[]): number | 'chunked' | undefined {
  for (let i = headers.length - 2; i >= 0; i -= 2) {
    const name = headers[i];
    const size = name?.length;
    if (size === 14 && name?.toLowerCase() === 'content-length') return Number(headers[i + 1]);
    if (size === 17 && name?.toLowerCase() === 'transfer-encoding') return 'chunked';
  }
  return undefined;
}

export function startUpload(body: RequestBody, headers: readonly string[], listener: GatheringListener): Upload {
  return new Uploading(body, readFraming(headers), listener);
}

type Sending = { readonly socket: Socket; readonly listener: SendingListener };

/** A class, because every request with a body makes one. */
class Uploading implements Upload {
  private readonly body: RequestBody;
  private readonly framing: number | 'chunked' | undefined;
  private readonly gathering: GatheringListener;
  private sending: Sending | undefined;
  /** What leaves before the next piece of the body: the request's head, until it was written. */
  private head = '';
  /** Came, and was not written yet; one character a byte. */
  private pending = '';
  /** Bytes that were announced and did not come yet. */
  private left: number;
  /** `yielding`: until the next turn. `paused`: until there is a connection, or the upstream takes more. */
  private reading: 'on' | 'yielding' | 'paused' | 'ended' = 'on';
  private socketPaused = false;
  private ready = false;
  private over = false;
  private turnEnds = false;
  private begun = false;
  private pieces = 0;
  /** Something came since `quietMs` was asked last. */
  private moved = true;
  private quietSince = 0;
  private readonly take = (chunk: Buffer): void => this.onData(chunk);
  private readonly end = (): void => this.onEnd();

  constructor(body: RequestBody, framing: number | 'chunked' | undefined, gathering: GatheringListener) {
    this.body = body;
    this.framing = framing;
    this.gathering = gathering;
    this.left = typeof framing === 'number' ? framing : 0;
    body.on('data', this.take);
    body.on('end', this.end);
    body.on('close', this.end);
    body.on('error', ignore);
    if (body.isPaused()) body.resume();
  }

  sendOn(socket: Socket, head: string, listener: SendingListener, outbox: Outbox): void {
    const { body } = this;
    if (this.over) return;
    this.sending = { socket, listener };
    if (body.destroyed && this.reading !== 'ended') return this.breakOff('the client left before its body was sent');
    this.head = head;
    if (this.reading === 'ended') {
      // All of it is there, and leaves with other requests of this turn.
      outbox.write(socket, this.nextText(), 'latin1', listener.onLeft);
      this.stop();
      listener.onSent();
      return;
    }
    this.resume();
    this.endTurnSoon();
  }

  onDrain(): void {
    if (!this.over) this.resume();
  }

  quietMs(now: number): number {
    if (this.moved || this.reading !== 'on') {
      this.moved = false;
      this.quietSince = now;
    }
    return now - this.quietSince;
  }

  stop(): void {
    const { body } = this;
    if (this.over) return;
    this.over = true;
    body.removeListener('data', this.take);
    body.removeListener('end', this.end);
    body.removeListener('close', this.end);
    if (this.socketPaused) this.resumeSocket();
  }

  private onData(chunk: Buffer): void {
    const { length } = chunk;
    if (this.over || length === 0) return;
    this.moved = true;
    if (this.framing !== 'chunked') {
      if (length > this.left) return this.breakOff('the body is longer than its Content-Length');
      this.left -= length;
      // That nothing follows it, the parser says a moment later.
      if (this.left === 0) this.reading = 'ended';
    }
    const { sending } = this;
    if (sending !== undefined && length > JOINED_BYTES) this.writeLarge(chunk, sending);
    else this.pending += chunk.toString('latin1');
    if (++this.pieces === PIECES_A_TURN) this.yieldTurn();
    if (sending === undefined) this.onGathered();
    else if (this.reading === 'ended') this.finish(sending);
    else if (this.pending.length >= JOINED_BYTES) this.flush(sending);
    else this.endTurnSoon();
  }

  private onEnd(): void {
    const { body, framing } = this;
    if (this.over) return;
    if (!body.readableEnded || framing === undefined || this.left > 0) {
      return this.breakOff('the body ended before it was whole');
    }
    this.reading = 'ended';
    if (this.sending === undefined) this.onGathered();
    else this.finish(this.sending);
  }

  /** There is something to send, and nothing yet to send it on: most of what else comes waits where it is. */
  private onGathered(): void {
    if (this.pending.length >= JOINED_BYTES) this.pause();
    if (this.ready) return;
    this.ready = true;
    this.gathering.onReady();
  }

  private yieldTurn(): void {
    const { body } = this;
    if (this.reading === 'on') {
      this.reading = 'yielding';
      body.pause();
    }
    this.endTurnSoon();
    this.socketPaused = true;
    // A stream below its mark asks for more behind every piece, and whoever is asked reads on.
    body._read = readNothing;
    body.socket?.pause();
  }

  private endTurnSoon(): void {
    if (this.turnEnds) return;
    this.turnEnds = true;
    setImmediate(endTurn, this);
  }

  /** All that came in this turn leaves together. */
  endTurn(): void {
    const { body, sending } = this;
    this.turnEnds = false;
    this.pieces = 0;
    if (this.over) return;
    if (this.reading === 'yielding') {
      this.reading = 'on';
      body.resume();
    }
    if (sending !== undefined) this.flush(sending);
    if (this.socketPaused && this.reading === 'on') {
      if (body.readableLength === 0) this.resumeSocket();
      else this.endTurnSoon();
    }
  }

  private resumeSocket(): void {
    this.socketPaused = false;
    Reflect.deleteProperty(this.body, '_read');
    this.body.socket?.resume();
  }

  private flush(sending: Sending): void {
    if (this.head === '' && this.pending === '') return;
    this.write(this.nextText(), sending);
    this.afterWrite(sending);
  }

  private write(text: string, { socket, listener }: Sending): void {
    if (!this.begun) listener.onLeft();
    this.begun = true;
    socket.write(text, 'latin1');
  }

  /** A chunk that is not worth copying, behind what came before it. */
  private writeLarge(chunk: Buffer, sending: Sending): void {
    const { socket } = sending;
    const chunked = this.framing === 'chunked';
    const before = this.nextText() + (chunked ? `${chunk.length.toString(16)}\r\n` : '');
    if (before !== '') socket.cork();
    if (before !== '') this.write(before, sending);
    socket.write(chunk, () => free(chunk));
    if (chunked) socket.write('\r\n', 'latin1');
    if (before !== '') socket.uncork();
    this.afterWrite(sending);
  }

  private afterWrite({ socket, listener }: Sending): void {
    if (socket.writableNeedDrain) this.pause();
    listener.onProgress();
  }

  /** All that is there to be written, in the body's framing. */
  private nextText(): string {
    const { head, pending } = this;
    this.head = '';
    this.pending = '';
    if (this.framing !== 'chunked') return head + pending;
    const chunk = pending === '' ? '' : `${pending.length.toString(16)}\r\n${pending}\r\n`;
    return this.reading === 'ended' ? `${head}${chunk}0\r\n\r\n` : head + chunk;
  }

  /** Only a body whose last announced byte was written is sent: the connection is used again after it. */
  private finish(sending: Sending): void {
    const rest = this.nextText();
    if (rest !== '') this.write(rest, sending);
    this.stop();
    sending.listener.onSent();
  }

  private breakOff(detail: string): void {
    this.stop();
    (this.sending?.listener ?? this.gathering).onBroken({ code: 'upload_broken_off', detail });
  }

  private pause(): void {
    if (this.reading === 'ended') return;
    this.reading = 'paused';
    this.body.pause();
  }

  private resume(): void {
    if (this.reading !== 'paused') return;
    this.reading = 'on';
    this.body.resume();
    if (this.socketPaused) this.endTurnSoon();
  }
}

function ignore(): void {
  // The body closes, and that is heard.
}

function readNothing(): void {
  // The socket is paused.
}

function endTurn(upload: Uploading): void {
  upload.endTurn();
}
