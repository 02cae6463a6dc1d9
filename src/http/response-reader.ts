// Reads one response: heads, then the body as its framing says. `ResponseReader` is pure: bytes go in, events come out,
// wherever the bytes were cut. It stops at the response's last byte. Bytes after it stay in `unread`, and are never
// read as the beginning of another response. `Inbox` is the memory that the bytes are read into.
import { Chunks } from './chunked-coding.ts';
import { NAME, VALUE } from './header-syntax.ts';

export type ResponseEvent =
  /** Informational response (1xx); after a 101 the rest is `unread`. */
  | { readonly kind: 'information'; readonly head: ResponseHead }
  | { readonly kind: 'head'; readonly head: ResponseHead }
  /** A view of the bytes that were pushed. */
  | { readonly kind: 'data'; readonly chunk: Buffer }
  | { readonly kind: 'end' }
  /** The response cannot be relied on. */
  | { readonly kind: 'broken'; readonly detail: string };

/** Part of the response that comes next; `end`: it is over, whole or broken. */
type Phase = 'head' | Framing | 'end';

/** Hint for an upstream that likely speaks TLS, if https was not asked for. */
export const SPEAKS_TLS = 'does the upstream speak https, not http?';
const TLS_ALERT = 0x15;
const CR = 0x0d;
const HEAD_BYTES = 64 * 1024;
const END_OF_HEAD = Buffer.of(0x0d, 0x0a, 0x0d, 0x0a);
const INFORMATIONAL = 32;
const NOTHING = Buffer.alloc(0);
const TOO_LARGE = 'the head of the response is too large';
const END: ResponseEvent = { kind: 'end' };
const NO_TRAILERS: readonly string[] = [];

/** A class, because every request makes one. */
export class ResponseReader {
  phase: Phase = 'head';
  /** Bytes that were pushed and not read. */
  unread: Buffer = NOTHING;
  /** A byte of the response came; some of its body was told. */
  progress: 'nothing' | 'begun' | 'body' = 'nothing';
  /** Whether the connection may be kept, once the final response is there. */
  keepAlive = false;
  private readonly headRequest: boolean;
  private informational = 0;
  /** Number of bytes that are still to come of a body of known length. */
  private left = 0;
  private chunks: Chunks | undefined;
  /** Number of bytes of `unread` in which the end of a head was not found. */
  private searched = 0;

  /** Makes a reader. `headRequest`: the request was HEAD, so that the response has no body. */
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
        if (this.left > 0) return this.counted();
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

  /** Trailers of a response that has ended: flat name, value pairs. */
  get trailers(): readonly string[] {
    return this.chunks?.trailers ?? NO_TRAILERS;
  }

  /** Whether the response is whole if nothing but the connection's orderly end follows what is unread. */
  get mayEndHere(): boolean {
    const { phase, unread, left } = this;
    if (phase === 'length') return unread.length >= left;
    return phase === 'chunked' ? unread.subarray(-4).equals(END_OF_HEAD) : phase === 'close';
  }

  /** Whether `next` has more to tell of what was pushed; false also where only reading it would show. */
  get goesOn(): boolean {
    const { phase, unread, left } = this;
    return phase === 'none' || (unread.length > 0 ? phase !== 'chunked' : phase === 'length' && left === 0);
  }

  private counted(): ResponseEvent | undefined {
    const size = Math.min(this.unread.length, this.left);
    this.left -= size;
    return this.data(size);
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
    this.left = head.length;
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

// The head is read strictly: one that two readers could frame differently is refused. A reader that finds the end of a
// response elsewhere hands one caller's bytes to another. No obs-fold, no bare CR or LF, one length or one coding and
// never both (RFC 9112 sections 2.2, 4, 5 and 6). Never guesses: a head is read whole or not at all.

/** Way in which the end of the body is known. */
export type Framing = 'none' | 'length' | 'chunked' | 'close';

export type ResponseHead = {
  readonly status: number;
  /** Flat name, value pairs as they arrived; values without the space around them. */
  readonly headers: string[];
  readonly framing: Framing;
  /** Length of the body in bytes if `framing` is `length`; else 0. */
  readonly length: number;
  /** The connection may serve another request after this response. */
  readonly keepAlive: boolean;
};

// Sticky, as the next one: where a match ends is read from it, and no array is made of what it found.
const STATUS_LINE = new RegExp(`HTTP/1\\.[01] \\d{3}(?: ${VALUE})?\\r\\n`, 'y');
const VERSION_AT = 'HTTP/1.'.length;
const STATUS_AT = 'HTTP/1.1 '.length;
// Expression with one quantifier for each part: nothing in a line can make the match try the same bytes twice.
const HEADER_LINE = new RegExp(`${NAME}:${VALUE}\\r\\n`, 'y');
const CLOSE = /(?:^|,)\s*close\s*(?:,|$)/;
const LENGTH = /^\d{1,15}$/;
const SPACE = 0x20;
const TAB = 0x09;

/**
 * Reads a head. `text` is the head up to and with the line break of its last line, without the empty line; one
 * character a byte. `headRequest`: the request was HEAD. Returns a sentence if the head cannot be relied on.
 */
export function readResponseHead(text: string, headRequest: boolean): ResponseHead | string {
  STATUS_LINE.lastIndex = 0;
  if (!STATUS_LINE.test(text)) return 'the response does not begin with a status line of HTTP/1.0 or 1.1';
  const isOld = text[VERSION_AT] === '0';
  const status = Number(text.slice(STATUS_AT, STATUS_AT + 3));
  if (status < 200 && isOld) return 'HTTP/1.0 has no informational responses';
  const headers: string[] = [];
  let length: string | undefined;
  let coding: string | undefined;
  let connection = '';
  HEADER_LINE.lastIndex = STATUS_LINE.lastIndex;
  while (HEADER_LINE.lastIndex < text.length) {
    const at = HEADER_LINE.lastIndex;
    if (!HEADER_LINE.test(text)) return 'a line of the head is not a name, a colon and a value';
    const colon = text.indexOf(':', at);
    const name = text.slice(at, colon);
    const value = sliceTrimmed(text, colon + 1, HEADER_LINE.lastIndex - 2);
    headers.push(name, value);
    // Names of other lengths are none of the three.
    if (name.length !== 10 && name.length !== 14 && name.length !== 17) continue;
    switch (name.toLowerCase()) {
      case 'connection':
        connection += `,${value.toLowerCase()}`;
        break;
      case 'content-length':
        if (length !== undefined) return 'the response has two lengths';
        length = value;
        break;
      case 'transfer-encoding':
        if (coding !== undefined) return 'the response has two transfer codings';
        coding = value.toLowerCase();
        break;
    }
  }
  if (length !== undefined && !LENGTH.test(length)) return 'the length of the response is not a number';
  if (coding !== undefined) {
    if (length !== undefined) return 'the response has both a length and a transfer coding';
    if (coding !== 'chunked' || isOld) return 'the transfer coding of the response is not chunked';
  }
  // A connection of HTTP/1.0 is never kept: too many mean something else by it.
  const keepAlive = !isOld && !CLOSE.test(connection);
  if (headRequest || status < 200 || status === 204 || status === 304)
    return { status, headers, framing: 'none', length: 0, keepAlive };
  if (coding !== undefined) return { status, headers, framing: 'chunked', length: 0, keepAlive };
  if (length === undefined) return { status, headers, framing: 'close', length: 0, keepAlive: false };
  const size = Number(length);
  return { status, headers, framing: size === 0 ? 'none' : 'length', length: size, keepAlive };
}

function sliceTrimmed(text: string, start: number, end: number): string {
  let from = start;
  let to = end;
  while (from < to && isBlank(text.charCodeAt(from))) from++;
  while (to > from && isBlank(text.charCodeAt(to - 1))) to--;
  return text.slice(from, to);
}

function isBlank(code: number): boolean {
  return code === SPACE || code === TAB;
}

// The memory that responses are read into. Small reads share one buffer, and their bytes are copied out. Reads of long
// bodies have buffers that are handed over, and used again once the listener gave them back. What is never given back is
// garbage. Without the buffers a download of 10 MB takes 2.6 times the CPU (0.97 ms a MB in place of 0.37, `isLong`
// always false, `npm run bench -- --only download --rounds 5 --checkout ../without`).

const SHARED_BYTES = 64 * 1024;
const OWN_BYTES = 256 * 1024;
/** Size from which a read of a long body is handed over with its buffer. */
const HANDED_OVER_BYTES = 16 * 1024;
/** Free buffers that are kept: 4 MiB. */
const KEPT = 16;

const shared = Buffer.allocUnsafeSlow(SHARED_BYTES);
const free: Buffer[] = [];
/** Buffers of the chunks that were handed over. */
const buffers = new WeakMap<Buffer, Buffer>();

/** Says that nothing will look at `chunk` again, and what was made of it; it may be written over. Once is enough. */
export function giveBack(chunk: Buffer): void {
  const buffer = buffers.get(chunk);
  buffers.delete(chunk);
  if (buffer !== undefined) keep(buffer);
}

function keep(buffer: Buffer): void {
  if (free.length < KEPT) free.push(buffer);
}

/** Memory of one connection: where its reads go, and what becomes of them. */
export class Inbox {
  /** Says that the last read filled its buffer: more may have come than was read. */
  isFull = false;
  /** Says that more of a long body comes. */
  private isLong = false;
  /** Buffer for the next read; undefined: the shared one. */
  private own: Buffer | undefined;

  /** Gives the buffer that the next read goes to. */
  next(): Buffer {
    if (this.isLong) this.own ??= free.pop() ?? Buffer.allocUnsafeSlow(OWN_BYTES);
    return this.own ?? shared;
  }

  /** The `size` bytes that were read, to keep. */
  read(size: number): Buffer {
    const { own } = this;
    const buffer = own ?? shared;
    const handsOver = own !== undefined && size >= HANDED_OVER_BYTES;
    this.own = undefined;
    this.isFull = size === buffer.length;
    this.isLong = this.isFull || handsOver;
    if (handsOver) {
      const chunk = buffer.subarray(0, size);
      buffers.set(chunk, buffer);
      return chunk;
    }
    if (own !== undefined) keep(own);
    // A copy by `copyBytesFrom` makes an ArrayBuffer a read, which the garbage collector pays for.
    const bytes = Buffer.allocUnsafe(size);
    buffer.copy(bytes, 0, 0, size);
    return bytes;
  }

  /** The body ended. */
  rest(): void {
    this.isLong = false;
  }
}
