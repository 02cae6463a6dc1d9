// A slow lane: work that must not be turned away, and must not take a process from the rest either. One piece runs at a time,
// with a pause after it, and so many wait. Knows no domain word.
import type { Schedule } from './clock.ts';

/** Runs `work` when its turn comes; undefined: too many wait. */
export type SlowLane = <T>(work: () => Promise<T>) => Promise<T> | undefined;

type SlowLaneOptions = {
  readonly pauseMs: number;
  /** Pieces that wait or run, at most. */
  readonly places: number;
};

export function createSlowLane({ pauseMs, places }: SlowLaneOptions, schedule: Schedule): SlowLane {
  let taken = 0;
  let last: Promise<unknown> = Promise.resolve();
  const pause = (): Promise<void> =>
    new Promise((resolve) => {
      schedule(pauseMs, resolve);
    });
  return (work) => {
    if (taken >= places) return undefined;
    taken += 1;
    const done = last.then(work);
    last = done
      .catch(() => undefined)
      .then(() => {
        taken -= 1;
        return pause();
      });
    return done;
  };
}
