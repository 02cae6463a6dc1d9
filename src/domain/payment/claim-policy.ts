// The policy for a payment that is presented. It may be claimed, be in use, be spent, wait for its payer, or have paid
// for an answer that can still be fetched. Pure: the ledger decides a claim with it. The journey asks it before that,
// so that a payment that cannot pay is not verified.
import {
  CHARGE_ID,
  isUnsettled,
  type AskCounts,
  type Charge,
  type ChargedRequest,
  type ChargeState,
  type Claim,
  type UndeliveredCause,
} from './charge.ts';

/** Method, target and credential of a request. Part of a credential is public on the chain: only the whole counts. */
export type PresentedRequest = {
  /** SHA-256 of the credential as presented, lower-case hex. */
  readonly credentialSha256: string;
  readonly method: string;
  readonly targetSha256: string;
  /** Set if it comes from a decision listener. */
  readonly asker?: PresentedAsker | undefined;
};

/** A question about a request, as far as it decides what a known payment gets here. */
export type PresentedAsker = {
  readonly dialect: string;
  /** SHA-256 of the request id, lower-case hex; null: the proxy named none. */
  readonly askSha256: string | null;
  readonly routeId: string;
  /** Time after an allow in which the same request gets it again. */
  readonly repeatWindowMs: number;
};

/** Number of claims that one credential may have, whatever ended the earlier ones. */
export const CLAIMS = 10;
/** Time for which an answer that did not arrive can be fetched, from the moment the settlement became certain. */
export const REDEEM_MS = 24 * 3_600_000;
/** The same for an allow that no proxy was handed. */
export const ALLOW_AGAIN_MS = 600_000;
/** Times that one allow is given again to the same request. */
export const REPEATS = 8;
/** Times that a request is allowed again after its proxy reported that the upstream failed. */
const ALLOWS_AFTER_REPORT = 3;
/** Time after an allow in which its proxy may report that the upstream failed. */
const REPORT_MS = 600_000;
/** Time after the end of an unsettled payment from which it no longer counts towards its payer's limit. */
export const OVERDUE_MS = 600_000;

/** Parties that can be at fault if something was paid for and never delivered. */
export const FAULTS = ['upstream', 'tollgate', 'client'] as const;
export type Fault = (typeof FAULTS)[number];

type Limit = { readonly safe: number; readonly other: number };
type Cause = Limit & { readonly counter: Exclude<keyof AskCounts, 'all'>; readonly fault: Fault };

/** Limits on asking the upstream again, by the cause. `safe` is for GET and HEAD, which change nothing. */
export const ASK_AGAIN: Readonly<Record<UndeliveredCause, Cause>> = {
  answer_lost: { counter: 'afterLostAnswer', safe: 1, other: 0, fault: 'client' },
  answer_dropped: { counter: 'afterLostAnswer', safe: 1, other: 0, fault: 'tollgate' },
  upstream_failed: { counter: 'afterFailure', safe: 6, other: 3, fault: 'upstream' },
  upload_broken_off: { counter: 'afterUpload', safe: 1, other: 1, fault: 'client' },
  process_died: { counter: 'afterDeath', safe: 10, other: 2, fault: 'tollgate' },
};
/** Limit on asking the upstream in all, the first time included. */
export const ASKS: Limit = { safe: 17, other: 5 };

/** Pauses in which the upstream is left alone for one payment, one after each of its failures. The last one repeats. */
const ASK_PAUSES_MS = [2_000, 10_000, 60_000, 300_000, 1_800_000];

/** Pause after a failure of the upstream that follows `asks.afterFailure` asks because of failures. */
export function pauseAfterFailure({ afterFailure }: AskCounts): number {
  return ASK_PAUSES_MS[Math.min(afterFailure, ASK_PAUSES_MS.length - 1)] ?? 0;
}

/** Milliseconds for which the upstream is left alone for a charge; 0 if it may be asked. */
export function pauseLeft({ askAt, answer }: Pick<Charge, 'askAt' | 'answer'>, now: number): number {
  return askAt === null || answer !== null ? 0 : Math.max(0, askAt - now);
}

export type PaymentStatus =
  | 'claimable'
  | 'in_use'
  /** The settlement has no certain end and no owner: its payer may take it over at once (`taken_over`). */
  | 'unfinished'
  /** Spent, also if it was just delivered: only the process knows whether its answer is still in memory. */
  | 'spent'
  /** The charge is paid and not delivered: its payer may fetch the answer (`redeem_started`). */
  | 'redeemable'
  /** The charge is paid and cannot be delivered any more: its payer must not be asked to pay again. */
  | 'already_paid';

/** Judges a payment. `charge` is the one with this payment, or undefined if there is none. */
export function paymentStatus(charge: Charge | undefined, presented: PresentedRequest, now: number): PaymentStatus {
  if (charge === undefined) return 'claimable';
  const identical = isIdentical(charge, presented);
  const free = charge.leaseUntil <= now;
  switch (charge.state) {
    case 'claimed':
      // To any other credential the charge is in use until it is released: its end is not known.
      if (!free || !identical) return 'in_use';
      return charge.claims < CLAIMS ? 'claimable' : 'spent';
    case 'released':
      return identical && charge.claims < CLAIMS ? 'claimable' : 'spent';
    case 'settling':
      return free && identical && isServedHere(charge, presented) ? 'unfinished' : 'in_use';
    case 'settled':
      if (!identical) return 'spent';
      if (!free) return 'in_use';
      return isServedHere(charge, presented) && redemption(charge, now) !== undefined ? 'redeemable' : 'already_paid';
    case 'delivered':
      // What a proxy was allowed for is never paid for again either.
      if (!identical) return 'spent';
      return charge.partial || charge.asker !== null || presented.asker !== undefined ? 'already_paid' : 'spent';
    case 'failed':
      return 'spent';
    default:
      return charge.state satisfies never;
  }
}

export function isIdentical(charge: Charge, presented: PresentedRequest): boolean {
  return (
    charge.credentialSha256 === presented.credentialSha256 &&
    charge.request.method === presented.method &&
    charge.request.targetSha256 === presented.targetSha256
  );
}

/** Whether the listener that a payment is presented to is of the kind that claimed it, and means the same route. */
export function isServedHere(charge: Charge, { asker }: PresentedRequest): boolean {
  if (charge.asker === null || asker === undefined) return charge.asker === null && asker === undefined;
  return charge.asker === asker.dialect && charge.route.id === asker.routeId;
}

/** Whether a question is of the very request that the charge was claimed or allowed for last. */
export function isSameAsk(charge: Charge, presented: PresentedRequest): boolean {
  const { asker } = presented;
  return (
    isIdentical(charge, presented) &&
    isServedHere(charge, presented) &&
    asker !== undefined &&
    asker.askSha256 !== null &&
    asker.askSha256 === charge.askSha256
  );
}

/** Whether an allow that was handed over is given once more. A v1 credential can be made anew by anybody. */
export function isRepeatable(charge: Charge, presented: PresentedRequest, now: number): boolean {
  if (charge.state !== 'delivered' || charge.x402Version === 1 || !isSameAsk(charge, presented)) return false;
  const sinceMs = now - (charge.deliveredAt ?? 0);
  return sinceMs <= (presented.asker?.repeatWindowMs ?? 0) && (charge.repeats ?? 0) < REPEATS;
}

/** Whether the proxy that was allowed may still say that the upstream failed. */
export function isReportable(charge: Charge, now: number): boolean {
  return charge.asker !== null && charge.state === 'delivered' && now - (charge.deliveredAt ?? 0) < REPORT_MS;
}

/** Way in which a settled charge without an owner can still be delivered. */
type Redemption =
  /** The kept answer is sent again. */
  | { readonly kind: 'replay' }
  /** The upstream is asked. `because` says why it is asked once more; null the first time. */
  | { readonly kind: 'ask'; readonly because: UndeliveredCause | null };

export function redemption(charge: Charge, now: number): Redemption | undefined {
  if (now >= fetchableUntil(charge)) return undefined;
  return charge.answer !== null ? { kind: 'replay' } : { kind: 'ask', because: lastUndelivered(charge) };
}

/**
 * Time until which the answer of a settled charge can be fetched; 0: never. The reason of the last failed delivery sets
 * the limit. While a request delivers it, the limit is that of a process that dies.
 */
export function fetchableUntil(charge: Charge): number {
  // A v1 credential does not hold our charge id: anyone who reads the chain can rebuild it.
  // A pass was delivered with its settlement.
  if (charge.pass !== null) return 0;
  if (charge.settledAt === null || charge.x402Version === 1 || charge.refundedAt !== null) return 0;
  const until = charge.settledAt + (charge.asker === null || wasReported(charge) ? REDEEM_MS : ALLOW_AGAIN_MS);
  if (charge.answer !== null) return until;
  const kind = charge.request.method === 'GET' || charge.request.method === 'HEAD' ? 'safe' : 'other';
  if (charge.asks.all >= ASKS[kind]) return 0;
  const because = lastUndelivered(charge);
  if (because === null) return until;
  const { counter, [kind]: most } = ASK_AGAIN[because];
  const limit = charge.asker !== null && because === 'upstream_failed' ? ALLOWS_AFTER_REPORT : most;
  return charge.asks[counter] < limit ? until : 0;
}

/** Whether the proxy that was allowed said that the upstream failed. */
function wasReported({ undelivered, asks }: Charge): boolean {
  return undelivered === 'upstream_failed' || asks.afterFailure > 0;
}

/** Reason of the last failed delivery: `process_died` if its owner said no end; null if nothing was asked. */
export function lastUndelivered({ owner, asks, undelivered }: Charge): UndeliveredCause | null {
  return owner !== null && asks.all > 0 ? 'process_died' : undelivered;
}

/**
 * Names the party at fault if a settled charge was not delivered and cannot be any more. Undefined if nothing is owed:
 * the client got something usable, or the money was given back.
 */
export function owedBecauseOf(charge: Charge, now: number): Fault | undefined {
  if (charge.state !== 'settled' || charge.refundedAt !== null || charge.headSent || charge.pass !== null)
    return undefined;
  if (charge.leaseUntil > now || now < fetchableUntil(charge)) return undefined;
  const because = lastUndelivered(charge);
  if (because !== null) return ASK_AGAIN[because].fault;
  // The upstream was never asked: the payer did not come back, or was sent away with a credential that cannot come
  // back.
  return charge.x402Version === 1 && charge.attempts > 0 ? 'tollgate' : 'client';
}

export type ClaimOptions = {
  /** Names one claimant: a request, not a process. */
  readonly owner: string;
  readonly leaseMs: number;
  /** Number of claims of one payer that may be unsettled at once on the network of the payment. */
  readonly maxUnsettledPerPayer: number;
  /** Id of a change: a call with the `changeId` of one that got through is the same call. */
  readonly changeId?: string | undefined;
  /**
   * Facilitator through which the payment is settled next. The charge may come back `settling`, as after
   * `settle_started`: that saves one durable write. A ledger may leave it `claimed` all the same.
   */
  readonly settleVia?: string | undefined;
};

export type ClaimResult =
  /** The claim stands. `charge.id` is the id of its first claim. */
  | { readonly kind: 'claimed'; readonly charge: Charge }
  | { readonly kind: Exclude<PaymentStatus, 'claimable'>; readonly charge: Charge }
  /** The charge id has paid already: another payment was made with it. */
  | { readonly kind: 'quote_already_used' }
  | { readonly kind: 'too_many_unsettled' }
  /** The payer has as many passes of the plan as there may be, those that are being bought included. */
  | { readonly kind: 'too_many_passes' };

/** Decision about a claim, as far as the charge with the same payment goes. */
type ClaimDecision = Extract<ClaimResult, { readonly charge: Charge }>;

/** Decides a claim. `claimed` is to be written, over `existing` if there is one; everything else writes nothing. */
export function decideClaim(
  existing: Charge | undefined,
  claim: Claim,
  options: ClaimOptions,
  now: number,
): ClaimDecision {
  if (existing !== undefined && isRepeatedCall(existing, claim, options)) return { kind: 'claimed', charge: existing };
  const status = paymentStatus(existing, presentedBy(claim), now);
  if (existing !== undefined && status !== 'claimable') return { kind: status, charge: existing };
  return { kind: 'claimed', charge: openCharge(claim, existing, options, now) };
}

/** Reads from a claim what its request shows of itself. */
export function presentedBy(
  claim: Pick<Claim, 'credentialSha256' | 'asker' | 'askSha256'> & { request: ChargedRequest; route: { id: string } },
): PresentedRequest {
  const { method, targetSha256 } = claim.request;
  const presented = { credentialSha256: claim.credentialSha256, method, targetSha256 };
  if (claim.asker === null) return presented;
  // A claim repeats nothing: what the ledger says of it is judged again by the listener.
  const asker = { dialect: claim.asker, askSha256: claim.askSha256, routeId: claim.route.id, repeatWindowMs: 0 };
  return { ...presented, asker };
}

function isRepeatedCall(existing: Charge, claim: Claim, { owner, changeId }: ClaimOptions): boolean {
  return (
    changeId !== undefined &&
    existing.changeId === changeId &&
    isUnsettled(existing.state) &&
    existing.owner === owner &&
    existing.credentialSha256 === claim.credentialSha256
  );
}

const NO_ASKS: AskCounts = { all: 0, afterLostAnswer: 0, afterFailure: 0, afterUpload: 0, afterDeath: 0 };

function openCharge(claim: Claim, existing: Charge | undefined, options: ClaimOptions, now: number): Charge {
  const state = options.settleVia === undefined ? 'claimed' : 'settling';
  return {
    ...claim,
    id: existing?.id ?? claim.id,
    state,
    owner: options.owner,
    leaseUntil: now + options.leaseMs,
    claims: (existing?.claims ?? 0) + 1,
    claimedAt: now,
    attempts: 0,
    via: options.settleVia ?? null,
    looks: 0,
    lookAt: null,
    search: null,
    events: appendLine(existing?.events ?? null, [now, state, 'claimed', options.owner, claim.requestId]),
    proof: null,
    reason: null,
    failedBy: null,
    asks: NO_ASKS,
    undelivered: null,
    headSent: false,
    partial: false,
    askAt: null,
    failedStatus: null,
    repeats: null,
    answer: null,
    changeId: options.changeId ?? null,
    createdAt: existing?.createdAt ?? now,
    updatedAt: now,
    settledAt: null,
    deliveredAt: null,
    refundedAt: null,
    refundNote: null,
    refunds: null,
  };
}

/** Latest deadline: its milliseconds are still an integer of JavaScript and of a store. */
const LATEST_DEADLINE = 2n ** 40n;

/** Finds why `claim` cannot be written; undefined if it can. Its caller has a defect: the ledger refuses the claim. */
export function findClaimFault(claim: Claim): string | undefined {
  if (claim.amount <= 0n) return 'the amount is not greater than 0';
  if (claim.deadline !== null && (claim.deadline < 0n || claim.deadline > LATEST_DEADLINE))
    return 'the deadline is further than any clock goes';
  if (!CHARGE_ID.test(claim.id)) return 'the charge id is malformed';
  if (claim.credential === '') return 'the credential is empty';
  return undefined;
}

/** One change of a charge: when, to which state, what happened, who did it, and what is to be said of it. */
type ChargeLine = readonly [at: number, state: ChargeState, event: string, owner: string, detail: string | null];

/** Lines of a charge at most. Of more the first stays, and the newest. */
export const MAX_LINES = 64;
const LINE = '\n';
/** No line is shorter: fewer characters hold fewer lines than there may be. */
const LEAST_LINE = 30;
const LOOKED = ',"looked",';

/** Appends a line to those of a charge. Looks at the chain that follow one another are one line, that of the last. */
export function appendLine(lines: string | null, line: ChargeLine): string {
  const [at, state, event, owner, detail] = line;
  const added = JSON.stringify([at, state, event, whoIs(owner), detail]);
  if (lines === null || lines === '') return added;
  const last = lines.lastIndexOf(LINE);
  if (event === 'looked' && last >= 0 && lines.includes(LOOKED, last)) return lines.slice(0, last + 1) + added;
  const all = lines + LINE + added;
  if (all.length < MAX_LINES * LEAST_LINE) return all;
  const each = all.split(LINE);
  return each.length > MAX_LINES ? [...each.slice(0, 1), ...each.slice(1 - MAX_LINES)].join(LINE) : all;
}

/** An owner names a request of a run, which is nobody's business, or who else acts. */
function whoIs(owner: string): string {
  if (owner.startsWith('operator')) return 'operator';
  return owner === 'reconciler' || owner === 'store' ? owner : 'request';
}
