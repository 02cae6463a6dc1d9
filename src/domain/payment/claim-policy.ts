// The policy for a payment that is presented. It may be claimed, be in use, be spent, wait for its payer, or have paid
// for an answer that can still be fetched. Pure: the ledger decides a claim with it. The journey asks it before that,
// so that a payment that cannot pay is not verified.
import { isUnsettled, type Asks, type Charge, type ChargedRequest, type Claim, type Undelivered } from './charge.ts';

/** What a request shows of itself. The signed part of a credential is public on the chain: only the whole of it counts. */
export type PresentedRequest = {
  /** SHA-256 of the credential as presented, lower-case hex. */
  readonly credentialSha256: string;
  readonly method: string;
  readonly targetSha256: string;
};

/** How often one credential may be claimed, whatever ended the claims before. */
export const CLAIMS = 10;
/** How long an answer that did not arrive can be fetched, from when the settlement became certain. */
export const REDEEM_MS = 24 * 3_600_000;
/** From so long after its end on, an unsettled payment takes no place of its payer's. */
export const OVERDUE_MS = 600_000;

/** Whose fault it is that something was paid for and never delivered. */
export const FAULTS = ['upstream', 'tollgate', 'client'] as const;
export type Fault = (typeof FAULTS)[number];

type Limit = { readonly safe: number; readonly other: number };
type Cause = Limit & { readonly counter: Exclude<keyof Asks, 'all'>; readonly fault: Fault };

/** How often the upstream is asked again, and because of what; `safe`: GET and HEAD, which change nothing. */
export const ASK_AGAIN: Readonly<Record<Undelivered, Cause>> = {
  answer_lost: { counter: 'afterLostAnswer', safe: 1, other: 0, fault: 'client' },
  answer_dropped: { counter: 'afterLostAnswer', safe: 1, other: 0, fault: 'tollgate' },
  upstream_failed: { counter: 'afterFailure', safe: 6, other: 3, fault: 'upstream' },
  upload_broken_off: { counter: 'afterUpload', safe: 1, other: 1, fault: 'client' },
  process_died: { counter: 'afterDeath', safe: 10, other: 2, fault: 'tollgate' },
};
/** In all, the first time included. */
export const ASKS: Limit = { safe: 17, other: 5 };

/** How long the upstream is left alone for one payment after each of its failures; the last one again after that. */
const ASK_PAUSES_MS = [2_000, 10_000, 60_000, 300_000, 1_800_000];

/** The pause after a failure of the upstream, before which it was asked again `asks.afterFailure` times for failing. */
export function pauseAfterFailure({ afterFailure }: Asks): number {
  return ASK_PAUSES_MS[Math.min(afterFailure, ASK_PAUSES_MS.length - 1)] ?? 0;
}

/** Milliseconds for which the upstream is still left alone for the payment of a charge; 0: it may be asked. */
export function pauseLeft({ askAt, answer }: Pick<Charge, 'askAt' | 'answer'>, now: number): number {
  return askAt === null || answer !== null ? 0 : Math.max(0, askAt - now);
}

export type PaymentStatus =
  | 'claimable'
  | 'in_use'
  /** Its settlement has no certain end and no owner: its payer may take it over at once (`taken_over`). */
  | 'unfinished'
  /** Also if it was just delivered: only the process knows whether its answer is still in memory. */
  | 'spent'
  /** Paid and not delivered: its payer may fetch the answer (`redeem_started`). */
  | 'redeemable'
  /** Paid, and there is no way to deliver it any more: its payer must not be asked to pay again. */
  | 'already_paid';

/** `charge` is the one with this payment, or undefined if there is none. */
export function paymentStatus(charge: Charge | undefined, presented: PresentedRequest, now: number): PaymentStatus {
  if (charge === undefined) return 'claimable';
  const identical = isIdentical(charge, presented);
  const free = charge.leaseUntil <= now;
  switch (charge.state) {
    case 'claimed':
      // Of any other credential it stays in use until it is released: what becomes of it is not known.
      if (!free || !identical) return 'in_use';
      return charge.claims < CLAIMS ? 'claimable' : 'spent';
    case 'released':
      return identical && charge.claims < CLAIMS ? 'claimable' : 'spent';
    case 'settling':
      return free && identical ? 'unfinished' : 'in_use';
    case 'settled':
      if (!identical) return 'spent';
      if (!free) return 'in_use';
      return redemption(charge, now) === undefined ? 'already_paid' : 'redeemable';
    case 'delivered':
      return identical && charge.partial ? 'already_paid' : 'spent';
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

/** How a settled charge without an owner can be delivered after all. */
type Redemption =
  /** From its kept answer. */
  | { readonly kind: 'replay' }
  /** By asking the upstream: `because` of what once more, null the first time. */
  | { readonly kind: 'ask'; readonly because: Undelivered | null };

export function redemption(charge: Charge, now: number): Redemption | undefined {
  if (now >= fetchableUntil(charge)) return undefined;
  return charge.answer !== null ? { kind: 'replay' } : { kind: 'ask', because: lastUndelivered(charge) };
}

/**
 * Until when the answer of a settled charge can be fetched; 0: never. The reason of the last failed delivery sets the
 * limit. While a request delivers it, the limit is that of a process that dies.
 */
export function fetchableUntil(charge: Charge): number {
  // A v1 credential does not hold our charge id: anyone who reads the chain can rebuild it.
  if (charge.settledAt === null || charge.x402Version === 1 || charge.refundedAt !== null) return 0;
  const until = charge.settledAt + REDEEM_MS;
  if (charge.answer !== null) return until;
  const kind = charge.request.method === 'GET' || charge.request.method === 'HEAD' ? 'safe' : 'other';
  if (charge.asks.all >= ASKS[kind]) return 0;
  const because = lastUndelivered(charge);
  if (because === null) return until;
  const { counter, [kind]: limit } = ASK_AGAIN[because];
  return charge.asks[counter] < limit ? until : 0;
}

/** `process_died` if its last owner said no end; null if the upstream was never asked. */
export function lastUndelivered({ owner, asks, undelivered }: Charge): Undelivered | null {
  return owner !== null && asks.all > 0 ? 'process_died' : undelivered;
}

/**
 * Whose fault it is that a settled charge was not delivered and cannot be any more. Undefined if nothing is owed: the
 * client got something usable, or the money was given back.
 */
export function owedBecauseOf(charge: Charge, now: number): Fault | undefined {
  if (charge.state !== 'settled' || charge.refundedAt !== null || charge.headSent) return undefined;
  if (charge.leaseUntil > now || now < fetchableUntil(charge)) return undefined;
  const because = lastUndelivered(charge);
  if (because !== null) return ASK_AGAIN[because].fault;
  // Never asked: its payer did not come back, or was sent away with a credential that cannot come back.
  return charge.x402Version === 1 && charge.attempts > 0 ? 'tollgate' : 'client';
}

export type ClaimOptions = {
  /** Names one claimant: a request, not a process. */
  readonly owner: string;
  readonly leaseMs: number;
  /** Claims of one payer that may be unsettled at once on the network of the payment. */
  readonly maxUnsettledPerPayer: number;
  /** A call with the `changeId` of one that got through is the same call. */
  readonly changeId?: string | undefined;
  /**
   * The payment is settled next, through this facilitator. The charge may come back `settling`, as after
   * `settle_started`: that saves one durable write. A ledger may leave it `claimed` all the same.
   */
  readonly settleVia?: string | undefined;
};

export type Claimed =
  /** `charge.id` is the charge's id: that of its first claim. */
  | { readonly kind: 'claimed'; readonly charge: Charge }
  | { readonly kind: Exclude<PaymentStatus, 'claimable'>; readonly charge: Charge }
  /** Another payment was made with this charge id. */
  | { readonly kind: 'quote_already_used' }
  | { readonly kind: 'too_many_unsettled' };

/** The decision about a claim as far as the charge with the same payment goes. */
type ClaimDecision = Extract<Claimed, { readonly charge: Charge }>;

/** `claimed` is to be written, over `existing` if there is one; everything else writes nothing. */
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

/** What the request of a claim shows of itself. */
export function presentedBy(claim: { credentialSha256: string; request: ChargedRequest }): PresentedRequest {
  const { method, targetSha256 } = claim.request;
  return { credentialSha256: claim.credentialSha256, method, targetSha256 };
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

const NO_ASKS: Asks = { all: 0, afterLostAnswer: 0, afterFailure: 0, afterUpload: 0, afterDeath: 0 };

function openCharge(claim: Claim, existing: Charge | undefined, options: ClaimOptions, now: number): Charge {
  return {
    ...claim,
    id: existing?.id ?? claim.id,
    state: options.settleVia === undefined ? 'claimed' : 'settling',
    owner: options.owner,
    leaseUntil: now + options.leaseMs,
    claims: (existing?.claims ?? 0) + 1,
    claimedAt: now,
    attempts: 0,
    via: options.settleVia ?? null,
    looks: 0,
    lookAt: null,
    search: null,
    proof: null,
    reason: null,
    failedBy: null,
    asks: NO_ASKS,
    undelivered: null,
    headSent: false,
    partial: false,
    askAt: null,
    failedStatus: null,
    answer: null,
    changeId: options.changeId ?? null,
    createdAt: existing?.createdAt ?? now,
    updatedAt: now,
    settledAt: null,
    deliveredAt: null,
    refundedAt: null,
    refundNote: null,
  };
}
