// A circuit breaker for one facilitator: after some slow calls in a row nobody waits for it any more, and one call at a
// time tries whether it is back. Verifying and settling are counted apart, because a facilitator that answers one and
// hangs on the other would otherwise never be left alone. Only slowness counts: what fails fast costs little to try, and a
// payload that makes a facilitator stumble must not let its sender shut everybody else out.
import type { Clock } from '../../../host/clock.ts';

export type Operation = 'verify' | 'settle';

/** `none`: the call was not made after all. */
export type CallEnd = 'answered' | 'slow' | 'none';

export type Breaker = {
  /** Undefined: do not call now. Otherwise the call may be made, and its end has to be reported once. */
  readonly admit: (operation: Operation) => ((end: CallEnd) => void) | undefined;
  /** How long it stays open, in milliseconds; 0 while it is closed. */
  readonly rest: () => number;
};

export type BreakerOptions = {
  /** Slow calls of one operation in a row that open it. */
  readonly failures: number;
  /** How long it stays open at first; twice as long after every trial that fails. */
  readonly openMs: number;
  readonly maxOpenMs: number;
};

export const BREAKER: BreakerOptions = { failures: 5, openMs: 1000, maxOpenMs: 30_000 };

export function createBreaker(clock: Pick<Clock, 'monotonic'>, options: BreakerOptions = BREAKER): Breaker {
  const slowInRow: Record<Operation, number> = { verify: 0, settle: 0 };
  let openUntil: number | undefined;
  let openMs = options.openMs;
  let trying = false;

  const close = (operation: Operation): void => {
    openUntil = undefined;
    openMs = options.openMs;
    // The other operation has not shown yet that it is back: one slow call of it is enough.
    const other = operation === 'verify' ? 'settle' : 'verify';
    slowInRow[other] = Math.min(slowInRow[other], options.failures - 1);
  };

  const end = (operation: Operation, trial: boolean, how: CallEnd): void => {
    if (trial) trying = false;
    switch (how) {
      case 'answered':
        slowInRow[operation] = 0;
        if (openUntil !== undefined) close(operation);
        return;
      case 'slow':
        slowInRow[operation]++;
        if (trial) openMs = Math.min(openMs * 2, options.maxOpenMs);
        if (trial || (openUntil === undefined && slowInRow[operation] >= options.failures)) {
          openUntil = clock.monotonic() + openMs;
        }
        return;
      case 'none':
        return;
      default:
        how satisfies never;
    }
  };

  return {
    admit: (operation) => {
      if (openUntil === undefined) return (how) => end(operation, false, how);
      if (trying || clock.monotonic() < openUntil) return undefined;
      trying = true;
      return (how) => end(operation, true, how);
    },
    rest: () => (openUntil === undefined ? 0 : Math.max(0, openUntil - clock.monotonic())),
  };
}
