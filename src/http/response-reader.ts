// Reads one response from the bytes of a connection: heads (response-head.ts), then the body as its framing says. Pure:
// bytes go in, events come out, wherever the bytes were cut. It stops at the response's last byte: what stands behind it
// stays in `unread`, and is never read as the beginning of another response.
import { Chunks } from './chunks.ts';
import { ByteCount } from './framing.ts';
import { readResponseHead, type Framing, type ResponseHead } from './response-head.ts';

export type ResponseEvent =
  /** 1xx; of 101 what follows is `unread`. */
  | { readonly kind: 'information'; readonly head: ResponseHead }
  | { readonly kind: 'head'; readonly head: ResponseHead }
  /** A view of the bytes that were pushed. */
  | { readonly kind: 'data'; readonly chunk: Buffer }
  | { readonly kind: 'end' }
  /** The response cannot be relied on. */
  | { readonly kind: 'broken'; readonly detail: string };

/** What comes next; `end`: the response is over, whole or broken. */
type Phase = 'head' | Framing | 'end';

/** Said where it is likely, and https was not asked for. */
export const SPEAKS_TLS = 'does the upstream speak https, not http?';
const TLS_ALERT = 0x15;
const CR = 0x0d;
const HEAD_BYTES = 64 * 1024;
const END_OF_HEAD = Buffer.of(0x0d, 0x0a, 0x0d, 0x0a);
const INFORMATIONAL = 32;
const NOTHING = Buffer.alloc(0);
const TOO_LARGE = 'the head of the response is too large';
const END: ResponseEvent = { kind: 'end' };

/** A class, because every request makes one. */
export class ResponseReader {
  phase: Phase = 'head';
  /** What was pushed and not read. */
  unread: Buffer = NOTHING;
  /** A byte of the response came; some of its body was told. */
  progress: 'nothing' | 'begun' | 'body' = 'nothing';
  /** Of the final response, once it is there. */
  keepAlive = false;
  private readonly headRequest: boolean;
  private informational = 0;
  private readonly count = new ByteCount(0);
  private chunks: Chunks | undefined;
  /** Bytes of `unread` in which the end of a head was not found. */
  private searched = 0;

  /** `headRequest`: the request was HEAD, so that the response has no body. */
  constructor(headRequest: boolean) {
    this.headRequest = headRequest;
  }

  push(bytes: Buffer): void {
    this.unread = this.unread.length === 0 ? bytes : Buffer.concat([this.unread, bytes]);
    if (this.progress === 'nothing') this.progress = 'begun';
  }

  /** The next event; undefined: it takes more bytes. */
  next(): ResponseEvent | undefined {
    switch (this.phase) {
      case 'head':
        return this.unread.length > this.searched ? this.readHead() : undefined;
      case 'none':
        this.phase = 'end';
        return END;
      case 'length':
        if (this.count.left > 0) return this.data(this.count.take(this.unread.length));
        this.phase = 'end';
        return END;
      case 'chunked':
        return this.readChunks();
      case 'close':
        return this.data(this.unread.length);
      case 'end':
        return undefined;
      default:
        return this.phase satisfies never;
    }
  }

  /** Whether the response is whole if nothing but the connection's orderly end follows what is unread. */
  get mayEndHere(): boolean {
    const { phase, unread, count } = this;
    if (phase === 'length') return unread.length >= count.left;
    return phase === 'chunked' ? unread.subarray(-4).equals(END_OF_HEAD) : phase === 'close';
  }

  /** Whether `next` has more to tell of what was pushed; false also where only reading it would show. */
  get goesOn(): boolean {
    const { phase, unread, count } = this;
    return phase === 'none' || (unread.length > 0 ? phase !== 'chunked' : phase === 'length' && count.left === 0);
  }

  private data(size: number): ResponseEvent | undefined {
    if (size === 0) return undefined;
    const { unread } = this;
    this.progress = 'body';
    this.unread = size === unread.length ? NOTHING : unread.subarray(size);
    return { kind: 'data', chunk: size === unread.length ? unread : unread.subarray(0, size) };
  }

  private readChunks(): ResponseEvent | undefined {
    const { unread } = this;
    const chunks = (this.chunks ??= new Chunks());
    const chunk = chunks.read(unread);
    this.unread = chunks.at === unread.length ? NOTHING : unread.subarray(chunks.at);
    if (chunk !== undefined) {
      this.progress = 'body';
      return { kind: 'data', chunk };
    }
    if (chunks.state === 'more') return undefined;
    if (chunks.state === 'broken') return this.broken('the chunked coding of the response is broken');
    this.phase = 'end';
    return END;
  }

  private readHead(): ResponseEvent | undefined {
    const { unread } = this;
    const end = unread.indexOf(END_OF_HEAD, Math.max(0, this.searched - END_OF_HEAD.length + 1));
    if (end < 0) return this.waitForHead();
    this.searched = 0;
    this.unread = unread.subarray(end + END_OF_HEAD.length);
    // The empty line does not count.
    if (end + 2 > HEAD_BYTES) return this.broken(TOO_LARGE);
    const head = readResponseHead(unread.toString('latin1', 0, end + 2), this.headRequest);
    if (typeof head === 'string') return this.broken(head);
    if (head.status < 200) {
      const known = head.status >= 100 && ++this.informational <= INFORMATIONAL;
      return known ? { kind: 'information', head } : this.broken(`a response with the status ${head.status}`);
    }
    this.phase = head.framing;
    this.count.left = head.length;
    this.keepAlive = head.keepAlive;
    return { kind: 'head', head };
  }

  /** The head's end is not there yet. Something else than HTTP is told at once, not after a time-out. */
  private waitForHead(): ResponseEvent | undefined {
    const { unread, searched } = this;
    this.searched = unread.length;
    if (unread.length > HEAD_BYTES + 2) return this.broken(TOO_LARGE);
    if (unread[0] === TLS_ALERT) return this.broken(`the response is not HTTP; ${SPEAKS_TLS}`);
    if (!'HTTP/1.'.startsWith(unread.toString('latin1', 0, 7)))
      return this.broken('the response is not HTTP/1.0 or 1.1');
    for (let at = unread.indexOf('\n', searched); at >= 0; at = unread.indexOf('\n', at + 1))
      if (unread[at - 1] !== CR) return this.broken('the head of the response holds a bare line feed');
    return undefined;
  }

  private broken(detail: string): ResponseEvent {
    this.phase = 'end';
    return { kind: 'broken', detail };
  }
}
