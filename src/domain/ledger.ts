// The ledger: which payments were presented, and what became of each. A port: every implementation decides with
// standing.ts and transition.ts, and writes what they decide in one atomic step that is durable before the call resolves.
// It never guesses: a ledger that cannot say for certain rejects, and who asked must not serve, charge or ask to pay.
import type { Charge, ChargeState, PaymentKey, Claim } from './charge.ts';
import type { Claimed, ClaimOptions } from './standing.ts';
import type { Actor, ChargeEvent, TransitionRefusal } from './transition.ts';

/**
 * Every call rejects with LedgerUnavailable where the ledger cannot say; a write may then have happened or not, and the
 * same call with the same `changeId` is safe to repeat. Times are the ledger's clock.
 */
export type Ledger = {
  /** Bytes of a kept answer's body that `answer_kept` takes at most. */
  readonly answerLimitBytes: number;
  readonly find: (payment: PaymentKey) => Promise<Charge | undefined>;
  readonly findByChargeId: (id: string) => Promise<Charge | undefined>;
  /** One atomic, durable insert: of any number of identical calls one is `claimed`. Rejects a claim with a fault. */
  readonly claim: (claim: Claim, options: ClaimOptions) => Promise<Claimed>;
  /** One conditional, durable update. */
  readonly advance: (id: string, event: ChargeEvent, actor: Actor) => Promise<Advanced>;
  /**
   * Takes over charges that nobody works on, at most `limit`: `settling` ones whose lease ran out or whose next try is
   * due now belong to `owner`; `claimed` ones whose lease ran out come back `released`. No two callers get the same one.
   */
  readonly unfinished: (options: TakeOver) => Promise<readonly Charge[]>;
};

export type TakeOver = { readonly owner: string; readonly leaseMs: number; readonly limit: number };

export type Advanced =
  | { readonly kind: 'ok'; readonly charge: Charge }
  | { readonly kind: 'conflict'; readonly because: Conflict; readonly charge: Charge | undefined };

/** `proof_used`: another charge was settled by this very transfer. */
export const CONFLICTS = ['proof_used', 'unknown_charge'] as const;
export type Conflict = TransitionRefusal | (typeof CONFLICTS)[number];

/** A charge as people see it: without what could be replayed or belongs to its payer alone. */
export type ListedCharge = Omit<Charge, 'credential' | 'credentialSha256' | 'answer' | 'owner' | 'changeId'>;

/** What people and dashboards ask of a ledger's store. Reads only; none of them delays a claim. */
export type Reports = {
  readonly list: (filter: ChargeFilter) => Promise<ChargePage>;
  readonly get: (id: string) => Promise<ListedCharge | undefined>;
  /** What `unfinished` would take over now, earliest first. */
  readonly due: (limit: number) => Promise<readonly ListedCharge[]>;
  readonly summary: (query: SummaryQuery) => Promise<Summary>;
  readonly countByState: () => Promise<Readonly<Record<ChargeState, number>>>;
};

export type ChargeFilter = {
  readonly limit: number;
  /** What `nextBefore` of the page before gave. */
  readonly before?: number | undefined;
  readonly state?: ChargeState | undefined;
  readonly routeId?: string | undefined;
  /** In any case. */
  readonly payer?: string | undefined;
  readonly customerId?: string | undefined;
  /** Created at or after, and before: milliseconds since the epoch. */
  readonly fromMs?: number | undefined;
  readonly toMs?: number | undefined;
};

/** Newest first. `nextBefore` is undefined on the last page. */
export type ChargePage = { readonly charges: readonly ListedCharge[]; readonly nextBefore: number | undefined };

export const BUCKETS = ['hour', 'day', 'month', 'total'] as const;
export type Bucket = (typeof BUCKETS)[number];

/** Hours in which a settlement became certain, UTC: from the one `fromMs` lies in to the last that begins before `toMs`. */
export type SummaryQuery = {
  readonly fromMs: number;
  readonly toMs: number;
  readonly bucket: Bucket;
  readonly routeId?: string | undefined;
  readonly currency?: string | undefined;
  /** Sums at most; where there are more the summary is `too_long` rather than cut. */
  readonly limit: number;
};

export type Sum = {
  /** When the bucket begins, milliseconds since the epoch; of `total`, where the query begins. */
  readonly start: number;
  readonly routeId: string;
  readonly currency: string;
  readonly network: string;
  readonly asset: string;
  readonly assetDecimals: number;
  /** Charges, settled or delivered. */
  readonly charges: number;
  /** In the asset's smallest unit. */
  readonly amount: bigint;
};

/** Oldest bucket first. */
export type Summary = { readonly kind: 'sums'; readonly sums: readonly Sum[] } | { readonly kind: 'too_long' };

/** The ledger cannot say. `message` is for operators, not for payers. */
export class LedgerUnavailable extends Error {
  override readonly name = 'LedgerUnavailable';
}
