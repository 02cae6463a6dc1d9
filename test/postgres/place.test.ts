// PostgreSQL as a place for a store: what it is made of, who may use it, and what is taken away in time.
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { createLedger } from '../../src/domain/payment/ledger.ts';
import { SPELLING } from '../../src/gateway/rails/rails.ts';
import type { ChargesStore, CommonSettings, Store, StorePlace } from '../../src/registry/store/ports.ts';
import { openPostgres, postgresPlace } from '../../src/registry/store/postgres/place.ts';
import { digestsOf } from '../../src/compose/common-settings.ts';
import type { RegistryConfig } from '../../src/config/config.ts';
import type { WebhookConfig } from '../../src/config/webhooks.ts';
import type { Receiver } from '../../src/domain/payment/offer.ts';
import { PRUNE_LEASE_MS } from '../../src/registry/store/postgres/charge-prune.ts';
import { createLog } from '../../src/host/log.ts';
import { createRandom } from '../../src/host/clock.ts';
import { claimOf, proofOf } from '../cases/claims.ts';
import { temporaryFolder } from '../support/process.ts';
import { until } from '../support/paid-tollgate.ts';
import { hasPostgres } from './server.ts';
import {
  freshDatabase,
  openTestStore,
  placeOf,
  settingsOf,
  sharedPostgres,
  silent,
  stopSharedPostgres,
} from './store.ts';

const LEASE = 60_000;
const DAY = 86_400_000;

describe.skipIf(!hasPostgres)('a place on PostgreSQL', () => {
  afterAll(stopSharedPostgres);

  const command = { random: createRandom(), now: Date.now, log: silent, as: 'command' } as const;
  /** With this sentence, once the machine leaves it the time to say so. */
  const refuses = (call: () => Promise<unknown>, sentence: string): Promise<true> =>
    until(`it is refused: ${sentence}`, () =>
      call().then(
        () => Promise.reject(new Error('it was not refused')),
        (error: Error) => error.message.includes(sentence) && true,
      ),
    );
  const nameOf = (url: string): string => new URL(url).pathname.slice(1);
  const claimAt = (store: ChargesStore, n: number): Promise<{ readonly kind: string }> =>
    createLedger(store, SPELLING).claim(claimOf(n), { owner: 'run/one', leaseMs: LEASE, maxUnsettledPerPayer: 9 });

  test('behaviour: a look at an empty database makes nothing; migrate makes the schema, once', async () => {
    const url = await freshDatabase();
    const place = postgresPlace(settingsOf(url));
    expect(await place.readRoutes()).toEqual([]);
    const schemas = "SELECT 1 FROM pg_namespace WHERE nspname = 'tollgate'";
    const server = await sharedPostgres();
    expect(await server.query(schemas, nameOf(url))).toEqual([]);
    const applied = await place.migrate();
    expect(applied).toEqual(applied.map((_, index) => index + 1));
    expect(applied.length).toBeGreaterThan(1);
    expect(await place.migrate()).toEqual([]);
    expect(await place.readRoutes()).toEqual([]);
  });

  test.each([
    ['by itself', {}],
    ['behind a pooler', { pooler: true }],
    ['in another schema', { schema: 'elsewhere' }],
    ['with one connection', { connections: 1 }],
  ] as const)('behaviour: a place has charges alone, as a sidecar needs them: %s', async (_, rest) => {
    const place: StorePlace = postgresPlace(settingsOf(await freshDatabase(), rest));
    const store = place.openCharges({ now: Date.now, log: silent });
    await store.check();
    expect((await claimAt(store, 1)).kind).toBe('claimed');
    expect((await store.countByState()).claimed).toBe(1);
    await store.close();
    await expect(claimAt(store, 2)).rejects.toThrow();
  });

  test('refuses: a place whose schema is of a newer version, for a command and a server', async () => {
    const url = await freshDatabase();
    const place = postgresPlace(settingsOf(url));
    await place.migrate();
    await (
      await sharedPostgres()
    ).query('UPDATE tollgate.meta SET schema_version = 99, least_reader = 99', nameOf(url));
    for (const as of ['command', 'server'] as const)
      await expect(place.open({ ...command, as })).rejects.toThrow('written by a newer version of Tollgate (schema 99');
  });

  test('refuses: a user who may not make the schema; one who may read and write it is served', async () => {
    const url = await freshDatabase();
    const server = await sharedPostgres();
    await server.query('CREATE ROLE clerk LOGIN', nameOf(url));
    const asClerk = postgresPlace(settingsOf(url, { user: 'clerk', timeoutMs: 1000 }));
    await refuses(() => asClerk.open(command), 'run `tollgate migrate` as one who may');
    await refuses(asClerk.migrate, 'may not make the schema tollgate');
    await postgresPlace(settingsOf(url)).migrate();
    await server.query(
      'GRANT USAGE ON SCHEMA tollgate TO clerk; GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA tollgate TO clerk',
      nameOf(url),
    );
    const store = await asClerk.open(command);
    expect((await claimAt(store.charges, 1)).kind).toBe('claimed');
    await store.close();
  });

  test('behaviour: a server whose user may not make the schema waits, says again and again what is missing, and goes on', async () => {
    const url = await freshDatabase();
    const server = await sharedPostgres();
    await server.query('CREATE ROLE waiter LOGIN', nameOf(url));
    const told: string[] = [];
    const log = createLog('error', (line) => void told.push(line), Date.now);
    const place = placeOf(url, { user: 'waiter' });
    const opening = openPostgres(
      { ...place, timeoutMs: 2000 },
      { now: Date.now, log },
      { waits: () => undefined, tellMs: 1 },
    );
    const sentence = 'this user may not make or read the schema tollgate: run `tollgate migrate`';
    await until('it is told twice', async () => told.filter((line) => line.includes(sentence)).length >= 2);
    await postgresPlace(settingsOf(url)).migrate();
    await server.query(
      'GRANT USAGE ON SCHEMA tollgate TO waiter; GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA tollgate TO waiter',
      nameOf(url),
    );
    const store = await opening;
    expect((await store.routes.load()).routes).toEqual([]);
    await store.close();
  });

  test('behaviour: a newer schema that this version may use is used, and left as it is', async () => {
    const url = await freshDatabase();
    const place = postgresPlace(settingsOf(url));
    await place.migrate();
    const server = await sharedPostgres();
    await server.query(
      'UPDATE tollgate.meta SET schema_version = 99; ALTER TABLE tollgate.charges ADD COLUMN newer text',
      nameOf(url),
    );
    expect([await place.isMigrated(), await place.migrate()]).toEqual([true, []]);
    const store = await place.open(command);
    expect((await claimAt(store.charges, 1)).kind).toBe('claimed');
    await store.close();
    expect(await server.query('SELECT schema_version FROM tollgate.meta', nameOf(url))).toEqual([
      { schema_version: 99 },
    ]);
  });

  test('behaviour: a password in a file is read again for every connection', async () => {
    const server = await sharedPostgres();
    const url = await freshDatabase();
    const access = path.join(server.folder, 'pg_hba.conf');
    writeFileSync(access, `host all locked 127.0.0.1/32 scram-sha-256\n${readFileSync(access, 'utf8')}`);
    await server.query('SELECT pg_reload_conf()');
    await server.query("CREATE ROLE locked LOGIN SUPERUSER PASSWORD 'first'");
    const { write, remove } = temporaryFolder();
    const file = write('password', 'first\n');
    const place = postgresPlace(settingsOf(url, { user: 'locked', password: { file } }));
    const { charges, close } = await place.open(command);
    expect((await claimAt(charges, 1)).kind).toBe('claimed');
    write('password', 'second');
    await server.query("ALTER ROLE locked PASSWORD 'second'");
    await server.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'locked'");
    expect((await claimAt(charges, 2)).kind).toBe('claimed');
    await close();
    const wrong = postgresPlace(settingsOf(url, { user: 'locked', password: { value: 'third' }, timeoutMs: 1000 }));
    await refuses(() => wrong.open(command), 'password authentication failed');
    remove();
  });

  test('behaviour: one of two processes takes away charges that are over, and the other when that one comes no more', async () => {
    const url = await freshDatabase();
    let shift = 0;
    const two = [await openTestStore(url, { shift: () => shift }), await openTestStore(url, { shift: () => shift })];
    const [one, other] = two.map(({ charges }) => charges) as [ChargesStore, ChargesStore];
    const release = async (n: number): Promise<void> => {
      await claimAt(one, n);
      await createLedger(one, SPELLING).advance(claimOf(n).id, { kind: 'released', reason: 'x' }, { owner: 'run/one' });
    };
    const prune = async (store: ChargesStore): Promise<number> => {
      const now = store.now() + DAY;
      await store.prune({ closedMs: now, releasedMs: now, answersMs: now }, 9);
      return (await store.countByState()).released;
    };
    for (const n of [1, 2]) await release(n);
    expect(await prune(one)).toBe(0);
    await release(3);
    expect(await prune(other)).toBe(1);
    expect(await prune(one)).toBe(0);
    await release(4);
    shift = PRUNE_LEASE_MS + 1000;
    expect(await prune(other)).toBe(0);
    await release(5);
    expect(await prune(one)).toBe(1);
    await Promise.all(two.map((store) => store.close()));
  });

  test('behaviour: an answer of 1 MiB is kept, and comes back as it was', async () => {
    const store = await openTestStore(await freshDatabase());
    const ledger = createLedger(store.charges, SPELLING);
    expect(ledger.answerLimitBytes).toBe(1_048_576);
    const [what, actor] = [claimOf(1), { owner: 'run/one' }];
    await claimAt(store.charges, 1);
    await ledger.advance(what.id, { kind: 'settle_started', via: 'v', leaseMs: LEASE }, actor);
    await ledger.advance(what.id, { kind: 'settled', proof: proofOf(what), leaseMs: LEASE }, actor);
    const body = Uint8Array.from({ length: ledger.answerLimitBytes }, (_, at) => at % 251);
    const answer = { status: 200, headers: ['A', 'b'], body };
    await ledger.advance(what.id, { kind: 'answer_kept', answer, headSent: false }, actor);
    const kept = (await ledger.findByChargeId(what.id))?.answer;
    expect(Buffer.compare(Buffer.from(kept?.body ?? []), body)).toBe(0);
    await store.close();
  });

  test('behaviour: registries with other receivers, API keys or webhooks hear of each other, once', async () => {
    const url = await freshDatabase();
    const [one, other] = [await openTestStore(url), await openTestStore(url)];
    const heard: string[] = [];
    const share = async (store: Store, who: string, receivers: string, keys: string, webhooks = 'w'): Promise<void> =>
      store.share?.({ receivers, api_keys: keys, webhooks }, (setting) => void heard.push(`${who} ${setting}`));
    await share(one, 'one', 'a', 'k');
    await share(other, 'other', 'a', 'k');
    expect(heard).toEqual([]);
    await share(other, 'other', 'a', 'l');
    await until('the one hears of it', async () => heard.length > 0);
    expect(heard).toEqual(['one api_keys']);
    // Its own word from before is no other's.
    await share(one, 'one', 'b', 'k');
    await until('the other hears of both', async () => heard.length === 4);
    expect(heard.slice(1).toSorted()).toEqual(['one api_keys', 'other api_keys', 'other receivers']);
    await share(other, 'other', 'b', 'k');
    heard.length = 0;
    await share(other, 'other', 'b', 'k', 'v');
    await until('the one hears of the webhooks', async () => heard.length > 0);
    expect(heard).toEqual(['one webhooks']);
    await Promise.all([one.close(), other.close()]);
  });

  test('behaviour: digests of settings say where money goes, who is let in and who is told, in whatever order', () => {
    const way = (payTo: string): Receiver['ways'][number] =>
      ({ way: { payTo }, facilitators: [{ url: payTo }] }) as unknown as Receiver['ways'][number];
    const receiver = (id: string, payTo: string): Receiver =>
      ({ id, currencies: ['USD'], settle: 'auto', ways: [way(payTo)] }) as const;
    const hook = (id: string, more: Partial<WebhookConfig> = {}): WebhookConfig => ({
      ...{
        id,
        url: 'https://hooks.example.com/',
        secrets: ['one', 'two'],
        events: ['charge.settled', 'charge.failed'],
      },
      ...{ timeoutMs: 15_000, allowPrivate: false },
      ...more,
    });
    const digests = (
      receivers: readonly Receiver[],
      keys: readonly string[],
      webhooks: readonly WebhookConfig[] = [],
    ): CommonSettings =>
      digestsOf({ receivers, webhooks: [...webhooks] }, {
        apiKeys: keys.map((key) => ({ name: key, key, scopes: ['sdk'] })),
      } as unknown as RegistryConfig);
    const [a, b] = [receiver('a', '0x1'), receiver('b', '0x2')];
    const before = digests([a, b], ['k', 'l']);
    expect(digests([b, a], ['l', 'k'])).toEqual(before);
    expect(digests([receiver('a', '0x3'), b], ['k', 'l'])).toMatchObject({ api_keys: before.api_keys });
    expect(digests([receiver('a', '0x3'), b], ['k', 'l']).receivers).not.toBe(before.receivers);
    expect(digests([a, b], ['k']).api_keys).not.toBe(before.api_keys);
    const told = (...all: readonly WebhookConfig[]): string => digests([a, b], ['k', 'l'], all).webhooks;
    const [c, d] = [hook('c'), hook('d')];
    const reversed = hook('d', { secrets: d.secrets.toReversed(), events: d.events.toReversed() });
    expect(told(reversed, c)).toBe(told(c, d));
    for (const other of [
      ...[[], [c], [c, hook('e')], [c, hook('d', { url: 'https://hooks.example.com/d' })]],
      ...[
        [c, hook('d', { secrets: ['one'] })],
        [c, hook('d', { events: ['charge.settled'] })],
      ],
      ...[
        [c, hook('d', { timeoutMs: 1000 })],
        [c, hook('d', { allowPrivate: true })],
      ],
    ])
      expect(told(...other)).not.toBe(told(c, d));
    expect(digests([a, b], ['k', 'l'], [c])).toEqual({ ...before, webhooks: told(c) });
    expect(told(c)).toMatch(/^[0-9a-f]{64}$/);
  });

  test('refuses: a place whose database is not there', async () => {
    const nowhere = postgresPlace(settingsOf('postgres://tollgate@127.0.0.1:1/x', { timeoutMs: 1000 }));
    await refuses(() => nowhere.open(command), 'ECONNREFUSED');
    await refuses(nowhere.readRoutes, 'ECONNREFUSED');
  });

  test('behaviour: charges that are over are taken away in their time, and counted no more; owed ones stay', async () => {
    let shift = 0;
    const store = await openTestStore(await freshDatabase(), { shift: () => shift });
    const ledger = createLedger(store.charges, SPELLING);
    const options = { owner: 'run/one', leaseMs: LEASE, maxUnsettledPerPayer: 100 };
    const actor = { owner: 'run/one' };
    const claims = Array.from({ length: 8 }, (_, n) =>
      claimOf(n, { deadline: BigInt(Math.ceil(Date.now() / 1000) + 300) }),
    );
    for (const what of claims) await ledger.claim(what, options);
    for (const { id } of claims.slice(0, 2)) await ledger.advance(id, { kind: 'released', reason: 'x' }, actor);
    for (const what of claims.slice(2, 7)) {
      await ledger.advance(what.id, { kind: 'settle_started', via: 'v', leaseMs: LEASE }, actor);
      await ledger.advance(what.id, { kind: 'settled', proof: proofOf(what), leaseMs: LEASE }, actor);
    }
    for (const { id } of claims.slice(2, 5)) await ledger.advance(id, { kind: 'delivered', partial: false }, actor);
    const answer = { status: 200, headers: ['A', 'b'], body: Uint8Array.of(1, 2) };
    await ledger.advance(claims[5]!.id, { kind: 'answer_kept', answer, headSent: true }, actor);
    await ledger.advance(claims[6]!.id, { kind: 'answer_kept', answer, headSent: false }, actor);
    expect(await store.charges.countByState()).toMatchObject({ released: 2, delivered: 3, settled: 2, claimed: 1 });

    const prune = async (limit: number): Promise<void> => {
      const now = store.charges.now();
      const before = { closedMs: now - 30 * DAY, releasedMs: now - 2 * DAY, answersMs: now - DAY };
      for (let rounds = 0; rounds < 20 && (await store.charges.prune(before, limit)); rounds++);
    };
    await prune(2);
    expect(await store.charges.countByState()).toMatchObject({ released: 2, delivered: 3, settled: 2, claimed: 1 });
    shift = 3 * DAY;
    await prune(2);
    // Its client had the head of one, and can fetch no more of it.
    expect(await store.charges.countByState()).toMatchObject({ released: 0, delivered: 4, settled: 1, claimed: 1 });
    expect((await ledger.findByChargeId(claims[6]!.id))?.answer).toBeNull();
    expect((await store.charges.list({ limit: 9, owed: true })).charges.map(({ id }) => id)).toEqual([claims[6]!.id]);
    shift = 60 * DAY;
    await prune(2);
    expect(await store.charges.countByState()).toMatchObject({ released: 0, delivered: 0, settled: 1, claimed: 1 });
    expect((await store.charges.list({ limit: 9 })).charges).toHaveLength(2);
    await store.close();
  });
});
