// Sums on PostgreSQL: counts of requests that any number of processes hand over, one after the other, and the money that
// settlements added up. The database adds money itself: its numbers have as many digits as they need.
import { REQUEST_OUTCOMES } from '../../../domain/totals/request-counts.ts';
import { TOTALS_STEPS } from '../../../domain/totals/steps.ts';
import {
  ALL_ROUTES,
  MOST_SOURCES,
  type BatchAddResult,
  type MoneySum,
  type OverheadSum,
  type RequestSum,
  type RouteMoney,
  type RouteRequests,
  type TotalsBatch,
  type TotalsQuery,
  type TotalsStore,
} from '../../../domain/totals/totals-store.ts';
import { placeOfBatch, readRequests, readSource, routeStepsOf, rowsToAdd, type RouteStep } from '../totals-rows.ts';
import { integer, text, type Row } from '../rows.ts';
import { createSaleReads, createSaleWrites } from './sale-totals.ts';
import { plain } from './charge-batch.ts';
import type { ChargeSql } from './charge-sql.ts';
import { createShardFolding } from './closed-shards.ts';
import { inTransaction, type Answer, type Session } from './connection.ts';

type TotalsDeps = {
  readonly sql: Pick<ChargeSql, 'schema' | 'named'>;
  /** Lends a connection that writes. */
  readonly use: <T>(work: (session: Session) => Promise<T>) => Promise<T>;
  /** Asks one statement of the connection that reads. */
  readonly ask: (text: string, values: readonly unknown[]) => Promise<Answer>;
  readonly now: () => number;
  /** What a transaction sets for itself. */
  readonly settings: () => string;
};

const COUNTS = REQUEST_OUTCOMES.join(', ');
const ADDED_COUNTS = REQUEST_OUTCOMES.map((name) => `${name} = t.${name} + excluded.${name}`).join(', ');
const SUMMED_COUNTS = REQUEST_OUTCOMES.map((name) => `sum(${name})::int8 AS ${name}`).join(', ');
const SUMMED_MONEY = 'sum(amount) AS amount, sum(charges)::int8 AS charges';
/** Who adds counts waits for the one before him: half a thousand rows take some milliseconds. */
const ADDING_LOCK_MS = 3000;
/** ASCII of a name: locks of other programs on this database have other numbers. */
const LOCK = 0x544f544c;

export function createTotals(deps: TotalsDeps): TotalsStore {
  return { ...createAdding(deps), ...createReading(deps) };
}

function createAdding({ sql: { schema, named }, use, now, settings }: TotalsDeps): Pick<TotalsStore, 'add' | 'prune'> {
  const statements = {
    // The lock is held to the end of the transaction, so a later statement sees what the one before wrote.
    lock: named(`SELECT pg_advisory_xact_lock(${LOCK}, hashtext('${schema}'))::text AS locked`),
    source: named(`SELECT seq, lost FROM ${schema}.totals_sources WHERE source = $1`),
    putSource: named(
      `INSERT INTO ${schema}.totals_sources (source, seq, first_at, last_at, lost, status) VALUES ($1, $2, $3, $3, $4, $5)
       ON CONFLICT (source) DO UPDATE SET seq = excluded.seq, last_at = excluded.last_at, lost = excluded.lost,
         status = excluded.status`,
    ),
    forgetSources: named(
      `DELETE FROM ${schema}.totals_sources WHERE source IN
         (SELECT source FROM ${schema}.totals_sources ORDER BY last_at DESC, source DESC OFFSET ${MOST_SOURCES - 1})`,
    ),
    named: named(
      `SELECT t.step, t.start, t.route_id FROM unnest($1::text[], $2::int4[]) AS k (step, start)
       JOIN ${schema}.request_totals AS t ON t.step = k.step AND t.start = k.start`,
    ),
    addRequests: named(
      `INSERT INTO ${schema}.request_totals AS t (step, start, route_id, ${COUNTS})
       SELECT * FROM unnest($1::text[], $2::int4[], $3::text[]${REQUEST_OUTCOMES.map((_, at) => `, $${at + 4}::int8[]`).join('')})
       ON CONFLICT (step, start, route_id) DO UPDATE SET ${ADDED_COUNTS}`,
    ),
    addOverhead: named(
      `INSERT INTO ${schema}.overhead_totals AS t (step, start, bucket, requests)
       SELECT * FROM unnest($1::text[], $2::int4[], $3::int2[], $4::int8[])
       ON CONFLICT (step, start, bucket) DO UPDATE SET requests = t.requests + excluded.requests`,
    ),
    pruneSources: named(`DELETE FROM ${schema}.totals_sources WHERE last_at < $1`),
  };
  const pruned = TOTALS_STEPS.flatMap((step) => {
    const tables = [
      'request_totals',
      'overhead_totals',
      'sale_totals',
      ...(step === 'minute' ? ['charge_totals'] : []),
    ];
    return tables.map((table) => ({
      step,
      // One step at a time: it holds a thousand routes at most.
      remove: named(
        `DELETE FROM ${schema}.${table} WHERE step = '${step}'
           AND start = (SELECT min(start) FROM ${schema}.${table} WHERE step = '${step}' AND start < $1)`,
      ),
    }));
  });

  const addSales = createSaleWrites({ schema, named });
  const fold = createShardFolding({ schema, named });

  const addRows = async (session: Session, rows: TotalsBatch['rows']): Promise<void> => {
    const steps = routeStepsOf(rows);
    const known = await session.query(statements.named, [
      steps.map(({ step }) => step),
      steps.map(({ start }) => start),
    ]);
    const { requests, overhead } = rowsToAdd(rows, (of) => namedIn(known.rows, of));
    // Every transaction takes its rows in the same order, so that no two wait for each other.
    const sorted = requests.toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
    await session.query(statements.addRequests, [
      ...[
        sorted.map(({ step }) => step),
        sorted.map(({ start }) => start),
        sorted.map(({ routeId }) => plain(routeId)),
      ],
      ...REQUEST_OUTCOMES.map((outcome) => sorted.map(({ requests: counts }) => counts[outcome])),
    ]);
    await session.query(statements.addOverhead, [
      ...[overhead.map(({ step }) => step), overhead.map(({ start }) => start)],
      ...[overhead.map(({ bucket }) => bucket), overhead.map(({ requests: more }) => more)],
    ]);
  };

  return {
    add: ({ source, seq, rows, status }) =>
      use((session) =>
        inTransaction(
          session,
          `${settings()}; SET LOCAL lock_timeout = '${ADDING_LOCK_MS}ms'`,
          async (): Promise<BatchAddResult> => {
            await session.query(statements.lock, []);
            const [known] = (await session.query(statements.source, [plain(source)])).rows;
            const place = placeOfBatch(known, seq);
            if (place.kind === 'known') return place;
            // Room for a source that is not known yet.
            if (known === undefined) await session.query(statements.forgetSources, []);
            const said = status === undefined ? null : plain(status);
            await session.query(statements.putSource, [plain(source), seq, now(), place.lost, said]);
            if (rows.length > 0) await addRows(session, rows);
            await addSales(session, rows);
            return { kind: 'added', missing: place.missing };
          },
        ),
      ),
    prune: (before) =>
      use(async (session) => {
        await session.query(statements.pruneSources, [before.sourcesMs]);
        let more = await fold(session, now());
        for (const { step, remove } of pruned) if ((await session.query(remove, [before[step]])).count > 0) more = true;
        return more;
      }),
  };
}

function keyOf({
  step,
  start,
  routeId,
}: {
  readonly step: string;
  readonly start: number;
  readonly routeId: string;
}): string {
  return `${step} ${start} ${routeId}`;
}

function namedIn(rows: readonly Row[], of: RouteStep): string[] {
  return rows.flatMap((row) => (row['step'] === of.step && row['start'] === of.start ? [text(row, 'route_id')] : []));
}

function createReading({
  sql: { schema },
  ask,
}: TotalsDeps): Pick<TotalsStore, 'sums' | 'sumsByRoute' | 'sales' | 'sources'> {
  const requests = `SELECT start, ${COUNTS} FROM ${schema}.request_totals
    WHERE step = $1 AND start = ANY ($2::int4[]) AND route_id = $3`;
  const overhead = `SELECT start, bucket, requests FROM ${schema}.overhead_totals
    WHERE step = $1 AND start >= $2 AND start < $3`;
  const filters = `AND ($4::text IS NULL OR currency = $4) AND ($5::text IS NULL OR network = $5)`;
  const money = `SELECT start, currency, asset_decimals, ${SUMMED_MONEY} FROM ${schema}.charge_totals
    WHERE step = $1 AND start = ANY ($2::int4[]) AND route_id = $3 ${filters} GROUP BY start, currency, asset_decimals`;
  const moneyOfRouteByHour = `SELECT hour AS start, currency, asset_decimals, ${SUMMED_MONEY} FROM ${schema}.charge_sums
    WHERE $1::text = 'hour' AND hour = ANY ($2::int4[]) AND route_id = $3 ${filters} GROUP BY hour, currency, asset_decimals`;
  // A route's days are over all networks: those of one are added up from its hours.
  const moneyOfRouteByDay = `SELECT hour / 24 AS start, currency, asset_decimals, ${SUMMED_MONEY} FROM ${schema}.charge_sums
    WHERE $1::text = 'day' AND hour = ANY (ARRAY(SELECT d * 24 + h FROM unnest($2::int4[]) AS d, generate_series(0, 23) AS h))
      AND route_id = $3 ${filters} GROUP BY 1, currency, asset_decimals`;
  const requestsByRoute = `SELECT route_id, ${SUMMED_COUNTS} FROM ${schema}.request_totals
    WHERE step = $1 AND start >= $2 AND start < $3 AND route_id <> '' GROUP BY route_id`;
  const moneyByRouteByHour = `SELECT route_id, currency, asset_decimals, sum(amount) AS amount FROM ${schema}.charge_sums
    WHERE hour >= $1 AND hour < $2 GROUP BY route_id, currency, asset_decimals`;
  const moneyByRouteByDay = `SELECT route_id, currency, asset_decimals, sum(amount) AS amount FROM ${schema}.charge_totals
    WHERE step = 'day' AND start >= $1 AND start < $2 AND route_id <> '' GROUP BY route_id, currency, asset_decimals`;

  const sumsOf = async (query: TotalsQuery, { step, from, to }: TotalsQuery['spans'][number]) => {
    const { routeId = ALL_ROUTES, currency, network } = query;
    const starts = Array.from({ length: to - from }, (_, at) => from + at);
    const countsAll = network === undefined;
    const ofRoute = step === 'hour' ? moneyOfRouteByHour : network === undefined ? money : moneyOfRouteByDay;
    const ofMoney = routeId === ALL_ROUTES ? money : ofRoute;
    const [counted, took, moved] = await Promise.all([
      countsAll ? ask(requests, [step, starts, routeId]) : undefined,
      countsAll && routeId === ALL_ROUTES ? ask(overhead, [step, from, to]) : undefined,
      ask(ofMoney, [step, starts, routeId, currency ?? null, network ?? null]),
    ]);
    const startOf = (row: Row) => ({ step, start: integer(row, 'start') });
    return {
      requests: (counted?.rows ?? []).map((row): RequestSum => ({ ...startOf(row), requests: readRequests(row) })),
      overhead: (took?.rows ?? []).map((row): OverheadSum => ({
        ...{ ...startOf(row), bucket: integer(row, 'bucket'), requests: integer(row, 'requests') },
      })),
      money: moved.rows.map((row): MoneySum => ({
        ...startOf(row),
        ...readMoney(row),
        charges: integer(row, 'charges'),
      })),
    };
  };

  return {
    sums: async (query) => {
      const all = await Promise.all(query.spans.filter(({ from, to }) => from < to).map((span) => sumsOf(query, span)));
      return {
        requests: all.flatMap((sums) => sums.requests),
        overhead: all.flatMap((sums) => sums.overhead),
        money: all.flatMap((sums) => sums.money),
      };
    },
    sumsByRoute: async ({ spans }) => {
      const all = await Promise.all(
        spans.map(async ({ step, from, to }) => {
          const [counted, moved] = await Promise.all([
            ask(requestsByRoute, [step, from, to]),
            ask(step === 'hour' ? moneyByRouteByHour : moneyByRouteByDay, [from, to]),
          ]);
          return { counted: counted.rows, moved: moved.rows };
        }),
      );
      return {
        requests: all.flatMap(({ counted }) =>
          counted.map((row): RouteRequests => ({ routeId: text(row, 'route_id'), requests: readRequests(row) })),
        ),
        money: all.flatMap(({ moved }) =>
          moved.map((row): RouteMoney => ({ routeId: text(row, 'route_id'), ...readMoney(row) })),
        ),
      };
    },
    sales: createSaleReads(schema, ask),
    sources: async () => {
      const { rows } = await ask(
        `SELECT source, seq, first_at, last_at, lost, status FROM ${schema}.totals_sources ORDER BY source`,
        [],
      );
      return rows.map(readSource);
    },
  };
}

function readMoney(row: Row): { readonly currency: string; readonly assetDecimals: number; readonly amount: bigint } {
  return {
    currency: text(row, 'currency'),
    assetDecimals: integer(row, 'asset_decimals'),
    amount: BigInt(text(row, 'amount')),
  };
}
