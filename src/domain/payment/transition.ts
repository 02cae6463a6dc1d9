// Changes a charge: pure, total, and the same for every ledger and for the simulation. A change that a rule forbids is
// refused with its reason and changes nothing. Only these ways lead back: `settling -> released`, if nothing was carried
// out and no earlier attempt is unknown; `released -> claimed`, by a claim; `failed -> settled`, by an operator. An allow
// that a proxy was handed for nothing is one more: `delivered -> settled`, by its report.
import type { AuditCause } from '../audit.ts';
import {
  isUnsettled,
  type AskCounts,
  type Charge,
  type KeptAnswer,
  type Proof,
  type Search,
  type UndeliveredCause,
} from './charge.ts';
import {
  appendLine,
  ASK_AGAIN,
  fetchableUntil,
  isIdentical,
  isRepeatable,
  isReportable,
  isServedHere,
  lastUndelivered,
  pauseAfterFailure,
  pauseLeft,
  redemption,
  type PresentedRequest,
} from './claim-policy.ts';
import { recordRefund, writeRefunds, type NewRefund } from './refund.ts';
import { furtherSearch } from './search.ts';

/** Events hold durations, not times: whose clock counts is the ledger's. */
export type ChargeEvent =
  /** Comes before settle is sent to `via`; again before it is sent to the next one, if nothing was carried out. */
  | { readonly kind: 'settle_started'; readonly via: string; readonly leaseMs: number }
  /**
   * Says that nothing that could move money was carried out: the payment is free again, unless an earlier attempt is
   * unknown. `unasked` means the same as in `released`.
   */
  | { readonly kind: 'not_carried_out'; readonly reason: string; readonly unasked?: true | undefined }
  /**
   * Says that the money moved: the owner does, or, if the charge has none, the reconciler. `leaseMs` 0: no request
   * delivers it, so the payer may fetch at once. It counts as 0 for the reconciler, and if an earlier attempt asked the
   * upstream. `by` is for a charge that is `settling` or `failed`.
   */
  | { readonly kind: 'settled'; readonly proof: Proof; readonly leaseMs: number; readonly by?: 'operator' | undefined }
  /** A word about the payment: final as a first attempt, else it may hide that an earlier one moved the money. */
  | { readonly kind: 'settle_refused'; readonly reason: string }
  /**
   * Gives the charge up: the reconciler looks after `lookInMs`, the payer may come at once. `search`: what a look of this
   * request searched.
   */
  | {
      readonly kind: 'settle_unknown';
      readonly reason: string;
      readonly lookInMs: number;
      readonly search?: Search | null | undefined;
    }
  /**
   * A look at a charge without an owner; takes no lease. `at` the start it moves the time of the next look, if that has
   * come, so that only one process looks. At the end it keeps what was searched so far. That is kept beside a request
   * that has the charge by then too, and nothing else of the charge is touched.
   */
  | {
      readonly kind: 'looked';
      readonly at: 'start' | 'end';
      readonly search: Search | null;
      readonly lookInMs: number;
      readonly reason: string;
    }
  /** The money did not move and cannot: by the owner, or by the reconciler or an operator if the charge has none. */
  | { readonly kind: 'failed'; readonly by: 'chain' | 'operator'; readonly reason: string }
  /** Gives the claim up. `unasked`: not a byte was sent to the upstream, which was away. The claim does not count. */
  | { readonly kind: 'released'; readonly reason: string; readonly unasked?: true | undefined }
  /** Takes over a charge without an owner: `claimed` becomes `released`, `settling` gets the request as owner. */
  | { readonly kind: 'taken_over'; readonly leaseMs: number }
  /** Ends a delivery. `partial`: it got as far as it ever will, and a check holds that no more can be fetched. */
  | { readonly kind: 'delivered'; readonly partial: boolean }
  /**
   * Says that money was given back: by `transfer`, which may be a part of the amount, or all of it by the operator's word
   * alone. A charge that was given back whole is owed no more.
   */
  | { readonly kind: 'refunded'; readonly note: string; readonly transfer?: NewRefund | undefined }
  /** Keeps the answer. On a settled charge it also says that the payer went first, and gives the charge up. */
  | { readonly kind: 'answer_kept'; readonly answer: KeptAnswer; readonly headSent: boolean }
  /**
   * Says that the charge is settled and the answer is not arriving, and gives the charge up. `not_asked`: the upstream
   * was not, after all. `status`: what its client got, if the upstream failed.
   */
  | {
      readonly kind: 'undelivered';
      readonly because: Exclude<UndeliveredCause, 'process_died'> | 'not_asked';
      readonly headSent: boolean;
      readonly status?: number | undefined;
    }
  /** The payer fetches what was paid for: takes the charge. The result's `answer` is replayed; without one, ask. */
  | { readonly kind: 'redeem_started'; readonly request: PresentedRequest; readonly leaseMs: number }
  /** The same request asks again about an allow that was handed over. */
  | { readonly kind: 'allow_repeated'; readonly request: PresentedRequest }
  /** The proxy that was allowed says that the upstream gave no usable answer. */
  | { readonly kind: 'failure_reported'; readonly request: ReportedRequest };

/** The request that a proxy reports about, and the dialect of its listener. */
export type ReportedRequest = { readonly dialect: string; readonly method: string; readonly targetSha256: string };

/**
 * `owner` names one request of one run of a process (`ownerOf`), or who else acts. `cause`: an operator, whose change goes into
 * the audit log with it.
 */
export type Actor = {
  readonly owner: string;
  readonly changeId?: string | undefined;
  readonly cause?: AuditCause | undefined;
};

export const REFUSALS = [
  'wrong_state',
  'not_owner',
  'lease_running',
  'not_due',
  'proof_mismatch',
  'not_redeemable',
  'still_redeemable',
  /** More would be given back than the charge took, or by more transfers than it keeps. */
  'refund_exceeds',
  /** The transaction is recorded for this charge with another amount. */
  'refund_recorded',
] as const;
export type TransitionRefusal = (typeof REFUSALS)[number];

type Transition =
  | { readonly ok: true; readonly charge: Charge }
  | { readonly ok: false; readonly because: TransitionRefusal };

/** Time until the first look at a settlement whose end is not known, if the event does not say when. */
export const FIRST_LOOK_MS = 1_000;
const LEASE_RAN_OUT = 'lease_ran_out';
const REASON_LENGTH = 200;
const BAD_GATEWAY = 502;
/** No pause is kept for the next ask. */
const AT_ONCE = { askAt: null, failedStatus: null };

/** Changes a charge at `now`, milliseconds since the epoch. A change that was made before returns `charge` itself. */
export function transition(charge: Charge, event: ChargeEvent, actor: Actor, now: number): Transition {
  if (actor.changeId !== undefined && actor.changeId === charge.changeId) return { ok: true, charge };
  const next = change(charge, event, actor.owner, now);
  if (typeof next === 'string') return { ok: false, because: next };
  // A refund that is recorded already.
  if (event.kind === 'refunded' && next.refundedAt === undefined && next.refunds === charge.refunds)
    return { ok: true, charge };
  const moved = { ...charge, changeId: actor.changeId ?? null, updatedAt: now, ...next };
  // What is kept beside a request's work is no change of the charge.
  if (event.kind === 'looked' && charge.owner !== null && leavesToOwner(charge, moved))
    return { ok: true, charge: moved };
  const line = [now, moved.state, event.kind, actor.owner, detailOf(event, moved)] as const;
  return { ok: true, charge: { ...moved, events: appendLine(charge.events, line) } };
}

/** What is to be said of an event, for people. */
function detailOf(event: ChargeEvent, { state, proof, reason, refundNote }: Charge): string | null {
  switch (event.kind) {
    case 'settled':
      return proof?.transaction ?? null;
    case 'refunded':
      return event.transfer?.transaction ?? refundNote;
    case 'undelivered':
      return event.because;
    case 'delivered':
      return event.partial ? 'partial' : null;
    case 'released':
    case 'failed':
    case 'looked':
    case 'not_carried_out':
    case 'settle_refused':
    case 'settle_unknown':
      return clipReason(event.reason);
    case 'taken_over':
      return state === 'released' ? reason : null;
    case 'settle_started':
    case 'answer_kept':
    case 'redeem_started':
    case 'allow_repeated':
    case 'failure_reported':
      return null;
    default:
      return event satisfies never;
  }
}

function change(charge: Charge, event: ChargeEvent, owner: string, now: number): Partial<Charge> | TransitionRefusal {
  if (event.kind === 'delivered' && event.partial) return deliverPartly(charge, owner, now);
  return isOfAnyone(event) ? changeOfAnyone(charge, event, owner, now) : ofOwner(charge, event, owner, now);
}

const OF_ANYONE = [
  ...(['taken_over', 'redeem_started', 'looked', 'settled', 'failed', 'refunded'] as const),
  ...(['allow_repeated', 'failure_reported'] as const),
] as const;
type UnownedEvent = Extract<ChargeEvent, { kind: (typeof OF_ANYONE)[number] }>;

function isOfAnyone(event: ChargeEvent): event is UnownedEvent {
  return OF_ANYONE.some((kind) => kind === event.kind);
}

/** Changes a charge without an owner; an owner may make some of these changes as well. */
function changeOfAnyone(
  charge: Charge,
  event: UnownedEvent,
  owner: string,
  now: number,
): Partial<Charge> | TransitionRefusal {
  const { state } = charge;
  const owns = charge.owner === owner;
  const running = charge.leaseUntil > now;
  switch (event.kind) {
    case 'taken_over':
      return takeOver(charge, owner, now, event.leaseMs);
    case 'redeem_started':
      return startRedeeming(charge, owner, now, event);
    case 'allow_repeated':
      if (state !== 'delivered') return 'wrong_state';
      return isRepeatable(charge, event.request, now) ? { repeats: (charge.repeats ?? 0) + 1 } : 'not_redeemable';
    case 'failure_reported':
      return report(charge, event.request, now);
    case 'looked':
      if (state !== 'settling') return 'wrong_state';
      if (running) return event.at === 'end' ? keepSearch(charge, event.search) : 'lease_running';
      if (event.at === 'end') return { ...looked(now, event), search: furtherSearch(charge.search, event.search) };
      if ((charge.lookAt ?? 0) > now) return 'not_due';
      return { ...looked(now, event), looks: charge.looks + 1 };
    case 'settled':
      if (state !== 'settling' && !(state === 'failed' && event.by === 'operator')) return 'wrong_state';
      if (!owns && running) return 'lease_running';
      return settle(charge, event.proof, now, owns && event.by === undefined ? event.leaseMs : undefined);
    case 'failed':
      if (state !== 'settling') return 'wrong_state';
      if (!owns && running) return 'lease_running';
      return end({ state: 'failed', failedBy: event.by, reason: clipReason(event.reason) });
    case 'refunded':
      return refund(charge, event, now);
    default:
      return event satisfies never;
  }
}

function ofOwner(
  charge: Charge,
  event: Exclude<ChargeEvent, UnownedEvent>,
  owner: string,
  now: number,
): Partial<Charge> | TransitionRefusal {
  const { state } = charge;
  if (charge.owner !== owner) return 'not_owner';
  switch (event.kind) {
    case 'settle_started':
      if (!isUnsettled(state)) return 'wrong_state';
      // Only the facilitator that was asked first may remember an attempt whose end is not known.
      return {
        state: 'settling',
        leaseUntil: now + event.leaseMs,
        via: charge.attempts > 0 ? (charge.via ?? event.via) : event.via,
      };
    case 'not_carried_out':
      if (state !== 'settling') return 'wrong_state';
      return charge.attempts > 0 ? doubt(charge, now, event.reason, 0) : release(charge, event);
    case 'settle_refused':
      if (state !== 'settling') return 'wrong_state';
      if (charge.attempts > 0) return doubt(charge, now, event.reason, 1);
      return end({ state: 'failed', failedBy: 'refusal', reason: clipReason(event.reason) });
    case 'settle_unknown':
      if (state !== 'settling') return 'wrong_state';
      return {
        ...doubt(charge, now, event.reason, 1, event.lookInMs),
        search: furtherSearch(charge.search, event.search),
      };
    case 'released':
      return state === 'claimed' ? release(charge, event) : 'wrong_state';
    case 'delivered':
      return state === 'settled' ? end({ state: 'delivered', deliveredAt: now }) : 'wrong_state';
    case 'answer_kept': {
      const kept = { answer: event.answer, headSent: charge.headSent || event.headSent };
      if (state === 'settling') return kept;
      return state === 'settled'
        ? last(charge, { ...kept, ...giveUp(now), undelivered: 'answer_lost' }, now)
        : 'wrong_state';
    }
    case 'undelivered':
      return state === 'settled' ? undeliver(charge, event, now) : 'wrong_state';
    default:
      return event satisfies never;
  }
}

function looked(now: number, event: { reason: string; lookInMs: number }): Partial<Charge> {
  return { lookAt: now + event.lookInMs, reason: clipReason(event.reason) };
}

/** Keeps a search. The last change stays its owner's, who may repeat it. */
function keepSearch({ search, changeId }: Charge, found: Search | null): Partial<Charge> | TransitionRefusal {
  return found === null ? 'lease_running' : { search: furtherSearch(search, found), changeId };
}

/**
 * Whether a change takes nothing from the request that works on the charge, like a search that is kept. A lease that was
 * renewed meanwhile does not matter to it.
 */
export function leavesToOwner(before: Charge, after: Charge): boolean {
  return (
    after.state === before.state &&
    after.owner === before.owner &&
    after.leaseUntil === before.leaseUntil &&
    after.lookAt === before.lookAt
  );
}

/** `leaseMs` undefined: not by its owner. */
function settle(
  charge: Charge,
  proof: Proof,
  now: number,
  leaseMs: number | undefined,
): Partial<Charge> | TransitionRefusal {
  const { transaction, amount, payer } = proof;
  if (transaction === '' || amount !== charge.amount || payer !== charge.payment.payer) return 'proof_mismatch';
  const settled: Partial<Charge> = {
    state: 'settled',
    proof,
    credential: null,
    lookAt: null,
    search: null,
    reason: null,
    failedBy: null,
    settledAt: now,
  };
  // Settling before the response means that the upstream answered: an earlier request, if this is not the first try.
  const answered = charge.settle === 'before_response';
  const asks = { ...charge.asks, all: 1 };
  if (leaseMs !== undefined && leaseMs > 0 && !(answered && charge.attempts > 0))
    return { ...settled, asks, leaseUntil: now + leaseMs };
  if (!answered) return { ...settled, ...giveUp(now) };
  const died = leaseMs === undefined && charge.owner !== null;
  const undelivered = died ? 'process_died' : (charge.undelivered ?? 'answer_dropped');
  return { ...settled, ...giveUp(now), asks, undelivered };
}

/** Whether the money moved is not known. The charge has no owner, so the first process that comes may look. */
function doubt(
  charge: Charge,
  now: number,
  reason: string,
  attempts: 0 | 1,
  lookInMs = FIRST_LOOK_MS,
): Partial<Charge> {
  return {
    attempts: charge.attempts + attempts,
    lookAt: now + lookInMs,
    owner: null,
    leaseUntil: now,
    reason: clipReason(reason),
    ...(charge.settle === 'before_response' ? { undelivered: charge.undelivered ?? 'answer_dropped' } : {}),
  };
}

function takeOver(charge: Charge, owner: string, now: number, leaseMs: number): Partial<Charge> | TransitionRefusal {
  const { state, leaseUntil, attempts } = charge;
  if (!isUnsettled(state)) return 'wrong_state';
  if (leaseUntil > now) return 'lease_running';
  if (state === 'claimed') return release(charge, { reason: LEASE_RAN_OUT });
  const taken = { owner, leaseUntil: now + leaseMs, lookAt: null };
  if (charge.owner === null) return taken;
  // An owner that is gone without a word may have sent a settlement: that is one attempt whose end is not known.
  const died = charge.settle === 'before_response' ? ({ undelivered: 'process_died' } as const) : {};
  return { ...taken, ...died, attempts: attempts + 1 };
}

function startRedeeming(
  charge: Charge,
  owner: string,
  now: number,
  event: { readonly request: PresentedRequest; readonly leaseMs: number },
): Partial<Charge> | TransitionRefusal {
  if (charge.state !== 'settled') return 'wrong_state';
  if (charge.leaseUntil > now) return 'lease_running';
  const isOwn = isIdentical(charge, event.request) && isServedHere(charge, event.request);
  const way = isOwn ? redemption(charge, now) : undefined;
  if (way === undefined) return 'not_redeemable';
  if (pauseLeft(charge, now) > 0) return 'not_due';
  const asked = charge.asker === null ? {} : { askSha256: event.request.asker?.askSha256 ?? null, repeats: null };
  const taken = { owner, leaseUntil: now + event.leaseMs, ...asked };
  if (way.kind === 'replay') return taken;
  return { ...taken, ...AT_ONCE, undelivered: way.because, asks: count(charge.asks, way.because, 1) };
}

/** The allow led nowhere: the same credential is allowed again. The proxy has asked the upstream, so there is no pause. */
function report(
  charge: Charge,
  { dialect, method, targetSha256 }: ReportedRequest,
  now: number,
): Partial<Charge> | TransitionRefusal {
  const { request, asker } = charge;
  if (charge.state !== 'delivered') return 'wrong_state';
  if (asker !== dialect || request.method !== method || request.targetSha256 !== targetSha256) return 'not_redeemable';
  if (!isReportable(charge, now)) return 'not_due';
  return { state: 'settled', deliveredAt: null, undelivered: 'upstream_failed', repeats: null };
}

/** Records a failed delivery. After the upstream failed it is left alone for a while, whichever process is asked. */
function undeliver(
  charge: Charge,
  { because, headSent, status = BAD_GATEWAY }: Extract<ChargeEvent, { kind: 'undelivered' }>,
  now: number,
): Partial<Charge> {
  // As long as a request asks again, `undelivered` is the reason why.
  if (because === 'not_asked')
    return { ...giveUp(now), asks: charge.answer === null ? count(charge.asks, charge.undelivered, -1) : charge.asks };
  const next = { ...giveUp(now), undelivered: because, headSent: charge.headSent || headSent, ...AT_ONCE };
  if (because !== 'upstream_failed' || now >= fetchableUntil({ ...charge, ...next })) return last(charge, next, now);
  return { ...next, askAt: now + pauseAfterFailure(charge.asks), failedStatus: status };
}

/** Ends the charge if the client had a head and nothing more of it can be fetched. */
function last(charge: Charge, next: Partial<Charge>, now: number): Partial<Charge> {
  const given: Charge = { ...charge, ...next };
  if (!given.headSent || now < fetchableUntil(given)) return next;
  return { ...next, ...end({ state: 'delivered', deliveredAt: now, partial: true }) };
}

function count(asks: AskCounts, because: UndeliveredCause | null, by: 1 | -1): AskCounts {
  const all = Math.max(0, asks.all + by);
  if (because === null) return { ...asks, all };
  const { counter } = ASK_AGAIN[because];
  return { ...asks, all, [counter]: Math.max(0, asks[counter] + by) };
}

/** Ends a charge whose client was sent a head of an answer, if what is left of it can be fetched no more. */
function deliverPartly(charge: Charge, owner: string, now: number): Partial<Charge> | TransitionRefusal {
  if (charge.state !== 'settled' || !charge.headSent) return 'wrong_state';
  if (charge.owner !== owner && charge.leaseUntil > now) return 'lease_running';
  const given: Charge = { ...charge, owner: null, undelivered: lastUndelivered(charge) };
  if (now < fetchableUntil(given)) return 'still_redeemable';
  return end({ state: 'delivered', deliveredAt: now, partial: true });
}

/** Records that money was given back. Of a delivered charge that is goodwill: its payer keeps the answer. */
function refund(
  charge: Charge,
  { note, transfer }: { readonly note: string; readonly transfer?: NewRefund | undefined },
  now: number,
): Partial<Charge> | TransitionRefusal {
  const { state, refundedAt } = charge;
  if (state !== 'settled' && state !== 'delivered') return 'wrong_state';
  if (transfer === undefined && refundedAt !== null) return 'wrong_state';
  if (state === 'settled' && charge.leaseUntil > now) return 'lease_running';
  const recording = transfer === undefined ? undefined : recordRefund(charge, transfer, now);
  if (recording?.ok === false) return recording.because;
  const recorded = recording === undefined ? {} : { refunds: writeRefunds(recording.refunds) };
  if (refundedAt !== null || recording?.isWhole === false) return recorded;
  const whole = { ...recorded, refundedAt: now, refundNote: recording === undefined ? clipReason(note) : null };
  return state === 'settled' ? { ...whole, ...end({ undelivered: lastUndelivered(charge) }) } : whole;
}

/** A claim that asked nobody for anything takes none of those that a credential has; the first one stays. */
function release(
  { claims }: Charge,
  { reason, unasked }: { readonly reason: string; readonly unasked?: true | undefined },
): Partial<Charge> {
  const uncounted = unasked === true ? { claims: Math.max(1, claims - 1) } : {};
  return end({ state: 'released', reason: clipReason(reason), ...uncounted });
}

function giveUp(now: number): Partial<Charge> {
  return { owner: null, leaseUntil: now };
}

/** The charge has no owner any more, and keeps nothing that could be misused. */
function end(last: Partial<Charge>): Partial<Charge> {
  return {
    owner: null,
    leaseUntil: 0,
    lookAt: null,
    search: null,
    credential: null,
    answer: null,
    ...AT_ONCE,
    ...last,
  };
}

/** Reasons may come from a facilitator: bounded, and text whatever they hold. */
export function clipReason(reason: string): string {
  return reason.slice(0, REASON_LENGTH).toWellFormed();
}
