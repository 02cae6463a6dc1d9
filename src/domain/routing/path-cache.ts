// Remembers what was found for a path: an LRU in front of canonicalising and matching. A path gets in when it is seen for
// the second time, so a client that never repeats a path pushes none out. A filter of hashes says which paths may be in
// there at all. A path never seen takes 306 ns so, 803 without that filter, 1,337 without both (`npm run bench -- --only
// matcher --routes 100000`).
import { LRUCache } from 'lru-cache';
import { FNV_PRIME } from '../fnv.ts';

type CacheCounts = { hits: number; misses: number };

export type PathCache<T> = {
  readonly resolve: (method: string, path: string) => T;
  /** Look-ups so far. */
  readonly cache: CacheCounts;
};

/** Number of paths that are remembered for one method, at most. */
const ENTRIES = 2048;
const METHODS = 16;
/** A power of two. Paths that share a place take turns in being remembered. */
const PLACES = 4096;
const MASK = PLACES - 1;
/** Length of a path that is remembered, at most: a bound on memory too. */
const MAX_LENGTH = 512;
const HASHED_TAIL = 32;

/** Remembers what `look` gave, which must be the same for the same arguments as long as the cache lives. */
export function createPathCache<T extends object>(look: (method: string, path: string) => T): PathCache<T> {
  const known = new Map<string, LRUCache<string, T>>();
  // The hash that was seen last at each place, and the one that was let in last.
  const seen = new Int32Array(PLACES);
  const kept = new Int32Array(PLACES);
  const cache = { hits: 0, misses: 0 };

  const keep = (method: string, path: string, value: T): boolean => {
    let entries = known.get(method);
    if (entries === undefined) {
      if (known.size >= METHODS) return false;
      known.set(method, (entries = new LRUCache<string, T>({ max: ENTRIES })));
    }
    entries.set(path, value);
    return true;
  };

  return {
    cache,
    resolve: (method, path) => {
      const hash = hashOf(method, path);
      const place = hash & MASK;
      if (kept[place] === hash) {
        const entries = known.get(method);
        const hit = entries?.get(path);
        if (hit !== undefined) {
          cache.hits++;
          return hit;
        }
      }
      cache.misses++;
      const value = look(method, path);
      if (seen[place] !== hash) seen[place] = hash;
      else if (path.length <= MAX_LENGTH && keep(method, path, value)) kept[place] = hash;
      return value;
    },
  };
}

/** Hashes the path's end, where paths differ. Whoever makes paths collide makes them miss, no more. */
function hashOf(method: string, path: string): number {
  let hash = (path.length << 8) ^ (method.length << 16) ^ method.charCodeAt(0);
  for (let i = Math.max(0, path.length - HASHED_TAIL); i < path.length; i++)
    hash = Math.imul(hash ^ path.charCodeAt(i), FNV_PRIME);
  return hash ^ (hash >>> 15);
}
