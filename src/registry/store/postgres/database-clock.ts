// The database's clock, as this process knows it: what it said last, and the time that has passed here since. An answer
// is older than its arrival, so this clock is never ahead, except by the drift of this machine. A lease that is over by
// this clock is over by the database's.

/** Time after which only later answers count. */
const WINDOW_MS = 60_000;

export type DatabaseClock = {
  /** Hears `clock`: milliseconds since the epoch, as an answer that has just arrived says. */
  readonly hear: (clock: number) => void;
  readonly now: () => number;
};

/** Makes a clock; `before` says the time as long as the database has said nothing. */
export function createDatabaseClock(before: () => number): DatabaseClock {
  let best: number | undefined;
  let next: number | undefined;
  let since = 0;
  return {
    hear: (clock) => {
      const at = performance.now();
      const offset = clock - at;
      // The largest was told the fastest. After a while only later ones count, so that a clock that was set back is followed.
      if (at - since > WINDOW_MS) [best, next, since] = [next, undefined, at];
      next = Math.max(next ?? offset, offset);
      best = Math.max(best ?? offset, offset);
    },
    now: () => (best === undefined ? before() : Math.floor(performance.now() + best)),
  };
}
