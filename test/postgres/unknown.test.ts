// What can go wrong between a commit and its answer, and between two transactions: a payment is claimed once, is told to be
// claimed only if it is, and nobody waits for ever. Each of these was seen to go wrong without what guards against it.
import { connect, createServer, type AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { Claim } from '../../src/domain/payment/charge.ts';
import type { ClaimResult, ClaimOptions } from '../../src/domain/payment/claim-policy.ts';
import { createLedger, LedgerUnavailable, type Ledger } from '../../src/domain/payment/ledger.ts';
import { SPELLING } from '../../src/gateway/rails/rails.ts';
import type { Store } from '../../src/registry/store/ports.ts';
import { runBatch } from '../../src/registry/store/postgres/charge-batch.ts';
import { createChargeSql } from '../../src/registry/store/postgres/charge-sql.ts';
import type { Answer, Session } from '../../src/registry/store/postgres/connection.ts';
import { openPostgres } from '../../src/registry/store/postgres/place.ts';
import { toRowInsert } from '../../src/registry/store/charge-values.ts';
import { decideClaim } from '../../src/domain/payment/claim-policy.ts';
import { createRandom, systemClock } from '../../src/host/clock.ts';
import { createApiKey, digestKey } from '../../src/registry/auth/api-keys.ts';
import { openRoutes } from '../../src/registry/routes/registry-routes.ts';
import { RECEIVERS } from '../cases/receivers.ts';
import { storedRoute } from '../cases/routes.ts';
import { claimOf, proofOf } from '../cases/claims.ts';
import { until } from '../support/paid-tollgate.ts';
import { hasPostgres, type PostgresServer } from './server.ts';
import { freshDatabase, placeOf, sharedPostgres, silent, stopSharedPostgres } from './store.ts';
import { startTap, type Tap } from './tap.ts';

const LEASE = 60_000;
let changes = 0;
let n = 5_000_000;
const options = (rest: Partial<ClaimOptions> = {}): ClaimOptions => ({
  ...{ owner: 'run/one', leaseMs: LEASE, maxUnsettledPerPayer: 100, changeId: `change ${++changes}` },
  ...rest,
});

describe.skipIf(!hasPostgres)('PostgreSQL, and what is unknown', () => {
  let server: PostgresServer;
  let url: string;
  let name: string;
  const closing: (() => Promise<void>)[] = [];

  beforeAll(async () => {
    server = await sharedPostgres();
  });
  afterAll(stopSharedPostgres);
  afterEach(async () => {
    for (const close of closing.splice(0).toReversed()) await close();
  });

  const opened = async (through?: Pick<Tap, 'port'>, timeoutMs = 20_000): Promise<Store> => {
    url ??= await freshDatabase();
    name = new URL(url).pathname.slice(1);
    const place = placeOf(url, through === undefined ? {} : { port: through.port });
    const store = await openPostgres({ ...place, connections: 1, timeoutMs }, { now: Date.now, log: silent });
    closing.push(store.close);
    return store;
  };
  const tapped = async (): Promise<Tap> => {
    const tap = await startTap(server.port);
    closing.push(tap.close);
    return tap;
  };
  const ledgerOver = (store: Store): Ledger => createLedger(store.charges, SPELLING);
  const fresh = (rest: Parameters<typeof claimOf>[1] = {}): Claim => claimOf(++n, rest);
  const waitingForStandby = async (): Promise<number | undefined> => {
    const rows = await server.query(
      `SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND datname = '${name}'`,
    );
    return rows[0] && Number(rows[0]['pid']);
  };

  test('attack: a claim whose commit has its answer lost is made again, is the same, and is one', async () => {
    const tap = await tapped();
    const ledger = ledgerOver(await opened(tap));
    const what = fresh();
    const lost = tap.loseCommit();
    const claimed = ledger.claim(what, options());
    await lost;
    expect(await claimed).toMatchObject({ kind: 'claimed', charge: { claims: 1, owner: 'run/one' } });
    const rows = await server.query(`SELECT claims, version FROM tollgate.charges WHERE id = '${what.id}'`, name);
    // Written once more, under the same change: a read could have seen what no other server has.
    expect(rows).toEqual([{ claims: 1, version: 2 }]);
  });

  test('attack: a settlement whose commit has its answer lost is written again, and counted once', async () => {
    const tap = await tapped();
    const store = await opened(tap);
    const ledger = ledgerOver(store);
    const what = fresh();
    await ledger.claim(what, options({ settleVia: 'first' }));
    const before = (await store.charges.countByState()).settled;
    const lost = tap.loseCommit();
    const actor = { owner: 'run/one', changeId: `change ${++changes}` };
    const settled = ledger.advance(what.id, { kind: 'settled', proof: proofOf(what), leaseMs: LEASE }, actor);
    await lost;
    expect(await settled).toMatchObject({ kind: 'ok', charge: { state: 'settled' } });
    expect((await store.charges.countByState()).settled - before).toBe(1);
    const sums = await server.query('SELECT sum(charges)::int AS charges FROM tollgate.charge_sums', name);
    expect(sums).toEqual([{ charges: 1 }]);
  });

  test('attack: the rows of a transaction whose process is gone without a word are free again after a while', async () => {
    // The machine of the process loses its power before the commit: neither that nor the end of the connection arrives.
    let isGone = false;
    const relay = createServer((client) => {
      const upstream = connect(server.port, '127.0.0.1');
      for (const socket of [client, upstream]) socket.on('error', () => undefined);
      upstream.pipe(client);
      client.on('data', (chunk: Buffer) => {
        const at = armed ? chunk.indexOf('COMMIT') : -1;
        if (at >= 0) upstream.write(chunk.subarray(0, at));
        else if (!isGone) upstream.write(chunk);
        isGone ||= at >= 0;
      });
      closing.push(async () => void upstream.destroy());
    });
    let armed = false;
    await new Promise<void>((resolve) => {
      relay.listen(0, '127.0.0.1', resolve);
    });
    closing.push(async () => void relay.close());
    const { port } = relay.address() as AddressInfo;
    const ledger = ledgerOver(await opened(undefined, 1_000));
    const gone = ledgerOver(await opened({ port }, 1_000));
    await gone.claim(fresh(), options());
    const what = fresh();
    armed = true;
    await expect(gone.claim(what, options())).rejects.toThrow(LedgerUnavailable);
    expect(isGone).toBe(true);
    await expect(ledger.claim(what, options({ owner: 'run/two' }))).rejects.toThrow(LedgerUnavailable);
    await until('the ledger says whose the payment is', () =>
      ledger.claim(what, options({ owner: 'run/two' })).then(
        () => true,
        () => false,
      ),
    );
    const rows = await server.query(
      `SELECT split_part(owner, '/', 2) AS owner FROM tollgate.charges WHERE id = '${what.id}'`,
      name,
    );
    expect(rows).toEqual([{ owner: 'two' }]);
  });

  test('attack: calls over a network that swallows everything end in time, and the next one has a new connection', async () => {
    const tap = await tapped();
    const ledger = ledgerOver(await opened(tap, 3000));
    await ledger.claim(fresh(), options());
    tap.swallow();
    const since = performance.now();
    await expect(ledger.claim(fresh(), options())).rejects.toThrow(LedgerUnavailable);
    expect(performance.now() - since).toBeLessThan(20_000);
    await until('it is had again', () =>
      ledger.claim(fresh(), options()).then(
        ({ kind }) => kind === 'claimed',
        () => false,
      ),
    );
  });

  test('attack: a commit that no longer waits for its standby is not told as one: it is made again', async () => {
    const ledger = ledgerOver(await opened());
    await ledger.claim(fresh(), options());
    await server.query("ALTER SYSTEM SET synchronous_standby_names = 'nobody'");
    await server.query('SELECT pg_reload_conf()');
    try {
      let told: ClaimResult | undefined;
      const claim = (): Promise<ClaimResult> => ledger.claim(fresh(), options()).then((result) => (told = result));
      let claimed = claim();
      const first = await until('it waits for the standby', async () => {
        // It takes the server a moment to have its processes wait.
        if (told !== undefined) [told, claimed] = [undefined, claim()];
        return waitingForStandby();
      });
      await server.query(`SELECT pg_cancel_backend(${first})`);
      // What follows is another attempt, on another connection.
      await until('it waits again', async () => {
        const pid = await waitingForStandby();
        return pid !== undefined && pid !== first;
      });
      expect(told).toBeUndefined();
      await server.query('ALTER SYSTEM RESET synchronous_standby_names');
      await server.query('SELECT pg_reload_conf()');
      expect(await claimed).toMatchObject({ kind: 'claimed', charge: { claims: 1 } });
    } finally {
      await server.query('ALTER SYSTEM RESET synchronous_standby_names');
      await server.query('SELECT pg_reload_conf()');
    }
  });

  test('behaviour: a database that turned read-only is left, and had again when it takes writes', async () => {
    const ledger = ledgerOver(await opened());
    await ledger.claim(fresh(), options());
    const end = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '${name}'`;
    const sessions = async (): Promise<number> => {
      const rows = await server.query(`SELECT sessions::int FROM pg_stat_database WHERE datname = '${name}'`);
      return Number(rows[0]?.['sessions']);
    };
    await server.query(`ALTER DATABASE ${name} SET default_transaction_read_only = on`);
    await server.query(end);
    const before = await sessions();
    let told = false;
    const claimed = ledger.claim(fresh(), options()).finally(() => (told = true));
    // One connection after the other is looked at and left.
    await until('it tries again and again', async () => (await sessions()) >= before + 3);
    expect(told).toBe(false);
    await server.query(`ALTER DATABASE ${name} RESET default_transaction_read_only`);
    await server.query(end);
    expect((await claimed).kind).toBe('claimed');
  });

  test('attack: payments that two processes claim in another order are each claimed once, and nobody waits long', async () => {
    const stores = [await opened(), await opened()];
    const claims = Array.from({ length: 60 }, () => fresh());
    const since = performance.now();
    const results = await Promise.all(
      stores.flatMap((store, index) => {
        const ledger = ledgerOver(store);
        const order = index === 0 ? claims : claims.toReversed();
        return order.map((what) => ledger.claim(what, options({ owner: `run/${index}` })));
      }),
    );
    expect(results.filter(({ kind }) => kind === 'claimed')).toHaveLength(claims.length);
    expect(results.filter(({ kind }) => kind === 'in_use')).toHaveLength(claims.length);
    expect(performance.now() - since).toBeLessThan(10_000);
  });

  test('attack: one charge id for two payments, crossed at two processes, ends with one each', async () => {
    const stores = [await opened(), await opened()];
    const pairs = Array.from({ length: 20 }, () => {
      const first = fresh();
      return [first, fresh({ id: first.id })] as const;
    });
    const results = await Promise.all(
      stores.flatMap((store, index) => {
        const ledger = ledgerOver(store);
        const order = index === 0 ? pairs : pairs.toReversed();
        return order.map((pair) => ledger.claim(pair[index]!, options()));
      }),
    );
    const kinds = results.map(({ kind }) => kind);
    expect([
      kinds.filter((kind) => kind === 'claimed').length,
      kinds.filter((kind) => kind === 'quote_already_used').length,
    ]).toEqual([20, 20]);
  });

  test('attack: a NUL in a reason fails neither its call nor its batch', async () => {
    const ledger = ledgerOver(await opened());
    const all = [fresh(), fresh(), fresh()];
    await Promise.all(all.map((what) => ledger.claim(what, options())));
    const ended = await Promise.all(
      all.map(({ id }, index) =>
        ledger.advance(id, { kind: 'released', reason: index === 1 ? 'no\0thing' : 'nothing' }, { owner: 'run/one' }),
      ),
    );
    expect(ended.map(({ kind }) => kind)).toEqual(['ok', 'ok', 'ok']);
  });

  test('attack: a lease is taken from nobody who has it by the clock of the database', async () => {
    const { charges: store } = await opened();
    const what = fresh();
    const { charge } = decideClaim(undefined, what, options(), store.now());
    const inserted = await store.insert({ charge, claim: what, options: options() });
    if (inserted.kind !== 'written') throw new Error(inserted.kind);
    const { charge: before } = inserted;
    // As a process decides it whose clock is far ahead.
    const after = { ...before.charge, owner: 'run/two', claims: 2, leaseUntil: before.charge.leaseUntil + LEASE };
    const because = { claim: what, options: options({ owner: 'run/two' }) };
    const taken = await store.update({ before, after, actor: { owner: 'run/two' }, because });
    expect(taken.kind).not.toBe('written');
    expect((await store.find({ id: what.id }))?.charge.owner).toBe('run/one');
  });

  test('behaviour: a set that was restored, or lost in a failover, is read anew though its revision is the same', async () => {
    const [here, there] = [await opened(), await opened()];
    const made = storedRoute('GET /restored');
    await here.routes.write([{ kind: 'insert', route: made, key: '/restored' }], { maxRoutes: 100 });
    const routes = await openRoutes({
      ...{
        store: there.routes,
        isShared: true,
        receivers: () => RECEIVERS,
        unknownReceiver: () => 'store',
        methods: () => new Set(['GET']),
      },
      ...{ maxRoutes: 10, clock: systemClock, random: createRandom(), log: silent },
    });
    closing.push(async () => routes.close());
    const amountOf = (): string | undefined => [...routes.all()].find(({ id }) => id === made.id)?.amount;
    expect(amountOf()).toBe(made.amount);
    await server.query(
      `UPDATE tollgate.routes SET amount = '9' WHERE id = '${made.id}'; UPDATE tollgate.changes SET stamp = 'other'; UPDATE tollgate.meta SET stamp = 'other'`,
      name,
    );
    await until('it has the price of the store', async () => amountOf() === '9');
  });

  test('behaviour: a key that one process made is known to another, and one that was revoked is not, within a second', async () => {
    const [here, there] = [await opened(), await opened()];
    const { key, stored } = await createApiKey(
      here.apiKeys,
      { name: 'one', scopes: ['sdk'] },
      { random: createRandom(), now: Date.now },
    );
    const digest = digestKey(key);
    await until('it is known', async () => (await there.apiKeys.find(digest)) !== undefined, 1000);
    expect(await here.apiKeys.revoke(stored.id, '2027-01-01T00:00:00.000Z')).toBe('revoked');
    await until('it is revoked', async () => (await there.apiKeys.find(digest))?.revokedAt !== null, 1000);
    expect(await there.apiKeys.revoke(stored.id, '2027-01-01T00:00:00.000Z')).toBe('already_revoked');
    expect(await there.apiKeys.revoke('nobody', '2027-01-01T00:00:00.000Z')).toBe('unknown');
  });

  test('attack: a statement that was prepared on a small table does not read all of a large one', async () => {
    const own = await freshDatabase();
    const store = await openPostgres({ ...placeOf(own), connections: 1 }, { now: Date.now, log: silent });
    const ledger = ledgerOver(store);
    for (let step = 0; step < 20; step++) {
      const what = fresh();
      await ledger.claim(what, options({ settleVia: 'first' }));
      const event = { kind: 'settled', proof: proofOf(what), leaseMs: LEASE } as const;
      await ledger.advance(what.id, event, { owner: 'run/one', changeId: `change ${++changes}` });
      await ledger.find(what.payment);
    }
    await store.close();
    // A connection tells what it did when it ends.
    const database = new URL(own).pathname.slice(1);
    const scans = await until('it has told', async () => {
      const [row] = await server.query(
        "SELECT seq_scan::int AS read, idx_scan::int AS found FROM pg_stat_user_tables WHERE relname = 'charges'",
        database,
      );
      return Number(row?.['found']) > 0 && row;
    });
    // Each index read it once, when it was made.
    const indexes = await server.query("SELECT 1 FROM pg_indexes WHERE tablename = 'charges'", database);
    expect(scans['read']).toBe(indexes.length);
  });

  test('behaviour: if many start at once on an empty database, one makes the schema, and all are one registry', async () => {
    const empty = placeOf(await freshDatabase());
    const stores = await Promise.all(
      Array.from({ length: 6 }, () => openPostgres(empty, { now: Date.now, log: silent }, { waits: () => undefined })),
    );
    for (const store of stores) closing.push(store.close);
    expect(new Set(stores.map(({ routes }) => routes.registryId)).size).toBe(1);
  });
});

test('attack: a transaction whose COMMIT is answered with another word wrote nothing', async () => {
  const what = claimOf(++n);
  const { charge } = decideClaim(undefined, what, options(), Date.now());
  const insert = toRowInsert({ charge, claim: what, options: options() }, Date.now());
  const sessionThatSays = (word: string): Session => ({
    simple: async (text) => ({ command: text === 'COMMIT' ? word : 'BEGIN', rows: [], count: 0 }),
    query: async ({ text }): Promise<Answer> => {
      const rows = text.includes('SELECT id FROM made') ? [{ id: what.id }] : [{ now: Date.now(), locks: 0 }];
      return { command: 'SELECT', rows, count: 1 };
    },
  });
  const run = (word: string): ReturnType<typeof runBatch> =>
    runBatch(sessionThatSays(word), [{ kind: 'insert', insert }], {
      ...{ sql: createChargeSql('tollgate'), now: Date.now, shift: () => 0, quietUntil: () => undefined, shard: 0 },
      ...{ onClock: () => undefined, settings: () => '' },
    });
  expect(await run('COMMIT')).toEqual([{ kind: 'done', result: undefined }]);
  await expect(run('ROLLBACK')).rejects.toThrow('ROLLBACK');
});
