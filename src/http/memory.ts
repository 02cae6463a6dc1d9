// The memory that responses are read into: one shared buffer for small reads, whose bytes are copied out, and for the reads
// of long bodies buffers that are handed over and used again once the listener gave them back. What is never given back is
// only garbage. Without the buffers a download of 10 MB takes 2.6 times the CPU (0.97 ms a MB in place of 0.37, `isLong`
// always false, `npm run bench -- --only download --rounds 5 --checkout ../without`).

const SHARED_BYTES = 64 * 1024;
const OWN_BYTES = 256 * 1024;
/** From this size on a read of a long body is handed over with its buffer. */
const HANDED_OVER_BYTES = 16 * 1024;
/** Free buffers that are kept: 4 MiB. */
const KEPT = 16;

const shared = Buffer.allocUnsafeSlow(SHARED_BYTES);
const free: Buffer[] = [];
/** By what was handed over. */
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

/** Of a connection: where its reads go, and what becomes of them. */
export class Inbox {
  /** The last read filled its buffer: more may have come than was read. */
  isFull = false;
  /** More of a long body comes. */
  private isLong = false;
  /** For the next read; undefined: the shared one. */
  private own: Buffer | undefined;

  /** Where the next read goes. */
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
    // Not copyBytesFrom: it makes an ArrayBuffer a read, which the garbage collector pays for.
    return Buffer.from(buffer.subarray(0, size));
  }

  /** The body ended. */
  rest(): void {
    this.isLong = false;
  }
}
