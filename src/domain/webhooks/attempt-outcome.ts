// What follows from one attempt to deliver an event: pure and total. Standard Webhooks 1.0.0: 2xx takes it, anything else, a
// redirect too, is tried again by the schedule until that is over.
import type { AttemptResult, DeliveryAttempt, DueDelivery } from './webhook-store.ts';

export type WebhookAnswer =
  | {
      readonly kind: 'answered';
      readonly status: number;
      /** Value of Retry-After. */
      readonly retryAfter: string | undefined;
      /** The first bytes of what came back, as text. */
      readonly beginning: string;
    }
  /** `reason` is a sentence without its full stop. */
  | { readonly kind: 'unanswered'; readonly reason: string };

const [SECOND_MS, MINUTE_MS, HOUR_MS] = [1000, 60_000, 3_600_000];
/** Pauses after each failed attempt; the tenth one that fails is the last. */
export const PAUSES_MS: readonly number[] = [
  ...[5 * SECOND_MS, 5 * MINUTE_MS, 30 * MINUTE_MS],
  ...[2, 5, 10, 14, 20, 24].map((hours) => hours * HOUR_MS),
];
/** Part by which a pause may be shorter or longer. */
const JITTER = 0.1;
/** Statuses by which an endpoint asks to be left alone, and for how long if it does not say. */
const RESTS: ReadonlySet<number> = new Set([429, 502, 504]);
const REST_MS = 30 * SECOND_MS;
const LONGEST_REST_MS = 24 * HOUR_MS;
const GONE = 410;
/** Attempts that are kept with a delivery. */
const MOST_TRIES = 20;

/** Times of an attempt by the store's clock; `draw` is random, from 0 to below 1. */
export type AttemptTimes = {
  readonly at: number;
  readonly endedAt: number;
  readonly durationMs: number;
  readonly draw: number;
};

export function concludeAttempt(delivery: DueDelivery, answer: WebhookAnswer, times: AttemptTimes): AttemptResult {
  const { at, endedAt } = times;
  const { endpointId, n, triedAt, event, tries } = delivery;
  const isTaken = answer.kind === 'answered' && answer.status >= 200 && answer.status < 300;
  return {
    delivery: { endpointId, n, triedAt, subject: event.subject },
    outcome: isTaken ? { kind: 'taken' } : failedOutcome(delivery, times),
    tries: [...tries, attemptOf(answer, times)].slice(-MOST_TRIES),
    ...{ at, endedAt },
    error: isTaken ? null : errorOf(answer),
    restUntil:
      answer.kind === 'answered' && RESTS.has(answer.status) ? endedAt + restOf(answer.retryAfter, endedAt) : null,
    isGone: answer.kind === 'answered' && answer.status === GONE,
  };
}

/** An attempt beside the schedule leaves it as it is. */
function failedOutcome(
  { attempts: before, scheduledAt }: DueDelivery,
  { at, endedAt, draw }: AttemptTimes,
): AttemptResult['outcome'] {
  if (at < scheduledAt) return { kind: 'again', dueAt: scheduledAt, attempts: before, isBeside: true };
  const pauseMs = PAUSES_MS[before];
  const attempts = before + 1;
  if (pauseMs === undefined) return { kind: 'given_up', attempts };
  return {
    kind: 'again',
    dueAt: endedAt + Math.round(pauseMs * (1 - JITTER + 2 * JITTER * draw)),
    attempts,
    isBeside: false,
  };
}

function attemptOf(answer: WebhookAnswer, { at, durationMs }: AttemptTimes): DeliveryAttempt {
  const answered = answer.kind === 'answered';
  return { at, status: answered ? answer.status : null, durationMs, said: answered ? answer.beginning : answer.reason };
}

function errorOf(answer: WebhookAnswer): string {
  return answer.kind === 'answered' ? `it answered ${answer.status}` : answer.reason;
}

/** Seconds, or a date (RFC 9110 section 10.2.3). */
function restOf(retryAfter: string | undefined, now: number): number {
  if (retryAfter === undefined) return REST_MS;
  const ms = /^\d{1,9}$/.test(retryAfter) ? Number(retryAfter) * SECOND_MS : Date.parse(retryAfter) - now;
  return Number.isNaN(ms) ? REST_MS : Math.min(LONGEST_REST_MS, Math.max(0, ms));
}
