// Writes one request as bytes: the head exactly as it was decided, the body framed as the head announces it and never
// otherwise. Pure: pieces of the body go in, what is to be written comes out. A head that could be read as two requests
// (a line break, a space in the target, a name that is none) is not written.
import { ByteCount, NAME, VALUE } from './framing.ts';
import type { UpstreamRequest } from './transport.ts';

const METHOD = /^[A-Z][A-Z0-9!#$%&'*+.^_`|~-]*$/;
const TARGET = /^[\x21-\x7e]+$/;
const WHOLE_NAME = new RegExp(`^${NAME}$`);
const WHOLE_VALUE = new RegExp(`^${VALUE}$`);
/** Up to this size a piece is joined to what is written with it, which costs less than a write of its own. */
export const JOINED_BYTES = 16 * 1024;

/** The head with its empty line, one character a byte; undefined if it cannot be written. */
export function writeHead({ method, target, headers }: UpstreamRequest): string | undefined {
  if (!METHOD.test(method) || !TARGET.test(target)) return undefined;
  let head = `${method} ${target} HTTP/1.1\r\n`;
  for (let i = 0; i + 1 < headers.length; i += 2) {
    const name = headers[i] ?? '';
    const value = headers[i + 1] ?? '';
    if (!WHOLE_NAME.test(name) || !WHOLE_VALUE.test(value)) return undefined;
    head += `${name}: ${value}\r\n`;
  }
  return `${head}\r\n`;
}

/** A request with a body. A class, because every such request makes one. */
export class RequestWriter {
  /** Undefined: the body is chunked. */
  private readonly count: ByteCount | undefined;
  private ended = false;
  private out: (string | Buffer)[] = [];
  /** What follows `out`, one character a byte; then small pieces of the body, which leave as one chunk. */
  private text: string;
  private small = '';

  constructor(head: string, framing: number | 'chunked') {
    this.text = head;
    this.count = framing === 'chunked' ? undefined : new ByteCount(framing);
  }

  /** The next piece of the body; false: it is longer than announced. */
  write(piece: Buffer): boolean {
    const { length } = piece;
    if (this.count !== undefined && this.count.take(length) < length) return false;
    if (length <= JOINED_BYTES) {
      this.small += piece.toString('latin1');
      return true;
    }
    this.frameSmall();
    const chunked = this.count === undefined;
    this.out.push(chunked ? `${this.text}${length.toString(16)}\r\n` : this.text, piece);
    this.text = chunked ? '\r\n' : '';
    return true;
  }

  /** Nothing more comes; false: the body is shorter than announced. */
  end(): boolean {
    this.ended = true;
    this.frameSmall();
    if (this.count === undefined) this.text += '0\r\n\r\n';
    return this.isWhole;
  }

  /** All that was announced is here; of a chunked body only its end says so. */
  get isWhole(): boolean {
    return this.count === undefined ? this.ended : this.count.left === 0;
  }

  /** Bytes that are ready to be written. */
  get readyBytes(): number {
    return this.out.length > 0 ? Infinity : this.text.length + this.small.length;
  }

  /** What is to be written now, in this order. */
  take(): readonly (string | Buffer)[] {
    this.frameSmall();
    const { out, text } = this;
    if (text !== '') out.push(text);
    this.out = [];
    this.text = '';
    return out;
  }

  private frameSmall(): void {
    const { small, count } = this;
    if (small === '') return;
    this.text += count === undefined ? `${small.length.toString(16)}\r\n${small}\r\n` : small;
    this.small = '';
  }
}
