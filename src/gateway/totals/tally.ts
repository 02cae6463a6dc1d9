// Counts of requests in memory, on their way to a store of sums. A request adds to numbers of the moment, and whoever hands them
// over closes the moment: its counts belong to the minute and the hour in whose middle it lay. What could not be handed over
// yet stays here, minute by minute and hour by hour, up to two days of it.
import {
  addRequests,
  noRequests,
  type OpenRequestCounts,
  type RequestCounts,
} from '../../domain/totals/request-counts.ts';
import { noOverhead } from '../../domain/totals/overhead.ts';
import { createSaleCounts, type SaleCount, type SaleCounts } from '../../domain/totals/sale-counts.ts';
import { floorTo, MINUTES_KEPT_MS } from '../../domain/totals/steps.ts';
import { MOST_ROUTES, OTHER_ROUTES, type CountedRow } from '../../domain/totals/totals-store.ts';

/** Counts of the moment. The telemetry adds to them. */
export type OpenCounts = {
  readonly all: OpenRequestCounts;
  /** Requests in each bucket of the time that Tollgate took. */
  readonly overhead: number[];
  readonly routes: ReadonlyMap<string, OpenRequestCounts>;
  /** Counts of a route that had none, or of the others if there are too many routes. */
  readonly add: (routeId: string) => OpenRequestCounts;
  /** Counts of what plans did. */
  readonly sales: SaleCounts;
};

export type Tally = {
  /** Another object after each moment. */
  readonly open: OpenCounts;
  /** Closes the moment. */
  readonly close: () => void;
  /** Adds what another process counted. */
  readonly merge: (rows: readonly CountedRow[]) => void;
  /** Up to `limit` rows of closed moments, oldest first; they are held here no longer. */
  readonly take: (limit: number) => readonly CountedRow[];
  /** Drops what is too old to be told; whether there was anything. */
  readonly forgetOld: () => boolean;
};

type Minute = { readonly requests: OpenRequestCounts; readonly overhead: number[] };

export function createTally(now: () => number): Tally {
  let since = now();
  const minutes = new Map<number, Minute>();
  const hours = new Map<number, Map<string, OpenRequestCounts>>();
  const saleHours = new Map<number, SaleCounts>();

  const addMinute = (startMs: number, requests: RequestCounts, overhead: readonly number[]): void => {
    let minute = minutes.get(startMs);
    if (minute === undefined) minutes.set(startMs, (minute = { requests: noRequests(), overhead: noOverhead() }));
    addRequests(minute.requests, requests);
    for (const [bucket, more] of overhead.entries()) minute.overhead[bucket] = (minute.overhead[bucket] ?? 0) + more;
  };
  const addRoute = (startMs: number, routeId: string, requests: RequestCounts): void => {
    let routes = hours.get(startMs);
    if (routes === undefined) hours.set(startMs, (routes = new Map()));
    addRequests(countsIn(routes, routeId), requests);
  };

  const addSale = (startMs: number, sale: SaleCount): void => {
    let sales = saleHours.get(startMs);
    if (sales === undefined) saleHours.set(startMs, (sales = createSaleCounts()));
    sales.add(sale);
  };

  // A member and no function: a request reads it.
  const tally: { open: OpenCounts } & Omit<Tally, 'open'> = {
    open: openCounts(),
    close: () => {
      const at = now();
      const middle = (since + at) / 2;
      const { all, overhead, routes, sales } = tally.open;
      // Every request that ended has a time, so an empty moment has no bucket.
      if (overhead.some((requests) => requests > 0) || sales.size() > 0) {
        addMinute(floorTo(middle, 'minute'), all, overhead);
        for (const [routeId, requests] of routes) addRoute(floorTo(middle, 'hour'), routeId, requests);
        for (const sale of sales.take(Infinity)) addSale(floorTo(middle, 'hour'), sale);
        tally.open = openCounts();
      }
      since = at;
    },
    merge: (rows) => {
      for (const row of rows) {
        if (row.step === 'minute') addMinute(row.startMs, row.requests, row.overhead);
        else if (row.step === 'sale') addSale(row.startMs, row.sale);
        else addRoute(row.startMs, row.routeId, row.requests);
      }
    },
    take: (limit) => {
      const rows: CountedRow[] = [];
      for (const [startMs, { requests, overhead }] of minutes) {
        if (rows.length === limit) return rows;
        minutes.delete(startMs);
        rows.push({ step: 'minute', startMs, requests, overhead });
      }
      for (const [startMs, routes] of hours) {
        for (const [routeId, requests] of routes) {
          if (rows.length === limit) return rows;
          routes.delete(routeId);
          rows.push({ step: 'hour', startMs, routeId, requests });
        }
        hours.delete(startMs);
      }
      for (const [startMs, sales] of saleHours) {
        for (const sale of sales.take(limit - rows.length)) rows.push({ step: 'sale', startMs, sale });
        if (sales.size() === 0) saleHours.delete(startMs);
      }
      return rows;
    },
    forgetOld: () => {
      const first = floorTo(now() - MINUTES_KEPT_MS, 'hour');
      let forgot = false;
      for (const counted of [minutes, hours, saleHours])
        for (const startMs of counted.keys()) if (startMs < first) forgot = counted.delete(startMs) || forgot;
      return forgot;
    },
  };
  return tally;
}

function openCounts(): OpenCounts {
  const routes = new Map<string, OpenRequestCounts>();
  return {
    ...{ all: noRequests(), overhead: noOverhead(), routes, sales: createSaleCounts() },
    add: (routeId) => countsIn(routes, routeId),
  };
}

/** The counts of the route, made if there is a place for one more; else those of the others. */
function countsIn(routes: Map<string, OpenRequestCounts>, routeId: string): OpenRequestCounts {
  const name = routes.has(routeId) || routes.size < MOST_ROUTES ? routeId : OTHER_ROUTES;
  let counts = routes.get(name);
  if (counts === undefined) routes.set(name, (counts = noRequests()));
  return counts;
}
