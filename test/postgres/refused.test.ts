// A database that is there and says no to this process: told apart from one that is away, and, where no proxy would be taken out
// with it, the end of readiness after half a minute.
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { storeReadiness } from '../../src/compose/readiness.ts';
import { LedgerUnavailable } from '../../src/domain/payment/ledger.ts';
import type { PostgresSettings } from '../../src/domain/store-settings.ts';
import { StoreRefused } from '../../src/registry/store/ports.ts';
import { postgresPlace } from '../../src/registry/store/postgres/place.ts';
import { until } from '../support/paid-tollgate.ts';
import { hasPostgres } from './server.ts';
import { freshDatabase, settingsOf, sharedPostgres, silent, stopSharedPostgres } from './store.ts';

describe.skipIf(!hasPostgres)('a database that says no', () => {
  afterAll(stopSharedPostgres);

  const failing = async (url: string, rest: Partial<PostgresSettings>): Promise<LedgerUnavailable> => {
    const place = postgresPlace(settingsOf(url, { timeoutMs: 1000, ...rest }));
    const store = place.openCharges({ now: Date.now, log: silent });
    const error = await store.check().catch((thrown: unknown) => thrown);
    await store.close();
    if (!(error instanceof LedgerUnavailable)) throw new Error('it did not fail');
    return error;
  };

  test('behaviour: password, rights, TLS and schema are refusals, and an address without anybody is none', async () => {
    const server = await sharedPostgres();
    const [url, newer] = [await freshDatabase(), await freshDatabase()];
    for (const each of [url, newer]) await postgresPlace(settingsOf(each)).migrate();
    await server.query(
      'UPDATE tollgate.meta SET schema_version = 99, least_reader = 99',
      new URL(newer).pathname.slice(1),
    );
    const access = path.join(server.folder, 'pg_hba.conf');
    writeFileSync(access, `host all locked 127.0.0.1/32 scram-sha-256\n${readFileSync(access, 'utf8')}`);
    await server.query(
      "SELECT pg_reload_conf(); CREATE ROLE clerk LOGIN; CREATE ROLE locked LOGIN SUPERUSER PASSWORD 'right'",
    );
    const refusals: readonly (readonly [string, Partial<PostgresSettings>, RegExp])[] = [
      [url, { user: 'locked', password: { value: 'wrong' } }, /password authentication failed/],
      [url, { user: 'locked', password: { file: '/nowhere/at/all' } }, /no such file/],
      [url, { user: 'clerk' }, /may not make or read the schema/],
      [url, { database: 'nowhere' }, /does not exist/],
      [url, { tls: { mode: 'verify', caFile: undefined } }, /SSL|TLS/],
      [newer, {}, /written by a newer version/],
    ];
    await Promise.all(
      refusals.map(([which, rest, sentence]) =>
        until(`it is refused: ${String(sentence)}`, async () => {
          const error = await failing(which, rest);
          return error instanceof StoreRefused && sentence.test(error.message);
        }),
      ),
    );
    expect(await failing(url, { port: 1 })).not.toBeInstanceOf(StoreRefused);
  });
});

describe('readiness of a store that several share', () => {
  const MINUTE = 60_000;

  test.each([
    ['without a proxy: not ready after 30 s', false],
    ['with a proxy: ready, because free requests would end with it', true],
  ])('behaviour: the readiness over a store that says no to this process, %s', async (_, hasProxy) => {
    let time = 0;
    let answer: () => Promise<void> = async () => undefined;
    const clock = { monotonic: () => time };
    const { check } = storeReadiness(() => answer(), { clock, log: silent }, { isShared: true, hasProxy });
    const isReady = async (afterMs: number): Promise<boolean> => {
      time += afterMs;
      const { ok, isTolerated = false } = await check.run();
      return ok || isTolerated;
    };
    expect(await isReady(0)).toBe(true);
    // Away is no word of anybody's: all processes have it.
    answer = () => Promise.reject(new LedgerUnavailable('nobody is there'));
    expect([await isReady(MINUTE), await isReady(MINUTE)]).toEqual([true, true]);
    answer = () => Promise.reject(new StoreRefused('wrong password'));
    expect([await isReady(MINUTE), await isReady(29_999), await isReady(1)]).toEqual([true, true, hasProxy]);
    // Not to be reached for a moment, it has said nothing else.
    answer = () => Promise.reject(new LedgerUnavailable('nobody is there'));
    expect(await isReady(1)).toBe(hasProxy);
    answer = async () => undefined;
    expect(await isReady(1)).toBe(true);
    answer = () => Promise.reject(new StoreRefused('wrong password'));
    expect([await isReady(MINUTE), await isReady(30_000)]).toEqual([true, hasProxy]);
  });

  test('behaviour: no refusal of a store is tolerated until the store took a first write', async () => {
    const refuse = (): Promise<void> => Promise.reject(new StoreRefused('wrong password'));
    const clock = { monotonic: () => 0 };
    const { check } = storeReadiness(refuse, { clock, log: silent }, { isShared: true, hasProxy: true });
    expect(await check.run()).toMatchObject({ ok: false, isTolerated: false });
  });
});
