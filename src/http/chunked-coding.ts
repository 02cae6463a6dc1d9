// The chunked coding of a response (RFC 9112 section 7.1), read strictly: hexadecimal digits, CRLF, and nothing that
// another reader could take for a line break. Extensions are read, bounded and dropped; trailers are read, bounded and kept.
// It stops at the body's last byte.
import { NAME, VALUE } from './header-syntax.ts';

type Step = 'size' | 'data' | 'data_end' | 'trailer' | 'whole' | 'broken';

const LF = 0x0a;
/** Line with a chunk's size, up to 2^48 bytes: larger than any real chunk, and exact as a number. */
const SIZE_LINE = new RegExp(`^([0-9a-f]{1,12})(;${VALUE})?\\r\\n$`, 'i');
/** Two names could move the end of the body for another reader. */
const TRAILER_LINE = new RegExp(`^(?!(?:content-length|transfer-encoding):)${NAME}:${VALUE}\\r\\n$`, 'i');
/** Limit of extensions and trailers in one response, in bytes. */
const EXTRA_BYTES = 16 * 1024;
/** Limit of a size, its line break, and the one behind a chunk's data, in bytes. */
const SIZE_BYTES = 16;
/** Moving a chunk of up to this size to the one before it costs less than a piece of its own. */
const MOVED_BYTES = 1024;

export class Chunks {
  /** Place at which the last `read` stopped. */
  at = 0;
  /** Trailers that were read: flat name, value pairs. */
  readonly trailers: string[] = [];
  private step: Step = 'size';
  /** The beginning of a line. */
  private line = '';
  private extra = 0;
  /** Number of bytes of this chunk that are still to come. */
  private left = 0;

  get state(): 'more' | 'whole' | 'broken' {
    return this.step === 'whole' || this.step === 'broken' ? this.step : 'more';
  }

  /**
   * Reads `bytes` from the start, up to the end of the next piece of data, which is a view of `bytes`. Small chunks are
   * moved together in there first, so that many of them cost their bytes and not their number. Undefined: no data in the
   * rest.
   */
  read(bytes: Buffer): Buffer | undefined {
    let at = 0;
    let start = 0;
    let stop = 0;
    while (at < bytes.length && this.state === 'more') {
      if (this.step !== 'data') {
        at = this.readLine(bytes, at);
        continue;
      }
      const available = Math.min(bytes.length - at, this.left);
      if (start === stop) start = stop = at;
      else if (available <= MOVED_BYTES) bytes.copyWithin(stop, at, at + available);
      else break;
      stop += available;
      this.left -= available;
      at += available;
      if (this.left === 0) this.step = 'data_end';
    }
    this.at = at;
    return stop > start ? bytes.subarray(start, stop) : undefined;
  }

  /** Returns where the line ends, or the bytes. */
  private readLine(bytes: Buffer, at: number): number {
    const feed = bytes.indexOf(LF, at);
    const end = feed < 0 ? bytes.length : feed + 1;
    this.line += bytes.toString('latin1', at, end);
    if (this.extra + this.line.length > EXTRA_BYTES + SIZE_BYTES) {
      this.step = 'broken';
    } else if (feed >= 0) {
      this.step = this.next(this.line);
      this.line = '';
    }
    return end;
  }

  private keepTrailer(line: string): void {
    const colon = line.indexOf(':');
    this.trailers.push(line.slice(0, colon), line.slice(colon + 1).replace(/^[\t ]+|[\t ]*\r\n$/g, ''));
  }

  private next(line: string): Step {
    switch (this.step) {
      case 'size': {
        const [, size, extension = ''] = SIZE_LINE.exec(line) ?? [];
        if (size === undefined) return 'broken';
        this.extra += extension.length;
        this.left = Number.parseInt(size, 16);
        return this.left === 0 ? 'trailer' : 'data';
      }
      case 'data_end':
        return line === '\r\n' ? 'size' : 'broken';
      case 'trailer':
        this.extra += line.length;
        if (line === '\r\n') return 'whole';
        if (!TRAILER_LINE.test(line)) return 'broken';
        this.keepTrailer(line);
        return 'trailer';
      case 'data':
      case 'whole':
      case 'broken':
        return this.step;
      default:
        return this.step satisfies never;
    }
  }
}
