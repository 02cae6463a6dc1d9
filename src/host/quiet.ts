// For work that is cheaper the more of it is done at once, and that can wait while there is other work: it is done when
// the event loop has nothing else to do, and after a few milliseconds at the latest. A loop that is idle notices no
// difference; a loop that is busy does its other work first, which would have waited for the processor either way.
import { systemClock } from './clock.ts';

/** Runs what it is given once. */
export type WhenQuiet = (run: () => void) => void;

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
export function createWhenQuiet(maxMs: number, { afterTurn, events, now }: Loop = eventLoop): WhenQuiet {
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
