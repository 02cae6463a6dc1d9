// The port of a store of sums: counts of requests as processes hand them over, and money as settlements wrote it. Everything
// is added up by minute, hour and day, so that no question about a time reads a charge.
import type { RequestCounts } from './request-counts.ts';
import type { SaleCount } from './sale-counts.ts';
import type { Span, TotalsStep } from './steps.ts';

/** Name of all routes together, and of requests without a route. */
export const ALL_ROUTES = '';
/** Name of the routes that have no row of their own. */
export const OTHER_ROUTES = 'other';
/** Most routes that an hour or a day names; what the others did counts as `other`. */
export const MOST_ROUTES = 1000;
/** Most sources that a store remembers. Names are free to make up: beyond so many the one heard longest ago is forgotten. */
export const MOST_SOURCES = 2000;

/**
 * Requests of one minute over all routes, or of one hour on one route, or what a plan did in an hour. `startMs`: when that
 * begins, since the epoch.
 */
export type CountedRow =
  | {
      readonly step: 'minute';
      readonly startMs: number;
      readonly requests: RequestCounts;
      /** Requests in each bucket of the time that Tollgate took for them. */
      readonly overhead: readonly number[];
    }
  | { readonly step: 'hour'; readonly startMs: number; readonly routeId: string; readonly requests: RequestCounts }
  | { readonly step: 'sale'; readonly startMs: number; readonly sale: SaleCount };

/** What one process counted since its last batch. `seq` begins with 1 in each life of the process and leaves no number out. */
export type TotalsBatch = {
  /** Names one life of one process. */
  readonly source: string;
  readonly seq: number;
  readonly rows: readonly CountedRow[];
  /** What a sidecar says of itself, as JSON; undefined: it is no sidecar. */
  readonly status?: string | undefined;
};

/** `known`: it was added before, and changed nothing. `missing`: batches that came neither before nor with it. */
export type BatchAddResult = { readonly kind: 'added'; readonly missing: number } | { readonly kind: 'known' };

export type TotalsQuery = {
  readonly spans: readonly Span[];
  /** Left out: all routes together. Minutes are of all routes alone. */
  readonly routeId?: string | undefined;
  readonly currency?: string | undefined;
  readonly network?: string | undefined;
};

/** `start`: the number of the step since the epoch. */
export type RequestSum = { readonly step: TotalsStep; readonly start: number; readonly requests: RequestCounts };
export type OverheadSum = {
  readonly step: TotalsStep;
  readonly start: number;
  readonly bucket: number;
  readonly requests: number;
};
export type MoneySum = {
  readonly step: TotalsStep;
  readonly start: number;
  readonly currency: string;
  readonly assetDecimals: number;
  readonly charges: number;
  readonly amount: bigint;
};
export type StepSums = {
  readonly requests: readonly RequestSum[];
  /** Empty if one route is asked for. */
  readonly overhead: readonly OverheadSum[];
  readonly money: readonly MoneySum[];
};

export type RouteRequests = { readonly routeId: string; readonly requests: RequestCounts };
export type RouteMoney = Pick<MoneySum, 'currency' | 'assetDecimals' | 'amount'> & { readonly routeId: string };
export type RouteSums = { readonly requests: readonly RouteRequests[]; readonly money: readonly RouteMoney[] };

/** A process that handed counts over, one row a life. Times in milliseconds since the epoch. */
export type TotalsSource = {
  readonly source: string;
  readonly seq: number;
  readonly firstAt: number;
  readonly lastAt: number;
  /** Batches that never came. */
  readonly lost: number;
  /** What the process said of itself last, as JSON; null: it is no sidecar. */
  readonly status: string | null;
};

/** The first steps that are kept, numbered since the epoch, and the last moment at which an old source may have been heard. */
export type TotalsPruneTimes = Readonly<Record<TotalsStep, number>> & { readonly sourcesMs: number };

/** Every call rejects with LedgerUnavailable if the store cannot do or say it; a batch is durable when it is added. */
export type TotalsStore = {
  /** Adds a batch once, however often it is given; whole or not at all. */
  readonly add: (batch: TotalsBatch) => Promise<BatchAddResult>;
  /** Sums step by step, in no order; steps in which nothing happened are left out. */
  readonly sums: (query: TotalsQuery) => Promise<StepSums>;
  /** Sums route by route; `spans` are of hours and days. */
  readonly sumsByRoute: (query: { readonly spans: readonly Span[] }) => Promise<RouteSums>;
  /** What plans did; `spans` are of hours and days. Equal names may stand in it more than once. */
  readonly sales: (query: { readonly spans: readonly Span[] }) => Promise<readonly SaleCount[]>;
  readonly sources: () => Promise<readonly TotalsSource[]>;
  /** Takes a bounded part of what is older away; true if there may be more. Money by the hour stays. */
  readonly prune: (before: TotalsPruneTimes) => Promise<boolean>;
};
