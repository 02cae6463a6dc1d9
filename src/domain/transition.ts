// How a charge changes: pure, total, and the same for every ledger and for the simulation. A change that a rule forbids
// is refused with its reason and changes nothing. `settling` never goes back: from the moment a settlement may have been
// sent, only proof, a final refusal of the first attempt, the chain's time or an operator ends it. CONTRACT section 6.
import {
  canonicalTransaction,
  isUnsettled,
  type Charge,
  type KeptAnswer,
  type Proof,
  type Undelivered,
} from './charge.ts';
import { redemption, type Presented } from './standing.ts';

/** Durations, not times: whose clock counts is the ledger's. */
export type ChargeEvent =
  /** Before settle is sent. */
  | { readonly kind: 'settle_started'; readonly leaseMs: number }
  /** `leaseMs` 0: nobody is delivering, the payer may fetch at once. */
  | { readonly kind: 'settled'; readonly proof: Proof; readonly leaseMs: number }
  /** Counts as `settle_unknown` where it is not final, or where an earlier attempt may have moved the money. */
  | { readonly kind: 'settle_refused'; readonly reason: string; readonly final: boolean; readonly retryInMs: number }
  /** Gives the charge up: the reconciler takes it on after `retryInMs`. */
  | { readonly kind: 'settle_unknown'; readonly reason: string; readonly retryInMs: number }
  | { readonly kind: 'released'; readonly reason: string }
  | { readonly kind: 'delivered' }
  /** Once settled it says that the payer went first, and gives the charge up; while settling it only keeps. */
  | { readonly kind: 'answer_kept'; readonly answer: KeptAnswer }
  /** Settled, and the answer is not arriving: gives the charge up. */
  | { readonly kind: 'undelivered'; readonly because: Undelivered }
  /** The payer fetches what was paid for: takes the charge. The result's `answer` is replayed; without one, ask. */
  | { readonly kind: 'redeem_started'; readonly presented: Presented; readonly leaseMs: number }
  /** A `claimed` charge becomes `released`; a `settling` one changes hands, `early`: also before its next try is due. */
  | { readonly kind: 'taken_over'; readonly leaseMs: number; readonly early: boolean }
  | { readonly kind: 'lease_renewed'; readonly leaseMs: number }
  | { readonly kind: 'failed'; readonly by: 'operator'; readonly reason: string }
  /** The authorization is unused and can never be used: `chainTime` (seconds) is past its end. */
  | { readonly kind: 'failed'; readonly by: 'chain'; readonly chainTime: bigint; readonly reason: string };

/** `owner` names one claimant: a request or one run of the reconciler, not a process. */
export type Actor = { readonly owner: string; readonly changeId?: string | undefined };

export const REFUSALS = [
  'wrong_state',
  'not_owner',
  'lease_running',
  'not_due',
  'proof_mismatch',
  'not_expired',
  'not_redeemable',
] as const;
export type TransitionRefusal = (typeof REFUSALS)[number];

export type Transition =
  | { readonly ok: true; readonly charge: Charge }
  | { readonly ok: false; readonly because: TransitionRefusal };

const REASON_LENGTH = 200;

/** `now`: milliseconds since the epoch. The result is `charge` itself where this very change was made before. */
export function transition(charge: Charge, event: ChargeEvent, actor: Actor, now: number): Transition {
  const repeated = actor.changeId !== undefined && actor.changeId === charge.changeId;
  if (repeated && event.kind !== 'lease_renewed') return { ok: true, charge };
  const next = change(charge, event, actor.owner, now);
  if (typeof next === 'string') return { ok: false, because: next };
  // A renewal may pass a change whose answer was lost; the repeated change is to be recognised all the same.
  const changeId = event.kind === 'lease_renewed' ? charge.changeId : (actor.changeId ?? null);
  return { ok: true, charge: { ...charge, ...next, changeId, updatedAt: now } };
}

function change(charge: Charge, event: ChargeEvent, owner: string, now: number): Partial<Charge> | TransitionRefusal {
  const { state } = charge;
  if (event.kind === 'taken_over') return takeOver(charge, owner, now, event);
  if (event.kind === 'redeem_started') return startRedeeming(charge, owner, now, event);
  if (charge.owner !== owner) return 'not_owner';
  switch (event.kind) {
    case 'settle_started':
      return state === 'claimed' ? { state: 'settling', leaseUntil: now + event.leaseMs } : 'wrong_state';
    case 'settled':
      return state === 'settling' ? settle(charge, event.proof, now, event.leaseMs) : 'wrong_state';
    case 'settle_refused':
      if (state !== 'settling') return 'wrong_state';
      if (!event.final || charge.attempts > 0) return doubt(charge, now, event);
      return end({ state: 'failed', failedBy: 'refusal', reason: clipReason(event.reason) });
    case 'settle_unknown':
      return state === 'settling' ? doubt(charge, now, event) : 'wrong_state';
    case 'released':
      return state === 'claimed' ? end({ state: 'released', reason: clipReason(event.reason) }) : 'wrong_state';
    case 'delivered':
      return state === 'settled' ? end({ state: 'delivered', deliveredAt: now }) : 'wrong_state';
    case 'answer_kept':
      if (state === 'settling') return { answer: event.answer };
      return state === 'settled' ? { answer: event.answer, ...giveUp(charge, now) } : 'wrong_state';
    case 'undelivered':
      return state === 'settled' ? { undelivered: event.because, ...giveUp(charge, now) } : 'wrong_state';
    case 'lease_renewed':
      return { leaseUntil: now + event.leaseMs };
    case 'failed':
      if (state !== 'settling') return 'wrong_state';
      if (event.by === 'chain' && event.chainTime <= charge.terms.validBefore) return 'not_expired';
      return end({ state: 'failed', failedBy: event.by, reason: clipReason(event.reason) });
    default:
      return event satisfies never;
  }
}

function settle(charge: Charge, proof: Proof, now: number, leaseMs: number): Partial<Charge> | TransitionRefusal {
  const { transaction, amount } = proof;
  const payer = proof.payer.toLowerCase();
  if (transaction === '' || amount !== charge.terms.amount || payer !== charge.payment.payer) return 'proof_mismatch';
  const settled: Partial<Charge> = {
    state: 'settled',
    proof: { ...proof, payer, transaction: canonicalTransaction(transaction) },
    credential: null,
    nextTryAt: null,
    reason: null,
    settledAt: now,
  };
  return leaseMs > 0 ? { ...settled, leaseUntil: now + leaseMs } : { ...settled, ...giveUp(charge, now) };
}

/** Whether the money moved is not known. Nobody owns the charge, so that whoever comes first may look. */
function doubt(charge: Charge, now: number, event: { reason: string; retryInMs: number }): Partial<Charge> {
  const { reason, retryInMs } = event;
  return {
    attempts: charge.attempts + 1,
    nextTryAt: now + retryInMs,
    owner: null,
    leaseUntil: now,
    reason: clipReason(reason),
  };
}

function takeOver(
  charge: Charge,
  owner: string,
  now: number,
  { leaseMs, early }: { readonly leaseMs: number; readonly early: boolean },
): Partial<Charge> | TransitionRefusal {
  const { state, leaseUntil, nextTryAt, attempts } = charge;
  if (!isUnsettled(state)) return 'wrong_state';
  if (leaseUntil > now) return 'lease_running';
  if (state === 'claimed') return end({ state: 'released', reason: LEASE_RAN_OUT });
  if (!early && nextTryAt !== null && nextTryAt > now) return 'not_due';
  // An owner that is gone without a word may have sent a settlement: that is one attempt whose end is not known.
  const lost = charge.owner === null ? 0 : 1;
  return { owner, leaseUntil: now + leaseMs, nextTryAt: null, attempts: attempts + lost };
}

function startRedeeming(
  charge: Charge,
  owner: string,
  now: number,
  event: { readonly presented: Presented; readonly leaseMs: number },
): Partial<Charge> | TransitionRefusal {
  if (charge.state !== 'settled') return 'wrong_state';
  if (charge.leaseUntil > now) return 'lease_running';
  const way = redemption(charge, event.presented, now);
  if (way === undefined) return 'not_redeemable';
  return {
    owner,
    leaseUntil: now + event.leaseMs,
    undeliveredAt: charge.undeliveredAt ?? charge.leaseUntil,
    asks: charge.asks + (way === 'replay' ? 0 : 1),
    repeats: charge.repeats + (way === 'repeat' ? 1 : 0),
  };
}

export const LEASE_RAN_OUT = 'lease_ran_out';

function giveUp(charge: Charge, now: number): Partial<Charge> {
  return { owner: null, leaseUntil: now, undeliveredAt: charge.undeliveredAt ?? now };
}

/** Nobody works on it any more, and nothing is kept that could be misused. */
function end(last: Partial<Charge>): Partial<Charge> {
  return { owner: null, leaseUntil: 0, nextTryAt: null, credential: null, answer: null, ...last };
}

/** Reasons may come from a facilitator: bounded, and text whatever they hold. */
export function clipReason(reason: string): string {
  return reason.slice(0, REASON_LENGTH).toWellFormed();
}
