// The pointer to the snapshot that serves. Readers take it once per request and never wait; a newer one is
// swapped in whole. There is no way to take a snapshot away: without a good one the last good one stays.
import type { Snapshot } from '../../domain/snapshot.ts';

export type Current = {
  /** Undefined until the first set was loaded. */
  readonly get: () => Snapshot | undefined;
  readonly swap: (next: Snapshot) => void;
  /** Look-ups in the caches of all snapshots so far. */
  readonly cacheTotals: () => { readonly hits: number; readonly misses: number };
};

export function createCurrent(): Current {
  let current: Snapshot | undefined;
  let hits = 0;
  let misses = 0;
  return {
    get: () => current,
    swap: (next) => {
      hits += current?.cache.hits ?? 0;
      misses += current?.cache.misses ?? 0;
      current = next;
    },
    cacheTotals: () => ({ hits: hits + (current?.cache.hits ?? 0), misses: misses + (current?.cache.misses ?? 0) }),
  };
}
