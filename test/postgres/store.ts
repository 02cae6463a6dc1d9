// Stores on a PostgreSQL that the tests of one file share, each in a database of its own.
import { Client } from 'pg';
import type { PostgresSettings } from '../../src/domain/store-settings.ts';
import type { Store } from '../../src/registry/store/ports.ts';
import { createLog } from '../../src/host/log.ts';
import { openPostgres, type PostgresStoreOptions } from '../../src/registry/store/postgres/place.ts';
import type { PostgresPlace } from '../../src/registry/store/postgres/links.ts';
import { isPooled, startPooler, type Pooler } from './pooler.ts';
import { startPostgres, type PostgresServer } from './server.ts';

let shared: Promise<PostgresServer> | undefined;
let pooler: Promise<Pooler> | undefined;

/** Started with the first call; `stopSharedPostgres` ends it. */
export function sharedPostgres(): Promise<PostgresServer> {
  return (shared ??= startPostgres());
}

export async function stopSharedPostgres(): Promise<void> {
  await (await pooler)?.close();
  const server = await shared;
  [shared, pooler] = [undefined, undefined];
  await server?.close();
}

/** The URL of a database that nobody has used. */
export async function freshDatabase(): Promise<string> {
  const server = await sharedPostgres();
  const url = await server.createDatabase();
  if (!isPooled) return url;
  const { port } = await (pooler ??= startPooler(server.port));
  return url.replace(`:${server.port}/`, `:${port}/`);
}

/** As a configuration says it. */
export function settingsOf(url: string, rest: Partial<PostgresSettings> = {}): PostgresSettings {
  const { hostname: host, port, username: user, pathname } = new URL(url);
  return {
    ...{ kind: 'postgres', name: 'test', host, port: Number(port), user, database: pathname.slice(1) },
    ...{ password: undefined, tls: { mode: 'off', caFile: undefined }, schema: 'tollgate' },
    ...{ connections: 2, timeoutMs: 10_000, pooler: isPooled },
    ...rest,
  };
}

export function placeOf(url: string, rest: Partial<PostgresPlace['address']> = {}): PostgresPlace {
  const { hostname, port, username, pathname } = new URL(url);
  return {
    address: {
      host: hostname,
      port: Number(port),
      user: username,
      database: pathname.slice(1),
      password: () => undefined,
      tls: () => false,
      pooler: isPooled,
      ...rest,
    },
    schema: 'tollgate',
    connections: 2,
    timeoutMs: 5000,
  };
}

/** Somebody else's transaction, which holds what it has until it is ended. */
export type Holding = {
  readonly query: (sql: string, values?: readonly unknown[]) => Promise<void>;
  readonly end: (how: 'COMMIT' | 'ROLLBACK') => Promise<void>;
};

export async function holdTransaction(url: string): Promise<Holding> {
  const client = new Client(url);
  client.on('error', () => undefined);
  await client.connect();
  await client.query('BEGIN');
  let over = false;
  return {
    query: async (sql, values = []) => void (await client.query(sql, [...values])),
    end: async (how) => {
      if (over) return;
      over = true;
      await client.query(how);
      await client.end();
    },
  };
}

export const silent = createLog('error', () => undefined, Date.now);

export function openTestStore(url: string, options: PostgresStoreOptions = {}): Promise<Store> {
  return openPostgres({ ...placeOf(url), timeoutMs: 20_000 }, { now: Date.now, log: silent }, options);
}
