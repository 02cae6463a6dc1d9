// The one time limit of a call to a service, over everything that it does: waiting for a place, connecting, sending,
// reading. Whoever does the step at hand is told when it is over; nobody else is.
import type { Schedule } from '../../host/clock.ts';

export type Deadline = {
  readonly isOver: () => boolean;
  /** Runs `run` when the time is over, in place of whatever was to run before; undefined runs nothing. */
  readonly whenOver: (run: (() => void) | undefined) => void;
  /** The call has ended: nothing runs any more. */
  readonly cancel: () => void;
};

export function startDeadline(schedule: Schedule, ms: number): Deadline {
  let over = false;
  let onOver: (() => void) | undefined;
  const cancel = schedule(ms, () => {
    over = true;
    onOver?.();
  });
  return {
    isOver: () => over,
    whenOver: (run) => {
      onOver = run;
    },
    cancel,
  };
}
