// Estimates the clock of another process: ours, and its offset as its responses tell it. A Date header has whole seconds,
// so the estimate is up to a second behind, and at most the time of a response ahead.
import type { Clock } from '../../host/clock.ts';

export type RemoteClock = {
  /** Milliseconds since the epoch; our own clock before the first response. */
  readonly now: () => number;
  /** A response to what was asked at `since` (monotonic) has this Date. */
  readonly heard: (dateMs: number, since: number) => void;
  /** Of the response heard last: it was written at or after this time. */
  readonly passed: (ms: number) => void;
};

const SECOND_MS = 1000;

export function createRemoteClock(clock: Clock): RemoteClock {
  /** To monotonic time: the estimate, and the latest that it can be. */
  let offset: number | undefined;
  let latest = Infinity;

  const passed = (ms: number): void => {
    const least = Math.min(ms - clock.monotonic(), latest);
    if (offset === undefined || offset < least) offset = least;
  };
  return {
    now: () => (offset === undefined ? clock.now() : Math.floor(clock.monotonic() + offset)),
    heard: (dateMs, since) => {
      latest = dateMs + SECOND_MS - since;
      if (offset !== undefined && offset > latest) offset = latest;
      passed(dateMs);
    },
    passed,
  };
}
