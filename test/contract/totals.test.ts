// The contract of sums over every store that keeps them.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, describe, expect, test } from 'vitest';
import { STEP_MS, stepOf } from '../../src/domain/totals/steps.ts';
import type { TotalsStore } from '../../src/domain/totals/totals-store.ts';
import { SPELLING } from '../../src/gateway/rails/rails.ts';
import { createLog } from '../../src/host/log.ts';
import { ledgerOf } from '../../src/registry/store/stored-ledger.ts';
import { migrateFile, readSchema } from '../../src/registry/store/sqlite/database.ts';
import { OTHER_ROUTE, ROUTE_ID } from '../cases/claims.ts';
import { hasPostgres } from '../postgres/server.ts';
import { freshDatabase, openTestStore, sharedPostgres, stopSharedPostgres } from '../postgres/store.ts';
import { temporaryFolder } from '../registry/kit.ts';
import { describeTotals } from './totals.ts';
import { openPatientCharges } from '../support/sqlite-ledger.ts';

const log = createLog('error', () => undefined, Date.now);

afterAll(stopSharedPostgres);

describeTotals('SQLite', async () => {
  let offset = 0;
  const now = (): number => Date.now() + offset;
  const { folder, remove } = temporaryFolder();
  const file = join(folder, 'ledger.db');
  const [one, two] = [openPatientCharges(file, { now, log }), openPatientCharges(file, { now, log })];
  return {
    ...{ stores: [one.totals, two.totals], ledger: ledgerOf(one, SPELLING), now },
    pass: (ms) => void (offset += ms),
    close: async () => {
      await Promise.all([one.close(), two.close()]);
      remove();
    },
  };
});

describe.skipIf(!hasPostgres)('PostgreSQL', () => {
  describeTotals('PostgreSQL', async () => {
    let offset = 0;
    const shift = (): number => offset;
    const database = await freshDatabase();
    const [one, two] = [await openTestStore(database, { shift }), await openTestStore(database, { shift })];
    const ledger = ledgerOf(one.charges, SPELLING);
    return {
      ...{ stores: [one.charges.totals, two.charges.totals], ledger, now: ledger.now },
      pass: (ms) => void (offset += ms),
      close: async () => void (await Promise.all([one.close(), two.close()])),
    };
  });
});

/** The last version without sums. */
const BEFORE = 5;

describe('sums of what was settled before they were kept', () => {
  const big = 10n ** 77n;
  const hour = stepOf(Date.UTC(2026, 2, 1, 22), 'hour');
  // Two hours of one day and one of the next, of two routes; amounts that no integer of SQL holds.
  const settled = [
    ...[hour, hour + 1, hour + 2].flatMap((each, n) => [
      { hour: each, route: ROUTE_ID, amount: big - BigInt(n) },
      { hour: each, route: OTHER_ROUTE, amount: 999_999_999_999n },
    ]),
  ];
  const values = settled.map(
    (each) => `(${each.hour}, '${each.route}', 'USD', 'eip155:1', '0xa', 6, SHARD2, '${each.amount}')`,
  );

  const check = async (totals: TotalsStore): Promise<void> => {
    const small = 999_999_999_999n;
    const of = async (step: 'hour' | 'day', routeId?: string): Promise<unknown> => {
      const from = stepOf(hour * STEP_MS.hour, step);
      const { money } = await totals.sums({ spans: [{ step, from, to: from + 3 }], routeId });
      return money
        .toSorted((a, b) => a.start - b.start)
        .map(({ start, charges, amount }) => [start - from, charges, amount]);
    };
    expect(await of('hour')).toEqual([0, 1, 2].map((n) => [n, 4, big - BigInt(n) + small]));
    expect(await of('day')).toEqual([
      [0, 8, 2n * big - 1n + 2n * small],
      [1, 4, big - 2n + small],
    ]);
    expect(await of('day', OTHER_ROUTE)).toEqual([
      [0, 4, 2n * small],
      [1, 2, small],
    ]);
  };

  test('behaviour: SQLite makes sums of earlier money from the hours of each route when it comes to this version', async () => {
    const { folder, remove } = temporaryFolder();
    const file = join(folder, 'old.db');
    migrateFile(file, undefined, readSchema().slice(0, BEFORE));
    const db = new DatabaseSync(file);
    db.exec(`INSERT INTO charge_sums VALUES ${values.join(', ').replaceAll('SHARD', '')}`);
    db.close();
    const store = openPatientCharges(file, { now: Date.now, log });
    await check(store.totals);
    await store.close();
    remove();
  });

  test.skipIf(!hasPostgres)(
    'behaviour: PostgreSQL makes sums of earlier money from the hours of each route when it comes to this version',
    async () => {
      const url = await freshDatabase();
      const server = await sharedPostgres();
      const texts = Array.from({ length: BEFORE }, (_, index) =>
        readFileSync(
          new URL(
            `../../src/registry/store/postgres/postgres${index === 0 ? '' : `-${index + 1}`}.sql`,
            import.meta.url,
          ),
          'utf8',
        ),
      );
      const meta = `INSERT INTO meta VALUES (1, ${BEFORE}, 1, 'old', 0, '', 0)`;
      const sums = [0, 1].map((shard) => {
        const own = values.filter((_, index) => index % 2 === shard).join(', ');
        return `INSERT INTO charge_sums VALUES ${own.replaceAll('SHARD', `${shard}, `)}`;
      });
      const sql = ['CREATE SCHEMA tollgate', 'SET search_path = tollgate', ...texts, meta, ...sums].join(';\n');
      await server.query(sql, new URL(url).pathname.slice(1));
      const store = await openTestStore(url);
      await check(store.charges.totals);
      await store.close();
    },
  );
});
