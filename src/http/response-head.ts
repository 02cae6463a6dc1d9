// Reads the head of a response, strictly: what two readers could frame differently is refused, because one that
// finds the end of a response elsewhere hands one caller's bytes to another. No obs-fold, no bare CR or LF, one length or
// one coding and never both (RFC 9112 sections 2.2, 4, 5 and 6). Never guesses: a head is read whole or not at all.

/** How the end of the body is known. */
export type Framing = 'none' | 'length' | 'chunked' | 'close';

export type ResponseHead = {
  readonly status: number;
  /** Flat name, value pairs as they arrived; values without the space around them. */
  readonly headers: string[];
  readonly framing: Framing;
  /** Bytes of the body where `framing` is `length`; else 0. */
  readonly length: number;
  /** The connection may serve another request after this response. */
  readonly keepAlive: boolean;
};

// What may stand in a header's name (RFC 9110 section 5.6.2) and in its value.
const NAME = 1;
const VALUE = 2;
const BYTES = new Uint8Array(256);
for (let code = 0x20; code < 0x100; code++) if (code !== 0x7f) BYTES[code] = VALUE;
BYTES[0x09] = VALUE;
for (const token of "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
  BYTES[token.charCodeAt(0)] = NAME | VALUE;

/** Whether `byte` may stand in the name of a header or a trailer. */
export function isNameByte(byte: number): boolean {
  return ((BYTES[byte] ?? 0) & NAME) !== 0;
}

/** Whether `byte` may stand in a value: no control character but a tab. */
export function isValueByte(byte: number): boolean {
  return ((BYTES[byte] ?? 0) & VALUE) !== 0;
}

const CR = 0x0d;
const LF = 0x0a;
const COLON = 0x3a;
const SPACE = 0x20;
const TAB = 0x09;
const STATUS = /^\d{3}$/;
const LENGTH = /^\d{1,15}$/;

/**
 * `text`: the head up to and with the line break of its last line, without the empty line; one character a byte.
 * `headRequest`: the request was HEAD. Returns a sentence if the head cannot be relied on.
 */
export function readResponseHead(text: string, headRequest: boolean): ResponseHead | string {
  const start = text.indexOf('\r\n');
  const minor = text.charCodeAt(7) - 0x30;
  if (!text.startsWith('HTTP/1.') || (minor !== 0 && minor !== 1) || text.charCodeAt(8) !== SPACE) {
    return 'the response does not begin with a status line of HTTP/1.0 or 1.1';
  }
  const digits = text.slice(9, 12);
  const status = Number(digits);
  if (!STATUS.test(digits) || (start > 12 && text.charCodeAt(12) !== SPACE)) return 'the status is not three digits';
  if (status < 200 && minor === 0) return 'HTTP/1.0 has no informational responses';
  for (let i = 13; i < start; i++) {
    if (!isValueByte(text.charCodeAt(i))) return 'the reason phrase holds a control character';
  }
  const headers: string[] = [];
  let length: string | undefined;
  let coding: string | undefined;
  let connection = '';
  for (let at = start + 2; at < text.length;) {
    let end = at;
    while (isNameByte(text.charCodeAt(end))) end++;
    if (end === at || text.charCodeAt(end) !== COLON) return 'a header line has no proper name';
    const name = text.slice(at, end);
    let from = end + 1;
    end = from;
    while (isValueByte(text.charCodeAt(end))) end++;
    if (text.charCodeAt(end) !== CR || text.charCodeAt(end + 1) !== LF)
      return 'a header value holds a control character';
    at = end + 2;
    while (from < end && isBlank(text.charCodeAt(from))) from++;
    while (end > from && isBlank(text.charCodeAt(end - 1))) end--;
    const value = text.slice(from, end);
    headers.push(name, value);
    const lower = name.toLowerCase();
    if (lower === 'connection') {
      connection += `,${value.toLowerCase()}`;
    } else if (lower === 'content-length') {
      if (length !== undefined) return 'the response has two lengths';
      length = value;
    } else if (lower === 'transfer-encoding') {
      if (coding !== undefined) return 'the response has two transfer codings';
      coding = value.toLowerCase();
    }
  }
  if (length !== undefined && !LENGTH.test(length)) return 'the length of the response is not a number';
  if (coding !== undefined) {
    if (length !== undefined) return 'the response has both a length and a transfer coding';
    if (coding !== 'chunked' || minor === 0) return 'the transfer coding of the response is not chunked';
  }
  // Of HTTP/1.0 a connection is never kept: too many mean something else by it.
  const keepAlive = minor === 1 && !connection.split(',').some((option) => option.trim() === 'close');
  const size = length === undefined ? 0 : Number(length);
  if (headRequest || status < 200 || status === 204 || status === 304) {
    return { status, headers, framing: 'none', length: 0, keepAlive };
  }
  if (coding !== undefined) return { status, headers, framing: 'chunked', length: 0, keepAlive };
  if (length === undefined) return { status, headers, framing: 'close', length: 0, keepAlive: false };
  return { status, headers, framing: size === 0 ? 'none' : 'length', length: size, keepAlive };
}

function isBlank(code: number): boolean {
  return code === SPACE || code === TAB;
}
