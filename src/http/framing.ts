// What both sides of a message share: which characters its lines may hold, how it says where its body ends, and the one
// place where the bytes of a body are counted against what was announced.

// The name of a header or a trailer (RFC 9110 section 5.6.2), and a value: no control character but a tab (section 5.5).
export const NAME = "[!#$%&'*+.^_`|~0-9A-Za-z-]+";
export const VALUE = '[\\t\\x20-\\x7e\\x80-\\xff]*';

/** What `headers` announce: a length in bytes, `chunked`, or undefined for no body. */
export function readFraming(headers: readonly string[]): number | 'chunked' | undefined {
  for (let i = headers.length - 2; i >= 0; i -= 2) {
    const name = headers[i];
    const size = name?.length;
    if (size === 14 && name?.toLowerCase() === 'content-length') return Number(headers[i + 1]);
    if (size === 17 && name?.toLowerCase() === 'transfer-encoding') return 'chunked';
  }
  return undefined;
}

/** A body of a known length, as its bytes pass. */
export class ByteCount {
  /** Bytes that are still to come. */
  left: number;

  constructor(length: number) {
    this.left = length;
  }

  /** Counts up to `size` bytes; returns how many of them belong to the body. */
  take(size: number): number {
    const taken = Math.min(size, this.left);
    this.left -= taken;
    return taken;
  }
}
