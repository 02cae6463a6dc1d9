// Reads one HTTP/1.1 answer from the bytes of a connection, as strictly as money needs: one status line, one length,
// nothing folded, nothing encoded, and no more of it than its caller allows. What is not exactly that is wrong, and the
// connection it came on carries no other call. Sources: RFC 9112 (framing), RFC 9110.

export type Progress =
  /** There is more to come. */
  | { readonly kind: 'more' }
  /** `reuseMs`: how long the connection may be idle and carry another call; 0 where it may not. */
  | { readonly kind: 'whole'; readonly status: number; readonly body: Buffer; readonly reuseMs: number }
  /** `why`: a phrase without any of the answer's content. */
  | { readonly kind: 'wrong'; readonly why: string };

export type AnswerReader = {
  /** The next bytes. Not to be called again once the answer is whole or wrong. */
  readonly read: (chunk: Buffer) => Progress;
  /** The connection ended: the answer is whole where that is how its end is told. */
  readonly end: () => Progress;
};

type State = 'head' | 'sized' | 'chunk_size' | 'chunk' | 'chunk_end' | 'trailer' | 'until_end';
type Head = {
  readonly status: number;
  readonly reuseMs: number;
  readonly length: number | 'chunked' | undefined;
};

const MORE: Progress = { kind: 'more' };
const EMPTY = Buffer.alloc(0);
const HEAD_BYTES = 16 * 1024;
const LINE_BYTES = 256;
/** 1xx before the answer. */
const INTERIM_ANSWERS = 8;
// Below the 5 s after which Node and uvicorn close an idle connection unannounced: one that we leave first is never found dead.
const REUSE_MS = 4000;
/** A service that names its time closes a little earlier than we think. */
const REUSE_MARGIN_MS = 1000;
const STATUS_LINE = /^HTTP\/1\.([01]) ([1-9]\d\d)(?: [^\r\n\0]*)?$/;
const FIELD = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\r\n\0]*?)[ \t]*$/;
const CHUNK_SIZE = /^([0-9a-fA-F]{1,8})[ \t]*(?:;[^\r\n\0]*)?$/;

/** `maxBytes`: of the body. */
export function createAnswerReader(maxBytes: number): AnswerReader {
  let state: State = 'head';
  let rest: Buffer = EMPTY;
  let interim = 0;
  let status = 0;
  let reuseMs = 0;
  let left = 0;
  let length = 0;
  let trailing = 0;
  const pieces: Buffer[] = [];

  const wrong = (what: string): Progress => ({ kind: 'wrong', why: status === 0 ? what : `status ${status} ${what}` });
  const tooLong = (): Progress => wrong(`with more than ${maxBytes} bytes`);
  const whole = (remaining: number): Progress => {
    const [only = EMPTY] = pieces;
    const body = pieces.length <= 1 ? only : Buffer.concat(pieces, length);
    // Bytes after an answer belong to no call of ours.
    return { kind: 'whole', status, body, reuseMs: remaining > 0 ? 0 : reuseMs };
  };
  const keep = (piece: Buffer): void => {
    length += piece.length;
    if (piece.length > 0) pieces.push(piece);
  };

  const begin = (head: Head): Progress | undefined => {
    status = head.status;
    reuseMs = head.reuseMs;
    if (status === 204 || status === 304) return undefined;
    if (head.length === 'chunked') state = 'chunk_size';
    else if (head.length === undefined) [state, reuseMs] = ['until_end', 0];
    else if (head.length > maxBytes) return tooLong();
    else [state, left] = ['sized', head.length];
    return undefined;
  };

  const read = (chunk: Buffer): Progress => {
    const bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    rest = EMPTY;
    let at = 0;
    /** The text up to the next `end`; undefined where it is not there yet, false where it is longer than `limit`. */
    const lineTo = (end: string, limit: number): string | false | undefined => {
      const stop = bytes.indexOf(end, at, 'latin1');
      if ((stop < 0 ? bytes.length : stop) - at > limit) return false;
      if (stop < 0) {
        rest = bytes.subarray(at);
        return undefined;
      }
      const line = bytes.toString('latin1', at, stop);
      at = stop + end.length;
      return line;
    };
    for (;;) {
      switch (state) {
        case 'head': {
          const text = lineTo('\r\n\r\n', HEAD_BYTES);
          if (text === undefined) return MORE;
          const head = text === false ? 'with a head that is too long' : readHead(text);
          if (typeof head === 'string') return wrong(head);
          if (head.status < 200) {
            if (head.status === 101 || ++interim > INTERIM_ANSWERS) return wrong('without an answer');
            break;
          }
          const refused = begin(head);
          if (refused !== undefined) return refused;
          if (status === 204 || status === 304) return whole(bytes.length - at);
          break;
        }
        case 'sized':
        case 'chunk': {
          const piece = bytes.subarray(at, at + left);
          keep(piece);
          at += piece.length;
          left -= piece.length;
          if (left > 0) return MORE;
          if (state === 'sized') return whole(bytes.length - at);
          state = 'chunk_end';
          break;
        }
        case 'chunk_size': {
          const text = lineTo('\r\n', LINE_BYTES);
          if (text === undefined) return MORE;
          const size = Number.parseInt(CHUNK_SIZE.exec(text || '')?.[1] ?? '', 16);
          if (Number.isNaN(size)) return wrong('with a chunk without a size');
          if (length + size > maxBytes) return tooLong();
          left = size;
          state = size === 0 ? 'trailer' : 'chunk';
          break;
        }
        case 'chunk_end': {
          if (bytes.length - at < 2) {
            rest = bytes.subarray(at);
            return MORE;
          }
          if (bytes[at] !== 0x0d || bytes[at + 1] !== 0x0a) return wrong('with a chunk that has no end');
          at += 2;
          state = 'chunk_size';
          break;
        }
        case 'trailer': {
          const text = lineTo('\r\n', HEAD_BYTES);
          if (text === undefined) return MORE;
          if (text === '') return whole(bytes.length - at);
          if (text === false || (trailing += text.length) > HEAD_BYTES || !FIELD.test(text))
            return wrong('with a trailer that is none');
          break;
        }
        case 'until_end': {
          keep(bytes.subarray(at));
          return length > maxBytes ? tooLong() : MORE;
        }
        default:
          return state satisfies never;
      }
    }
  };

  return { read, end: () => (state === 'until_end' ? whole(0) : wrong('that broke off')) };
}

/** What of a head frames its answer, or what is wrong with it. */
function readHead(text: string): Head | string {
  const lines = text.split('\r\n');
  const [, minor, code] = STATUS_LINE.exec(lines[0] ?? '') ?? [];
  if (code === undefined) return 'with something that is not HTTP';
  let length: number | undefined;
  let chunked = false;
  let reuseMs = minor === '1' ? REUSE_MS : 0;
  for (let i = 1; i < lines.length; i++) {
    const [, name, value = ''] = FIELD.exec(lines[i] ?? '') ?? [];
    if (name === undefined) return 'with a head that is malformed';
    switch (name.toLowerCase()) {
      case 'content-length':
        if (length !== undefined || !/^\d{1,12}$/.test(value)) return 'with a length that is none';
        length = Number(value);
        break;
      case 'transfer-encoding':
        if (chunked || value.toLowerCase() !== 'chunked') return 'in an encoding that was not asked for';
        chunked = true;
        break;
      case 'content-encoding':
        if (value.toLowerCase() !== 'identity') return 'in an encoding that was not asked for';
        break;
      case 'connection':
        if (!/^keep-alive$/i.test(value)) reuseMs = 0;
        break;
      case 'keep-alive': {
        const [, seconds] = /(?:^|[,;\s])timeout\s*=\s*"?(\d{1,9})/i.exec(value) ?? [];
        if (seconds !== undefined) reuseMs = Math.min(reuseMs, Number(seconds) * 1000 - REUSE_MARGIN_MS);
        break;
      }
    }
  }
  // Two lengths are one too many: somebody between us may have believed the other one.
  if (chunked && length !== undefined) return 'with two lengths';
  return { status: Number(code), reuseMs: Math.max(0, reuseMs), length: chunked ? 'chunked' : length };
}
