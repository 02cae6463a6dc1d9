// Sums on SQLite: counts of requests, and the money that settlements added up. Adding and pruning run in the thread that writes,
// in the transaction of its batch; reading runs in the other one. Whole steps are looked up one by one, never walked: a step has
// a row for each of many routes.
import type { DatabaseSync, SQLInputValue } from 'node:sqlite';
import { REQUEST_OUTCOMES } from '../../../domain/totals/request-counts.ts';
import { TOTALS_STEPS, type Span } from '../../../domain/totals/steps.ts';
import {
  ALL_ROUTES,
  MOST_SOURCES,
  type BatchAddResult,
  type MoneySum,
  type OverheadSum,
  type RequestSum,
  type RouteMoney,
  type RouteRequests,
  type RouteSums,
  type StepSums,
  type TotalsBatch,
  type TotalsPruneTimes,
  type TotalsQuery,
  type TotalsSource,
} from '../../../domain/totals/totals-store.ts';
import type { SaleCount } from '../../../domain/totals/sale-counts.ts';
import { createSaleReads, createSaleWrites } from './sale-totals.ts';
import { placeOfBatch, readRequests, readSource, rowsToAdd, type RouteStep } from '../totals-rows.ts';
import { integer, nullableText, text, type Row } from '../rows.ts';

export type TotalsWrites = {
  readonly addTotals: (batch: TotalsBatch, now: number) => BatchAddResult;
  readonly pruneTotals: (before: TotalsPruneTimes) => boolean;
};

export type TotalsReads = {
  readonly totals: (query: TotalsQuery) => StepSums;
  readonly totalsByRoute: (spans: readonly Span[]) => RouteSums;
  readonly totalsOfSales: (spans: readonly Span[]) => readonly SaleCount[];
  readonly totalsSources: () => readonly TotalsSource[];
};

const COUNTS = REQUEST_OUTCOMES.join(', ');
const ADDED_COUNTS = REQUEST_OUTCOMES.map((name) => `${name} = ${name} + excluded.${name}`).join(', ');
const SUMMED_COUNTS = REQUEST_OUTCOMES.map((name) => `sum(${name}) AS ${name}`).join(', ');

export function createTotalsWrites(db: DatabaseSync): TotalsWrites {
  const sql = {
    source: db.prepare('SELECT seq, lost FROM totals_sources WHERE source = ?'),
    putSource: db.prepare(
      `INSERT INTO totals_sources (source, seq, first_at, last_at, lost, status) VALUES (?1, ?2, ?3, ?3, ?4, ?5)
       ON CONFLICT DO UPDATE SET seq = ?2, last_at = ?3, lost = ?4, status = ?5`,
    ),
    countSources: db.prepare('SELECT count(*) AS sources FROM totals_sources'),
    forgetSources: db.prepare(
      'DELETE FROM totals_sources WHERE source IN (SELECT source FROM totals_sources ORDER BY last_at, source LIMIT ?)',
    ),
    named: db.prepare('SELECT route_id FROM request_totals WHERE step = ? AND start = ?'),
    addRequests: db.prepare(
      `INSERT INTO request_totals (step, start, route_id, ${COUNTS})
       VALUES (?, ?, ?, ${REQUEST_OUTCOMES.map(() => '?').join(', ')}) ON CONFLICT DO UPDATE SET ${ADDED_COUNTS}`,
    ),
    addOverhead: db.prepare(
      `INSERT INTO overhead_totals (step, start, bucket, requests) VALUES (?, ?, ?, ?)
       ON CONFLICT DO UPDATE SET requests = requests + excluded.requests`,
    ),
    pruneSources: db.prepare('DELETE FROM totals_sources WHERE last_at < ?'),
  };
  const addSales = createSaleWrites(db);
  const tables = ['request_totals', 'overhead_totals', 'sale_totals', 'charge_totals'].map((table) => ({
    first: db.prepare(`SELECT min(start) AS start FROM ${table} WHERE step = ?`),
    remove: db.prepare(`DELETE FROM ${table} WHERE step = ? AND start = ?`),
    keepsDays: table === 'charge_totals',
  }));

  const namedIn = ({ step, start }: RouteStep): string[] =>
    sql.named.all(step, start).map((row) => text(row, 'route_id'));

  /** Makes room for a source that is not known yet. */
  const forgetOldest = (): void => {
    const row = sql.countSources.get();
    const over = row === undefined ? 0 : integer(row, 'sources') + 1 - MOST_SOURCES;
    if (over > 0) sql.forgetSources.run(over);
  };

  return {
    addTotals: ({ source, seq, rows, status }, now) => {
      const last = sql.source.get(source);
      const place = placeOfBatch(last, seq);
      if (place.kind === 'known') return place;
      if (last === undefined) forgetOldest();
      sql.putSource.run(source, seq, now, place.lost, status ?? null);
      const { requests, overhead } = rowsToAdd(rows, namedIn);
      for (const { step, start, routeId, requests: counts } of requests)
        sql.addRequests.run(step, start, routeId, ...REQUEST_OUTCOMES.map((outcome) => counts[outcome]));
      for (const { step, start, bucket, requests: more } of overhead) sql.addOverhead.run(step, start, bucket, more);
      addSales(rows);
      return { kind: 'added', missing: place.missing };
    },
    pruneTotals: (before) => {
      sql.pruneSources.run(before.sourcesMs);
      let more = false;
      // One step of each kind and table at a time: a step holds a thousand routes at most.
      for (const { first, remove, keepsDays } of tables)
        for (const step of TOTALS_STEPS) {
          if (keepsDays && step !== 'minute') continue;
          const row = first.get(step);
          const start = row?.['start'];
          if (typeof start !== 'number' || start >= before[step]) continue;
          remove.run(step, start);
          more = true;
        }
      return more;
    },
  };
}

/** Binds step, first and last number; each step in turn is looked up. */
const STEPS = `WITH RECURSIVE s (start) AS (SELECT ?2 UNION ALL SELECT start + 1 FROM s WHERE start + 1 < ?3)`;
/** Amounts of up to 24 digits as two integers that cannot overflow when they are added; longer ones as text. */
const AMOUNTS = `CAST(sum(CASE WHEN length(amount) <= 12 THEN CAST(amount AS INTEGER)
    WHEN length(amount) <= 24 THEN CAST(substr(amount, -12) AS INTEGER) ELSE 0 END) AS TEXT) AS low,
  CAST(sum(CASE WHEN length(amount) BETWEEN 13 AND 24 THEN CAST(substr(amount, 1, length(amount) - 12) AS INTEGER)
    ELSE 0 END) AS TEXT) AS high, group_concat(CASE WHEN length(amount) > 24 THEN amount END, ' ') AS others, sum(charges) AS charges`;

/** Routes whose days are looked up one by one: beyond, it takes longer than to sort the days of all. */
const MOST_LOOKED_AT = 4000;
/** Days from which on that is quicker. */
const MANY_DAYS = 8;

export function createTotalsReads(db: DatabaseSync): TotalsReads {
  const sql = {
    requests: db.prepare(
      `${STEPS} SELECT s.start, ${COUNTS} FROM s CROSS JOIN request_totals AS t
       ON t.step = ?1 AND t.start = s.start AND t.route_id = ?4`,
    ),
    overhead: db.prepare(
      'SELECT start, bucket, requests FROM overhead_totals WHERE step = ? AND start >= ? AND start < ?',
    ),
    money: db.prepare(
      `${STEPS} SELECT s.start, currency, asset_decimals, ${AMOUNTS} FROM s CROSS JOIN charge_totals AS t
       ON t.step = ?1 AND t.start = s.start AND t.route_id = ?4
       WHERE (?5 IS NULL OR currency = ?5) AND (?6 IS NULL OR network = ?6) GROUP BY s.start, currency, asset_decimals`,
    ),
    moneyOfRouteByHour: db.prepare(
      `${STEPS} SELECT s.start, currency, asset_decimals, ${AMOUNTS} FROM s CROSS JOIN charge_sums AS t
       ON ?1 = 'hour' AND t.hour = s.start AND t.route_id = ?4
       WHERE (?5 IS NULL OR currency = ?5) AND (?6 IS NULL OR network = ?6) GROUP BY s.start, currency, asset_decimals`,
    ),
    // A route's days are over all networks: those of one are added up from its hours.
    moneyOfRouteByDay: db.prepare(
      `WITH RECURSIVE s (start) AS (SELECT ?2 * 24 UNION ALL SELECT start + 1 FROM s WHERE start + 1 < ?3 * 24)
       SELECT s.start / 24 AS start, currency, asset_decimals, ${AMOUNTS} FROM s CROSS JOIN charge_sums AS t
       ON ?1 = 'day' AND t.hour = s.start AND t.route_id = ?4
       WHERE (?5 IS NULL OR currency = ?5) AND network = ?6 GROUP BY s.start / 24, currency, asset_decimals`,
    ),
    requestsByRoute: db.prepare(
      `SELECT route_id, ${SUMMED_COUNTS} FROM request_totals
       WHERE step = ? AND start >= ? AND start < ? AND route_id <> '' GROUP BY route_id`,
    ),
    nextRouteByDay: db.prepare(
      `SELECT route_id FROM request_totals INDEXED BY request_totals_by_route
       WHERE step = 'day' AND route_id <> '' AND route_id > ? ORDER BY route_id LIMIT 1`,
    ),
    requestsOfRouteByDay: db.prepare(
      `SELECT route_id, ${SUMMED_COUNTS} FROM request_totals INDEXED BY request_totals_by_route
       WHERE step = 'day' AND route_id <> '' AND route_id = ? AND start >= ? AND start < ? GROUP BY route_id`,
    ),
    moneyByRouteByHour: db.prepare(
      `SELECT route_id, currency, asset_decimals, ${AMOUNTS} FROM charge_sums
       WHERE hour >= ? AND hour < ? GROUP BY route_id, currency, asset_decimals`,
    ),
    moneyByRouteByDay: db.prepare(
      `SELECT route_id, currency, asset_decimals, ${AMOUNTS} FROM charge_totals
       WHERE step = 'day' AND start >= ? AND start < ? AND route_id <> '' GROUP BY route_id, currency, asset_decimals`,
    ),
    sources: db.prepare('SELECT source, seq, first_at, last_at, lost, status FROM totals_sources ORDER BY source'),
  };

  const moneyOf = ({ step, from, to }: Span, { routeId, currency, network }: TotalsQuery): MoneySum[] => {
    // Minutes of one route are not kept: their rows are none.
    const ofRoute =
      step === 'hour' ? sql.moneyOfRouteByHour : network === undefined ? sql.money : sql.moneyOfRouteByDay;
    const statement = routeId === undefined ? sql.money : ofRoute;
    const values: SQLInputValue[] = [step, from, to, routeId ?? ALL_ROUTES, currency ?? null, network ?? null];
    return statement.all(...values).map((row) => ({
      ...{ step, start: integer(row, 'start'), currency: text(row, 'currency') },
      ...{ assetDecimals: integer(row, 'asset_decimals'), charges: integer(row, 'charges'), amount: readAmount(row) },
    }));
  };
  const requestsOf = ({ step, from, to }: Span, { routeId }: TotalsQuery): RequestSum[] =>
    sql.requests
      .all(step, from, to, routeId ?? ALL_ROUTES)
      .map((row) => ({ step, start: integer(row, 'start'), requests: readRequests(row) }));
  const overheadOf = ({ step, from, to }: Span): OverheadSum[] =>
    sql.overhead.all(step, from, to).map((row) => ({
      ...{ step, start: integer(row, 'start'), bucket: integer(row, 'bucket'), requests: integer(row, 'requests') },
    }));

  /** The routes that have a row of some day; undefined if there are too many to look at one by one. */
  const routesByDay = (): readonly string[] | undefined => {
    const routes: string[] = [];
    for (let row = sql.nextRouteByDay.get(''); row !== undefined; row = sql.nextRouteByDay.get(routes.at(-1) ?? '')) {
      routes.push(text(row, 'route_id'));
      if (routes.length > MOST_LOOKED_AT) return undefined;
    }
    return routes;
  };
  const requestsByRoute = ({ step, from, to }: Span): readonly Row[] => {
    const routes = step === 'day' && to - from >= MANY_DAYS ? routesByDay() : undefined;
    if (routes === undefined) return sql.requestsByRoute.all(step, from, to);
    return routes.flatMap((routeId): Row[] => sql.requestsOfRouteByDay.all(routeId, from, to));
  };

  return {
    totals: (query) => {
      const spans = query.spans.filter(({ from, to }) => from < to);
      const countsAll = query.network === undefined;
      return {
        requests: countsAll ? spans.flatMap((span) => requestsOf(span, query)) : [],
        overhead: countsAll && query.routeId === undefined ? spans.flatMap(overheadOf) : [],
        money: spans.flatMap((span) => moneyOf(span, query)),
      };
    },
    totalsByRoute: (spans) => ({
      requests: spans.flatMap((span): RouteRequests[] =>
        requestsByRoute(span).map((row) => ({ routeId: text(row, 'route_id'), requests: readRequests(row) })),
      ),
      money: spans.flatMap(({ step, from, to }): RouteMoney[] =>
        (step === 'hour' ? sql.moneyByRouteByHour : sql.moneyByRouteByDay).all(from, to).map((row) => ({
          ...{ routeId: text(row, 'route_id'), currency: text(row, 'currency') },
          ...{ assetDecimals: integer(row, 'asset_decimals'), amount: readAmount(row) },
        })),
      ),
    }),
    totalsOfSales: createSaleReads(db),
    totalsSources: () => sql.sources.all().map(readSource),
  };
}

const LOW = 10n ** 12n;

function readAmount(row: Row): bigint {
  const others = nullableText(row, 'others')?.split(' ') ?? [];
  const parts = BigInt(text(row, 'high')) * LOW + BigInt(text(row, 'low'));
  return others.reduce((sum, amount) => sum + BigInt(amount), parts);
}
