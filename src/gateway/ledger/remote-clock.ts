// Estimates the clock of the registry: our own clock, and the offset that its responses tell. A Date header has whole
// seconds, so the estimate is up to a second behind, and at most the time of a response ahead.
import type { Clock } from '../../host/clock.ts';

export type RemoteClock = {
  /** Estimate in milliseconds since the epoch; our own clock before the first response. */
  readonly now: () => number;
  /** Takes the Date header of a response to what was asked at `since` (monotonic). */
  readonly heard: (dateMs: number, since: number) => void;
  /** Takes a time that the registry's clock has passed: the response heard last was written at or after it. */
  readonly passed: (ms: number) => void;
};

const SECOND_MS = 1000;

export function createRemoteClock(clock: Clock): RemoteClock {
  /** Difference from monotonic time to the estimate, in milliseconds. */
  let offset: number | undefined;
  /** The greatest offset that the response heard last allows. */
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
