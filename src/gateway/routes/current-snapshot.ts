// The pointer to the snapshot that serves. Readers take it once per request and never wait; a newer one is
// swapped in whole. There is no way to take a snapshot away: without a good one the last good one stays.
import type { SetChange } from '../../domain/routing/revise.ts';
import type { Route } from '../../domain/routing/route.ts';
import type { Snapshot } from '../../domain/routing/snapshot.ts';

/**
 * Change of a snapshot. `was` is the route before it: the matcher of an older snapshot finds no route by its id without
 * looking at all of them.
 */
export type SnapshotChange = SetChange & { readonly was: Route | undefined };

export type CurrentSnapshot = {
  /** The snapshot that serves; undefined until the first set was loaded. */
  readonly snapshot: Snapshot | undefined;
  /** Puts the next snapshot in force. `change` is all that it differs in, if that is known. */
  readonly swap: (next: Snapshot, change?: SnapshotChange) => void;
  /** Calls `listener` right after each swap. */
  readonly onSwap: (listener: (next: Snapshot, before: Snapshot | undefined, change?: SnapshotChange) => void) => void;
  /** First snapshot, once there is one. */
  readonly first: Promise<Snapshot>;
  /** Look-ups in the caches of all snapshots so far. */
  readonly cacheTotals: () => { readonly hits: number; readonly misses: number };
};

export function createCurrent(): CurrentSnapshot {
  // A field and not a call, because every request reads it.
  const now: { snapshot: Snapshot | undefined } = { snapshot: undefined };
  const first = Promise.withResolvers<Snapshot>();
  const listeners: Parameters<CurrentSnapshot['onSwap']>[0][] = [];
  let hits = 0;
  let misses = 0;
  return Object.assign(now, {
    onSwap: (listener: Parameters<CurrentSnapshot['onSwap']>[0]) => void listeners.push(listener),
    swap: (next: Snapshot, change?: SnapshotChange) => {
      const before = now.snapshot;
      hits += now.snapshot?.cache.hits ?? 0;
      misses += now.snapshot?.cache.misses ?? 0;
      now.snapshot = next;
      first.resolve(next);
      for (const listener of listeners) listener(next, before, change);
    },
    first: first.promise,
    cacheTotals: () => ({
      hits: hits + (now.snapshot?.cache.hits ?? 0),
      misses: misses + (now.snapshot?.cache.misses ?? 0),
    }),
  });
}
