// What is told of calls of the database: how each kind ends while it is there, while an answer is lost, and while it is away.
import { afterAll, describe, expect, test } from 'vitest';
import { createLedger } from '../../src/domain/payment/ledger.ts';
import { SPELLING } from '../../src/gateway/rails/rails.ts';
import { openPostgres } from '../../src/registry/store/postgres/place.ts';
import { claimOf } from '../cases/claims.ts';
import { storedRoute } from '../cases/routes.ts';
import { hasPostgres } from './server.ts';
import { freshDatabase, placeOf, sharedPostgres, silent, stopSharedPostgres } from './store.ts';
import { startTap } from './tap.ts';

describe.skipIf(!hasPostgres)('calls of the database', () => {
  afterAll(stopSharedPostgres);

  test('behaviour: 256 calls go out in one transaction at most, and no more wait than may', async () => {
    await sharedPostgres();
    const batches: number[] = [];
    const place = { ...placeOf(await freshDatabase()), connections: 1, timeoutMs: 60_000 };
    const observe = { call: () => undefined, batch: (calls: number) => void batches.push(calls) };
    const by = { now: Date.now, log: silent, observe };
    const { charges, close } = await openPostgres(place, by, { maxQueued: 257 });
    const look = (calls: number): Promise<readonly string[]> =>
      Promise.allSettled(Array.from({ length: calls }, () => charges.find({ id: 'chg_nobody' }))).then((all) =>
        all.flatMap((each) => (each.status === 'rejected' ? [String(each.reason)] : [])),
      );
    expect(await look(257)).toEqual([]);
    expect(batches).toEqual([256, 1]);
    expect(await look(258)).toEqual(['LedgerUnavailable: Too many calls wait for the ledger.']);
    await close();
  });

  test('behaviour: each call of the database is told by what it was and how it ended, with its seconds', async () => {
    const server = await sharedPostgres();
    const tap = await startTap(server.port);
    const place = { ...placeOf(await freshDatabase(), { port: tap.port }), connections: 1, timeoutMs: 1500 };
    let told: string[] = [];
    const batches: number[] = [];
    const observe = (operation: string, result: string, seconds: number): void => {
      expect(seconds).toBeGreaterThan(0);
      expect(seconds).toBeLessThan(10);
      told.push(`${operation} ${result}`);
    };
    const store = await openPostgres(place, {
      now: Date.now,
      log: silent,
      observe: { call: observe, batch: (calls) => void batches.push(calls) },
    });
    const ledger = createLedger(store.charges, SPELLING);
    const claim = (n: number): Promise<unknown> =>
      ledger.claim(claimOf(n), { owner: 'run/one', leaseMs: 60_000, maxUnsettledPerPayer: 9, changeId: `change ${n}` });
    const toldOf = async (work: () => Promise<unknown>): Promise<ReadonlySet<string>> => {
      told = [];
      await work().catch(() => undefined);
      return new Set(told);
    };
    const route = storedRoute('GET /timed');
    const write = (): Promise<unknown> =>
      store.routes.write([{ kind: 'insert', route, key: '/timed' }], { maxRoutes: 9 });

    expect(await toldOf(() => claim(1))).toEqual(new Set(['batch ok', 'claim ok']));
    expect(batches).toEqual([1]);
    const many = Promise.all([11, 12, 13, 14].map(claim));
    expect(store.charges.load?.().waiting).toBe(4);
    await many;
    expect([batches, store.charges.load?.().waiting]).toEqual([[1, 4], 0]);
    expect(await toldOf(() => claim(1))).toContain('claim refused');
    expect(await toldOf(() => store.charges.countByState())).toEqual(new Set(['read ok']));
    expect(await toldOf(() => store.routes.load())).toEqual(new Set(['read ok']));
    expect(await toldOf(write)).toEqual(new Set(['change ok']));
    const keys = {
      id: 'one',
      name: 'one',
      scopes: ['sdk'],
      createdAt: '2026-01-01T00:00:00.000Z',
      createdBy: null,
    } as const;
    // The schema takes no such digest.
    expect(await toldOf(() => store.apiKeys.insert({ ...keys, digest: Buffer.alloc(1) }, 9))).toEqual(
      new Set(['change refused']),
    );

    const lost = tap.loseCommit();
    const claimed = toldOf(() => claim(2));
    await lost;
    expect(await claimed).toEqual(new Set(['batch unknown', 'batch ok', 'claim refused']));

    await server.stop('SIGKILL');
    const away = await toldOf(() => Promise.allSettled([claim(3), store.routes.load(), write()]));
    expect([...away].filter((each) => each.endsWith(' ok'))).toEqual([]);
    expect(await toldOf(() => claim(4))).toContain('claim failed');
    // The claim's batch still tries to connect, and may be told here.
    const read = await toldOf(() => store.routes.load());
    expect([...read].filter((each) => each.startsWith('read'))).toEqual(['read failed']);
    await store.close();
    await tap.close();
  }, 60_000);
});
