// A circuit breaker for one facilitator. After some calls in a row that were slow, or that it did not take, it is left alone.
// Then one call at a time tries whether it is back. Verifying and settling are counted apart: a facilitator that answers one
// and hangs on the other would otherwise never be left alone. An answer about a payment never counts. A payload that makes
// a facilitator stumble must not let its sender shut everybody else out.
import type { Clock } from '../../../host/clock.ts';
import type { CallRejection } from './not-taken.ts';

export type Operation = 'verify' | 'settle';

/** End of a call. `none`: it was not made after all. */
export type CallEnd = 'answered' | 'slow' | 'none' | CallRejection;

export type Breaker = {
  /** Admits a call, whose end has to be reported once. Undefined: do not call now. */
  readonly admit: (operation: Operation) => ((end: CallEnd) => void) | undefined;
  /** Milliseconds for which the circuit breaker stays open; 0 while it is closed. */
  readonly rest: () => number;
  /** Reason why the circuit breaker is open, until a call is answered again; undefined while it is closed. */
  readonly reason: () => OpenReason | undefined;
};
export type OpenReason = 'slow' | CallRejection['reason'];

type BreakerOptions = {
  /** Number of failed calls of one operation in a row after which the circuit breaker opens. */
  readonly failures: number;
  /** Milliseconds for which the circuit breaker stays open at first; twice as long after every trial that fails. */
  readonly openMs: number;
  readonly maxOpenMs: number;
};

const BREAKER: BreakerOptions = { failures: 5, openMs: 1000, maxOpenMs: 30_000 };

type Row = { kind: 'slow' | 'not_taken'; count: number };

export function createBreaker(clock: Pick<Clock, 'monotonic'>, options: BreakerOptions = BREAKER): Breaker {
  const rows: Record<Operation, Row> = {
    verify: { kind: 'slow', count: 0 },
    settle: { kind: 'slow', count: 0 },
  };
  let open: { readonly until: number; readonly reason: OpenReason } | undefined;
  let openMs = options.openMs;
  let trying = false;

  const close = (operation: Operation): void => {
    open = undefined;
    openMs = options.openMs;
    // The other operation has not shown yet that it is back: one such call of it is enough.
    const other = rows[operation === 'verify' ? 'settle' : 'verify'];
    other.count = Math.min(other.count, options.failures - 1);
  };

  const fail = (operation: Operation, trial: boolean, how: 'slow' | CallRejection): void => {
    const kind = how === 'slow' ? 'slow' : 'not_taken';
    const { [operation]: row } = rows;
    rows[operation] = { kind, count: row.kind === kind ? row.count + 1 : 1 };
    if (trial) openMs = Math.min(openMs * 2, options.maxOpenMs);
    if (!trial && (open !== undefined || rows[operation].count < options.failures)) return;
    const asked = how === 'slow' ? 0 : Math.min(how.retryAfterMs ?? 0, options.maxOpenMs);
    open = {
      until: clock.monotonic() + Math.max(openMs, asked),
      reason: how === 'slow' ? 'slow' : how.reason,
    };
  };

  const end = (operation: Operation, trial: boolean, how: CallEnd): void => {
    if (trial) trying = false;
    if (how === 'none') return;
    if (how !== 'answered') return fail(operation, trial, how);
    rows[operation].count = 0;
    if (open !== undefined) close(operation);
  };

  return {
    admit: (operation) => {
      if (open === undefined) return (how) => end(operation, false, how);
      if (trying || clock.monotonic() < open.until) return undefined;
      trying = true;
      return (how) => end(operation, true, how);
    },
    rest: () => (open === undefined ? 0 : Math.max(0, open.until - clock.monotonic())),
    reason: () => open?.reason,
  };
}
