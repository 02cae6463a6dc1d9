// Takes the chunked coding off an upstream's answer (RFC 9112 section 7.1), strictly: hexadecimal digits, CRLF and nothing
// that another reader could take for a line break. Extensions and trailers are read, bounded and dropped. What comes
// after the last chunk is left to the caller: it belongs to nobody.
import { isNameByte, isValueByte } from './response-head.ts';

export type Chunks = {
  /**
   * Reads `bytes` from `at` to `end`, and returns where it stopped. Data goes to `onData` as views of `bytes`; small chunks
   * are moved together in there first, so that many of them cost their bytes and not their number.
   */
  readonly read: (bytes: Buffer, at: number, end: number, onData: (chunk: Buffer) => boolean) => number;
  readonly state: () => 'more' | 'whole' | 'broken';
};

type Step =
  | 'size'
  | 'extension'
  | 'size_lf'
  | 'data'
  | 'data_cr'
  | 'data_lf'
  | 'trailer_start'
  | 'trailer_name'
  | 'trailer_value'
  | 'trailer_lf'
  | 'end_lf'
  | 'whole'
  | 'broken';

const CR = 0x0d;
const LF = 0x0a;
const SEMICOLON = 0x3b;
const COLON = 0x3a;
/** Whoever reads one of these behind a body may find its end elsewhere. */
const FRAMING = new Set(['content-length', 'transfer-encoding']);
/** 2^48 bytes: more than anybody sends in one chunk, less than what a number holds exactly. */
const SIZE_DIGITS = 12;
/** Bytes of extensions and of trailers in one answer. */
const EXTRA_BYTES = 16 * 1024;
/** Moving a chunk of up to this size to the one before it costs less than a piece of its own. */
const MOVED_BYTES = 1024;

/** `onData` returns false where the caller wants no more for now: reading stops behind that piece. */
export function createChunks(): Chunks {
  let step: Step = 'size';
  let left = 0;
  let digits = 0;
  let extra = 0;
  let name = '';

  const read: Chunks['read'] = (bytes, from, end, onData) => {
    let at = from;
    // Data that was read and not told yet.
    let start = 0;
    let stop = 0;
    while (at < end && step !== 'whole' && step !== 'broken') {
      if (step !== 'data') {
        step = next(bytes[at] ?? 0);
        at++;
        continue;
      }
      const size = Math.min(end - at, left);
      if (stop === start) {
        start = at;
        stop = at + size;
      } else if (size <= MOVED_BYTES) {
        bytes.copyWithin(stop, at, at + size);
        stop += size;
      } else {
        const piece = bytes.subarray(start, stop);
        stop = start;
        if (!onData(piece)) return at;
        continue;
      }
      left -= size;
      if (left === 0) step = 'data_cr';
      at += size;
    }
    if (stop > start) onData(bytes.subarray(start, stop));
    return at;
  };

  const nameOn = (byte: number): Step => {
    if (!isNameByte(byte) || ++extra > EXTRA_BYTES) return 'broken';
    name += String.fromCharCode(byte);
    return 'trailer_name';
  };

  const next = (byte: number): Step => {
    switch (step) {
      case 'size': {
        const digit = hexDigit(byte);
        if (digit >= 0) {
          if (++digits > SIZE_DIGITS) return 'broken';
          left = left * 16 + digit;
          return 'size';
        }
        if (digits === 0) return 'broken';
        if (byte === CR) return 'size_lf';
        return byte === SEMICOLON ? 'extension' : 'broken';
      }
      case 'extension':
        if (byte === CR) return 'size_lf';
        return isValueByte(byte) && ++extra <= EXTRA_BYTES ? 'extension' : 'broken';
      case 'size_lf':
        if (byte !== LF) return 'broken';
        digits = 0;
        return left === 0 ? 'trailer_start' : 'data';
      case 'data_cr':
        return byte === CR ? 'data_lf' : 'broken';
      case 'data_lf':
        return byte === LF ? 'size' : 'broken';
      case 'trailer_start':
        if (byte === CR) return 'end_lf';
        name = '';
        return nameOn(byte);
      case 'trailer_name':
        if (byte === COLON) return FRAMING.has(name.toLowerCase()) ? 'broken' : 'trailer_value';
        return nameOn(byte);
      case 'trailer_value':
        if (byte === CR) return 'trailer_lf';
        return isValueByte(byte) && ++extra <= EXTRA_BYTES ? 'trailer_value' : 'broken';
      case 'trailer_lf':
        return byte === LF ? 'trailer_start' : 'broken';
      case 'end_lf':
        return byte === LF ? 'whole' : 'broken';
      case 'data':
      case 'whole':
      case 'broken':
        return step;
      default:
        return step satisfies never;
    }
  };

  return {
    read,
    state: () => (step === 'whole' || step === 'broken' ? step : 'more'),
  };
}

function hexDigit(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const lower = byte | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1;
}
