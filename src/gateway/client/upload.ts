// Writes one request to an upstream's socket: its head and, where it has one, its body, framed as its headers say and
// never otherwise. A body that ends short of its length or grows past it breaks the request off; it is never made to
// look whole. A small body that is there at once leaves in one write with the head.
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Outbox } from '../../host/outbox.ts';

export type UploadListener = {
  /** The last byte was handed to the socket. */
  readonly onSent: () => void;
  /** More of the body went on its way. */
  readonly onProgress: () => void;
  /** The body cannot be sent as it was announced. */
  readonly onBroken: (detail: string) => void;
};

export type Upload = {
  /** The socket takes more. */
  readonly onDrain: () => void;
  /** Nothing more is written. */
  readonly stop: () => void;
};

/** Up to this size a body is copied behind the head, which costs less than a second write. */
const JOINED_BYTES = 16 * 1024;

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

export function startUpload(
  socket: Socket,
  head: string,
  body: IncomingMessage,
  headers: readonly string[],
  listener: UploadListener,
  outbox: Outbox,
): Upload {
  const upload = new Uploading(socket, head, body, readFraming(headers), listener, outbox);
  // What came with the request's head is there at the end of this turn.
  process.nextTick(begin, upload);
  return upload;
}

function begin(upload: Uploading): void {
  upload.begin();
}

/** A class, because every request with a body makes one. */
class Uploading implements Upload {
  private readonly socket: Socket;
  private readonly body: IncomingMessage;
  private readonly framing: number | 'chunked' | undefined;
  private readonly listener: UploadListener;
  private readonly outbox: Outbox;
  private unsent: string | undefined;
  private left: number;
  private over = false;
  private detach: (() => void) | undefined;

  constructor(
    socket: Socket,
    head: string,
    body: IncomingMessage,
    framing: number | 'chunked' | undefined,
    listener: UploadListener,
    outbox: Outbox,
  ) {
    this.outbox = outbox;
    this.socket = socket;
    this.body = body;
    this.framing = framing;
    this.listener = listener;
    this.unsent = head;
    this.left = typeof framing === 'number' ? framing : 0;
  }

  begin(): void {
    const { body, left } = this;
    if (this.over) return;
    // All that was announced; that nothing follows it, the parser says a moment later.
    if (body.readableLength === left && left > 0 && left <= JOINED_BYTES) {
      const whole: unknown = body.read();
      if (whole instanceof Buffer) this.sendWhole(whole);
      return;
    }
    const onData = (chunk: Buffer): void => this.onData(chunk);
    const onEnd = (): void => this.onEnd();
    this.detach = () => {
      body.removeListener('data', onData);
      body.removeListener('end', onEnd);
      body.removeListener('close', onEnd);
    };
    body.on('data', onData);
    body.on('end', onEnd);
    body.on('close', onEnd);
    if (body.isPaused()) body.resume();
    // A client may wait for the answer to its head before it sends a body.
    setImmediate(() => this.flush());
  }

  private sendWhole(whole: Buffer): void {
    this.outbox.write(this.socket, `${this.unsent ?? ''}${whole.toString('latin1')}`, 'latin1');
    this.unsent = undefined;
    this.finish();
  }

  onDrain(): void {
    if (!this.over) this.body.resume();
  }

  private flush(): void {
    const { body, unsent } = this;
    if (this.over || unsent === undefined) return;
    if (body.destroyed && !body.complete) return this.breakOff('the client left before its body was sent');
    this.socket.write(unsent, 'latin1');
    this.unsent = undefined;
  }

  private onData(chunk: Buffer): void {
    if (this.over || chunk.length === 0) return;
    if (this.framing === 'chunked') {
      this.write(chunk, `${chunk.length.toString(16)}\r\n`, '\r\n');
    } else {
      if (chunk.length > this.left) return this.breakOff('the body is longer than its Content-Length');
      this.left -= chunk.length;
      this.write(chunk, '', '');
    }
    if (this.socket.writableNeedDrain) this.body.pause();
    if (this.framing !== 'chunked' && this.left === 0) this.finish();
    else this.listener.onProgress();
  }

  private onEnd(): void {
    const { body, framing } = this;
    if (this.over) return;
    if (!body.complete || framing === undefined || this.left > 0) {
      return this.breakOff('the body ended before it was whole');
    }
    if (framing === 'chunked') {
      this.socket.write(`${this.unsent ?? ''}0\r\n\r\n`, 'latin1');
      this.unsent = undefined;
    }
    this.finish();
  }

  private write(chunk: Buffer, before: string, after: string): void {
    const { socket, unsent } = this;
    const start = unsent === undefined ? before : unsent + before;
    this.unsent = undefined;
    if (chunk.length <= JOINED_BYTES) {
      // One string and one write; a chunk alone goes as it is.
      if (start === '' && after === '') socket.write(chunk);
      else socket.write(start + chunk.toString('latin1') + after, 'latin1');
      return;
    }
    if (start !== '') socket.cork();
    if (start !== '') socket.write(start, 'latin1');
    socket.write(chunk, () => free(chunk));
    if (after !== '') socket.write(after, 'latin1');
    if (start !== '') socket.uncork();
  }

  private finish(): void {
    this.flush();
    this.stop();
    this.listener.onSent();
  }

  private breakOff(detail: string): void {
    this.stop();
    this.listener.onBroken(detail);
  }

  stop(): void {
    if (this.over) return;
    this.over = true;
    this.detach?.();
  }
}
