// Commands on a PostgreSQL store, in this process: what they write where, their exit codes, and what a database user can do
// with the rights that one of them prints.
import { appendFileSync } from 'node:fs';
import path from 'node:path';
import { Client } from 'pg';
import { afterAll, describe, expect, onTestFinished, test } from 'vitest';
import { COMMANDS } from '../../src/cli/commands.ts';
import { runCommandLine } from '../../src/cli/dispatch.ts';
import { createLedger } from '../../src/domain/payment/ledger.ts';
import { SPELLING } from '../../src/gateway/rails/rails.ts';
import { postgresPlace } from '../../src/registry/store/postgres/place.ts';
import { claimOf, proofOf } from '../cases/claims.ts';
import { fakeIo } from '../cli/support.ts';
import { RECEIVER, SECRET } from '../config/support.ts';
import { startProcess, temporaryFolder, type TollgateProcess } from '../support/process.ts';
import { until } from '../support/paid-tollgate.ts';
import { hasPostgres } from './server.ts';
import { freshDatabase, settingsOf, sharedPostgres, silent, stopSharedPostgres } from './store.ts';

describe.skipIf(!hasPostgres)('commands on a PostgreSQL store', () => {
  const folder = temporaryFolder();
  afterAll(async () => {
    folder.remove();
    await stopSharedPostgres();
  });

  type Ran = { readonly code: number; readonly stdout: string; readonly stderr: string };
  const run = async (...argv: string[]): Promise<Ran> => {
    const io = fakeIo({ folder: folder.folder });
    const code = await runCommandLine(argv, COMMANDS, io);
    return { code, stdout: io.stdout(), stderr: io.stderr() };
  };
  const configure = (url: string, more = ''): void => {
    const registry = `registry: { store: { url: "${url}" ${more} }, jwt: { secret: "${SECRET}" } }`;
    // A port of its own: whatever listens on the default one of this machine is no matter of these tests.
    folder.write('tollgate.yaml', `${registry}\nadmin: { listen: "127.0.0.1:0" }\n`);
  };
  const nameOf = (url: string): string => new URL(url).pathname.slice(1);

  test('behaviour: migrate --check says whether there is something to do, and does nothing', async () => {
    const url = await freshDatabase();
    const server = await sharedPostgres();
    configure(url);
    expect(await run('migrate', '--check')).toMatchObject({
      code: 1,
      stdout: 'there is something to do: run `tollgate migrate`\n',
    });
    expect(await server.query("SELECT 1 FROM pg_namespace WHERE nspname = 'tollgate'", nameOf(url))).toEqual([]);
    expect((await run('migrate')).code).toBe(0);
    expect(await run('migrate', '--check')).toEqual({ code: 0, stdout: 'up to date\n', stderr: '' });
    await server.query('UPDATE tollgate.meta SET schema_version = 99, least_reader = 99', nameOf(url));
    expect(await run('migrate', '--check')).toMatchObject({
      code: 69,
      stderr: expect.stringContaining('newer version'),
    });
    configure('postgres://tollgate@127.0.0.1:1/x', ', timeout: 1s');
    expect(await run('migrate', '--check')).toMatchObject({ code: 69, stdout: '' });
  });

  test.each([['tollgate'], ['elsewhere']])(
    'attack: a user with what migrate --grants prints writes charges in schema %s, and nothing else',
    async (schema) => {
      const url = await freshDatabase();
      const server = await sharedPostgres();
      const database = nameOf(url);
      // One that has to be quoted.
      const user = `side "car" of ${schema}`;
      const quoted = `"side ""car"" of ${schema}"`;
      configure(url, `, schema: ${schema}`);
      await run('migrate');
      await server.query(`CREATE ROLE ${quoted} LOGIN`);
      const { code, stdout } = await run('migrate', '--grants', user);
      expect(code).toBe(0);
      const sidecar =
        'proxy: { upstream: "http://127.0.0.1:1" }\nsync: { registry_url: "http://127.0.0.1:2", api_key: an-api-key-of-the-test }';
      const store = `{ url: "${url}", schema: ${schema} }`;
      folder.write(
        'sidecar.yaml',
        `${sidecar}\nreceivers:${RECEIVER}\ncharges: { store: ${store}, secrets: [${SECRET}] }\n`,
      );
      expect(await run('migrate', '--grants', user, '-c', 'sidecar.yaml')).toEqual({ code: 0, stdout, stderr: '' });
      expect((await run('migrate', '--check', '-c', 'sidecar.yaml')).code).toBe(0);
      await server.query(stdout, database);
      // Twice is once.
      await server.query(stdout, database);

      const charges = postgresPlace(settingsOf(url, { user, schema })).openCharges({ now: Date.now, log: silent });
      const ledger = createLedger(charges, SPELLING);
      const [claim, actor] = [claimOf(1), { owner: 'run/one' }];
      await charges.check();
      expect((await ledger.claim(claim, { ...actor, leaseMs: 60_000, maxUnsettledPerPayer: 9 })).kind).toBe('claimed');
      await ledger.advance(claim.id, { kind: 'settle_started', via: 'v', leaseMs: 60_000 }, actor);
      await ledger.advance(claim.id, { kind: 'settled', proof: proofOf(claim), leaseMs: 60_000 }, actor);
      await ledger.advance(claim.id, { kind: 'delivered', partial: false }, actor);
      expect((await charges.countByState()).delivered).toBe(1);
      expect(await charges.due(9)).toEqual([]);
      expect(await charges.renew('run', [claim.id], 60_000)).toEqual([]);
      expect(await charges.prune({ closedMs: 0, releasedMs: 0, answersMs: 0 }, 9)).toBe(false);
      expect((await charges.list({ limit: 9 })).charges).toHaveLength(1);
      expect((await charges.alarms()).owed).toEqual([]);
      await charges.close();

      const client = new Client({ host: '127.0.0.1', port: server.port, user, database });
      await client.connect();
      try {
        for (const sql of [
          `INSERT INTO ${schema}.routes DEFAULT VALUES`,
          `UPDATE ${schema}.routes SET amount = '0'`,
          `DELETE FROM ${schema}.routes`,
          `SELECT id FROM ${schema}.routes`,
          `INSERT INTO ${schema}.changes DEFAULT VALUES`,
          `INSERT INTO ${schema}.api_keys DEFAULT VALUES`,
          `SELECT digest FROM ${schema}.api_keys`,
          `UPDATE ${schema}.meta SET revision = 9`,
          `CREATE TABLE ${schema}.more ()`,
          `TRUNCATE ${schema}.charges`,
          `DROP TABLE ${schema}.charges`,
        ])
          await expect(client.query(sql), sql).rejects.toThrow(/permission denied|must be owner/);
      } finally {
        await client.end();
      }
      const without = `SELECT relname FROM pg_class WHERE relnamespace = '${schema}'::regnamespace AND relkind = 'r'
        AND NOT has_table_privilege('${user}', oid, 'SELECT, INSERT, UPDATE, DELETE') ORDER BY relname`;
      // A new table of charges has to be granted as well.
      expect((await server.query(without, database)).map(({ relname }) => relname)).toEqual([
        'api_key_uses',
        'api_keys',
        'attention',
        'changes',
        'desk_sessions',
        'desk_tickets',
        'meta',
        'routes',
      ]);
    },
  );

  test.each([
    ['everybody', ['--grants', 'public'], 'is no name of a user'],
    ['nobody', ['--grants', 'none'], 'is no name of a user'],
    ['a name that the database would cut', ['--grants', 'é'.repeat(32)], 'is longer than 63 bytes'],
    ['a name that is none', ['--grants', 'a\0b'], 'is no name of a user'],
    ['both questions at once', ['--grants', 'a', '--check'], 'takes --check or --grants, not both'],
  ])('refuses: to print rights of %s', async (_, flags, sentence) => {
    configure('postgres://tollgate@127.0.0.1:1/x');
    expect(await run('migrate', ...flags)).toMatchObject({
      code: 64,
      stdout: '',
      stderr: expect.stringContaining(sentence),
    });
  });

  test('refuses: to serve a schema of a newer version: exit code 69, with a sentence', async () => {
    const url = await freshDatabase();
    configure(url);
    await run('migrate');
    const newer = 'UPDATE tollgate.meta SET schema_version = 99, least_reader = 99';
    await (await sharedPostgres()).query(newer, nameOf(url));
    const file = path.join(folder.folder, 'tollgate.yaml');
    const refused = await startProcess({ args: ['serve', '-c', file], listeners: [] });
    onTestFinished(() => refused.kill());
    expect(await refused.exited).toBe(69);
    expect(refused.stderr() + JSON.stringify(refused.lines)).toContain('written by a newer version of Tollgate');
  });

  test('behaviour: check --online says whether the store serves, and has connections for one more of these', async () => {
    const server = await sharedPostgres();
    const url = await freshDatabase();
    type Remark = { readonly service: string; readonly level: string; readonly detail: string };
    const check = async (): Promise<{ code: number; store: readonly string[] }> => {
      const { code, stdout } = await run('check', '--online', '--json');
      const { online } = JSON.parse(stdout) as { online: readonly Remark[] };
      const ofStore = online.filter(({ service }) => service === 'store');
      return { code, store: ofStore.map(({ level, detail }) => `${level}: ${detail}`) };
    };
    const free = expect.stringMatching(/^ok: one more of these takes 4 of \d+ connections that are free$/) as string;
    // Somebody who may read nothing of others.
    await server.query('CREATE ROLE reader LOGIN');
    configure(url.replace('tollgate@', 'reader@'));
    const unmade = 'ok: it takes writes; its schema is made by the first start, or by `tollgate migrate`';
    expect(await check()).toEqual({ code: 0, store: [unmade, free] });
    configure(url);
    await run('migrate');
    expect(await check()).toEqual({ code: 0, store: ['ok: it takes writes; its schema is up to date', free] });

    configure(url, ', connections: 16');
    appendFileSync(
      path.join(folder.folder, 'tollgate.yaml'),
      `proxy: { upstream: "http://127.0.0.1:1" }\ncharges: { secrets: [${SECRET}] }\nworkers: 4\n`,
    );
    const { store } = await check();
    // Four workers and the process that has them.
    expect(store[1]).toMatch(/^warning: one more of these takes 86 connections, and \d+ of 57 are in use: raise/);

    configure(url);
    await server.query('ALTER SYSTEM SET fsync = off');
    await server.query('SELECT pg_reload_conf()');
    await until('it forgets what it confirmed', async () => (await server.query('SHOW fsync'))[0]?.['fsync'] === 'off');
    const refused = 'cannot_serve: the database has fsync off, and forgets what it confirmed; switch it on';
    expect(await check()).toEqual({ code: 1, store: [refused] });
    await server.query('ALTER SYSTEM RESET fsync');
    await server.query('SELECT pg_reload_conf()');
    await until('it is as before', async () => (await server.query('SHOW fsync'))[0]?.['fsync'] === 'on');

    configure('postgres://tollgate@127.0.0.1:1/x', ', timeout: 1s');
    expect(await check()).toEqual({ code: 69, store: [expect.stringMatching(/^away: .*ECONNREFUSED/)] });
  });

  test('behaviour: a route that a file names no more is logged with the command that deletes it, which is in force at all within a second', async () => {
    const url = await freshDatabase();
    const store = `registry: { listen: "127.0.0.1:0", store: "${url}", jwt: { secret: "${SECRET}" } }`;
    const serve = async (name: string, patterns: readonly string[]): Promise<TollgateProcess> => {
      const routes = patterns.map((pattern) => `{ route_pattern: ${pattern}, method: GET, amount: "0.10" }`);
      const file = folder.write(
        name,
        [
          ...[
            'proxy: { listen: "127.0.0.1:0", upstream: "http://127.0.0.1:1" }',
            store,
            'admin: { listen: "127.0.0.1:0" }',
          ],
          ...[`charges: { secrets: [${SECRET}] }`, `receivers:${RECEIVER}`, `routes: [${routes.join(', ')}]`, ''],
        ].join('\n'),
      );
      const process = await startProcess({ args: ['serve', '-c', file], listeners: ['proxy', 'registry', 'admin'] });
      onTestFinished(() => process.kill());
      return process;
    };
    const all = [await serve('tollgate.yaml', ['/a', '/b']), await serve('other.yaml', ['/a', '/c'])];
    // Started again: neither start takes away what the other's file declares.
    all.push(await serve('tollgate.yaml', ['/a', '/b']));
    const line = await all[1]!.line(({ msg }) =>
      msg.startsWith('a declared route is not in this file and stays in force'),
    );
    expect(line).toMatchObject({
      route_pattern: '/b',
      instead: expect.stringMatching(/^tollgate routes delete [\w-]{36}, or/),
    });
    // As many as the log names, by the name that the log has.
    const differing = async (each: TollgateProcess): Promise<readonly [number, string]> => {
      const metrics = await (await fetch(`${each.url('admin')}/metrics`)).text();
      const verbose = await (await fetch(`${each.url('admin')}/readyz?verbose`)).text();
      return [Number(/^tollgate_declared_routes_differing (\d+)$/m.exec(metrics)?.[1]), verbose];
    };
    const [found, verbose] = await differing(all[1]!);
    expect(found).toBe(1);
    expect(verbose).toContain('GET /b is not in this file and stays in force');
    expect(verbose).toContain(`tollgate routes delete ${String(line['route_id'])}`);
    const asks = (path: string): Promise<readonly boolean[]> =>
      Promise.all(all.map(async (each) => (await fetch(`${each.url('proxy')}${path}`)).status === 402));
    for (const path of ['/a', '/b', '/c'])
      await until(`${path} is asked for everywhere`, async () => (await asks(path)).every((asked) => asked));

    const id = String(line['route_id']);
    expect(await run('routes', 'delete', id)).toMatchObject({
      code: 0,
      stdout: 'deleted GET /b, 0.10 USD\n',
      stderr: expect.stringContaining('the configuration declares it, so the next start makes it again'),
    });
    await until('no process asks for it', async () => (await asks('/b')).every((asked) => !asked));
    expect((await differing(all[1]!))[0]).toBe(0);
    for (const path of ['/a', '/c']) expect([path, ...(await asks(path))]).toEqual([path, true, true, true]);
    expect(await run('routes', 'delete', id)).toMatchObject({
      code: 1,
      stdout: '',
      stderr: 'no route has this id; the log and the dashboard name those that there are\n',
    });
    const [change] = await (
      await sharedPostgres()
    ).query('SELECT kind, written_by FROM tollgate.changes ORDER BY revision DESC LIMIT 1', nameOf(url));
    expect(change).toEqual({ kind: 'deleted', written_by: 'dashboard:tollgate-cli' });
  });

  test('behaviour: a price that overrules what another file declared is told as a warning, one of its own as information', async () => {
    const url = await freshDatabase();
    const serve = async (name: string, amount: string): Promise<TollgateProcess> => {
      const file = write(name, amount);
      const process = await startProcess({ args: ['serve', '-c', file], listeners: ['registry'] });
      onTestFinished(() => process.kill());
      return process;
    };
    const write = (name: string, amount: string): string =>
      folder.write(
        name,
        [
          `registry: { listen: "127.0.0.1:0", store: "${url}", jwt: { secret: "${SECRET}" } }`,
          'admin: { listen: "127.0.0.1:0" }',
          ...[`receivers:${RECEIVER}`, `routes: [{ route_pattern: /a, method: GET, amount: "${amount}" }]`, ''],
        ].join('\n'),
      );
    await serve('tollgate.yaml', '0.10');
    const other = await serve('other.yaml', '0.20');
    const overruled = await other.line(({ msg }) => msg.startsWith('declared route applied'));
    expect(overruled).toMatchObject({ level: 'warn', before: { amount: '0.10' }, after: { amount: '0.20' } });
    write('other.yaml', '0.30');
    other.signal('SIGHUP');
    const own = await other.line(
      ({ msg, after }) => msg.startsWith('declared route applied') && JSON.stringify(after).includes('0.30'),
    );
    expect(own).toMatchObject({ level: 'info', before: { amount: '0.20' }, after: { amount: '0.30' } });
  });

  test('refuses: routes delete while the database is away', async () => {
    configure('postgres://tollgate@127.0.0.1:1/x', ', timeout: 1s');
    expect(await run('routes', 'delete', 'x')).toMatchObject({ code: 69, stdout: '' });
  });
});
