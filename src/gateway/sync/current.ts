// The pointer to the snapshot that serves. Readers take it once per request and never wait; a newer one is
// swapped in whole. There is no way to take a snapshot away: without a good one the last good one stays.
import type { Snapshot } from '../../domain/snapshot.ts';

export type Current = {
  /** Undefined until the first set was loaded. */
  readonly snapshot: Snapshot | undefined;
  readonly swap: (next: Snapshot) => void;
  /** The first one, once there is one. */
  readonly first: Promise<Snapshot>;
  /** Look-ups in the caches of all snapshots so far. */
  readonly cacheTotals: () => { readonly hits: number; readonly misses: number };
};

export function createCurrent(): Current {
  // A field and not a call, because every request reads it.
  const now: { snapshot: Snapshot | undefined } = { snapshot: undefined };
  const first = Promise.withResolvers<Snapshot>();
  let hits = 0;
  let misses = 0;
  return Object.assign(now, {
    swap: (next: Snapshot) => {
      hits += now.snapshot?.cache.hits ?? 0;
      misses += now.snapshot?.cache.misses ?? 0;
      now.snapshot = next;
      first.resolve(next);
    },
    first: first.promise,
    cacheTotals: () => ({
      hits: hits + (now.snapshot?.cache.hits ?? 0),
      misses: misses + (now.snapshot?.cache.misses ?? 0),
    }),
  });
}
