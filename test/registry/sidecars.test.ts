// GET /v1/sidecars over both kinds of store: who is listed, how each stands, and that made-up ones cannot fill anything.
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { SPELLING } from '../../src/gateway/rails/rails.ts';
import { STEP_MS } from '../../src/domain/totals/steps.ts';
import { MOST_SOURCES, type TotalsStore } from '../../src/domain/totals/totals-store.ts';
import { ledgerOf } from '../../src/registry/store/stored-ledger.ts';
import { hasPostgres } from '../postgres/server.ts';
import { freshDatabase, holdTransaction, openTestStore, stopSharedPostgres } from '../postgres/store.ts';
import { EVENTS, FEED, LEDGER_KEY, LIST, openEvents, SDK_KEY, startRegistry, type Kit } from './kit.ts';

const { minute: MINUTE, day: DAY } = STEP_MS;
const NOW = Date.UTC(2026, 2, 10, 12);
const iso = (ms: number): string => new Date(ms).toISOString();

type Sidecar = {
  readonly name: string;
  readonly version: string | null;
  readonly address: string | null;
  readonly since: string | null;
  readonly last_seen: string;
  readonly revision: number | null;
  readonly behind: number | null;
  readonly ready: boolean | null;
  readonly reasons: readonly string[];
};

afterAll(stopSharedPostgres);

describe.each(['SQLite', ...(hasPostgres ? ['PostgreSQL'] : [])])('sidecars of a registry on %s', (kind) => {
  let kit: Kit;
  let totals: TotalsStore;
  let close = async (): Promise<void> => undefined;
  /** Makes sources that were heard a day ago. */
  let fill: (sources: number) => Promise<void>;
  let now = NOW;

  beforeAll(async () => {
    const database = kind === 'SQLite' ? undefined : await freshDatabase();
    const store = database === undefined ? undefined : await openTestStore(database, { shift: () => now - Date.now() });
    const reports = store && ledgerOf(store.charges, SPELLING);
    kit = await startRegistry({ now: () => now, ...(store && reports ? { reports, sums: store.charges } : {}) });
    ({ totals } = store?.charges ?? kit.ledger.store);
    const insert = (table: string, series: string) =>
      `INSERT INTO ${table} (source, seq, first_at, last_at, lost) SELECT 'made-up-' || n, 1, ${NOW - DAY}, ${NOW - DAY} + n, 0 FROM ${series}`;
    fill = async (sources) => {
      if (database !== undefined) {
        const transaction = await holdTransaction(database);
        await transaction.query(insert('tollgate.totals_sources', `generate_series(1, ${sources}) AS n`));
        return transaction.end('COMMIT');
      }
      const db = new DatabaseSync(kit.file);
      db.exec(
        insert(
          'totals_sources',
          `(WITH RECURSIVE s (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < ${sources}) SELECT n FROM s)`,
        ),
      );
      db.close();
    };
    close = async () => {
      await kit.close();
      await store?.close();
    };
    for (const route_pattern of ['/a', '/b', '/c'])
      await kit.dashboard('POST', LIST, { body: { route_pattern, method: 'GET', amount: '0.10' } });
  });
  afterAll(() => close());

  const say = async (source: string, seq: number, status: object): Promise<void> => {
    const said = { version: '1.2.3', since: iso(now - MINUTE), revision: 3, ready: true, reasons: [], ending: false };
    const body = { source, seq, rows: [], status: { ...said, ...status } };
    expect((await kit.ask('POST', '/v1/ledger/totals', { auth: LEDGER_KEY, body })).status).toBe(204);
  };
  const list = async (): Promise<readonly Sidecar[]> => {
    const reply = await kit.dashboard('GET', '/v1/sidecars');
    expect(reply.status).toBe(200);
    const { data } = JSON.parse(reply.body.toString()) as { data: Sidecar[] };
    if (kind === 'SQLite') return data;
    // The database's clock is not ours: it goes on while it is asked. Minutes pass where the test says so.
    return data.map((each) => ({ ...each, last_seen: iso(Math.round(Date.parse(each.last_seen) / MINUTE) * MINUTE) }));
  };
  const sync = async (): Promise<unknown> => {
    const { body } = await kit.dashboard('GET', '/v1/billing/overview');
    return (JSON.parse(body.toString()) as { sync: unknown }).sync;
  };

  test('behaviour: sidecars are listed by name, with what each said, where from, and how far it is behind', async () => {
    expect(await list()).toEqual([]);
    // Its own word about its address is not taken.
    await say('sidecar-one', 1, { name: 'eu-1', address: '9.9.9.9' });
    await say('sidecar-two', 1, { name: 'eu-2', revision: 1, ready: false, reasons: ['the routes are 75 s old'] });
    await say('sidecar-new', 1, { name: 'eu-3', revision: null, ready: false, reasons: ['no routes were loaded yet'] });
    await totals.add({ source: 'local-replica', seq: 1, rows: [] });
    const common = { version: '1.2.3', address: '127.0.0.1', since: iso(NOW - MINUTE), last_seen: iso(NOW) };
    expect(await list()).toEqual([
      { ...common, name: 'eu-1', revision: 3, behind: 0, ready: true, reasons: [] },
      { ...common, name: 'eu-2', revision: 1, behind: 2, ready: false, reasons: ['the routes are 75 s old'] },
      { ...common, name: 'eu-3', revision: null, behind: null, ready: false, reasons: ['no routes were loaded yet'] },
    ]);
    expect(await sync()).toEqual({ sidecars: 3, stale: 2, uncounted: 0, lost: 0 });
  });

  test('behaviour: a silent sidecar is named for a day, one that stopped or began again is not', async () => {
    now = NOW + 2 * MINUTE;
    await say('sidecar-one', 2, { name: 'eu-1' });
    await say('sidecar-two', 2, { name: 'eu-2', ending: true });
    expect(await list()).toMatchObject([
      { name: 'eu-1', ready: true, last_seen: iso(now) },
      {
        ...{ name: 'eu-3', ready: false, last_seen: iso(NOW) },
        reasons: [
          kind === 'SQLite'
            ? 'nothing was heard of it for 120 s'
            : expect.stringMatching(/^nothing was heard .* \d+ s$/),
          'no routes were loaded yet',
        ],
      },
    ]);
    expect(await sync()).toEqual({ sidecars: 1, stale: 1, uncounted: 0, lost: 0 });
    await say('sidecar-new-life', 1, { name: 'eu-3', since: iso(now - 1_000) });
    expect((await list()).map(({ name, ready }) => [name, ready])).toEqual([
      ['eu-1', true],
      ['eu-3', true],
    ]);
    now += 3 * MINUTE;
    expect((await list()).map(({ name, ready }) => [name, ready])).toContainEqual(['eu-1', false]);
    now += DAY;
    expect(await list()).toEqual([]);
  });

  test('behaviour: a sidecar whose key hands no counts over is listed while it is connected, and told why', async () => {
    const headers = { 'Tollgate-Instance': 'uncounted-1', 'User-Agent': 'tollgate/0.9.0' };
    const stream = await openEvents(kit.port, { ...headers, Authorization: `Bearer ${SDK_KEY}` }, EVENTS);
    await kit.sdk('GET', FEED, { headers: { ...headers, 'Tollgate-Instance': 'polling-1' } });
    const reasons = [expect.stringMatching(/hands no counts over.*scope ledger/)];
    const unknown = { version: '0.9.0', address: '127.0.0.1', since: null, revision: null, behind: null, ready: null };
    expect(await list()).toEqual([
      { ...unknown, name: 'polling-1', last_seen: iso(now), reasons },
      { ...unknown, name: 'uncounted-1', last_seen: iso(now), reasons },
    ]);
    expect(await sync()).toMatchObject({ sidecars: 2, uncounted: 2 });
    // Now its key has the scope.
    await say('uncounted-1', 1, { name: 'us-1' });
    expect(await list()).toMatchObject([{ name: 'polling-1' }, { name: 'us-1', ready: true, reasons: [] }]);
    stream.close();
    await stream.closed;
    await expect.poll(() => kit.registry.connections().streams).toBe(0);
    now += 2 * MINUTE;
    expect((await list()).map(({ name, ready }) => [name, ready])).toEqual([['us-1', false]]);
    now += 2 * DAY;
  });

  test('attack: made-up sources fill neither the table nor an answer, and push out the oldest first', async () => {
    now = NOW;
    await say('kept-sidecar', 1, { name: 'kept', since: iso(NOW) });
    await fill(MOST_SOURCES - (await totals.sources()).length);
    expect(await totals.sources()).toHaveLength(MOST_SOURCES);
    for (let n = 0; n < 5; n++)
      await say(`flooding-${n}`, 1, { name: 'x'.repeat(255), reasons: Array<string>(20).fill('y'.repeat(500)) });
    const sources = await totals.sources();
    expect(sources).toHaveLength(MOST_SOURCES);
    const names = new Set(sources.map(({ source }) => source));
    expect(
      ['made-up-1', 'made-up-5', 'made-up-6', 'kept-sidecar', 'flooding-4'].map((name) => names.has(name)),
    ).toEqual([...[false, false, true, true, true]]);
    // The next batch of one that is known changes nothing else.
    await say('kept-sidecar', 2, { name: 'kept' });
    expect(await totals.sources()).toHaveLength(MOST_SOURCES);
    const body = { source: 'too-long', seq: 1, rows: [], status: { name: 'x'.repeat(256) } };
    expect((await kit.ask('POST', '/v1/ledger/totals', { auth: LEDGER_KEY, body })).status).toBe(422);
  });

  test('refuses: the list of sidecars for programs', async () => {
    for (const auth of [undefined, SDK_KEY, LEDGER_KEY])
      expect((await kit.ask('GET', '/v1/sidecars', { auth })).status).toBe(401);
  });
});
