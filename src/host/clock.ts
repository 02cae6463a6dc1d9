// Time and randomness as arguments, so that tests can hold them. Everything that needs either takes one of these. Also here:
// random identifiers, and work that waits for an idle event loop.
import { randomFillSync } from 'node:crypto';

export type Clock = {
  /** Time in milliseconds since the epoch. */
  readonly now: () => number;
  /** Time for durations, in milliseconds that only ever grow. */
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

/** Draws `size` fresh random bytes. */
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

// Random identifiers (RFC 9562, version 4) from the randomness that was handed in.

export function makeUuid(random: Random): string {
  const bytes = Uint8Array.from(random(16));
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x40;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  const hex = Buffer.from(bytes).toString('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

// Runs work when the event loop is idle, and after a few milliseconds at the latest: for work that is cheaper in larger
// batches. An idle loop notices no difference. A busy loop does its other work first, which would have waited for the
// processor anyway.

/** Runs what it is given once. */
type IdleScheduler = (run: () => void) => void;

/** The event loop as far as it is looked at. */
type Loop = {
  /** Runs `run` after everything that the current turn brought. */
  readonly afterTurn: (run: () => void) => void;
  /** Events that sockets, threads and the like have brought so far. */
  readonly events: () => number;
  /** Clock that only ever grows, in milliseconds. */
  readonly now: () => number;
};

const eventLoop: Loop = {
  afterTurn: setImmediate,
  events: () => performance.nodeTiming.uvMetricsInfo.events,
  now: systemClock.monotonic,
};

/** Makes a wait for an idle moment. `maxMs` bounds it while every turn of the loop brings events. */
export function createWhenIdle(maxMs: number, { afterTurn, events, now }: Loop = eventLoop): IdleScheduler {
  return (run) => {
    const latest = now() + maxMs;
    let seen: number | undefined;
    const look = (): void => {
      const brought = events();
      if (brought === seen || now() >= latest) return run();
      seen = brought;
      afterTurn(look);
    };
    afterTurn(look);
  };
}
