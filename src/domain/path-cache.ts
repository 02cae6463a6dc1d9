// Remembers what was resolved for a method and a raw path, by their exact bytes. A path gets in when it is seen for the
// second time, so that a client who never repeats one cannot push out those that others do repeat, and pays next to
// nothing for asking. By hand, because a Map (and every LRU over one) takes four times as long to say that it does not
// know a string as to find one: never-seen paths would pay for the cache of the others.

export type CacheCounts = { hits: number; misses: number };

export type PathCache<T> = {
  readonly resolve: (method: string, path: string) => T;
  /** Look-ups so far. */
  readonly cache: CacheCounts;
};

type Entry<T> = { readonly method: string; readonly path: string; readonly value: T };

/** A power of two. Each entry has two places, next to each other. */
const ENTRIES = 4096;
const MASK = ENTRIES - 1;
/** Longer ones are not remembered: 4,096 of them are a bound on memory too. */
const MAX_LENGTH = 512;
const HASHED_TAIL = 32;
const FNV_PRIME = 0x01000193;

/** `look` must give the same for the same arguments as long as the cache lives. */
export function createPathCache<T>(look: (method: string, path: string) => T): PathCache<T> {
  const entries = Array<Entry<T> | undefined>(ENTRIES).fill(undefined);
  // The hash that was seen last at each place.
  const seen = new Int32Array(ENTRIES);
  const cache = { hits: 0, misses: 0 };

  return {
    cache,
    resolve: (method, path) => {
      const hash = hashOf(method, path);
      const place = hash & MASK;
      const first = entries[place];
      if (first !== undefined && first.path === path && first.method === method) {
        cache.hits++;
        return first.value;
      }
      const second = entries[place ^ 1];
      if (second !== undefined && second.path === path && second.method === method) {
        cache.hits++;
        return second.value;
      }
      cache.misses++;
      const value = look(method, path);
      if (seen[place] !== hash) seen[place] = hash;
      else if (path.length <= MAX_LENGTH) {
        entries[first === undefined || second !== undefined ? place : place ^ 1] = { method, path, value };
      }
      return value;
    },
  };
}

/** Of the path's end, where paths differ. Who makes paths collide makes them miss, no more. */
function hashOf(method: string, path: string): number {
  let hash = (path.length << 8) ^ (method.length << 16) ^ method.charCodeAt(0);
  for (let i = Math.max(0, path.length - HASHED_TAIL); i < path.length; i++)
    hash = Math.imul(hash ^ path.charCodeAt(i), FNV_PRIME);
  return hash ^ (hash >>> 15);
}
