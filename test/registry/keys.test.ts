// API keys over HTTP, over both kinds of store: made, listed, used and revoked by people, and by no key.
import { join } from 'node:path';
import { SignJWT } from 'jose';
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createRandom } from '../../src/host/clock.ts';
import type { Store } from '../../src/registry/store/ports.ts';
import { openStore } from '../../src/registry/store/sqlite/store.ts';
import { hasPostgres } from '../postgres/server.ts';
import { freshDatabase, openTestStore, stopSharedPostgres } from '../postgres/store.ts';
import { FEED, LEDGER_KEY, SDK_KEY, SECRET, startRegistry, temporaryFolder, type Kit, type Reply } from './kit.ts';

const KEYS = '/v1/api-keys';
type Served = Pick<Store, 'routes' | 'apiKeys' | 'desk' | 'isShared'>;
type Opened = { readonly store: Served; readonly close: () => void | Promise<void> };
/** Two processes on one store. */
type OpenTwo = () => Promise<readonly Opened[]>;

const IMPLEMENTATIONS: readonly (readonly [string, OpenTwo])[] = [
  [
    'SQLite',
    async () => {
      const { folder, remove } = temporaryFolder();
      return [remove, () => undefined].map((last) => {
        const store = openStore(join(folder, 'tollgate.db'), { random: createRandom(), busyMs: 5_000 });
        return { store: { ...store, isShared: false }, close: () => (store.close(), last()) };
      });
    },
  ],
  ...(hasPostgres
    ? [
        [
          'PostgreSQL',
          async () => {
            const url = await freshDatabase();
            const stores = [await openTestStore(url), await openTestStore(url)];
            return stores.map((store) => ({ store, close: store.close }));
          },
        ] as const,
      ]
    : []),
];

type Listed = { data: Record<string, unknown>[] };
const listed = (reply: Reply): Record<string, unknown>[] => (JSON.parse(reply.body.toString()) as Listed).data;
const bodyOf = (reply: Reply): Record<string, unknown> => JSON.parse(reply.body.toString()) as Record<string, unknown>;

afterAll(stopSharedPostgres);

describe.each(IMPLEMENTATIONS)('API keys over HTTP: %s', (_name, openTwo) => {
  let opened: readonly Opened[] = [];
  let kits: Kit[] = [];
  let kit: Kit;
  let other: Kit;
  beforeEach(async () => {
    opened = await openTwo();
    kits = await Promise.all(opened.map(({ store }) => startRegistry({ store })));
    [kit, other] = kits as [Kit, Kit];
  });
  afterEach(async () => {
    for (const each of kits) await each.close();
    for (const { close } of opened.toReversed()) await close();
  });
  const make = async (name: string, scopes = ['sdk']): Promise<{ id: string; key: string }> => {
    const { id, key } = bodyOf(await kit.dashboard('POST', KEYS, { body: { name, scopes } }));
    return { id: String(id), key: String(key) };
  };

  test('behaviour: a key is told once, works at once, is listed with who made it and when it was used, and is revoked at once in every process', async () => {
    const made = await kit.dashboard('POST', KEYS, { body: { name: 'eu', scopes: ['ledger', 'sdk'] } });
    expect([made.status, made.headers['cache-control']]).toEqual([201, 'no-store']);
    const { key, ...view } = bodyOf(made);
    expect(view).toMatchObject({ name: 'eu', scopes: ['sdk', 'ledger'], where: 'store', created_by: 'tollgate-cli' });
    expect(view).toMatchObject({ last_used_at: null, revoked_at: null });
    expect(key).toMatch(new RegExp(`^tg_${String(view['id'])}_[\\w-]{43}$`));
    await expect.poll(async () => (await other.ask('GET', FEED, { auth: String(key) })).status).toBe(200);
    const hour = new Date(Math.floor(other.clock.now() / 3_600_000) * 3_600_000).toISOString();
    await expect
      .poll(async () => listed(await kit.dashboard('GET', KEYS)).at(-1))
      .toEqual({ ...view, last_used_at: hour });
    const all = await kit.dashboard('GET', KEYS);
    for (const secret of [String(key), SDK_KEY, LEDGER_KEY]) expect(all.body.toString()).not.toContain(secret);

    const gone = `${KEYS}/${String(view['id'])}`;
    expect((await kit.dashboard('DELETE', gone)).status).toBe(204);
    expect((await kit.ask('GET', FEED, { auth: String(key) })).status).toBe(401);
    await expect.poll(async () => (await other.ask('GET', FEED, { auth: String(key) })).status).toBe(401);
    expect((await other.dashboard('DELETE', gone)).status).toBe(204);
    expect(listed(await kit.dashboard('GET', KEYS)).at(-1)).toMatchObject({ revoked_at: expect.any(String) });
    for (const unknown of ['0000000000000000', 'app', '%2e%2e'])
      expect((await kit.dashboard('DELETE', `${KEYS}/${unknown}`)).status).toBe(404);
  });

  test('behaviour: keys of the configuration are listed without an id, with the hour of their last use', async () => {
    await kit.sdk('GET', FEED);
    await expect
      .poll(async () => listed(await other.dashboard('GET', KEYS)).map((key) => [key['name'], key['where'], key['id']]))
      .toEqual([
        ['app', 'configuration', null],
        ['sidecar-ledger', 'configuration', null],
      ]);
    await expect
      .poll(async () => listed(await other.dashboard('GET', KEYS)).map((key) => key['last_used_at']))
      .toEqual([expect.stringMatching(/:00:00\.000Z$/), null]);
  });

  test('refuses: names and scopes that no key has, and the 201st live key, until one is revoked', async () => {
    const bad = [
      { name: '', scopes: ['sdk'] },
      { name: 'a', scopes: [] },
      { name: 'a', scopes: ['admin'] },
    ];
    for (const body of [...bad, { name: 'ü', scopes: ['sdk'] }, { name: 'a', scopes: ['sdk'], id: 'x' }])
      expect((await kit.dashboard('POST', KEYS, { body })).status).toBe(422);
    const first = await make('k0');
    for (let index = 1; index < 199; index += 1) await kit.createKey(`k${index}`, ['sdk']);
    // Two processes have room for one more.
    const body = { name: 'last', scopes: ['sdk'] };
    const raced = await Promise.all([kit, other, kit].map((each) => each.dashboard('POST', KEYS, { body })));
    expect(raced.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([201, 409, 409]);
    expect(raced.find(({ status }) => status === 409)?.json).toMatchObject({ code: 'too_many_keys' });
    expect((await kit.dashboard('DELETE', `${KEYS}/${first.id}`)).status).toBe(204);
    expect((await kit.dashboard('POST', KEYS, { body })).status).toBe(201);
  });

  test('attack: a viewer sees the keys, and makes and revokes none', async () => {
    const { id } = await make('one');
    const auth = await new SignJWT({ tollgate_role: 'viewer' })
      .setProtectedHeader({ alg: 'HS256' })
      .setIssuer('tollgate')
      .setAudience('dashboard')
      .setExpirationTime('1h')
      .sign(Buffer.from(SECRET));
    expect((await kit.ask('GET', KEYS, { auth })).status).toBe(200);
    const refused = [
      await kit.ask('POST', KEYS, { auth, body: { name: 'mine', scopes: ['sdk'] } }),
      await kit.ask('DELETE', `${KEYS}/${id}`, { auth }),
    ];
    expect(refused.map(({ status, json }) => [status, json.code])).toEqual([
      [403, 'scope_insufficient'],
      [403, 'scope_insufficient'],
    ]);
    expect(listed(await kit.dashboard('GET', KEYS)).at(-1)).toMatchObject({ id, revoked_at: null });
  });

  test('attack: an API key of any scope makes, lists and revokes no key', async () => {
    const { id, key } = await make('mighty', ['sdk', 'ledger']);
    for (const auth of [key, SDK_KEY, LEDGER_KEY]) {
      const body = { name: 'mine', scopes: ['sdk'] };
      expect((await kit.ask('POST', KEYS, { auth, body })).status).toBe(401);
      expect((await kit.ask('GET', KEYS, { auth })).status).toBe(401);
      expect((await kit.ask('DELETE', `${KEYS}/${id}`, { auth })).status).toBe(401);
    }
    expect(listed(await kit.dashboard('GET', KEYS)).map(({ name }) => name)).toEqual([
      'app',
      'sidecar-ledger',
      'mighty',
    ]);
  });
});
