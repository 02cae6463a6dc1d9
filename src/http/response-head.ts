// Reads the head of a response, strictly: what two readers could frame differently is refused, because one that
// finds the end of a response elsewhere hands one caller's bytes to another. No obs-fold, no bare CR or LF, one length or
// one coding and never both (RFC 9112 sections 2.2, 4, 5 and 6). Never guesses: a head is read whole or not at all.
import { NAME, VALUE } from './framing.ts';

/** How the end of the body is known. */
export type Framing = 'none' | 'length' | 'chunked' | 'close';

export type ResponseHead = {
  readonly status: number;
  /** Flat name, value pairs as they arrived; values without the space around them. */
  readonly headers: string[];
  readonly framing: Framing;
  /** Bytes of the body if `framing` is `length`; else 0. */
  readonly length: number;
  /** The connection may serve another request after this response. */
  readonly keepAlive: boolean;
};

const STATUS_LINE = new RegExp(`^HTTP/1\\.([01]) (\\d{3})(?: ${VALUE})?\\r\\n`);
// One quantifier each: nothing in a line can make the match try the same bytes twice.
const HEADER_LINE = new RegExp(`${NAME}:${VALUE}\\r\\n`, 'y');
const CLOSE = /(?:^|,)\s*close\s*(?:,|$)/;
const LENGTH = /^\d{1,15}$/;
const SPACE = 0x20;
const TAB = 0x09;

/**
 * `text`: the head up to and with the line break of its last line, without the empty line; one character a byte.
 * `headRequest`: the request was HEAD. Returns a sentence if the head cannot be relied on.
 */
export function readResponseHead(text: string, headRequest: boolean): ResponseHead | string {
  const start = STATUS_LINE.exec(text);
  if (start === null) return 'the response does not begin with a status line of HTTP/1.0 or 1.1';
  const isOld = start[1] === '0';
  const status = Number(start[2]);
  if (status < 200 && isOld) return 'HTTP/1.0 has no informational responses';
  const headers: string[] = [];
  let length: string | undefined;
  let coding: string | undefined;
  let connection = '';
  HEADER_LINE.lastIndex = start[0].length;
  while (HEADER_LINE.lastIndex < text.length) {
    const at = HEADER_LINE.lastIndex;
    if (!HEADER_LINE.test(text)) return 'a line of the head is not a name, a colon and a value';
    const colon = text.indexOf(':', at);
    const name = text.slice(at, colon);
    const value = sliceTrimmed(text, colon + 1, HEADER_LINE.lastIndex - 2);
    headers.push(name, value);
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
  // Of HTTP/1.0 a connection is never kept: too many mean something else by it.
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
