// The ledger: which payments were presented, and what became of each. A port: every implementation decides with
// claim-policy.ts and transition.ts, and writes what they decide in one atomic step that is durable before the call resolves.
// It never guesses: a ledger that cannot say for certain rejects, and who asked must not serve, charge or ask to pay.
import type { Charge, ChargeState, PaymentKey, Claim } from '../charge.ts';
import type { IdPart } from '../id-part.ts';
import type { Claimed, ClaimOptions, Fault } from './claim-policy.ts';
import type { Actor, ChargeEvent, TransitionRefusal } from './transition.ts';

/**
 * Every call rejects with LedgerUnavailable where the ledger cannot say; a write may then have happened or not, and the
 * same call with the same `changeId` is safe to repeat. Times are the ledger's clock.
 */
export type Ledger = {
  /** Bytes of a kept answer's body that `answer_kept` takes at most. */
  readonly answerLimitBytes: number;
  /** Names this run of the process: who works on a charge here is an owner of it (`ownerOf`). */
  readonly run: string;
  readonly find: (payment: PaymentKey) => Promise<Charge | undefined>;
  readonly findByChargeId: (id: string) => Promise<Charge | undefined>;
  /** One atomic, durable insert: of any number of identical calls one is `claimed`. Rejects a claim with a fault. */
  readonly claim: (claim: Claim, options: ClaimOptions) => Promise<Claimed>;
  /** One conditional, durable update. */
  readonly advance: (id: string, event: ChargeEvent, actor: Actor) => Promise<Advanced>;
  /**
   * Unsettled charges that nobody works on, at most `limit`, earliest first: `claimed` ones whose lease ran out, `settling`
   * ones whose next look is due. Takes nothing.
   */
  readonly due: (limit: number) => Promise<readonly Charge[]>;
  /**
   * Says that the charges in `ids` that belong to `run` (`ownerOf`) are being worked on, and which ones still are ours. Not
   * durable, and no change of a charge.
   */
  readonly renew: (run: string, ids: readonly string[], leaseMs: number) => Promise<readonly string[]>;
};

/** Charges whose leases one call renews at most. */
export const MAX_RENEWED = 1000;

export type Advanced =
  | { readonly kind: 'ok'; readonly charge: Charge }
  | { readonly kind: 'conflict'; readonly because: Conflict; readonly charge: Charge | undefined };

/** `proof_used`: another charge was settled by this very transfer. */
export const CONFLICTS = ['proof_used', 'unknown_charge'] as const;
export type Conflict = TransitionRefusal | (typeof CONFLICTS)[number];

/** A charge as people see it: without what could be replayed or belongs to its payer alone. */
export type ListedCharge = Omit<
  Charge,
  'credential' | 'credentialSha256' | 'answer' | 'owner' | 'changeId' | 'search'
> & {
  /** Whose fault it is that it was paid for and can be delivered no more; null where nothing is owed. */
  readonly owed: Fault | null;
};

/** What people and dashboards ask of a ledger's store. Reads only; none of them delays a claim. */
export type Reports = {
  readonly list: (filter: ChargeFilter) => Promise<ChargePage>;
  readonly get: (id: string) => Promise<ListedCharge | undefined>;
  /** Newest first. May look through every charge: for people who ask why. */
  readonly search: (search: ChargeSearch, limit: number) => Promise<readonly ListedCharge[]>;
  readonly summary: (query: SummaryQuery) => Promise<Summary>;
  readonly alarms: () => Promise<Alarms>;
  readonly countByState: () => Promise<Readonly<Record<ChargeState, number>>>;
};

/** Charges that any of these names. */
export type ChargeSearch = {
  readonly idPart: IdPart | undefined;
  readonly requestId?: string | undefined;
  /** Canonical. */
  readonly transaction?: string | undefined;
};

/** What somebody has to look after. */
export type Alarms = {
  readonly owed: readonly OwedSum[];
  /** When the first of the payments ends whose settlement has no certain end; null where there is none. */
  readonly settlingEndsAt: number | null;
};

export type OwedSum = {
  readonly currency: string;
  readonly because: Fault;
  readonly assetDecimals: number;
  readonly charges: number;
  /** In the asset's smallest unit. */
  readonly amount: bigint;
};

export type ChargeFilter = {
  readonly limit: number;
  /** What `nextBefore` of the page before gave. */
  readonly before?: number | undefined;
  readonly state?: ChargeState | undefined;
  readonly owed?: boolean | undefined;
  readonly routeId?: string | undefined;
  /** Hex in any letter case; anything else to the letter. */
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
