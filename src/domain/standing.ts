// How a payment stands when somebody presents it: whether it may be claimed, is in use, is spent, or was paid for an
// answer that can still be fetched. Pure: ledgers decide a claim with it in one atomic step, and the journey asks it
// beforehand, so that a payment that cannot pay is not verified. CONTRACT section 6, rules 3, 4 and 8.
import { isUnsettled, type Charge, type Claim } from './charge.ts';

/** What a request shows of itself. The signed part of a credential is public on the chain: only the whole of it counts. */
export type Presented = {
  /** SHA-256 of the credential as presented, lower-case hex. */
  readonly credentialSha256: string;
  readonly method: string;
  /** Canonical path and query. */
  readonly target: string;
};

/** How often one credential may be claimed: once, and twice more after a release. */
export const CLAIMS = 3;
/** How often an upstream is asked again after settling, and how often because its answer was lost. */
export const ASKS = 3;
export const REPEATS = 1;
/** How long an answer that did not arrive can be fetched. */
export const REDEEM_MS = 600_000;

export type Standing =
  | 'claimable'
  | 'in_use'
  | 'spent'
  /** Paid and not delivered: its payer may fetch the answer (`redeem_started`). */
  | 'redeemable'
  /** Paid and not delivered, and there is no way to deliver it any more: its payer must not be asked to pay again. */
  | 'already_paid';

/** `charge` is the one with this payment, or undefined where there is none. */
export function standing(charge: Charge | undefined, presented: Presented, now: number): Standing {
  if (charge === undefined) return 'claimable';
  const identical = charge.credentialSha256 === presented.credentialSha256;
  switch (charge.state) {
    case 'claimed':
      if (charge.leaseUntil > now) return 'in_use';
      return identical && charge.claims < CLAIMS ? 'claimable' : 'spent';
    case 'released':
      return identical && charge.claims < CLAIMS ? 'claimable' : 'spent';
    case 'settling':
      return 'in_use';
    case 'settled':
      if (charge.leaseUntil > now) return 'in_use';
      if (!identical || !sameRequest(charge, presented)) return 'spent';
      return redemption(charge, presented, now) === undefined ? 'already_paid' : 'redeemable';
    case 'delivered':
    case 'failed':
      return 'spent';
    default:
      return charge.state satisfies never;
  }
}

/**
 * How a settled charge can be delivered after all. `replay`: from its kept answer. `repeat`: the upstream gave an answer
 * and it was lost; asking once more is harmless for GET and HEAD alone. `ask`: the upstream gave none.
 */
export function redemption(charge: Charge, presented: Presented, now: number): 'replay' | 'repeat' | 'ask' | undefined {
  // A v1 credential does not hold our charge id: whoever reads the chain can rebuild it.
  if (charge.x402Version === 1 || charge.credentialSha256 !== presented.credentialSha256) return undefined;
  if (!sameRequest(charge, presented)) return undefined;
  if (now >= (charge.undeliveredAt ?? charge.leaseUntil) + REDEEM_MS) return undefined;
  if (charge.answer !== null) return 'replay';
  if (charge.asks >= ASKS) return undefined;
  if (!upstreamAnswered(charge)) return 'ask';
  const harmless = charge.request.method === 'GET' || charge.request.method === 'HEAD';
  return harmless && charge.repeats < REPEATS ? 'repeat' : undefined;
}

/** Settling `before_response` means that the upstream's answer was there. */
function upstreamAnswered({ undelivered, settle }: Charge): boolean {
  return undelivered === null ? settle === 'before_response' : undelivered === 'answer_lost';
}

function sameRequest({ request }: Charge, { method, target }: Presented): boolean {
  return request.method === method && request.target === target;
}

export type ClaimOptions = {
  /** Names one claimant: a request, not a process. */
  readonly owner: string;
  readonly leaseMs: number;
  /** Claims of one payer that may be unsettled at once. */
  readonly maxUnsettledPerPayer: number;
  /** A call with the `changeId` of one that got through is the same call. */
  readonly changeId?: string | undefined;
  /**
   * Settling is what follows at once: the charge may come back `settling`, as after `settle_started`, and one durable
   * write is saved. A ledger may leave it `claimed` all the same.
   */
  readonly settlesAtOnce?: boolean | undefined;
};

export type Claimed =
  /** `charge.id` is the charge's id: that of its first claim. */
  | { readonly kind: 'claimed'; readonly charge: Charge }
  /** `charge.state` tells a settlement whose outcome is not known from work in progress. */
  | { readonly kind: 'in_use' | 'spent' | 'redeemable' | 'already_paid'; readonly charge: Charge }
  /** Another payment was made with this charge id. */
  | { readonly kind: 'quote_already_used' }
  | { readonly kind: 'too_many_unsettled' };

/** What a ledger reads, and holds still, to decide a claim. */
export type Found = {
  readonly existing: Charge | undefined;
  /** Whether another payment has the claim's id. */
  readonly idTaken: boolean;
  /** Other charges of the payer that are settling, or claimed with a lease that runs. */
  readonly unsettled: number;
};

/** `claimed` is to be written, over `existing` where there is one; everything else writes nothing. */
export function decideClaim(found: Found, claim: Claim, options: ClaimOptions, now: number): Claimed {
  const { existing } = found;
  if (existing !== undefined && isRepeatedCall(existing, claim, options)) return { kind: 'claimed', charge: existing };
  const { credentialSha256, request } = claim;
  const stands = standing(existing, { credentialSha256, ...request }, now);
  if (existing !== undefined && stands !== 'claimable') return { kind: stands, charge: existing };
  if (existing === undefined && found.idTaken) return { kind: 'quote_already_used' };
  if (found.unsettled >= options.maxUnsettledPerPayer) return { kind: 'too_many_unsettled' };
  return { kind: 'claimed', charge: openCharge(claim, existing, options, now) };
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

function openCharge(claim: Claim, existing: Charge | undefined, options: ClaimOptions, now: number): Charge {
  return {
    ...claim,
    id: existing?.id ?? claim.id,
    state: options.settlesAtOnce === true ? 'settling' : 'claimed',
    owner: options.owner,
    leaseUntil: now + options.leaseMs,
    claims: (existing?.claims ?? 0) + 1,
    attempts: 0,
    nextTryAt: null,
    proof: null,
    reason: null,
    failedBy: null,
    asks: 0,
    repeats: 0,
    undelivered: null,
    undeliveredAt: null,
    answer: null,
    changeId: options.changeId ?? null,
    createdAt: existing?.createdAt ?? now,
    updatedAt: now,
    settledAt: null,
    deliveredAt: null,
  };
}
