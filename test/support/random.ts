// Seeded randomness: the same seed makes the same cases on every machine. Not for secrets.

export type Rng = {
  /** An integer from 0 to `below` - 1. */
  readonly int: (below: number) => number;
  readonly chance: (probability: number) => boolean;
  readonly pick: <T>(from: readonly T[]) => T;
};

/** A generator for case `index` of `seed`: cases do not depend on each other. */
export function createRng(seed: number, index: number): Rng {
  let state = (Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) ^ Math.imul(index + 1, 0xc2b2ae35)) >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const int = (below: number): number => Math.floor(next() * below);
  return {
    int,
    chance: (probability) => next() < probability,
    pick: (from) => {
      const at = from[int(from.length)];
      if (at === undefined) throw new Error('nothing to pick from');
      return at;
    },
  };
}
