// A rate limit for each of many keys: a token bucket that holds one number a key, the time at which the bucket is full
// again (GCRA). Memory is bounded whatever keys strangers make up: the key that was seen least recently is forgotten and
// has a full bucket again. To gain by that a client needs more keys than are remembered, and then has a bucket for each
// of them anyway. Knows no domain word.
import { LRUCache } from 'lru-cache';

export type RateLimit = {
  /** Takes one from the bucket of `key`. 0: it was there; else how long until there is one. */
  readonly takeMs: (key: string) => number;
  /** Puts back what `takeMs` took. */
  readonly giveBack: (key: string) => void;
};

type RateLimitOptions = {
  readonly perMinute: number;
  /** Size of a full bucket: so many may happen at once. */
  readonly burst: number;
  /** Keys that are remembered, at most. */
  readonly keys: number;
};

const MINUTE_MS = 60_000;
/** Sums of fractions are never exact: so much of one is forgiven. */
const FORGIVEN = 0.001;

export function createRateLimit({ perMinute, burst, keys }: RateLimitOptions, monotonic: () => number): RateLimit {
  const everyMs = MINUTE_MS / perMinute;
  const toleratedMs = (burst - 1 + FORGIVEN) * everyMs;
  // With `max` it would take the memory of all keys at once.
  const fullAt = new LRUCache<string, number>({ maxSize: Math.max(1, keys), sizeCalculation: () => 1 });

  /** Time at which the bucket of `key` is full again, not before `now`. */
  const look = (key: string, now: number): number => Math.max(fullAt.get(key) ?? now, now);

  return {
    giveBack: (key) => {
      const now = monotonic();
      fullAt.set(key, Math.max(now, look(key, now) - everyMs));
    },
    takeMs: (key) => {
      const now = monotonic();
      const at = look(key, now);
      const waitMs = at - now - toleratedMs;
      if (waitMs > 0) return waitMs;
      fullAt.set(key, at + everyMs);
      return 0;
    },
  };
}
