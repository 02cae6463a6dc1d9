// Writes one request to an upstream's socket: its head and, where it has one, its body, framed as its headers say and
// never otherwise. A body that ends short of its length or grows past it breaks the request off; it is never made to
// look whole. A small body that is there at once leaves in one write with the head.
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';

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
): Upload {
  const framing = readFraming(headers);
  let unsent: string | undefined = head;
  let left = framing === 'chunked' || framing === undefined ? 0 : framing;
  let over = false;

  body.on('data', onData);
  body.on('end', onEnd);
  body.on('close', onEnd);
  if (body.isPaused()) body.resume();
  // A client may wait for the answer to its head before it sends a body.
  setImmediate(flush);
  return { onDrain: () => void (over || body.resume()), stop };

  function flush(): void {
    if (over || unsent === undefined) return;
    if (body.destroyed && !body.complete) return breakOff('the client left before its body was sent');
    socket.write(unsent, 'latin1');
    unsent = undefined;
  }

  function onData(chunk: Buffer): void {
    if (over || chunk.length === 0) return;
    if (framing === 'chunked') {
      write(chunk, `${chunk.length.toString(16)}\r\n`, '\r\n');
    } else {
      if (chunk.length > left) return breakOff('the body is longer than its Content-Length');
      left -= chunk.length;
      write(chunk, '', '');
    }
    if (socket.writableNeedDrain) body.pause();
    if (framing !== 'chunked' && left === 0) finish();
    else listener.onProgress();
  }

  function onEnd(): void {
    if (over) return;
    if (!body.complete || framing === undefined || left > 0) return breakOff('the body ended before it was whole');
    if (framing === 'chunked') {
      socket.write(`${unsent ?? ''}0\r\n\r\n`, 'latin1');
      unsent = undefined;
    }
    finish();
  }

  function write(chunk: Buffer, before: string, after: string): void {
    const start = unsent === undefined ? before : unsent + before;
    unsent = undefined;
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

  function finish(): void {
    flush();
    stop();
    listener.onSent();
  }

  function breakOff(detail: string): void {
    stop();
    listener.onBroken(detail);
  }

  function stop(): void {
    if (over) return;
    over = true;
    body.removeListener('data', onData);
    body.removeListener('end', onEnd);
    body.removeListener('close', onEnd);
  }
}
