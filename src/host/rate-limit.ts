// How often something may happen for each of many keys: a token bucket that holds one number a key, the time at which the
// bucket is full again (GCRA). Memory is bounded whatever keys strangers make up: there are two generations of keys, and
// when the younger one is full the older one is forgotten. Who is forgotten has a full bucket again, so to gain by that
// somebody needs more keys than are remembered, and then has a bucket for each of them anyway. Knows no domain word.

export type RateLimit = {
  /** Takes one from the bucket of `key`. 0: it was there; else how long until there is one. */
  readonly takeMs: (key: string) => number;
  /** Puts back what `takeMs` took. */
  readonly giveBack: (key: string) => void;
};

export type RateLimitOptions = {
  readonly perMinute: number;
  /** What a full bucket holds: so many may happen at once. */
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
  const most = Math.max(1, Math.floor(keys / 2));
  let younger = new Map<string, number>();
  let older = new Map<string, number>();

  const keep = (key: string, fullAt: number): void => {
    if (younger.size >= most && !younger.has(key)) {
      older = younger;
      younger = new Map();
    }
    younger.set(key, fullAt);
  };

  /** When the bucket of `key` is full again, not before `now`. A refused client is remembered too. */
  const look = (key: string, now: number): number => {
    const known = younger.get(key);
    if (known !== undefined) return Math.max(known, now);
    const old = older.get(key);
    if (old === undefined) return now;
    keep(key, old);
    return Math.max(old, now);
  };

  return {
    giveBack: (key) => {
      const now = monotonic();
      keep(key, Math.max(now, look(key, now) - everyMs));
    },
    takeMs: (key) => {
      const now = monotonic();
      const fullAt = look(key, now);
      const waitMs = fullAt - now - toleratedMs;
      if (waitMs > 0) return waitMs;
      keep(key, fullAt + everyMs);
      return 0;
    },
  };
}
