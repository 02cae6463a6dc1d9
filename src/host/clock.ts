// Time and randomness as arguments, so that tests can hold them. Everything that needs either takes one of these.
import { randomFillSync } from 'node:crypto';

export type Clock = {
  /** Time in milliseconds since the epoch. */
  readonly now: () => number;
  /** Time for durations, in milliseconds that only ever grow. */
  readonly monotonic: () => number;
};

export const systemClock: Clock = { now: Date.now, monotonic: performance.now.bind(performance) };

/** Runs `run` once after `ms`; what is returned cancels it. A timer keeps no process alive. */
export type Schedule = (ms: number, run: () => void) => () => void;

export const systemSchedule: Schedule = (ms, run) => {
  const timer = setTimeout(run, ms);
  timer.unref();
  return () => clearTimeout(timer);
};

/** Draws `size` fresh random bytes. */
export type Random = (size: number) => Buffer;

/** Randomness of the operating system, drawn a page at a time: one system call serves hundreds of identifiers. */
export function createRandom(pageBytes = 4096): Random {
  let page = Buffer.alloc(0);
  let used = 0;
  return (size) => {
    if (used + size > page.length) {
      page = randomFillSync(Buffer.allocUnsafe(Math.max(pageBytes, size)));
      used = 0;
    }
    used += size;
    return page.subarray(used - size, used);
  };
}
