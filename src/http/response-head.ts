// Reads the head of an upstream's answer, strictly: what two readers could frame differently is refused, because whoever
// disagrees about where an answer ends hands one caller's bytes to another. No obs-fold, no bare CR or LF, one length or
// one coding and never both (RFC 9112 sections 2.2, 4, 5 and 6). Never guesses: a head is read whole or not at all.

/** How the end of the body is known. */
export type Framing = 'none' | 'length' | 'chunked' | 'close';

export type AnswerHead = {
  readonly status: number;
  /** Flat name, value pairs as they arrived; values without the space around them. */
  readonly headers: string[];
  readonly framing: Framing;
  /** Bytes of the body where `framing` is `length`; else 0. */
  readonly length: number;
  /** The connection may serve another request after this answer. */
  readonly keepAlive: boolean;
};

// What may stand in a header's name (RFC 9110 section 5.6.2) and in its value.
const NAME = 1;
const VALUE = 2;
const BYTES = bytes();

function bytes(): Uint8Array {
  const table = new Uint8Array(256);
  for (let code = 0x20; code < 0x100; code++) if (code !== 0x7f) table[code] = VALUE;
  table[0x09] = VALUE;
  const token = "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  for (const character of token) table[character.charCodeAt(0)] = NAME | VALUE;
  return table;
}

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
const LENGTH = /^\d{1,15}$/;

/** A header line as it stood there, line break included, and what was read from it. */
type Line = { readonly text: string; readonly name: string; readonly value: string };

/**
 * Lines of earlier heads of one upstream, by their place: most heads differ from the last one in a line or two. Within a
 * second many are the last one, to the letter.
 */
export type Lines = {
  readonly byPlace: (Line | undefined)[];
  unknown: number;
  last: { readonly text: string; readonly headRequest: boolean; head: AnswerHead | undefined } | undefined;
};

// A bound on what is remembered, and how many unknown lines it takes to remember one: a line that is always another one
// is not worth it.
const PLACES = 32;
const REMEMBERED_HEAD = 4096;
const EVERY = 16;

export function createLines(): Lines {
  return { byPlace: [], unknown: 0, last: undefined };
}

/**
 * `text`: the head up to and with the line break of its last line, without the empty line; one character a byte.
 * `headRequest`: the request was HEAD. `lines`: what was read of it before, to which it adds. Returns a sentence where the
 * head cannot be relied on.
 */
export function readAnswerHead(text: string, headRequest: boolean, lines?: Lines): AnswerHead | string {
  const last = lines?.last;
  const again = last !== undefined && last.text === text && last.headRequest === headRequest;
  if (again && last.head !== undefined) return copyOf(last.head);
  const head = parse(text, headRequest, lines);
  if (lines === undefined || typeof head === 'string') return head;
  // What comes twice is kept; of what does not, nothing but the text is looked at again.
  if (again) last.head = copyOf(head);
  else if (text.length <= REMEMBERED_HEAD) lines.last = { text, headRequest, head: undefined };
  return head;
}

/** Whoever is given a head may write into its headers. */
function copyOf(head: AnswerHead): AnswerHead {
  return { ...head, headers: head.headers.slice() };
}

function parse(text: string, headRequest: boolean, lines: Lines | undefined): AnswerHead | string {
  const start = text.indexOf('\r\n');
  const minor = text.charCodeAt(7) - 0x30;
  if (!text.startsWith('HTTP/1.') || (minor !== 0 && minor !== 1) || text.charCodeAt(8) !== SPACE) {
    return 'the answer does not begin with a status line of HTTP/1.0 or 1.1';
  }
  const status = readStatus(text);
  if (status < 0 || (start > 12 && text.charCodeAt(12) !== SPACE)) return 'the status is not three digits';
  if (status < 200 && minor === 0) return 'HTTP/1.0 has no informational answers';
  for (let i = 13; i < start; i++) {
    if (((BYTES[text.charCodeAt(i)] ?? 0) & VALUE) === 0) return 'the reason phrase holds a control character';
  }
  const headers: string[] = [];
  let length: string | undefined;
  let coding: string | undefined;
  let connection = '';
  for (let at = start + 2; at < text.length;) {
    const known = lines?.byPlace[headers.length / 2];
    let name: string;
    let value: string;
    if (known !== undefined && text.startsWith(known.text, at)) {
      ({ name, value } = known);
      at += known.text.length;
    } else {
      const begin = at;
      let end = at;
      while (((BYTES[text.charCodeAt(end)] ?? 0) & NAME) !== 0) end++;
      if (end === at || text.charCodeAt(end) !== COLON) return 'a header line has no proper name';
      name = text.slice(at, end);
      let from = end + 1;
      end = from;
      while (((BYTES[text.charCodeAt(end)] ?? 0) & VALUE) !== 0) end++;
      if (text.charCodeAt(end) !== CR || text.charCodeAt(end + 1) !== LF)
        return 'a header value holds a control character';
      at = end + 2;
      while (from < end && isBlank(text.charCodeAt(from))) from++;
      while (end > from && isBlank(text.charCodeAt(end - 1))) end--;
      value = text.slice(from, end);
      if (lines !== undefined) remember(lines, headers.length / 2, text, begin, at, name, value);
    }
    headers.push(name, value);
    // Only these lengths can be one of the three names.
    const size = name.length;
    if (size !== 10 && size !== 14 && size !== 17) continue;
    switch (name.toLowerCase()) {
      case 'connection':
        connection += `,${value.toLowerCase()}`;
        break;
      case 'content-length':
        if (length !== undefined) return 'the answer has two lengths';
        length = value;
        break;
      case 'transfer-encoding':
        if (coding !== undefined) return 'the answer has two transfer codings';
        coding = value.toLowerCase();
        break;
    }
  }
  if (length !== undefined && !LENGTH.test(length)) return 'the length of the answer is not a number';
  if (coding !== undefined) {
    if (length !== undefined) return 'the answer has both a length and a transfer coding';
    if (coding !== 'chunked' || minor === 0) return 'the transfer coding of the answer is not chunked';
  }
  // Of HTTP/1.0 a connection is never kept: too many mean something else by it.
  const keepAlive = minor === 1 && !hasOption(connection, 'close');
  const size = length === undefined ? 0 : Number(length);
  if (headRequest || status < 200 || status === 204 || status === 304) {
    return { status, headers, framing: 'none', length: 0, keepAlive };
  }
  if (coding !== undefined) return { status, headers, framing: 'chunked', length: 0, keepAlive };
  if (length === undefined) return { status, headers, framing: 'close', length: 0, keepAlive: false };
  return { status, headers, framing: size === 0 ? 'none' : 'length', length: size, keepAlive };
}

function remember(
  lines: Lines,
  place: number,
  text: string,
  begin: number,
  end: number,
  name: string,
  value: string,
): void {
  if (lines.unknown++ % EVERY !== 0 || place >= PLACES || text.length > REMEMBERED_HEAD) return;
  while (lines.byPlace.length < place) lines.byPlace.push(undefined);
  lines.byPlace[place] = { text: text.slice(begin, end), name, value };
}

function readStatus(text: string): number {
  let status = 0;
  for (let i = 9; i < 12; i++) {
    const digit = text.charCodeAt(i) - 0x30;
    if (!(digit >= 0 && digit <= 9)) return -1;
    status = status * 10 + digit;
  }
  return status;
}

function isBlank(code: number): boolean {
  return code === SPACE || code === TAB;
}

function hasOption(connection: string, option: string): boolean {
  return connection.includes(option) && connection.split(',').some((it) => it.trim() === option);
}
