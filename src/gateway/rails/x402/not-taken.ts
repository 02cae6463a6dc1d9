// Reads a facilitator's answers that are about the call and not about the payment. The payment was not looked at, nothing
// moved, and nothing will. Sources: RFC 9110 (statuses, Date, Retry-After), errors of the Coinbase CDP API.
import type { JsonReply } from '../service-call.ts';

const REASONS: ReadonlyMap<number, CallRejection['reason']> = new Map([
  [401, 'unauthorized'],
  [402, 'payment_required'],
  [403, 'forbidden'],
  [429, 'rate_limited'],
  [404, 'not_carried_out'],
  [405, 'not_carried_out'],
  [413, 'not_carried_out'],
  [415, 'not_carried_out'],
]);

/** Advice to an operator for each reason. */
const ADVICE: Readonly<Record<CallRejection['reason'], string>> = {
  unauthorized: 'it does not know who calls; check auth',
  clock_skew: 'it takes no token of this time; set the clock of this machine',
  payment_required: 'its account is not paid for; see to its billing',
  forbidden: 'the key may not do this; check what it is for',
  rate_limited: 'it is called too often for this account',
  not_carried_out: 'it has no such endpoint; check its URL',
};

const CLOCK_OFF_MS = 5000;

/** Reason why a call was not taken: who calls, or how often, not what is paid. */
export type CallRejection = {
  readonly reason:
    | 'unauthorized'
    | 'clock_skew'
    | 'payment_required'
    | 'forbidden'
    | 'rate_limited'
    | 'not_carried_out';
  /** Pause before the next call; an earlier one would not be taken either. */
  readonly retryAfterMs: number | undefined;
};

export type NotTakenReply = CallRejection & {
  /** Phrase of ours for the log and for operators. */
  readonly why: string;
  /** Seconds that our clock is ahead of the facilitator's, if that is why. */
  readonly secondsAhead: number | undefined;
};

export function isNotTaken(status: number): boolean {
  return REASONS.has(status);
}

/** Reads a reply whose body does not speak of the payment: one that does is an answer, whatever its status is. */
export function readNotTaken({ status, headers }: JsonReply, nowMs: number): NotTakenReply | undefined {
  const reason = REASONS.get(status ?? 0);
  if (reason === undefined) return undefined;
  const ahead = nowMs - Date.parse(headers?.get('date') ?? '');
  const skewed = reason === 'unauthorized' && Math.abs(ahead) > CLOCK_OFF_MS;
  const named = skewed ? 'clock_skew' : reason;
  return {
    reason: named,
    retryAfterMs: readRetryAfter(headers?.get('retry-after'), nowMs),
    why: `status ${status}: ${ADVICE[named]}`,
    secondsAhead: skewed ? Math.round(ahead / 1000) : undefined,
  };
}

/** Seconds, or a date. */
function readRetryAfter(text: string | null | undefined, nowMs: number): number | undefined {
  if (text === null || text === undefined) return undefined;
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1000;
  const ms = Date.parse(text) - nowMs;
  return ms > 0 ? ms : undefined;
}
