// `tollgate copy` from a SQLite file into a real PostgreSQL: what arrives, what is refused, and where it may be killed. A large
// run with TOLLGATE_COPY=100000, which prints how long it took.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { COMMANDS } from '../../src/cli/commands.ts';
import { runCommandLine } from '../../src/cli/dispatch.ts';
import { createLedger } from '../../src/domain/payment/ledger.ts';
import { SPELLING } from '../../src/gateway/rails/rails.ts';
import { COPIED, LEFT_BEHIND } from '../../src/registry/store/copy.ts';
import type { CopiedTable } from '../../src/registry/store/copy-ports.ts';
import type { Store } from '../../src/registry/store/ports.ts';
import { lockStore } from '../../src/registry/store/sqlite/lock.ts';
import { claimOf } from '../cases/claims.ts';
import { BARE_ENV, fakeIo, MAIN, NODE } from '../cli/support.ts';
import { RECEIVER, SECRET } from '../config/support.ts';
import { until } from '../support/paid-tollgate.ts';
import { temporaryFolder } from '../support/process.ts';
import { ACTOR, fillStore, openSqlite } from './full-store.ts';
import { hasPostgres } from './server.ts';
import { freshDatabase, openTestStore, sharedPostgres, stopSharedPostgres } from './store.ts';
import { startTap, type Tap } from './tap.ts';

const LARGE = Number(process.env['TOLLGATE_COPY'] ?? 0);
const CHARGES = 240;

describe.skipIf(!hasPostgres)('tollgate copy', () => {
  const files = temporaryFolder();
  let made: string;
  beforeAll(async () => {
    made = path.join(files.folder, 'made.db');
    await fillStore(made, CHARGES);
  });
  afterAll(async () => {
    files.remove();
    await stopSharedPostgres();
  });

  type Ran = { readonly code: number; readonly stdout: string; readonly stderr: string };
  type World = {
    /** Of the source. */
    readonly file: string;
    readonly url: string;
    readonly folder: string;
    readonly run: (...argv: string[]) => Promise<Ran>;
    /** Of what `from.yaml` and `to.yaml` name. */
    readonly copy: (...flags: string[]) => Promise<Ran>;
    readonly query: (sql: string) => Promise<readonly Record<string, unknown>[]>;
    readonly write: (name: string, text: string) => string;
  };
  const registry = (store: string, timeout = '60s', secret = SECRET): string =>
    `registry: { store: ${store.startsWith('sqlite') ? `"${store}"` : `{ url: "${store}", timeout: ${timeout} }`}, jwt: { secret: ${secret} }, api_keys: [] }\ncharges: { secrets: [${secret}] }\n`;
  /** A source of its own with everything in it, and a database that nobody has used. */
  const world = async (): Promise<World> => {
    const { folder, write, remove } = temporaryFolder();
    onTestFinished(remove);
    const file = path.join(folder, 'tollgate.db');
    const from = new DatabaseSync(made);
    from.exec(`VACUUM INTO '${file}'`);
    from.close();
    const url = await freshDatabase();
    const run = async (...argv: string[]): Promise<Ran> => {
      const io = fakeIo({ folder });
      const code = await runCommandLine(argv, COMMANDS, io);
      return { code, stdout: io.stdout(), stderr: io.stderr() };
    };
    write('from.yaml', registry(`sqlite:${file}`));
    write('to.yaml', registry(url));
    write('direct.yaml', registry(url));
    const server = await sharedPostgres();
    return {
      ...{ file, url, folder, run, write },
      copy: (...flags) => run('copy', ...flags, 'from.yaml', 'to.yaml'),
      query: (sql) => server.query(sql, new URL(url).pathname.slice(1)),
    };
  };
  const isMade = async ({ query }: World): Promise<boolean> =>
    (await query("SELECT FROM pg_namespace WHERE nspname = 'tollgate'")).length > 0;
  /** Nobody is connected: what a process that died had begun is over. */
  const alone = ({ query }: World): Promise<unknown> =>
    until(
      'no connection is left',
      async () => {
        const others =
          "SELECT FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'tollgate'";
        return (await query(others)).length === 0;
      },
      60_000,
    );

  test('behaviour: a copy has everything under its number, FROM is served no more, and doing it again finds it done', async () => {
    const at = await world();
    const db = new DatabaseSync(at.file);
    // Taken away as pruning does: its number is not given again.
    db.exec(`DELETE FROM charge_credentials WHERE seq = ${CHARGES}; DELETE FROM charges WHERE seq = ${CHARGES}`);
    db.close();
    const before = await readThrough(() => openSqlite(at.file));
    expect(before.charges).toHaveLength(CHARGES - 1);
    const copied = await at.copy();
    expect(copied).toMatchObject({ code: 0, stderr: '' });
    expect(copied.stdout).toMatch(/^charges +239 +[0-9a-f]{64}$/m);
    expect(copied.stdout).toMatch(/^copied to postgres:\/\/127\.0\.0\.1:\d+\/test_\d+ \(tollgate\), in [\d.]+ s$/m);
    expect(await readThrough(() => openTestStore(at.url))).toEqual(before);
    const target = await sharedPostgres();
    for (const table of PLAIN_TABLES) {
      const columns = COPIED[table].join(', ');
      const written = rowsIn(at.file, `SELECT ${columns} FROM ${table}`);
      const texts = COPIED[table].map((column) => `${column}::text`).join(', ');
      const copiedRows = await target.query(
        `SELECT ${texts} FROM tollgate.${table}`,
        new URL(at.url).pathname.slice(1),
      );
      expect([table, asTexts(copiedRows)]).toEqual([table, asTexts(written)]);
      expect([table, written.length > 0]).toEqual([table, true]);
    }

    for (const command of [['serve'], ['keys', 'create', '--name', 'late'], ['migrate'], ['charges', 'list']]) {
      const refused = await at.run(...command, '-c', 'from.yaml');
      expect([command, refused.code]).toEqual([command, 69]);
      expect(refused.stderr).toMatch(/was copied to postgres:\S+ \(tollgate\) at 20\S+Z and is served from there/);
    }
    const again = await at.copy('--json');
    expect(again.code).toBe(0);
    expect(JSON.parse(again.stdout)).toMatchObject({
      result: 'found',
      tables: Object.keys(COPIED).map((table) => ({ table, rows: expect.any(Number) as unknown })),
    });
    expect(await at.copy('--thaw')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('is not empty') as unknown,
    });

    const store = await openTestStore(at.url);
    const ledger = createLedger(store.charges, SPELLING);
    expect((await ledger.claim(claimOf(9999), { ...ACTOR, leaseMs: 1000, maxUnsettledPerPayer: 9 })).kind).toBe(
      'claimed',
    );
    await store.close();
    expect(await at.query('SELECT max(seq)::int4 AS seq FROM tollgate.charges')).toEqual([{ seq: CHARGES + 1 }]);
    // It is served by now: what it was copied from is not what it is any more.
    expect(await at.copy()).toMatchObject({ code: 1, stderr: expect.stringContaining('differs by now') as unknown });
    expect((await at.run('serve', '-c', 'from.yaml')).code).toBe(69);
  });

  test('behaviour: a rehearsal of a copy beside a server does all of it, and leaves nothing', async () => {
    const at = await world();
    const lock = lockStore(at.file, { pid: 1, host: 'h', started: 'now' });
    const store = await openSqlite(at.file);
    try {
      const { code, stdout } = await at.copy('--dry-run');
      expect([code, stdout]).toEqual([0, expect.stringMatching(/^charges +240 .*\nwould be copied to/ms)]);
    } finally {
      await store.close();
      lock.release();
    }
    expect(await isMade(at)).toBe(false);
    await readThrough(() => openSqlite(at.file));
    expect(await at.copy('--thaw')).toMatchObject({ code: 0, stdout: 'FROM is not marked\n' });
  });

  test('refuses: a copy whose source anything has open, or whose source is not there', async () => {
    const at = await world();
    const lock = lockStore(at.file, { pid: 4242, host: 'h', started: 'now' });
    expect(await at.copy()).toMatchObject({
      code: 69,
      stderr: expect.stringContaining('process 4242 on h') as unknown,
    });
    lock.release();
    const store = await openSqlite(at.file);
    expect(await at.copy()).toMatchObject({
      code: 69,
      stderr: expect.stringContaining('is open elsewhere') as unknown,
    });
    await store.close();
    expect(await isMade(at)).toBe(false);
    await readThrough(() => openSqlite(at.file));
    const away = await world();
    const nothing = files.write('nothing.yaml', `registry: { store: "sqlite:${away.folder}/nothing.db" }\n`);
    expect(await away.run('copy', nothing, 'to.yaml')).toMatchObject({
      code: 69,
      stderr: expect.stringContaining('no store') as unknown,
    });
    expect(existsSync(`${away.folder}/nothing.db`)).toBe(false);
  });

  test('refuses: a copy to a target that holds anything, or that a server ran on; FROM is served as before', async () => {
    const at = await world();
    expect((await at.run('migrate', '-c', 'to.yaml')).code).toBe(0);
    const store = await openTestStore(at.url);
    await store.charges.check();
    await store.close();
    expect(await at.copy()).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('holds something already') as unknown,
    });
    await readThrough(() => openSqlite(at.file));
    await at.query('DELETE FROM tollgate.charge_counts');
    // An empty schema that migrate made.
    expect((await at.copy()).code).toBe(0);
  });

  test('refuses: a copy to a target that cannot be reached, or where this user may do nothing; FROM is served as before', async () => {
    const at = await world();
    at.write('to.yaml', registry('postgres://tollgate@127.0.0.1:1/x', '1s'));
    expect(await at.copy()).toMatchObject({ code: 69, stdout: '' });
    const server = await sharedPostgres();
    await server.query('CREATE ROLE poor LOGIN');
    at.write('to.yaml', registry(at.url.replace('tollgate@', 'poor@')));
    const { code, stderr } = await at.copy();
    expect([code, stderr]).toEqual([69, expect.stringContaining('may not make or write the schema tollgate')]);
    // It had begun by then. A database that is gone holds nothing.
    await server.query(`DROP DATABASE ${new URL(at.url).pathname.slice(1)} WITH (FORCE)`);
    at.write('to.yaml', registry(at.url, '5s'));
    expect(await at.copy('--thaw')).toMatchObject({ code: 0, stdout: 'the mark is taken away; FROM may be served\n' });
    await readThrough(() => openSqlite(at.file));
  });

  test('refuses: a copy that differs when it is read back; all of it is undone', async () => {
    const at = await world();
    await at.run('migrate', '-c', 'to.yaml');
    await at.query(`CREATE FUNCTION public.spoil() RETURNS trigger LANGUAGE plpgsql AS
      'BEGIN IF NEW.id = ''chg_test-77'' THEN NEW.amount = NEW.amount + 1; END IF; RETURN NEW; END';
      CREATE TRIGGER spoil BEFORE INSERT ON tollgate.charges FOR EACH ROW EXECUTE FUNCTION public.spoil()`);
    expect(await at.copy()).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^charges: .* differs; all of it was undone/) as unknown,
    });
    expect(await at.query('SELECT count(*)::int4 AS rows FROM tollgate.charges')).toEqual([{ rows: 0 }]);
    expect(await at.run('serve', '-c', 'from.yaml')).toMatchObject({
      code: 69,
      stderr: expect.stringContaining('is being copied to') as unknown,
    });
    await at.query('DROP TRIGGER spoil ON tollgate.charges');
    expect((await at.copy()).code).toBe(0);
  });

  test('behaviour: a copy whose commit has its answer lost is not assumed done: doing it again finds it done', async () => {
    const at = await world();
    const tap = await tapped(at);
    const lost = tap.loseCommit();
    const { code, stderr } = await at.copy();
    expect([code, stderr]).toEqual([69, expect.stringContaining('run the same command again')]);
    await lost;
    const other = await world();
    // Nor is another one copied into: this one may be whole.
    expect(await at.run('copy', 'from.yaml', path.join(other.folder, 'to.yaml'))).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('name that one') as unknown,
    });
    expect(await at.copy('--thaw')).toMatchObject({ code: 1 });
    expect(await at.copy()).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('was copied already') as unknown,
    });
  });

  const tapped = async (at: World): Promise<Tap> => {
    const tap = await startTap((await sharedPostgres()).port);
    onTestFinished(tap.close);
    at.write('to.yaml', registry(at.url.replace(/:\d+\//, `:${tap.port}/`)));
    return tap;
  };

  test('attack: a copy killed at every tenth of its way leaves the target as before, FROM is not served, and at last it is whole', async () => {
    const measured = await world();
    const first = await tapped(measured);
    expect((await measured.copy()).code).toBe(0);
    const bytes = first.carried();
    const at = await world();
    const before = await readThrough(() => openSqlite(at.file));
    const tap = await tapped(at);
    for (let tenth = 1; tenth < 10; tenth++) {
      const { held, release } = tap.holdAfter((bytes * tenth) / 10);
      const argv = [MAIN, 'copy', 'from.yaml', 'to.yaml'];
      const child = spawn(NODE, argv, { cwd: at.folder, env: BARE_ENV, stdio: 'ignore' });
      onTestFinished(() => void child.kill('SIGKILL'));
      const exited = once(child, 'exit');
      await held;
      expect([tenth, (await at.run('migrate', '--check', '-c', 'direct.yaml')).code]).toEqual([tenth, 1]);
      child.kill('SIGKILL');
      expect(await exited).toEqual([null, 'SIGKILL']);
      await alone(at);
      release();
      expect([tenth, await isMade(at)]).toEqual([tenth, false]);
      const { code, stderr } = await at.run('serve', '-c', 'from.yaml');
      expect([tenth, code, stderr]).toEqual([tenth, 69, expect.stringContaining('is being copied to')]);
    }
    expect((await at.copy('--thaw')).code).toBe(0);
    expect(await readThrough(() => openSqlite(at.file))).toEqual(before);
    expect((await at.copy()).code).toBe(0);
    expect(await readThrough(() => openTestStore(at.url))).toEqual(before);
  }, 300_000);

  test('behaviour: during a copy whoever makes the schema waits, FROM is refused, and every 10 s a line says how far it is', async () => {
    const at = await world();
    const tap = await tapped(at);
    const { held, release } = tap.holdAfter(100_000);
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    onTestFinished(() => void vi.useRealTimers());
    const copying = at.copy();
    await held;
    vi.advanceTimersByTime(10_000);
    expect((await at.run('migrate', '-c', 'direct.yaml')).code).toBe(69);
    for (const argv of [
      ['serve', '-c', 'from.yaml'],
      ['copy', '--thaw', 'from.yaml', 'to.yaml'],
    ])
      expect(await at.run(...argv)).toMatchObject({
        code: 69,
        stderr: expect.stringContaining('is served by process') as unknown,
      });
    release();
    const { code, stderr } = await copying;
    expect([code, stderr]).toEqual([0, expect.stringMatching(/^\d+ of \d+ rows written\n$/)]);
    expect(await at.run('migrate', '-c', 'direct.yaml')).toMatchObject({ code: 0, stdout: 'up to date\n' });
  });

  test('behaviour: a copy takes the charges of a sidecar, and neither into a registry nor out of one', async () => {
    const at = await world();
    const sidecar = (store: string): string =>
      `proxy: { upstream: "http://127.0.0.1:1" }\nsync: { registry_url: "http://127.0.0.1:2", api_key: an-api-key-of-the-test }\nreceivers:${RECEIVER}\ncharges: { store: "${store}", secrets: [${SECRET}] }\n`;
    at.write('car.yaml', sidecar(`sqlite:${at.file}`));
    at.write('cars.yaml', sidecar(at.url));
    const kinds = {
      code: 64,
      stderr: expect.stringContaining('One of them keeps the charges of a sidecar') as unknown,
    };
    expect(await at.run('copy', 'car.yaml', 'to.yaml')).toMatchObject(kinds);
    expect(await at.run('copy', 'from.yaml', 'cars.yaml')).toMatchObject(kinds);
    // What a sidecar keeps is of no registry.
    const db = new DatabaseSync(at.file);
    db.exec('DELETE FROM meta');
    db.close();
    const { code, stdout } = await at.run('copy', 'car.yaml', 'cars.yaml');
    expect([code, stdout]).toEqual([0, expect.not.stringContaining('meta')]);
    expect(await at.run('serve', '-c', 'car.yaml')).toMatchObject({
      code: 69,
      stderr: expect.stringContaining('was copied to') as unknown,
    });
    expect((await at.run('copy', 'car.yaml', 'cars.yaml')).code).toBe(0);
    expect(await at.query('SELECT count(*)::int4 AS rows FROM tollgate.charges')).toEqual([{ rows: CHARGES }]);
  });

  test('behaviour: a copy says what TO lacks to know the payers, dashboards and SDKs of FROM', async () => {
    const at = await world();
    at.write('to.yaml', registry(at.url, '60s', 'another-secret-of-more-than-32-bytes'));
    at.write('from.yaml', `registry: { store: "sqlite:${at.file}" }\n`);
    const { code, stderr } = await at.copy('--dry-run');
    expect(code).toBe(0);
    for (const differs of [
      'charges.secrets: without',
      'registry.jwt: dashboard tokens',
      'does not know first-start',
      'secrets.json',
    ])
      expect(stderr).toContain(differs);
  });

  test('refuses: to copy other than from SQLite to PostgreSQL', async () => {
    const at = await world();
    for (const [argv, sentence] of [
      [['to.yaml'], 'words are missing'],
      [['to.yaml', 'to.yaml'], 'FROM keeps nothing in a SQLite file'],
      [['from.yaml', 'from.yaml'], 'TO keeps nothing in PostgreSQL'],
      [['from.yaml', 'none.yaml'], 'cannot be read'],
      [['--thaw', '--dry-run', 'from.yaml', 'to.yaml'], 'not both'],
    ] as const) {
      const ran = await at.run('copy', ...argv);
      expect([argv, ran.code, ran.stdout, ran.stderr]).toEqual([argv, 64, '', expect.stringContaining(sentence)]);
    }
  });

  test('behaviour: a copy leaves no column of either kind of store out', async () => {
    const url = await freshDatabase();
    await (await openTestStore(url)).close();
    const server = await sharedPostgres();
    const columns = await server.query(
      `SELECT table_name AS name, column_name AS column FROM information_schema.columns
       WHERE table_schema = 'tollgate' AND is_generated = 'NEVER'`,
      new URL(url).pathname.slice(1),
    );
    const made = new Set(
      columns
        .filter(({ name }) => !LEFT_BEHIND.includes(String(name)))
        .map(({ name, column }) => `${String(name)}.${String(column)}`),
    );
    // Of this kind alone.
    const digests = ['receivers_sha256', 'api_keys_sha256', 'webhooks_sha256'];
    for (const own of ['one', 'schema_version', 'least_reader', 'keys_revision', ...digests])
      made.delete(`meta.${own}`);
    for (const own of ['name', 'run', 'lease_until']) made.delete(`charge_work.${own}`);
    for (const table of ['charge_counts', 'charge_sums', 'charge_totals']) made.delete(`${table}.shard`);
    made.delete('charges_undelivered.seq');
    const tables = Object.entries(COPIED) as [CopiedTable, readonly string[]][];
    const named = tables.flatMap(([table, names]) => names.map((name) => `${table}.${name}`));
    const there = (name: string): string =>
      name.startsWith('charge_answers.') && name !== 'charge_answers.seq'
        ? `charges.answer_${name.split('.')[1]}`
        : name;
    expect([...made].toSorted()).toEqual(
      named
        .map(there)
        .filter((name) => name !== 'charge_answers.seq')
        .toSorted(),
    );

    const db = new DatabaseSync(path.join(files.folder, 'made.db'), { readOnly: true });
    const inFile = db
      .prepare(
        "SELECT m.name || '.' || c.name AS column FROM sqlite_schema AS m JOIN pragma_table_info(m.name) AS c WHERE m.type = 'table'",
      )
      .all()
      .map(({ column }) => String(column).replace('charge_credentials.credential', 'charges.credential'))
      .filter((column) => !column.startsWith('sqlite_') && !['meta.one', 'charge_credentials.seq'].includes(column))
      .filter((column) => !LEFT_BEHIND.includes(column.split('.', 1)[0] ?? ''));
    db.close();
    expect(inFile.toSorted()).toEqual(named.toSorted());
  });

  test.runIf(LARGE > 0)(
    'behaviour: a large store is copied',
    async () => {
      const at = await world();
      const large = path.join(at.folder, 'large.db');
      await fillStore(large, LARGE);
      at.write('from.yaml', registry(`sqlite:${large}`));
      const since = performance.now();
      const { code, stdout, stderr } = await at.copy();
      expect(code).toBe(0);
      console.log(`${stderr}${stdout}${LARGE} charges: ${((performance.now() - since) / 1000).toFixed(1)} s`);
    },
    3_600_000,
  );
});

/** Tables that are the same in both kinds of store, column by column. */
const PLAIN_TABLES = [
  ...['passes', 'pass_draws', 'refund_proofs', 'refund_sums', 'sale_totals', 'request_totals', 'overhead_totals'],
  ...[
    'totals_sources',
    'audit',
    'changes',
    'webhook_endpoints',
    'webhook_wants',
    'webhook_events',
    'webhook_deliveries',
  ],
] as const satisfies readonly CopiedTable[];

function rowsIn(file: string, sql: string): readonly Record<string, unknown>[] {
  const db = new DatabaseSync(file);
  const rows = db.prepare(sql).all();
  db.close();
  return rows;
}

/** Rows as sorted texts; a text of PostgreSQL holds no NUL. */
function asTexts(rows: readonly Record<string, unknown>[]): string[] {
  const valueOf = (value: unknown): string | null =>
    typeof value === 'string'
      ? value.replaceAll('\0', '\uFFFD')
      : typeof value === 'number' || typeof value === 'bigint'
        ? String(value)
        : null;
  return rows
    .map((row) => JSON.stringify(Object.entries(row).map(([name, value]) => [name, valueOf(value)])))
    .toSorted();
}

type Contents = Readonly<Record<string, unknown>> & { readonly charges: readonly unknown[] };

/** All that a store tells, through its ports; a text of PostgreSQL holds no NUL. */
async function readThrough(open: () => Promise<Store>): Promise<Contents> {
  const store = await open();
  try {
    const { routes, apiKeys, charges } = store;
    const { head, routes: all } = await routes.load();
    const ids = Array.from({ length: 400 }, (_, n) => `chg_test-${n}`);
    const ledger = createLedger(charges, SPELLING);
    const found = await Promise.all(ids.map((id) => ledger.findByChargeId(id)));
    const query = { fromMs: 0, toMs: Date.now() + 3_600_000, bucket: 'hour', limit: 999 } as const;
    const contents = {
      ...{ registryId: routes.registryId, head, all, changes: await routes.changesAfter(0, 99) },
      history: await Promise.all(all.map(({ id }) => routes.history(id, undefined, 99))),
      keys: await apiKeys.list(),
      charges: found.filter((each) => each !== undefined),
      order: (await charges.list({ limit: 200 })).charges.map(({ id }) => id),
      ...{
        counts: await charges.countByState(),
        sums: await charges.summary(query),
        refunded: await charges.refunded(),
      },
      passes: (await charges.passes.list({ limit: 999 })).map(({ pass, book }) => ({ pass, book })),
    };
    const written = JSON.stringify(contents, (_, value: unknown) => {
      if (typeof value === 'bigint') return String(value);
      if (value instanceof Uint8Array) return Buffer.from(value).toString('hex');
      return typeof value === 'string' ? value.replaceAll('\0', '\uFFFD') : value;
    });
    return JSON.parse(written) as Contents;
  } finally {
    await store.close();
  }
}
