// The store by itself: schema, durability, and that other processes may have the file open.
import { execFileSync } from 'node:child_process';
import { readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Scope } from '../../src/domain/scope.ts';
import { createRandom } from '../../src/host/clock.ts';
import { migrateFile, openDatabase, readSchema } from '../../src/registry/store/sqlite/database.ts';
import { openStore, type RoutesAndKeys, type StoreOptions } from '../../src/registry/store/sqlite/store.ts';
import { StoreUnavailable, type ApiKeyStore, type NewRoute, type RouteWrite } from '../../src/registry/store/ports.ts';
import { createRouteRows } from '../../src/registry/store/sqlite/route-store.ts';
import { createApiKey, digestKey } from '../../src/registry/auth/api-keys.ts';
import { storedRoute as route } from '../cases/routes.ts';
import { temporaryFolder } from './kit.ts';

let folder: string;
let remove: () => void;
let file: string;
const opened: RoutesAndKeys[] = [];

beforeEach(() => {
  ({ folder, remove } = temporaryFolder());
  file = join(folder, 'sub', 'tollgate.db');
});
afterEach(() => {
  for (const store of opened.splice(0)) store.close();
  remove();
});

function open(rest: Partial<StoreOptions> = {}): RoutesAndKeys {
  const store = openStore(file, { random: createRandom(), ...rest });
  opened.push(store);
  return store;
}

const create = (store: ApiKeyStore, name: string, scopes: readonly Scope[]): ReturnType<typeof createApiKey> =>
  createApiKey(store, { name, scopes }, { random: createRandom(), now: Date.now });

describe('the schema', () => {
  test('behaviour: an empty file gets the schema once, and a later version brings it up to date', async () => {
    const newest = readSchema().length;
    expect(migrateFile(file)).toEqual(readSchema().map((_, index) => index + 1));
    expect(migrateFile(file)).toEqual([]);
    expect((await open().routes.load()).head).toEqual({ revision: 0, stamp: '' });
    for (const store of opened.splice(0)) store.close();
    const said: unknown[] = [];
    const later = [...readSchema(), 'ALTER TABLE charges ADD COLUMN later TEXT'];
    expect(migrateFile(file, (upgrade) => said.push(upgrade), later)).toEqual([newest + 1]);
    expect(said).toEqual([{ from: newest, to: newest + 1 }]);
    expect(migrateFile(file, (upgrade) => said.push(upgrade), later)).toEqual([]);
    expect(() => migrateFile(file)).toThrow('newer version');
  });

  test('refuses: a database of a newer version, with what to do, and leaves it as it was', () => {
    migrateFile(file);
    const db = new DatabaseSync(file);
    db.exec('PRAGMA user_version = 99; PRAGMA wal_checkpoint(TRUNCATE)');
    db.close();
    const before = readFileSync(file);
    expect(() => open()).toThrow(/newer version of Tollgate \(schema 99, this version knows \d+\).*restore a backup/);
    expect(readFileSync(file)).toEqual(before);
  });

  test('refuses: a database of another program, and a file that is no database', () => {
    migrateFile(file);
    const other = join(folder, 'other.db');
    const db = new DatabaseSync(other);
    db.exec('CREATE TABLE theirs (a)');
    db.close();
    expect(() => migrateFile(other)).toThrow('another program');
    const text = join(folder, 'notes.txt');
    writeFileSync(text, 'not a database, but long enough to look at '.repeat(50));
    expect(() => migrateFile(text)).toThrow(/is damaged \(file is not a database\)\. Restore it from a backup/);
    expect(readFileSync(text, 'utf8')).toMatch(/^not a database/);
  });

  test('behaviour: only its owner may read the registry’s file and its journals', async () => {
    const one: RouteWrite = { kind: 'insert', route: route('GET /a'), key: '/a' };
    await open().routes.write([one], { maxRoutes: 10 });
    const modes = readdirSync(join(folder, 'sub')).map((name) => [
      name,
      statSync(join(folder, 'sub', name)).mode & 0o777,
    ]);
    expect(modes.length).toBeGreaterThan(1);
    expect(modes.filter(([, mode]) => mode !== 0o600)).toEqual([]);
  });

  test('behaviour: writes of the store are durable when they return, and its lock is waited for no longer than was said', () => {
    const db = openDatabase(file, 7);
    const pragmas = ['journal_mode', 'synchronous', 'busy_timeout', 'foreign_keys', 'trusted_schema'];
    const values = pragmas.map((name) => Object.values(db.prepare(`PRAGMA ${name}`).get() ?? {})[0]);
    db.close();
    expect(values).toEqual(['wal', 2, 7, 1, 0]);
  });
});

describe('routes', () => {
  const insert = (one: NewRoute): RouteWrite => ({ kind: 'insert', route: one, key: one.pattern });

  test('behaviour: routes that were written are there after a restart, in their order, with their revision and registry id', async () => {
    const first = open();
    const writes = [
      insert(route('GET /a', { name: 'A', description: null, allowAnonymous: false, status: 'paused' })),
      insert(route('* /b', { receiverConfigId: 'other', source: 'sdk' })),
    ];
    await first.routes.write(writes, { maxRoutes: 10 });
    const before = await first.routes.load();
    first.close();
    const second = open();
    expect(second.routes.registryId).toBe(first.routes.registryId);
    expect(await second.routes.load()).toEqual(before);
    expect(before.head.revision).toBe(2);
    expect(before.routes.map((each) => each.pattern)).toEqual(['/a', '/b']);
  });

  test('behaviour: reading every route leaves the page cache as large as it was', () => {
    open();
    const db = openDatabase(file, 5);
    try {
      const cacheSize = db.prepare('PRAGMA cache_size');
      const routes = createRouteRows(db, createRandom(), { addAudit: () => undefined });
      const many = Array.from({ length: 100 }, (_, n) => insert(route(`GET /v1/things/${n} 0.10`, { id: String(n) })));
      routes.write(many, { maxRoutes: 1000 });
      const before = cacheSize.get();
      expect(routes.load().routes).toHaveLength(100);
      expect(cacheSize.get()).toEqual(before);
    } finally {
      db.close();
    }
  });

  test('behaviour: a transaction holds the write lock from its start, so that what it read stays true', async () => {
    const { routes } = open();
    const other = new DatabaseSync(file);
    other.exec('BEGIN IMMEDIATE');
    let written = false;
    const writing = routes.write([insert(route('GET /a'))], { maxRoutes: 10 }).finally(() => (written = true));
    expect((await routes.load()).routes).toEqual([]);
    expect(written).toBe(false);
    other.exec('COMMIT');
    other.close();
    expect(await writing).toMatchObject({ outcomes: [{ kind: 'written', revision: 1 }] });
  });

  test('refuses: a batch that is all or nothing leaves nothing where one of it cannot be written', async () => {
    const { routes } = open();
    const twice = [insert(route('GET /c')), insert(route('GET /c'))];
    await expect(routes.write(twice, { maxRoutes: 10, ifRevision: 0 })).rejects.toThrow('not written');
    expect(await routes.load()).toEqual({ head: { revision: 0, stamp: '' }, routes: [] });
  });

  test('behaviour: a store that was closed is unavailable', async () => {
    const { routes, apiKeys, close } = open();
    close();
    await expect(routes.load()).rejects.toThrow(StoreUnavailable);
    await expect(apiKeys.list()).rejects.toThrow(StoreUnavailable);
  });
});

describe('API keys', () => {
  test('behaviour: a key is 256 random bits behind its id, and only its digest is on disk', async () => {
    const { apiKeys, close } = open();
    const { key, stored } = await create(apiKeys, 'sidecar', ['ledger', 'sdk']);
    expect(key).toMatch(/^tg_[0-9a-f]{16}_[A-Za-z0-9_-]{43}$/);
    expect(stored).toMatchObject({ name: 'sidecar', scopes: ['sdk', 'ledger'], revokedAt: null });
    expect(await apiKeys.list()).toEqual([stored]);
    close();
    const onDisk = readdirSync(join(folder, 'sub')).map((name) => readFileSync(join(folder, 'sub', name), 'latin1'));
    expect(onDisk.join('')).toContain(stored.id);
    expect(onDisk.join('')).not.toContain(key.slice(20));
  });

  test('refuses: a key without a scope or a name, and control characters in a name', async () => {
    const { apiKeys } = open();
    await expect(create(apiKeys, 'x', [])).rejects.toThrow('at least one scope');
    await expect(create(apiKeys, '', ['sdk'])).rejects.toThrow('1 to 64');
    await expect(create(apiKeys, 'a\nb', ['sdk'])).rejects.toThrow('1 to 64');
    await expect(create(apiKeys, 'x'.repeat(65), ['sdk'])).rejects.toThrow('1 to 64');
    expect((await create(apiKeys, 'x'.repeat(64), ['sdk'])).stored.name.length).toBe(64);
  });

  test('behaviour: a revocation in another process is seen at once', async () => {
    const { apiKeys } = open();
    const { key, stored } = await create(apiKeys, 'sidecar', ['sdk']);
    expect((await apiKeys.find(digestKey(key)))?.revokedAt).toBeNull();
    const script = `
      import { openStore } from ${JSON.stringify(new URL('../../src/registry/store/sqlite/store.ts', import.meta.url).href)};
      import { randomBytes } from 'node:crypto';
      const store = openStore(process.argv[1], { random: randomBytes, busyMs: 5000 });
      const revoke = (id) => store.apiKeys.revoke(id, new Date().toISOString());
      console.log(await revoke(process.argv[2]), await revoke(process.argv[2]), await revoke('nobody'));
      store.close();`;
    const output = execFileSync(process.execPath, ['--input-type=module', '-e', script, file, stored.id], {
      encoding: 'utf8',
    });
    expect(output.trim()).toBe('revoked already_revoked unknown');
    expect((await apiKeys.find(digestKey(key)))?.revokedAt).toMatch(/^\d{4}-/);
    expect((await apiKeys.list())[0]?.revokedAt).toMatch(/^\d{4}-/);
  });
});
