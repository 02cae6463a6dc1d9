// Reports on a store of charges, for people and dashboards: lists, sums and counts, and what an operator has to look
// after. A port beside that of the ledger: nothing here decides about money.
import type { Charge, ChargeState } from './charge.ts';
import type { ChargeHistoryEntry } from './charge-history.ts';
import type { IdPart } from './quote.ts';
import type { Fault } from './claim-policy.ts';

/** A charge as people see it: nothing in it could be replayed or belongs to its payer alone. */
export type ListedCharge = Omit<
  Charge,
  'credential' | 'credentialSha256' | 'answer' | 'owner' | 'changeId' | 'search' | 'events'
> & {
  /** Party at fault for something that was paid for and cannot be delivered any more; null if nothing is owed. */
  readonly owed: Fault | null;
  /** Time until which the very same request brings the answer without another charge; null if it brings none. */
  readonly retryUntil: number | null;
};

/** Reads only; none of them delays a claim. */
export type ChargeReports = {
  readonly list: (filter: ChargeFilter) => Promise<ChargePage>;
  readonly get: (id: string) => Promise<ListedCharge | undefined>;
  /** What happened to a charge, oldest first; undefined if there is none with this id. */
  readonly history: (id: string) => Promise<readonly ChargeHistoryEntry[] | undefined>;
  /** Newest first. May look through every charge: for people who ask why. */
  readonly search: (search: ChargeSearch, limit: number) => Promise<readonly ListedCharge[]>;
  readonly summary: (query: SummaryQuery) => Promise<Summary>;
  readonly alarms: () => Promise<Alarms>;
  /**
   * Has changes of state written down from now on, for some minutes. Whoever follows them calls it again in time. Resolves
   * with what can be told of before.
   */
  readonly watchChanges: () => Promise<ChangeLog>;
  /** Changes behind this number, in order. A number that is missing belongs to a change that is being written, or to none. */
  readonly changesAfter: (n: number, limit: number) => Promise<readonly ChargeChange[]>;
  /** Money that was given back since refunds are recorded, in every currency. */
  readonly refunded: () => Promise<readonly RefundedSum[]>;
  readonly countByState: () => Promise<Readonly<Record<ChargeState, number>>>;
};

/** How long changes are written down after the last call for them, and how long they are kept, in milliseconds. */
export const WATCHED_MS = 360_000;
export const CHANGES_KEPT_MS = 300_000;

/** Every change behind the number `after` is known, up to `last`. */
export type ChangeLog = { readonly after: number; readonly last: number };

/** One change of state of a charge. */
export type ChargeChange = {
  readonly n: number;
  readonly id: string;
  readonly routeId: string;
  readonly state: ChargeState;
  /** Milliseconds since the epoch. */
  readonly at: number;
};

/** Charges that any of these names. */
export type ChargeSearch = {
  readonly idPart: IdPart | undefined;
  readonly requestId?: string | undefined;
  /** Transaction in its canonical spelling (`Spelling`). */
  readonly transaction?: string | undefined;
};

/** The charges that an operator has to look after. */
export type Alarms = {
  readonly owed: readonly OwedSum[];
  /** Time at which the first payment without a certain settlement ends; null if there is none. */
  readonly settlingEndsAt: number | null;
  /** Settlements of unknown end that nobody works on, claimed longer ago than `UNKNOWN_MS`, and when the first was claimed. */
  readonly unknown: { readonly count: number; readonly since: number | null };
};

export type OwedSum = {
  readonly currency: string;
  readonly because: Fault;
  readonly assetDecimals: number;
  readonly charges: number;
  /** Amount in the asset's smallest unit, less what was given back of it. */
  readonly amount: bigint;
};

export type RefundedSum = {
  readonly currency: string;
  readonly assetDecimals: number;
  /** Amount in the asset's smallest unit. */
  readonly amount: bigint;
};

export type ChargeFilter = {
  readonly limit: number;
  /** Value of `nextBefore` from the page before. */
  readonly before?: number | undefined;
  /** States that it may be in; undefined: any. */
  readonly states?: readonly ChargeState[] | undefined;
  readonly owed?: boolean | undefined;
  readonly routeId?: string | undefined;
  /** CAIP-2. */
  readonly network?: string | undefined;
  /** Payer in the canonical spelling (`Spelling`). */
  readonly payer?: string | undefined;
  readonly customerId?: string | undefined;
  /** Id of the request that claimed it. */
  readonly requestId?: string | undefined;
  /** Transaction that paid it, in the canonical spelling (`Spelling`). */
  readonly transaction?: string | undefined;
  readonly currency?: string | undefined;
  readonly receiverId?: string | undefined;
  /** Characters that its id begins with. */
  readonly idStart?: string | undefined;
  /** Bounds of the creation: at or after the first, and before the second, milliseconds since the epoch. */
  readonly fromMs?: number | undefined;
  readonly toMs?: number | undefined;
};

/** Newest first. `nextBefore` is undefined on the last page. */
export type ChargePage = { readonly charges: readonly ListedCharge[]; readonly nextBefore: number | undefined };

export const BUCKETS = ['hour', 'day', 'month', 'total'] as const;
export type Bucket = (typeof BUCKETS)[number];

export const GROUPS = ['network'] as const;
type GroupBy = (typeof GROUPS)[number];

/** Hours in which a settlement became certain, UTC: from the one `fromMs` lies in to the last that begins before `toMs`. */
export type SummaryQuery = {
  readonly fromMs: number;
  readonly toMs: number;
  readonly bucket: Bucket;
  /** Grouping by network alone; undefined: by network and by route. */
  readonly groupBy?: GroupBy | undefined;
  readonly routeId?: string | undefined;
  readonly currency?: string | undefined;
  /** Sums at most; if there are more the summary is `too_long` rather than cut. */
  readonly limit: number;
};

export type Sum = {
  /** Time at which the bucket begins, milliseconds since the epoch. For `total` it is the begin of the query. */
  readonly start: number;
  /** Route of the sum; null: all routes that were asked for. */
  readonly routeId: string | null;
  readonly currency: string;
  readonly network: string;
  readonly asset: string;
  readonly assetDecimals: number;
  /** Charges, settled or delivered. */
  readonly charges: number;
  /** Amount in the asset's smallest unit. */
  readonly amount: bigint;
  /** Money that was given back in this time, in the asset's smallest unit, whenever it was taken. */
  readonly refunded: bigint;
};

/** Oldest bucket first. */
export type Summary = { readonly kind: 'sums'; readonly sums: readonly Sum[] } | { readonly kind: 'too_long' };
