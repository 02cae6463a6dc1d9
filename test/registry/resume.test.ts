// Many streams that resume at once: after a restart of a balancer, or because somebody wants to. Nothing else of the
// process may wait for them.
import { setTimeout as wait } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { afterAll, afterEach, describe, expect, test, vi } from 'vitest';
import type { Store } from '../../src/registry/store/ports.ts';
import { hasPostgres } from '../postgres/server.ts';
import { freshDatabase, openTestStore, sharedPostgres, stopSharedPostgres } from '../postgres/store.ts';
import { declared, SDK_KEY, startRegistry, type Kit } from './kit.ts';
import type { Resumed, Resuming } from './resuming-clients.ts';
import { threadMs } from '../support/thread-time.ts';

const STREAMS = 500;
const CHANGES = 8_000;
/** What a request may have to wait. */
const MOST_MS = 100;

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});
afterAll(stopSharedPostgres);

const patterns = (amount: string, count: number): ReturnType<typeof declared> =>
  declared(Array.from({ length: count }, (_, index) => ({ route_pattern: `/r/${index}`, method: 'GET', amount })));

async function onSqlite(count: number): Promise<Kit> {
  const kit = await startRegistry();
  closing.push(kit.close);
  await kit.registry.declare(patterns('1', count), 'start');
  return kit;
}

async function onPostgres(count: number): Promise<Kit> {
  const url = await freshDatabase();
  const filled = await openTestStore(url);
  const first = await startRegistry({ store: filled });
  await first.registry.declare(patterns('1', 1), 'start');
  await first.close();
  await filled.close();
  // Writing them one by one would take longer than the test.
  const columns = (table: string): string =>
    `(SELECT string_agg(CASE column_name WHEN 'seq' THEN 'n' WHEN 'revision' THEN 'n'
        WHEN 'id' THEN 'replace(id, substr(id, 1, 8), lpad(n::text, 8, ''0''))'
        WHEN 'route_id' THEN 'replace(route_id, substr(route_id, 1, 8), lpad(n::text, 8, ''0''))'
        WHEN 'pattern_key' THEN '''/r/'' || (n - 1)' WHEN 'route_pattern' THEN '''/r/'' || (n - 1)'
        WHEN 'after' THEN 'replace(replace(after, substr(route_id, 1, 8), lpad(n::text, 8, ''0'')), ''/r/0'', ''/r/'' || (n - 1))'
        ELSE quote_ident(column_name) END, ', ' ORDER BY ordinal_position)
      FROM information_schema.columns WHERE table_schema = 'tollgate' AND table_name = '${table}')`;
  const server = await sharedPostgres();
  const database = new URL(url).pathname.slice(1);
  for (const table of ['routes', 'changes']) {
    const [row] = await server.query(`SELECT ${columns(table)} AS list`, database);
    await server.query(
      `INSERT INTO tollgate.${table} SELECT ${String(row?.['list'])} FROM tollgate.${table}, generate_series(2, ${count}) AS n`,
      database,
    );
  }
  await server.query(`UPDATE tollgate.meta SET revision = ${count}`, database);
  const store: Store = await openTestStore(url);
  closing.push(store.close);
  const kit = await startRegistry({ store });
  closing.push(kit.close);
  return kit;
}

async function resume(kit: Kit, rest: Partial<Resuming> = {}): Promise<Resumed> {
  const workerData: Resuming = {
    ...{ port: kit.port, key: SDK_KEY, streams: STREAMS, lastSeen: 1, until: CHANGES },
    ...rest,
  };
  const worker = new Worker(new URL('./resuming-clients.ts', import.meta.url), { workerData });
  closing.push(async () => void (await worker.terminate()));
  const resumed = await new Promise<Resumed>((resolve, reject) => {
    worker.once('message', resolve);
    worker.once('error', reject);
  });
  await worker.terminate();
  await vi.waitFor(() => expect(kit.registry.connections().streams).toBe(0));
  return resumed;
}

/**
 * The longest time of this thread's processor for which nothing else had its turn while `work` went on, and the time that
 * all of it took.
 */
async function longestTurn(work: Promise<unknown>): Promise<{ readonly longest: number; readonly whole: number }> {
  let longest = 0;
  const begun = threadMs();
  const going = new Set([work]);
  void work.finally(() => going.clear()).catch(() => undefined);
  for (let before = threadMs(); going.size > 0; before = threadMs()) {
    await wait(1);
    longest = Math.max(longest, threadMs() - before);
  }
  return { longest, whole: threadMs() - begun };
}

test('behaviour: 500 streams that missed more changes than there are routes are told to read the set', async () => {
  const kit = await onSqlite(20);
  for (let price = 2; price <= 6; price++) await kit.registry.declare(patterns(String(price), 20), 'start');
  expect(await resume(kit, { until: 120 })).toMatchObject({ done: STREAMS, resets: STREAMS });
  expect(await resume(kit, { streams: 9, lastSeen: 100, until: 120 })).toMatchObject({ done: 9, resets: 0, wrong: 0 });
});

describe.each([
  ['SQLite', onSqlite, false],
  ['PostgreSQL', onPostgres, !hasPostgres],
] as const)('500 streams that resume at once: %s', (_, open, skipped) => {
  test.skipIf(skipped)(
    'attack: streams that missed 8,000 changes each keep nothing else waiting over 100 ms, and get all of them in order',
    async () => {
      const kit = await open(CHANGES);
      const resumed = resume(kit);
      const { longest, whole } = await longestTurn(resumed);
      // A slow machine takes longer for all of it.
      expect(longest).toBeLessThan(Math.max(MOST_MS, whole / 10));
      expect(await resumed).toMatchObject({ done: STREAMS, resets: 0, wrong: 0 });
    },
  );
});
