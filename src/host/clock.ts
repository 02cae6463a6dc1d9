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

/**
 * Random identifiers of `size` bytes each as text, a page of them drawn and written out at once. For `base64url` a
 * multiple of 3 bytes, so that no identifier shares a character with the next.
 */
export function createTokens(random: Random, size: number, encoding: 'hex' | 'base64url'): () => string {
  const length = encoding === 'hex' ? size * 2 : (size / 3) * 4;
  let page = '';
  let at = 0;
  return () => {
    if (at >= page.length) {
      page = random(size * TOKENS_PER_PAGE).toString(encoding);
      at = 0;
    }
    at += length;
    return page.slice(at - length, at);
  };
}

const TOKENS_PER_PAGE = 64;

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
