// The memory that responses are read into: one shared buffer for small reads, whose bytes are copied out, and for the reads
// of long bodies buffers that are handed over and used again once the listener gave them back: with the garbage collector
// instead a bare relay's download of 10 MB costs about 25 % more CPU. What is never given back is only garbage.

const SHARED_BYTES = 64 * 1024;
const OWN_BYTES = 256 * 1024;
/** Free buffers that are kept: 4 MiB. */
const KEPT = 16;

const handedOver = new WeakMap<Buffer, { readonly to: ReadMemory; readonly buffer: Buffer }>();

export class ReadMemory {
  /** For reads whose bytes are copied before the next read of any connection. */
  readonly shared = Buffer.allocUnsafeSlow(SHARED_BYTES);
  private readonly free: Buffer[] = [];

  take(): Buffer {
    return this.free.pop() ?? Buffer.allocUnsafeSlow(OWN_BYTES);
  }

  /** The first bytes of `buffer`, which belongs to whom they are given until `giveBack`. */
  handOver(buffer: Buffer, size: number): Buffer {
    const chunk = buffer.subarray(0, size);
    handedOver.set(chunk, { to: this, buffer });
    return chunk;
  }

  put(buffer: Buffer): void {
    if (this.free.length < KEPT) this.free.push(buffer);
  }
}

/** Says that nothing will look at `chunk` again, and what was made of it; it may be written over. Once is enough. */
export function giveBack(chunk: Buffer): void {
  const owner = handedOver.get(chunk);
  handedOver.delete(chunk);
  owner?.to.put(owner.buffer);
}
