// Counted rows as the rows of a store's tables, the same for every kind of store: a minute is added to its hour and its day, and
// an hour or a day that names enough routes counts the others together.
import {
  addRequests,
  noRequests,
  REQUEST_OUTCOMES,
  type OpenRequestCounts,
  type RequestCounts,
} from '../../domain/totals/request-counts.ts';
import { stepOf, TOTALS_STEPS, type TotalsStep } from '../../domain/totals/steps.ts';
import {
  ALL_ROUTES,
  MOST_ROUTES,
  OTHER_ROUTES,
  type CountedRow,
  type TotalsSource,
} from '../../domain/totals/totals-store.ts';
import { integer, nullableText, text, type Row } from './rows.ts';

type RequestRow = {
  readonly step: TotalsStep;
  readonly start: number;
  readonly routeId: string;
  readonly requests: RequestCounts;
};
type OverheadRow = {
  readonly step: TotalsStep;
  readonly start: number;
  readonly bucket: number;
  readonly requests: number;
};
/** Rows to add to those of the same key; no key stands twice. */
type RowsToAdd = { readonly requests: readonly RequestRow[]; readonly overhead: readonly OverheadRow[] };

/** What a source's batch `seq` means beside the last one that was added, if there was any: one that is known, or the gap before it. */
export function placeOfBatch(
  last: Row | undefined,
  seq: number,
): { readonly kind: 'known' } | { readonly kind: 'new'; readonly missing: number; readonly lost: number } {
  const lastSeq = last === undefined ? 0 : integer(last, 'seq');
  if (seq <= lastSeq) return { kind: 'known' };
  const missing = seq - lastSeq - 1;
  return { kind: 'new', missing, lost: (last === undefined ? 0 : integer(last, 'lost')) + missing };
}

/** Steps by which a route's requests are kept. */
const ROUTE_STEPS = ['hour', 'day'] as const;
export type RouteStep = { readonly step: (typeof ROUTE_STEPS)[number]; readonly start: number };

/** Every hour and day that `rows` count routes in. */
export function routeStepsOf(rows: readonly CountedRow[]): readonly RouteStep[] {
  const steps = new Map<string, RouteStep>();
  for (const row of rows) {
    if (row.step !== 'hour') continue;
    for (const step of ROUTE_STEPS) {
      const start = stepOf(row.startMs, step);
      steps.set(nameOf({ step, start }), { step, start });
    }
  }
  return [...steps.values()];
}

/** `named` tells the routes that the store has a row for in an hour or a day. */
export function rowsToAdd(rows: readonly CountedRow[], named: (of: RouteStep) => Iterable<string>): RowsToAdd {
  const routes = new Map(routeStepsOf(rows).map((of) => [nameOf(of), new Set(named(of))]));
  const requests = new Map<string, RequestRow & { readonly requests: OpenRequestCounts }>();
  const overhead = new Map<string, OverheadRow & { requests: number }>();
  const add = (step: TotalsStep, start: number, routeId: string, more: RequestCounts): void => {
    const key = `${step} ${start} ${routeId}`;
    let row = requests.get(key);
    if (row === undefined) requests.set(key, (row = { step, start, routeId, requests: noRequests() }));
    addRequests(row.requests, more);
  };
  const addOverhead = (step: TotalsStep, start: number, bucket: number, more: number): void => {
    const key = `${step} ${start} ${bucket}`;
    const row = overhead.get(key);
    if (row === undefined) overhead.set(key, { step, start, bucket, requests: more });
    else row.requests += more;
  };
  for (const row of rows) {
    if (row.step === 'sale') continue;
    if (row.step === 'hour') {
      for (const step of ROUTE_STEPS) {
        const start = stepOf(row.startMs, step);
        add(step, start, nameIn(routes.get(nameOf({ step, start })), row.routeId), row.requests);
      }
      continue;
    }
    for (const step of TOTALS_STEPS) {
      const start = stepOf(row.startMs, step);
      add(step, start, ALL_ROUTES, row.requests);
      for (const [bucket, more] of row.overhead.entries()) if (more > 0) addOverhead(step, start, bucket, more);
    }
  }
  return { requests: [...requests.values()], overhead: [...overhead.values()] };
}

function nameOf({ step, start }: RouteStep): string {
  return `${step} ${start}`;
}

/** The name under which the route counts, which has a place from then on if there is one. */
function nameIn(named: Set<string> | undefined, routeId: string): string {
  if (named === undefined || named.has(routeId)) return routeId;
  named.delete(ALL_ROUTES);
  named.delete(OTHER_ROUTES);
  if (named.size >= MOST_ROUTES) return OTHER_ROUTES;
  named.add(routeId);
  return routeId;
}

export function readRequests(row: Row): RequestCounts {
  const counts = noRequests();
  for (const outcome of REQUEST_OUTCOMES) counts[outcome] = integer(row, outcome);
  return counts;
}

export function readSource(row: Row): TotalsSource {
  return {
    ...{ source: text(row, 'source'), seq: integer(row, 'seq'), lost: integer(row, 'lost') },
    ...{ firstAt: integer(row, 'first_at'), lastAt: integer(row, 'last_at'), status: nullableText(row, 'status') },
  };
}
