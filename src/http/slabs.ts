// The memory that answers are read into. Small answers share one buffer, because each read is used up before the next
// one; a long body reads into slabs of its own, which come back when the client's socket has them and are used again:
// a download of any length makes no garbage. A slab that never comes back is only memory for the collector.

export type Slab = {
  readonly bytes: Buffer;
  /** Gives back one share of it. */
  readonly release: () => void;
  /** Shares that are out, the reader's own included. */
  users: number;
};

export type Slabs = {
  /** For whoever has used up what was read before it returns. */
  readonly shared: Buffer;
  /** With one share taken. */
  readonly take: () => Slab;
};

const SHARED_BYTES = 64 * 1024;
const SLAB_BYTES = 256 * 1024;
/** Free slabs that are kept: 4 MiB. */
const KEPT = 16;

export function createSlabs(): Slabs {
  const free: Slab[] = [];
  const make = (): Slab => {
    const slab: Slab = {
      bytes: Buffer.allocUnsafeSlow(SLAB_BYTES),
      users: 0,
      release: () => {
        slab.users--;
        if (slab.users === 0 && free.length < KEPT) free.push(slab);
      },
    };
    return slab;
  };
  return {
    shared: Buffer.allocUnsafeSlow(SHARED_BYTES),
    take: () => {
      const slab = free.pop() ?? make();
      slab.users = 1;
      return slab;
    },
  };
}
