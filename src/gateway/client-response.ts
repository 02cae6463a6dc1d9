// Writes a response to the client: one of ours, or the upstream's. The head of an upstream's response waits for the
// bytes that were read together with it. Most responses are whole by then and leave as one text. A slow or large
// response is streamed: its head goes out first.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { respond } from '../host/respond.ts';
import { linesOf, takesOneWrite, type WriteBatch } from '../host/write-batch.ts';
import { readFraming } from '../http/request-writer.ts';
import { giveBack } from '../http/response-reader.ts';
import { hasBody } from './headers.ts';
import type { ResponseOutcome } from './outcome.ts';

/** Up to this size a piece of a body is joined to what is written with it. */
const JOINED_BYTES = 16 * 1024;
/** An unread request body up to this size is read to its end and dropped; for a larger one the connection is closed. */
const DRAINED_BODY_BYTES = 64 * 1024;

export type ClientResponseListener = {
  /** The head cannot be written: nothing of the response was sent. */
  onUnwritable(detail: string): void;
  /** The client takes more again, after `write` said that it does not. */
  onDrain(): void;
};

/** An upstream's response. A class, because every request makes one. */
export class ClientResponse {
  private readonly req: IncomingMessage;
  private readonly res: ServerResponse;
  private readonly writeBatch: WriteBatch;
  private readonly listener: ClientResponseListener;
  private readonly status: number;
  /** Head of the response until it was written. */
  private head: string[] | undefined;
  /** Number of bytes that are left of a body of known length; below 0: unknown. */
  private bytesLeft: number;
  /** Whether the last of the body was handed on. */
  private ended = false;

  /** Makes a response. `head` comes from the strict reader and our own rules; nothing in it can break a head. */
  constructor(
    req: IncomingMessage,
    res: ServerResponse,
    writeBatch: WriteBatch,
    listener: ClientResponseListener,
    status: number,
    head: string[],
  ) {
    this.req = req;
    this.res = res;
    this.writeBatch = writeBatch;
    this.listener = listener;
    this.status = status;
    this.head = head;
    const bodyless = req.method === 'HEAD' || status === 204 || status === 304;
    const framing = bodyless ? 0 : readFraming(head);
    this.bytesLeft = typeof framing === 'number' ? framing : -1;
  }

  /** Sends the head by itself, if nothing follows at once. */
  flushHead(): void {
    const { res, head } = this;
    if (head === undefined || res.destroyed) return;
    // The headers leave in latin1, as they came; flushHeaders would write them as UTF-8.
    if (this.writeHead()) res.write('', 'latin1');
  }

  /**
   * Writes `chunk`, which nobody else looks at afterwards: its memory is given back when it was written. False: no more
   * for now.
   */
  write(chunk: Buffer): boolean {
    const { res } = this;
    const last = this.bytesLeft === chunk.length;
    this.bytesLeft -= chunk.length;
    // A small piece is copied as text, so that the whole response is one string and one write; a larger one as bytes.
    const text = chunk.length <= JOINED_BYTES ? chunk.toString('latin1') : undefined;
    if (text !== undefined && last) {
      this.endWith(text);
      return true;
    }
    if (!this.writeHead()) return true;
    if (text !== undefined) return this.takesMore(res.write(text, 'latin1'));
    if (!last) return this.takesMore(res.write(chunk, () => giveBack(chunk)));
    this.ended = true;
    res.end(chunk, () => giveBack(chunk));
    return true;
  }

  /** Ends the response: nothing more comes. */
  end(): void {
    if (!this.ended) this.endWith('');
  }

  /** Writes the head. False: it cannot be written, and the listener was told. */
  private writeHead(): boolean {
    const { head } = this;
    if (head === undefined) return true;
    this.head = undefined;
    try {
      this.res.writeHead(this.status, head);
      return true;
    } catch (error) {
      this.ended = true;
      this.listener.onUnwritable(error instanceof Error ? error.message : 'an invalid head');
      return false;
    }
  }

  private endWith(text: string): void {
    const { req, res, head, writeBatch } = this;
    // A fault in what comes later of the request must not end the connection before the response is out.
    const later = req.complete;
    // The response leaves in one write if nothing of it was sent, and all of the body that was announced is here.
    if (later && head !== undefined && this.bytesLeft === 0 && takesOneWrite(res)) {
      const lines = linesOf(head, writeBatch.date);
      if (lines !== undefined) {
        this.head = undefined;
        this.ended = true;
        writeBatch.oneWrite(res, this.status, lines, text);
        return;
      }
    }
    if (!this.writeHead()) return;
    this.ended = true;
    if (later) writeBatch.end(res, text, 'latin1');
    else res.end(text, 'latin1');
  }

  private takesMore(more: boolean): boolean {
    if (!more) this.res.once('drain', () => this.listener.onDrain());
    return more;
  }
}

/**
 * Ends a response that was begun and will not become whole. Without a length an HTTP/1.0 client takes the end of the
 * connection for the end of the body: it has to be a reset.
 */
export function breakOff(req: IncomingMessage, res: ServerResponse): void {
  if (req.httpVersionMinor === 0) req.socket.resetAndDestroy();
  else res.destroy();
}

/** Sends early hints with links alone: the final response says the rest. */
export function sendEarlyHints(res: ServerResponse, raw: readonly string[]): void {
  let text = 'HTTP/1.1 103 Early Hints\r\n';
  for (let i = 0; i + 1 < raw.length; i += 2) {
    if (raw[i]?.toLowerCase() === 'link') text += `Link: ${raw[i + 1]}\r\n`;
  }
  res.socket?.write(`${text}\r\n`, 'latin1');
}

/** A response of ours; `closes`: the connection ends with it. */
export function sendOwn(
  req: IncomingMessage,
  res: ServerResponse,
  { response, delivered }: ResponseOutcome,
  requestId: string,
  writeBatch: WriteBatch,
  closes = leavesBodyUnread(req),
): void {
  if (delivered !== undefined) tellDelivery(req, res, delivered);
  const added = ['X-Request-Id', requestId];
  if (closes) added.push('Connection', 'close');
  // A fault in a body ends the connection, so the response has to be out before the body is read.
  respond(res, response, req.method === 'HEAD', added, hasBody(req) ? undefined : writeBatch);
}

function tellDelivery(req: IncomingMessage, res: ServerResponse, delivered: (whole: boolean) => void): void {
  // A connection that was closed before tells nothing more.
  if (res.destroyed) return delivered(false);
  let finished = false;
  res.once('finish', () => (finished = true));
  res.once('close', () => delivered(finished && !req.socket.destroyed));
}

/**
 * Whether responding now leaves a body on the connection that is not read: one that waits for `100 Continue`, one
 * of unknown length, or a large one.
 */
export function leavesBodyUnread({ headers, complete }: IncomingMessage): boolean {
  if (headers['transfer-encoding'] !== undefined || headers.expect !== undefined) return !complete;
  return Number(headers['content-length'] ?? 0) > DRAINED_BODY_BYTES && !complete;
}
