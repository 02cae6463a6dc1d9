// Takes the chunked coding off a response (RFC 9112 section 7.1), strictly: hexadecimal digits, CRLF and nothing that
// another reader could take for a line break. Extensions and trailers are read, bounded and dropped. Pure: it stops at the
// last byte of the body and leaves what follows to the caller.
import { ByteCount } from './framing.ts';
import { isNameByte, isValueByte } from './response-head.ts';

type Head = 'size' | 'extension' | 'size_lf';
type Data = 'data' | 'data_cr' | 'data_lf';
type Trailer = 'trailer_start' | 'trailer_name' | 'trailer_value' | 'trailer_lf' | 'end_lf';
type Step = Head | Data | Trailer | 'whole' | 'broken';

const CR = 0x0d;
const LF = 0x0a;
const SEMICOLON = 0x3b;
const COLON = 0x3a;
/** Trailers of these names could move the end of the body for another reader. */
const FRAMING = new Set(['content-length', 'transfer-encoding']);
/** 2^48 bytes: more than anybody sends in one chunk, less than what a number holds exactly. */
const SIZE_DIGITS = 12;
/** Bytes of extensions and of trailers in one response. */
const EXTRA_BYTES = 16 * 1024;
/** Moving a chunk of up to this size to the one before it costs less than a piece of its own. */
const MOVED_BYTES = 1024;

export class Chunks {
  /** Where the last `read` stopped. */
  at = 0;
  private step: Step = 'size';
  private size = 0;
  private digits = 0;
  private extra = 0;
  private name = '';
  private count = new ByteCount(0);

  get state(): 'more' | 'whole' | 'broken' {
    return this.step === 'whole' || this.step === 'broken' ? this.step : 'more';
  }

  /**
   * Reads `bytes` from `from` on, up to the end of the next piece of data, which is a view of `bytes`. Small chunks are moved
   * together in there first, so that many of them cost their bytes and not their number. Undefined: no data in the rest.
   */
  read(bytes: Buffer, from: number): Buffer | undefined {
    const end = bytes.length;
    let at = from;
    let start = 0;
    let stop = 0;
    while (at < end && this.state === 'more') {
      if (this.step !== 'data') {
        this.step = this.next(bytes[at] ?? 0);
        at++;
        continue;
      }
      const available = Math.min(end - at, this.count.left);
      if (start === stop) start = stop = at;
      else if (available <= MOVED_BYTES) bytes.copyWithin(stop, at, at + available);
      else break;
      stop += this.count.take(available);
      at += available;
      if (this.count.left === 0) this.step = 'data_cr';
    }
    this.at = at;
    return stop > start ? bytes.subarray(start, stop) : undefined;
  }

  private next(byte: number): Step {
    switch (this.step) {
      case 'size': {
        const digit = hexDigit(byte);
        if (digit >= 0) {
          this.size = this.size * 16 + digit;
          return ++this.digits > SIZE_DIGITS ? 'broken' : 'size';
        }
        if (this.digits === 0) return 'broken';
        if (byte === CR) return 'size_lf';
        return byte === SEMICOLON ? 'extension' : 'broken';
      }
      case 'extension':
        return byte === CR ? 'size_lf' : this.dropped(byte, 'extension');
      case 'size_lf':
        if (byte !== LF) return 'broken';
        this.count = new ByteCount(this.size);
        this.digits = 0;
        this.size = 0;
        return this.count.left === 0 ? 'trailer_start' : 'data';
      case 'data_cr':
        return byte === CR ? 'data_lf' : 'broken';
      case 'data_lf':
        return byte === LF ? 'size' : 'broken';
      case 'trailer_start':
        if (byte === CR) return 'end_lf';
        this.name = '';
        return this.named(byte);
      case 'trailer_name':
        if (byte !== COLON) return this.named(byte);
        return FRAMING.has(this.name.toLowerCase()) ? 'broken' : 'trailer_value';
      case 'trailer_value':
        return byte === CR ? 'trailer_lf' : this.dropped(byte, 'trailer_value');
      case 'trailer_lf':
        return byte === LF ? 'trailer_start' : 'broken';
      case 'end_lf':
        return byte === LF ? 'whole' : 'broken';
      case 'data':
      case 'whole':
      case 'broken':
        return this.step;
      default:
        return this.step satisfies never;
    }
  }

  private named(byte: number): Step {
    this.name += String.fromCharCode(byte);
    return isNameByte(byte) && ++this.extra <= EXTRA_BYTES ? 'trailer_name' : 'broken';
  }

  private dropped(byte: number, step: Step): Step {
    return isValueByte(byte) && ++this.extra <= EXTRA_BYTES ? step : 'broken';
  }
}

function hexDigit(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const lower = byte | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1;
}
