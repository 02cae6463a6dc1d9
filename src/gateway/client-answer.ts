// An upstream's answer on its way to the client. It is held until more of it is there than its head: most answers are
// whole by then and leave as one text with those of other requests; a slow or a large one is streamed, and its head does
// not wait for it.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { WriteBatch } from '../host/outbox.ts';
import { linesOf, takesWhole } from '../host/whole.ts';
import { readFraming } from '../http/framing.ts';
import { giveBack } from '../http/memory.ts';

/** Up to this size a piece of a body is joined to what is written with it. */
const JOINED_BYTES = 16 * 1024;

export type ClientAnswerListener = {
  /** The head cannot be written: nothing of the answer was sent. */
  readonly onUnwritable: (detail: string) => void;
  /** The client takes more again, after `write` said that it does not. */
  readonly onDrain: () => void;
};

/** A class, because every request makes one. */
export class ClientAnswer {
  private readonly req: IncomingMessage;
  private readonly res: ServerResponse;
  private readonly outbox: WriteBatch;
  private readonly listener: ClientAnswerListener;
  private status = 0;
  /** Until it was given to the response. */
  private head: string[] | undefined;
  /** Of a body of known length; below 0: unknown. */
  private bytesLeft = -1;
  private started = false;
  /** The last of it is on its way out. */
  private ending = false;
  private waits = false;

  constructor(req: IncomingMessage, res: ServerResponse, outbox: WriteBatch, listener: ClientAnswerListener) {
    this.req = req;
    this.res = res;
    this.outbox = outbox;
    this.listener = listener;
  }

  /** `headers`: from the upstream's strict reader and our own rules; nothing in them can break a head. */
  begin(status: number, headers: string[]): void {
    this.status = status;
    this.head = headers;
    const bodyless = this.req.method === 'HEAD' || status === 204 || status === 304;
    const framing = bodyless ? 0 : readFraming(headers);
    this.bytesLeft = typeof framing === 'number' ? framing : -1;
  }

  /** Something of it was written. */
  get sent(): boolean {
    return this.ending || this.res.headersSent;
  }

  /** A head was decided on: it stands, even if nothing of it was sent yet. */
  get begun(): boolean {
    return this.head !== undefined || this.ending || this.res.headersSent;
  }

  /** Sends the head by itself, where nothing follows at once. */
  flushHead(): void {
    const { res } = this;
    if (this.started || this.ending || res.writableEnded || res.destroyed) return;
    // As latin1, as they came; flushHeaders would write them as UTF-8.
    if (this.writeHead()) res.write('', 'latin1');
  }

  /** `chunk` is not looked at by anybody else afterwards: its memory is given back when it was written. False: no more for now. */
  write(chunk: Buffer): boolean {
    const { res } = this;
    this.started = true;
    const last = this.bytesLeft === chunk.length;
    this.bytesLeft -= chunk.length;
    // A small piece is copied as text, so that the whole answer is one string and one write; a larger one as bytes.
    const text = chunk.length <= JOINED_BYTES ? chunk.toString('latin1') : undefined;
    if (text !== undefined && last) {
      this.endWith(text);
      return true;
    }
    if (!this.writeHead()) return true;
    if (text !== undefined) return this.takesMore(res.write(text, 'latin1'));
    if (!last) return this.takesMore(res.write(chunk, () => giveBack(chunk)));
    res.end(chunk, () => giveBack(chunk));
    return true;
  }

  /** Nothing more comes. */
  end(): void {
    if (!this.ending && !this.res.writableEnded) this.endWith('');
  }

  /** False: it cannot be, and the listener was told. */
  private writeHead(): boolean {
    const { head } = this;
    if (head === undefined) return true;
    this.head = undefined;
    try {
      this.res.writeHead(this.status, head);
      return true;
    } catch (error) {
      this.listener.onUnwritable(error instanceof Error ? error.message : 'an invalid head');
      return false;
    }
  }

  private endWith(text: string): void {
    const { req, res, head, outbox } = this;
    // Where more of the request comes, what is wrong with it must not end the connection before the answer is out.
    const later = req.complete;
    // Nothing of the answer was sent, and all of the body that was announced is here.
    if (later && head !== undefined && this.bytesLeft === 0 && takesWhole(res)) {
      const lines = linesOf(head, outbox.date);
      if (lines !== undefined) {
        this.head = undefined;
        this.ending = true;
        outbox.whole(res, this.status, lines, text);
        return;
      }
    }
    if (!this.writeHead()) return;
    this.ending = true;
    if (later) outbox.end(res, text, 'latin1');
    else res.end(text, 'latin1');
  }

  private takesMore(more: boolean): boolean {
    if (!more && !this.waits) {
      this.waits = true;
      this.res.on('drain', () => this.listener.onDrain());
    }
    return more;
  }
}

/**
 * Ends an answer that was begun and will not become whole. Without a length an HTTP/1.0 client takes the end of the
 * connection for the end of the body: it has to be a reset.
 */
export function breakOff(req: IncomingMessage, res: ServerResponse): void {
  if (req.httpVersionMinor === 0) req.socket.resetAndDestroy();
  else res.destroy();
}
