// A primary with a synchronous standby, which takes its place: what was answered is there, and what was not is not taken for it.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ClaimResult } from '../../src/domain/payment/claim-policy.ts';
import { createLedger, type Ledger } from '../../src/domain/payment/ledger.ts';
import { SPELLING } from '../../src/gateway/rails/rails.ts';
import type { Store } from '../../src/registry/store/ports.ts';
import { openPostgres, postgresPlace } from '../../src/registry/store/postgres/place.ts';
import { claimOf } from '../cases/claims.ts';
import { until } from '../support/paid-tollgate.ts';
import { hasPostgres, startPostgres, startStandby, type PostgresServer } from './server.ts';
import { placeOf, settingsOf, silent } from './store.ts';
import { startTap, type Tap } from './tap.ts';

describe.skipIf(!hasPostgres)('PostgreSQL, and a standby that takes its place', () => {
  let primary: PostgresServer;
  let standby: Awaited<ReturnType<typeof startStandby>>;
  /** What leads to the database, and what the standby follows. */
  let front: Tap;
  let behind: Tap;
  let store: Store;
  let ledger: Ledger;
  let name: string;
  /** While nobody waited for the standby. */
  let remarks: readonly string[];
  const examine = async (url: string): Promise<readonly string[]> =>
    (await postgresPlace(settingsOf(url)).examine({ processes: 1, isRegistry: false })).map(({ level }) => level);

  beforeAll(async () => {
    primary = await startPostgres();
    const url = await primary.createDatabase();
    name = new URL(url).pathname.slice(1);
    [front, behind] = [await startTap(primary.port), await startTap(primary.port)];
    const place = { ...placeOf(url, { port: front.port }), connections: 1, timeoutMs: 40_000 };
    store = await openPostgres(place, { now: Date.now, log: silent });
    ledger = createLedger(store.charges, SPELLING);
    standby = await startStandby(primary, behind.port);
    await until('it follows', async () => (await primary.query('SELECT 1 FROM pg_stat_replication')).length > 0);
    remarks = await examine(url);
    await primary.query("ALTER SYSTEM SET synchronous_standby_names = 'standby'");
    await primary.query('SELECT pg_reload_conf()');
    await until('the standby follows', async () => {
      const rows = await primary.query("SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'");
      return rows.length > 0;
    });
  });
  afterAll(async () => {
    await store?.close();
    for (const part of [front, behind, standby, primary]) await part?.close();
  });

  test('behaviour: check --online warns of standbys that nobody waits for', async () => {
    expect(remarks).toEqual(['ok', 'ok', 'warning']);
    expect(await examine(`postgres://tollgate@127.0.0.1:${primary.port}/${name}`)).toEqual(['ok', 'ok']);
  });

  test('attack: a claim that only a lost primary had is not told by what a look there finds, and is claimed once', async () => {
    let changes = 0;
    const claim = (n: number): Promise<ClaimResult> =>
      ledger.claim(claimOf(n), {
        ...{ owner: 'run/one', leaseMs: 600_000, maxUnsettledPerPayer: 1000, changeId: `change ${++changes}` },
      });
    const waits = async (): Promise<boolean> => {
      const rows = await primary.query(
        `SELECT 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND datname = '${name}'`,
      );
      return rows.length > 0;
    };
    const answered = await Promise.all(Array.from({ length: 50 }, (_, n) => claim(n)));
    expect(answered.every(({ kind }) => kind === 'claimed')).toBe(true);

    // The standby is cut off: the next claim is written here, and is not confirmed.
    await behind.close();
    let told: ClaimResult | undefined;
    const claimed = claim(1000).then((result) => (told = result));
    await until('it waits for the standby', waits);
    await primary.stop('SIGKILL');
    await primary.start();
    // It is found now, and written again all the same: that waits too.
    await until('it waits for the standby again', waits);
    const { id } = claimOf(1000);
    expect(await primary.query(`SELECT id FROM tollgate.charges WHERE id = '${id}'`, name)).toHaveLength(1);
    expect(told).toBeUndefined();

    await primary.stop('SIGKILL');
    await standby.promote();
    front.aim(standby.port);
    // No standby follows the new primary.
    await standby.query('ALTER SYSTEM RESET synchronous_standby_names');
    await standby.query('SELECT pg_reload_conf()');
    expect(await claimed).toMatchObject({ kind: 'claimed', charge: { claims: 1, owner: 'run/one' } });
    const rows = await standby.query(
      'SELECT count(*)::int AS charges, max(claims) AS claims FROM tollgate.charges',
      name,
    );
    expect(rows).toEqual([{ charges: 51, claims: 1 }]);
  });
});
