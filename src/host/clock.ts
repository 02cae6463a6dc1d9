// Time and randomness as arguments, so that tests can hold them. Everything that needs either takes one of these.
import { randomFillSync } from 'node:crypto';

export type Clock = {
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** Milliseconds that only ever grow, for durations. */
  readonly monotonic: () => number;
};

export const systemClock: Clock = { now: () => Date.now(), monotonic: () => performance.now() };

/** Runs `run` once after `ms`; what is returned cancels it. A timer keeps no process alive. */
export type Schedule = (ms: number, run: () => void) => () => void;

export const systemSchedule: Schedule = (ms, run) => {
  const timer = setTimeout(run, ms);
  timer.unref();
  return () => clearTimeout(timer);
};

/** `size` fresh random bytes. */
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
