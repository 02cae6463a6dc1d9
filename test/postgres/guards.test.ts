// What keeps processes on one database from standing in each other's way: locks in one order, short waits, a migration at a
// time, connections that are given up, and a pause after an outage. Each of these was seen to go wrong without its guard.
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { Charge, Claim } from '../../src/domain/payment/charge.ts';
import { decideClaim, presentedBy, type ClaimOptions } from '../../src/domain/payment/claim-policy.ts';
import { createLedger, LedgerUnavailable, type Ledger, type StoredCharge } from '../../src/domain/payment/ledger.ts';
import { transition, type ChargeEvent } from '../../src/domain/payment/transition.ts';
import type { CounterResult } from '../../src/domain/selling/counter.ts';
import { SPELLING } from '../../src/gateway/rails/rails.ts';
import { createRandom } from '../../src/host/clock.ts';
import { toRowChange, toRowInsert } from '../../src/registry/store/charge-values.ts';
import type { ChargesStore, RouteStore, Store, StorePlace } from '../../src/registry/store/ports.ts';
import { runBatch, type BatchCall } from '../../src/registry/store/postgres/charge-batch.ts';
import { createChargeSql } from '../../src/registry/store/postgres/charge-sql.ts';
import { createConnection, type Session } from '../../src/registry/store/postgres/connection.ts';
import { openLinks, type Links } from '../../src/registry/store/postgres/links.ts';
import { openPostgres, postgresPlace, type PostgresStoreOptions } from '../../src/registry/store/postgres/place.ts';
import { claimOf, proofOf } from '../cases/claims.ts';
import { storedRoute } from '../cases/routes.ts';
import { until } from '../support/paid-tollgate.ts';
import { hasPostgres, type PostgresServer } from './server.ts';
import {
  freshDatabase,
  holdTransaction,
  placeOf,
  settingsOf,
  sharedPostgres,
  silent,
  stopSharedPostgres,
} from './store.ts';
import { startTap, type Tap } from './tap.ts';

const LEASE = 60_000;
const DEADLINE = 60_000;
let changes = 0;
let n = 7_000_000;
const fresh = (rest: Parameters<typeof claimOf>[1] = {}): Claim => claimOf(++n, rest);
const options = (rest: Partial<ClaimOptions> = {}): ClaimOptions => ({
  ...{ owner: 'run/one', leaseMs: LEASE, maxUnsettledPerPayer: 100, changeId: `change ${++changes}` },
  ...rest,
});

describe.skipIf(!hasPostgres)('PostgreSQL, and many on it', () => {
  let server: PostgresServer;
  let url: string;
  let name: string;
  const sql = createChargeSql('tollgate');
  const closing: (() => Promise<void>)[] = [];

  beforeAll(async () => {
    server = await sharedPostgres();
    url = await freshDatabase();
    name = new URL(url).pathname.slice(1);
  });
  afterAll(stopSharedPostgres);
  afterEach(async () => {
    for (const close of closing.splice(0).toReversed()) await close();
  });

  type How = PostgresStoreOptions & { readonly through?: Tap; readonly timeoutMs?: number };
  const opened = async ({ through, timeoutMs = DEADLINE, ...rest }: How = {}): Promise<Store> => {
    const place = placeOf(url, through === undefined ? {} : { port: through.port });
    const store = await openPostgres({ ...place, connections: 1, timeoutMs }, { now: Date.now, log: silent }, rest);
    closing.push(store.close);
    return store;
  };
  const tapped = async (): Promise<Tap> => {
    const tap = await startTap(server.port);
    closing.push(tap.close);
    return tap;
  };
  const ledgerOver = ({ charges }: Store): Ledger => createLedger(charges, SPELLING);
  const waiting = async (database = name): Promise<number> => {
    const rows = await server.query(
      `SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = '${database}'`,
    );
    return rows.length;
  };

  describe('batches that are about the same in another order', () => {
    const batch = (session: Session, calls: readonly BatchCall[]): ReturnType<typeof runBatch> =>
      runBatch(session, calls, {
        ...{ sql, now: Date.now, shift: () => 0, quietUntil: () => undefined, shard: 0, onClock: () => undefined },
        // No wait is cut short: what is not sorted waits for ever.
        settings: () => '',
      });
    const insertOf = (claim: Claim): BatchCall => {
      const { charge } = decideClaim(undefined, claim, options(), Date.now());
      return { kind: 'insert', insert: toRowInsert({ charge, claim, options: options() }, Date.now()) };
    };
    const linked = (): Links => {
      const place = { ...placeOf(url), connections: 2, timeoutMs: DEADLINE };
      const links = openLinks(place, {
        ...{ now: Date.now, log: silent, random: createRandom(), prepare: async () => undefined },
      });
      closing.push(links.close);
      return links;
    };
    /** The number that the database knows a payer by. */
    const lockOf = async (claim: Claim): Promise<number> => {
      const keys: number[] = [];
      const told: Session = {
        simple: async (text) => ({ command: text, rows: [], count: 0 }),
        query: async ({ text }, values) => {
          if (text === sql.lock.text) keys.push(...(values[0] as number[]));
          return { command: 'SELECT', rows: [{ id: claim.id, now: 0, locks: 1 }], count: 1 };
        },
      };
      await batch(told, [insertOf(claim)]);
      return keys[0] ?? 0;
    };
    /** Both wait for what `hold` holds, or one for the other; then it is let go. */
    const crossed = async (
      hold: (query: (text: string, values: readonly unknown[]) => Promise<void>) => Promise<void>,
      [here, there]: readonly [readonly BatchCall[], readonly BatchCall[]],
    ): Promise<readonly string[]> => {
      const links = linked();
      const other = await holdTransaction(url);
      await hold(other.query);
      const both = Promise.all(
        [here, there].map(async (calls, index) =>
          links.writers[index]?.use(performance.now() + DEADLINE, (session) => batch(session, calls)),
        ),
      );
      await until('both wait', async () => (await waiting()) === 2);
      await other.end('COMMIT');
      return (await both).flatMap((outcomes) =>
        (outcomes ?? []).map((outcome) => {
          if (outcome.kind !== 'done') return outcome.kind;
          return outcome.result !== undefined && 'kind' in outcome.result ? outcome.result.kind : 'written';
        }),
      );
    };

    test('attack: batches about the same payers in another order do not wait in a circle', async () => {
      await opened();
      const firsts = [fresh(), fresh(), fresh()];
      const keyed = await Promise.all(firsts.map(async (claim) => ({ claim, key: await lockOf(claim) })));
      const sorted = keyed.toSorted((a, b) => a.key - b.key);
      const again = sorted.map(({ claim }) => ({ ...fresh(), payment: { ...claim.payment, unique: `0x${++n}` } }));
      const results = await crossed(
        (query) => query(sql.lock.text, [[sorted[1]?.key]]),
        [sorted.map(({ claim }) => insertOf(claim)), again.map(insertOf).toReversed()],
      );
      expect(results).toEqual(Array(6).fill('written'));
    });

    test('attack: batches about the same charges in another order do not wait in a circle', async () => {
      const store = await opened();
      const claims = [fresh(), fresh(), fresh()];
      for (const claim of claims) await ledgerOver(store).claim(claim, options());
      const actor = { owner: 'run/one' };
      const event: ChargeEvent = { kind: 'settle_started', via: 'first', leaseMs: LEASE };
      const calls = await Promise.all(
        claims.map(async ({ id }): Promise<BatchCall> => {
          const before = await found(store.charges, id);
          const after = must(transition(before.charge, event, actor, Date.now()));
          return {
            kind: 'update',
            change: toRowChange({ before, after, actor, because: { event } }, Date.now()),
            kept: undefined,
          };
        }),
      );
      const middle = claims[1]?.id;
      const results = await crossed(
        (query) => query('SELECT 1 FROM tollgate.charges WHERE id = $1 FOR UPDATE', [middle]),
        [calls, calls.toReversed()],
      );
      expect(results.toSorted()).toEqual(['stale', 'stale', 'stale', 'written', 'written', 'written']);
    });
  });

  test('attack: one who holds a row keeps nobody else waiting, and what needs that row is refused in time', async () => {
    const ledger = ledgerOver(await opened());
    const [made, what, other] = [fresh(), fresh(), fresh()];
    await ledger.claim(made, options());
    const holding = await holdTransaction(url);
    closing.push(() => holding.end('ROLLBACK'));
    await insertLike(holding.query, made, what);
    const [stuck, free] = [ledger.claim(what, options()), ledger.claim(other, options())];
    stuck.catch(() => undefined);
    expect((await free).kind).toBe('claimed');
    await expect(stuck).rejects.toThrow(LedgerUnavailable);
    await holding.end('ROLLBACK');
    expect((await ledger.claim(what, options())).kind).toBe('claimed');
  });

  test('behaviour: what waited too long for a row of somebody else is done again: a count, a route', async () => {
    const { charges, routes } = await opened();
    const window = { scope: 'held', startMs: 0, endMs: Date.now() + LEASE };
    const count = (changeId: string): Promise<readonly CounterResult[]> =>
      charges.counters.change([
        {
          ...{ kind: 'take', ...window, identity: 'one', changeId, limit: 9 },
          ...{ identities: 9, group: null, groupIdentities: 9 },
        },
      ]);
    const write = (path: string): ReturnType<RouteStore['write']> =>
      routes.write([{ kind: 'insert', route: storedRoute(`GET ${path}`), key: path }], { maxRoutes: 9 });
    await Promise.all([count('first'), write('/first')]);
    // The database ends it, as that of a process which is gone: later than a first try, and sooner than a last one.
    const held = await holdTransaction(url);
    await held.query("SET LOCAL idle_in_transaction_session_timeout = '700ms'");
    await held.query('SELECT 1 FROM tollgate.counter_windows, tollgate.meta FOR UPDATE');
    const [counted, written] = await Promise.all([count('second'), write('/second')]);
    expect(counted).toEqual([{ kind: 'counted', used: 2 }]);
    expect(written).toMatchObject({ outcomes: [{ kind: 'written' }] });
  });

  test('attack: a row that another transaction just wrote is met, though the statement that waited for it did not see it', async () => {
    const ledger = ledgerOver(await opened());
    const [made, what] = [fresh(), fresh()];
    await ledger.claim(made, options());
    const holding = await holdTransaction(url);
    closing.push(() => holding.end('ROLLBACK'));
    await insertLike(holding.query, made, what);
    const claimed = ledger.claim(what, options({ owner: 'run/two' }));
    await until('it waits for the row', async () => (await waiting()) > 0);
    await holding.end('COMMIT');
    expect(await claimed).toMatchObject({ kind: 'in_use', charge: { id: `${what.id}x` } });
  });

  test('behaviour: a statement that was prepared before a column had another type is prepared anew', async () => {
    const ledger = ledgerOver(await opened());
    const what = fresh();
    await ledger.claim(what, options());
    await ledger.find(what.payment);
    await server.query(
      `ALTER TABLE tollgate.charges ADD COLUMN later text; ALTER TABLE tollgate.charges ALTER COLUMN request_id TYPE varchar(200)`,
      name,
    );
    expect((await ledger.find(what.payment))?.id).toBe(what.id);
    expect((await ledger.claim(fresh(), options())).kind).toBe('claimed');
  });

  test.each(['DEALLOCATE ALL', 'PREPARE "a statement" AS SELECT 2'])(
    'behaviour: a connection whose prepared statements are not ours any more is given up: %s',
    async (statement) => {
      const link = createConnection({
        ...{ address: placeOf(url).address, timeoutMs: DEADLINE, log: silent, random: createRandom() },
      });
      closing.push(link.close);
      const ask = (first?: string): Promise<unknown> =>
        link.use(performance.now() + DEADLINE, async (session) => {
          if (first !== undefined) await session.simple(first);
          return (await session.query({ name: 'a statement', text: 'SELECT 1 AS one' }, [])).rows[0]?.['one'];
        });
      // Prepared here, or by somebody else on a connection of the pooler's.
      if (statement.startsWith('DEALLOCATE')) expect(await ask()).toBe(1);
      await expect(ask(statement)).rejects.toThrow('prepared statement');
      expect(await ask()).toBe(1);
    },
  );

  test('attack: an address that takes connections and says nothing: calls end in time, and go on when it speaks', async () => {
    const tap = await tapped();
    const ledger = ledgerOver(await opened({ through: tap, timeoutMs: 3000, waits: () => undefined }));
    const served = (): Promise<boolean> =>
      ledger.claim(fresh(), options()).then(
        ({ kind }) => kind === 'claimed',
        () => false,
      );
    await until('it is had', served);
    const taken = new Set<Socket>();
    const silence = createServer((socket) => void taken.add(socket));
    await new Promise<void>((resolve) => silence.listen(0, '127.0.0.1', resolve));
    closing.push(async () => {
      silence.close();
      for (const socket of taken) socket.destroy();
    });
    tap.aim((silence.address() as AddressInfo).port);
    tap.cut();
    await expect(ledger.claim(fresh(), options())).rejects.toThrow(LedgerUnavailable);
    tap.aim(server.port);
    // None of those that were begun meanwhile is served by anybody.
    await until('it is had again', served);
  });

  test('behaviour: if two migrate at once, one waits for the other and finds it done', async () => {
    const empty = await freshDatabase();
    const tap = await tapped();
    const placeAt = (port: number): StorePlace => postgresPlace(settingsOf(empty, { port, timeoutMs: DEADLINE }));
    const holding = tap.holdCommit();
    const first = placeAt(tap.port).migrate();
    const letGo = await holding;
    // Waiting has an end of its own, after which it is tried again.
    const migrate = (): Promise<readonly number[]> =>
      placeAt(server.port)
        .migrate()
        .catch((error: Error) => (error.message.includes('lock timeout') ? migrate() : Promise.reject(error)));
    const second = migrate();
    await until('the second waits', async () => (await waiting(new URL(empty).pathname.slice(1))) === 1);
    letGo();
    const versions = await first;
    expect(versions.slice(0, 2)).toEqual([1, 2]);
    expect(await second).toEqual([]);
  });

  test('attack: after an outage nothing is taken from an owner for one lease, by a payer who comes back neither', async () => {
    const tap = await tapped();
    let shift = 0;
    const here = await opened({ through: tap, shift: () => shift });
    const there = await opened();
    const seen = { lost: 0, takenOver: 0 };
    const observed = ({ charges }: Store): Ledger =>
      createLedger(charges, SPELLING, undefined, {
        lost: () => void seen.lost++,
        takenOver: () => void seen.takenOver++,
      });
    const [back, steady] = [observed(here), observed(there)];
    const [claimed, settling, settled, doubted, early] = [fresh(), fresh(), fresh(), fresh(), fresh()];
    // Their leases are over at once, as after an outage; nobody owns the fourth.
    const advance = (what: Claim, event: ChargeEvent): Promise<unknown> =>
      steady.advance(what.id, event, { owner: 'run/one' });
    for (const what of [claimed, settling, settled, doubted, early]) await steady.claim(what, options({ leaseMs: 1 }));
    for (const what of [settling, settled, doubted])
      await advance(what, { kind: 'settle_started', via: 'v', leaseMs: 1 });
    await advance(settled, { kind: 'settled', proof: proofOf(settled), leaseMs: 1 });
    await advance(doubted, { kind: 'settle_unknown', reason: 'x', lookInMs: 1 });
    const decided = await found(there.charges, early.id);
    expect((await here.charges.find({ id: early.id }))?.charge).toEqual(decided.charge);

    tap.cut();
    await back.findByChargeId(claimed.id);
    const payer = { owner: 'run/two' };
    const take: ChargeEvent = { kind: 'taken_over', leaseMs: LEASE };
    const redeem: ChargeEvent = { kind: 'redeem_started', request: presentedBy(settled), leaseMs: LEASE };
    const running = { kind: 'conflict', because: 'lease_running' };
    expect(await back.claim(claimed, options(payer))).toMatchObject({ kind: 'in_use' });
    expect(await back.claim(settling, options(payer))).toMatchObject({ kind: 'in_use' });
    expect(await back.advance(claimed.id, { ...take, leaseMs: 0 }, payer)).toMatchObject(running);
    expect(await back.advance(settling.id, take, payer)).toMatchObject(running);
    expect(await back.advance(settled.id, redeem, payer)).toMatchObject(running);
    expect(await back.due(9)).toEqual([]);
    // Decided before the outage, and asked for after it.
    const after = must(transition(decided.charge, { ...take, leaseMs: 0 }, payer, Date.now() + LEASE));
    const late = await here.charges.update({ before: decided, after, actor: payer, because: { event: take } });
    expect(late.kind).toBe('stale');
    expect((await back.advance(doubted.id, take, payer)).kind).toBe('ok');
    // One that had its connection all the time waits for nobody.
    expect((await steady.advance(early.id, { ...take, leaseMs: 0 }, payer)).kind).toBe('ok');

    expect(seen).toEqual({ lost: 0, takenOver: 1 });

    shift = 10_000;
    expect((await back.advance(settling.id, take, payer)).kind).toBe('ok');
    expect((await back.advance(settled.id, redeem, payer)).kind).toBe('ok');
    expect(await back.claim(claimed, options(payer))).toMatchObject({ kind: 'claimed' });
    // Who had it goes on, and finds that it is another's.
    for (let steps = 0; steps < 2; steps++)
      expect(
        await steady.advance(settling.id, { kind: 'not_carried_out', reason: 'x' }, { owner: 'run/one' }),
      ).toMatchObject({ because: 'not_owner' });
    expect(seen).toEqual({ lost: 1, takenOver: 4 });
  });

  /** Holds the row of `what` under another id, by a transaction that is not over. */
  async function insertLike(query: (sql: string) => Promise<void>, made: Claim, { id, payment }: Claim): Promise<void> {
    const columns = await server.query(
      `SELECT string_agg(column_name, ',') AS names FROM information_schema.columns WHERE table_schema = 'tollgate'
         AND table_name = 'charges' AND is_generated = 'NEVER' AND column_name NOT IN ('seq', 'id', 'unique_key')`,
      name,
    );
    const names = String(columns[0]?.['names']);
    await query(
      `INSERT INTO tollgate.charges (id, unique_key, ${names}) SELECT '${id}x', '${payment.unique}',
         ${names.replaceAll(/\bpayer\b/g, `'${payment.payer}'`)} FROM tollgate.charges WHERE id = '${made.id}'`,
    );
  }
});

async function found(charges: ChargesStore, id: string): Promise<StoredCharge> {
  const stored = await charges.find({ id });
  if (stored === undefined) throw new Error(`there is no ${id}`);
  return stored;
}

function must(moved: ReturnType<typeof transition>): Charge {
  if (!moved.ok) throw new Error(moved.because);
  return moved.charge;
}
