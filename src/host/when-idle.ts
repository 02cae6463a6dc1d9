// Runs work when the event loop is idle, and after a few milliseconds at the latest: for work that is cheaper in larger
// batches. An idle loop notices no difference; a busy loop does its other work first, which would have waited for the
// processor either way.
import { systemClock } from './clock.ts';

/** Runs what it is given once. */
export type WhenIdle = (run: () => void) => void;

/** What is looked at of the event loop. */
export type Loop = {
  /** Runs `run` after everything that the current turn brought. */
  readonly afterTurn: (run: () => void) => void;
  /** Events that sockets, threads and the like have brought so far. */
  readonly events: () => number;
  /** Milliseconds that only ever grow. */
  readonly now: () => number;
};

const eventLoop: Loop = {
  afterTurn: setImmediate,
  events: () => performance.nodeTiming.uvMetricsInfo.events,
  now: systemClock.monotonic,
};

/** `maxMs`: how long something waits while every turn of the loop brings events. */
export function createWhenIdle(maxMs: number, { afterTurn, events, now }: Loop = eventLoop): WhenIdle {
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
