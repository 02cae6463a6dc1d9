// The store by itself: schema, durability, and that other processes may have the file open.
import { execFileSync } from 'node:child_process';
import { readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createRandom } from '../../src/host/clock.ts';
import { migrateFile, openDatabase, readSchema } from '../../src/registry/store/sqlite/database.ts';
import { openStore, type StoreOptions } from '../../src/registry/store/sqlite/store.ts';
import type { Store } from '../../src/registry/store/ports.ts';
import { createRouteStore } from '../../src/registry/store/sqlite/routes.ts';
import { digestKey } from '../../src/registry/store/sqlite/api-keys.ts';
import { storedRoute as route } from '../cases/routes.ts';
import { temporaryFolder } from './kit.ts';

let folder: string;
let remove: () => void;
let file: string;
const opened: Store[] = [];

beforeEach(() => {
  ({ folder, remove } = temporaryFolder());
  file = join(folder, 'sub', 'tollgate.db');
});
afterEach(() => {
  for (const store of opened.splice(0)) store.close();
  remove();
});

function open(rest: Partial<StoreOptions> = {}): Store {
  const store = openStore(file, { random: createRandom(), now: () => Date.now(), ...rest });
  opened.push(store);
  return store;
}

describe('the schema', () => {
  test('behaviour: an empty file gets the schema once, and a later version brings it up to date', () => {
    expect(migrateFile(file)).toEqual([1]);
    expect(migrateFile(file)).toEqual([]);
    expect(open().routes.head()).toEqual({ revision: 0, stamp: '' });
    for (const store of opened.splice(0)) store.close();
    const said: unknown[] = [];
    const later = [...readSchema(), 'ALTER TABLE charges ADD COLUMN later TEXT'];
    expect(migrateFile(file, (upgrade) => said.push(upgrade), later)).toEqual([2]);
    expect(said).toEqual([{ from: 1, to: 2 }]);
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
    expect(() => migrateFile(text)).toThrow(/cannot be used: file is not a database/);
    expect(readFileSync(text, 'utf8')).toMatch(/^not a database/);
  });

  test('behaviour: only the owner may read the file and its journals', () => {
    const store = open();
    store.routes.insert(route('GET /a'), '/a');
    const modes = readdirSync(join(folder, 'sub')).map((name) => [
      name,
      statSync(join(folder, 'sub', name)).mode & 0o777,
    ]);
    expect(modes.length).toBeGreaterThan(1);
    expect(modes.filter(([, mode]) => mode !== 0o600)).toEqual([]);
  });

  test('behaviour: writes are durable when they return, and the lock is waited for no longer than was said', () => {
    const db = openDatabase(file, 7);
    const pragmas = ['journal_mode', 'synchronous', 'busy_timeout', 'foreign_keys', 'trusted_schema'];
    const values = pragmas.map((name) => Object.values(db.prepare(`PRAGMA ${name}`).get() ?? {})[0]);
    db.close();
    expect(values).toEqual(['wal', 2, 7, 1, 0]);
  });
});

describe('routes', () => {
  test('behaviour: what was written is there after a restart, in its order, with its revision and registry id', () => {
    const first = open();
    first.routes.insert(
      route('GET /a', { name: 'A', description: null, allowAnonymous: false, status: 'paused' }),
      '/a',
    );
    first.routes.insert(route('* /b', { receiverConfigId: 'other', source: 'sdk' }), '/b');
    const before = first.routes.all();
    first.close();
    const second = open();
    expect(second.registryId).toBe(first.registryId);
    expect(second.routes.all()).toEqual(before);
    expect(before.head.revision).toBe(2);
    expect(before.routes.map((each) => each.pattern)).toEqual(['/a', '/b']);
  });

  test('behaviour: reading every route leaves the page cache as large as it was', () => {
    open();
    const db = openDatabase(file, 5);
    try {
      const cacheSize = db.prepare('PRAGMA cache_size');
      const routes = createRouteStore(db, createRandom());
      routes.batch(() => {
        for (let number = 0; number < 100; number++) {
          const one = route(`GET /v1/things/${number} 0.10`, { id: String(number) });
          routes.insert(one, one.pattern);
        }
      });
      const before = cacheSize.get();
      expect(routes.all().routes).toHaveLength(100);
      expect(cacheSize.get()).toEqual(before);
    } finally {
      db.close();
    }
  });

  test('behaviour: a stamp is new with every write, so that a repeated revision is no repeated set', () => {
    const { routes } = open();
    const stamps = ['/a', '/b', '/c'].map((key) => {
      const written = routes.insert(route(`GET ${key}`), key);
      return written.kind === 'written' ? written.head.stamp : '';
    });
    expect(new Set(stamps).size).toBe(3);
    expect(stamps.every((stamp) => stamp.length === 11)).toBe(true);
  });

  test('refuses: a second route with the same method and key, and a failed batch leaves nothing', () => {
    const { routes } = open();
    const one = route('GET /a');
    routes.insert(one, '/a');
    expect(routes.insert(route('GET /A'), '/a')).toEqual({ kind: 'conflict', existing: one });
    const other = route('GET /b');
    routes.insert(other, '/b');
    expect(routes.update({ ...other, pattern: '/a' }, '/a')).toMatchObject({ kind: 'conflict' });
    expect(() =>
      routes.batch(() => {
        routes.insert(route('GET /c'), '/c');
        throw new Error('half way');
      }),
    ).toThrow('half way');
    expect(routes.all().routes).toEqual([one, other]);
    expect(routes.head().revision).toBe(2);
  });

  test('behaviour: a transaction holds the write lock from its start, so that what it read stays true', () => {
    const { routes } = open();
    const other = new DatabaseSync(file);
    routes.batch(() => expect(() => other.exec('BEGIN IMMEDIATE')).toThrow('locked'));
    other.exec('BEGIN IMMEDIATE');
    expect(() => routes.insert(route('GET /a'), '/a')).toThrow('locked');
    other.exec('COMMIT');
    other.close();
    expect(routes.insert(route('GET /a'), '/a').kind).toBe('written');
  });

  test('behaviour: the change log keeps its last changes and says where it does not reach', () => {
    const { routes } = open({ changesKept: 3 });
    for (const key of ['/1', '/2', '/3', '/4', '/5']) routes.insert(route(`GET ${key}`), key);
    expect(routes.changesAfter(5, 10)).toEqual([]);
    expect(routes.changesAfter(2, 10)?.map((change) => change.revision)).toEqual([3, 4, 5]);
    expect(routes.changesAfter(2, 2)?.map((change) => change.revision)).toEqual([3, 4]);
    expect(routes.changesAfter(1, 10)).toBeUndefined();
    expect(routes.changesAfter(6, 10)).toBeUndefined();
    expect(routes.changesAfter(-1, 10)).toBeUndefined();
  });
});

describe('API keys', () => {
  test('behaviour: a key is 256 random bits behind its id, and only its digest is on disk', () => {
    const { apiKeys, close } = open();
    const { key, stored } = apiKeys.create('sidecar', ['ledger', 'sdk']);
    expect(key).toMatch(/^tg_[0-9a-f]{16}_[A-Za-z0-9_-]{43}$/);
    expect(stored).toMatchObject({ name: 'sidecar', scopes: ['sdk', 'ledger'], revokedAt: null });
    expect(apiKeys.list()).toEqual([stored]);
    close();
    const onDisk = readdirSync(join(folder, 'sub')).map((name) => readFileSync(join(folder, 'sub', name), 'latin1'));
    expect(onDisk.join('')).toContain(stored.id);
    expect(onDisk.join('')).not.toContain(key.slice(20));
  });

  test('refuses: no scope, no name, control characters in a name', () => {
    const { apiKeys } = open();
    expect(() => apiKeys.create('x', [])).toThrow('at least one scope');
    expect(() => apiKeys.create('', ['sdk'])).toThrow('1 to 64');
    expect(() => apiKeys.create('a\nb', ['sdk'])).toThrow('1 to 64');
    expect(() => apiKeys.create('x'.repeat(65), ['sdk'])).toThrow('1 to 64');
    expect(apiKeys.create('x'.repeat(64), ['sdk']).stored.name.length).toBe(64);
  });

  test('behaviour: a revocation in another process is seen at once', () => {
    const { apiKeys } = open();
    const { key, stored } = apiKeys.create('sidecar', ['sdk']);
    expect(apiKeys.find(digestKey(key))?.revokedAt).toBeNull();
    const script = `
      import { openStore } from ${JSON.stringify(new URL('../../src/registry/store/sqlite/store.ts', import.meta.url).href)};
      import { randomBytes } from 'node:crypto';
      const store = openStore(process.argv[1], { random: randomBytes, now: Date.now, busyMs: 5000 });
      console.log(store.apiKeys.revoke(process.argv[2]), store.apiKeys.revoke(process.argv[2]), store.apiKeys.revoke('nobody'));
      store.close();`;
    const output = execFileSync(process.execPath, ['--input-type=module', '-e', script, file, stored.id], {
      encoding: 'utf8',
    });
    expect(output.trim()).toBe('revoked already_revoked unknown');
    expect(apiKeys.find(digestKey(key))?.revokedAt).toMatch(/^\d{4}-/);
    expect(apiKeys.list()[0]?.revokedAt).toMatch(/^\d{4}-/);
  });
});
