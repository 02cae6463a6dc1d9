// Shards of sums whose hour or day is over: they become one row, and no sum changes by it.
import { afterAll, describe, expect, test } from 'vitest';
import { stepOf, type Span } from '../../src/domain/totals/steps.ts';
import type { TotalsStore } from '../../src/domain/totals/totals-store.ts';
import type { Store } from '../../src/registry/store/ports.ts';
import type { Row } from '../../src/registry/store/rows.ts';
import { OTHER_ROUTE, ROUTE_ID } from '../cases/claims.ts';
import { hasPostgres } from './server.ts';
import { freshDatabase, holdTransaction, openTestStore, sharedPostgres, stopSharedPostgres } from './store.ts';

afterAll(stopSharedPostgres);

const BIG = 10n ** 70n;
const HOUR = stepOf(Date.now(), 'hour');
const DAY = stepOf(Date.now(), 'day');
const NOTHING_OLD = { minute: 0, hour: 0, day: 0, sourcesMs: 0 };

/** Five days of two routes in three shards, the running one among them, and an hour of each. */
const SETTLED = [0, 1, 2, 3, 4].flatMap((ago) =>
  [ROUTE_ID, OTHER_ROUTE].flatMap((routeId, route) =>
    [0, 3, 15].map((shard) => ({ ago, routeId, shard, amount: BIG * BigInt(route) + BigInt(100 * ago + shard + 1) })),
  ),
);

async function open(): Promise<{
  url: string;
  stores: readonly Store[];
  query: (sql: string) => Promise<readonly Row[]>;
}> {
  const url = await freshDatabase();
  const stores = [await openTestStore(url), await openTestStore(url)];
  await stores[0]?.charges.check();
  const server = await sharedPostgres();
  const query = (sql: string): Promise<readonly Row[]> => server.query(sql, new URL(url).pathname.slice(1));
  const values = (of: (each: (typeof SETTLED)[number]) => string): string => SETTLED.map(of).join(', ');
  await query(
    `INSERT INTO tollgate.charge_totals VALUES ${values(
      ({ ago, routeId, shard, amount }) =>
        `('day', ${DAY - ago}, '${routeId}', 'USD', '', '', 6, ${shard}, 2, ${amount})`,
    )}`,
  );
  await query(
    `INSERT INTO tollgate.charge_sums VALUES ${values(
      ({ ago, routeId, shard, amount }) =>
        `(${HOUR - ago * 24}, '${routeId}', 'USD', 'eip155:1', '0xa', 6, ${shard}, 2, ${amount})`,
    )}`,
  );
  return { url, stores, query };
}

/** All that a question about these days and hours is answered with, in one order. */
async function sumsIn(totals: TotalsStore): Promise<unknown> {
  const spans: readonly Span[] = [
    { step: 'day', from: DAY - 9, to: DAY + 1 },
    { step: 'hour', from: HOUR - 200, to: HOUR + 1 },
  ];
  const { money } = await totals.sumsByRoute({ spans });
  const ofRoutes = await Promise.all([ROUTE_ID, OTHER_ROUTE].map((routeId) => totals.sums({ spans, routeId })));
  const text = (each: object): string =>
    JSON.stringify(each, (_, value: unknown) => (typeof value === 'bigint' ? `${value}` : value));
  return [...money, ...ofRoutes.flatMap((each) => each.money)].map(text).toSorted();
}

async function pruneAll(store: Store | undefined): Promise<void> {
  const more = await store?.charges.totals.prune(NOTHING_OLD);
  if (more === true) await pruneAll(store);
}

const SHARDS = `SELECT 'day' AS step, start AS at, array_agg(DISTINCT shard ORDER BY shard)::text AS shards, count(*)::int AS rows
    FROM tollgate.charge_totals GROUP BY 2
  UNION ALL SELECT 'hour', hour, array_agg(DISTINCT shard ORDER BY shard)::text, count(*)::int FROM tollgate.charge_sums GROUP BY 2
  ORDER BY 1, 2`;

describe.skipIf(!hasPostgres)('closed shards', () => {
  test('behaviour: sums whose day or hour is over become one row of each route, and every answer stays the same', async () => {
    const { stores, query } = await open();
    const totals = stores[1]?.charges.totals;
    if (totals === undefined) throw new Error('no second store');
    const before = await sumsIn(totals);
    await pruneAll(stores[0]);
    expect(await sumsIn(totals)).toEqual(before);
    const rows = await query(SHARDS);
    const one = { shards: '{0}', rows: 2 };
    const closed = (at: number, ago: number, per: number): object[] =>
      Array.from({ length: ago }, (_, n) => ({ at: at - (ago - n) * per, ...one }));
    // The first hour of a day finds the day before still open.
    expect(rows.filter(({ step }) => step === 'day').slice(0, 3)).toEqual(
      closed(DAY - 1, 3, 1).map((each) => ({ step: 'day', ...each })),
    );
    expect(rows.filter(({ step }) => step === 'hour').slice(0, 4)).toEqual(
      closed(HOUR, 4, 24).map((each) => ({ step: 'hour', ...each })),
    );
    for (const step of ['day', 'hour'])
      expect(rows.findLast((row) => row['step'] === step)).toMatchObject({ shards: '{0,3,15}', rows: 6 });
    await Promise.all(stores.map((store) => store.close()));
  });

  test('behaviour: a settlement that is written while its closed day is folded counts once, and so does one that comes later', async () => {
    const { url, stores, query } = await open();
    const totals = stores[1]?.charges.totals;
    if (totals === undefined) throw new Error('no second store');
    const late = `INSERT INTO tollgate.charge_totals AS t VALUES ('day', ${DAY - 3}, '${ROUTE_ID}', 'USD', '', '', 6, 3, 1, 7)
      ON CONFLICT (step, start, route_id, currency, network, asset, asset_decimals, shard)
      DO UPDATE SET charges = t.charges + 1, amount = t.amount + 7`;
    const ofDay = async (): Promise<unknown> => {
      const { money } = await totals.sums({ spans: [{ step: 'day', from: DAY - 3, to: DAY - 2 }], routeId: ROUTE_ID });
      return money.map(({ charges, amount }) => [charges, amount]);
    };
    const [[charges, amount]] = (await ofDay()) as [[number, bigint]];
    const writer = await holdTransaction(url);
    await writer.query(late);
    const folded = pruneAll(stores[0]);
    const isWaiting = async (): Promise<boolean> =>
      (await query("SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'WITH gone AS%'"))
        .length > 0;
    await expect.poll(isWaiting, { timeout: 20_000 }).toBe(true);
    await writer.end('COMMIT');
    await folded;
    expect(await ofDay()).toEqual([[charges + 1, amount + 7n]]);
    await query(late);
    expect(await ofDay()).toEqual([[charges + 2, amount + 14n]]);
    await Promise.all(stores.map((store) => pruneAll(store)));
    expect(await ofDay()).toEqual([[charges + 2, amount + 14n]]);
    await Promise.all(stores.map((store) => store.close()));
  });
});
