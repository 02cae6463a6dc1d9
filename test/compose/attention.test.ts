// What needs somebody, over real stores of each kind and two processes that share one: what is raised when it happens and cleared
// when it is over, once among all of them, and what webhooks are told of it. The clock is the test's.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createAttention, type Attention } from '../../src/compose/attention.ts';
import { watchRegistry } from '../../src/compose/registry-attention.ts';
import { storeReadiness } from '../../src/compose/readiness.ts';
import { finding, planAttention, type AttentionFinding } from '../../src/domain/attention/attention.ts';
import {
  judgeClock,
  judgeFacilitator,
  judgeSync,
  LOW_BYTES,
  LOW_SHARE,
  STALE_MS,
} from '../../src/domain/attention/judgements.ts';
import { concludeAttempt } from '../../src/domain/webhooks/attempt-outcome.ts';
import type { DueDelivery } from '../../src/domain/webhooks/webhook-store.ts';
import { createRandom } from '../../src/host/clock.ts';
import { SPELLING } from '../../src/gateway/rails/rails.ts';
import { ledgerOf, type StoredLedger } from '../../src/registry/store/stored-ledger.ts';
import type { Store, StoreStats } from '../../src/registry/store/ports.ts';
import { sqlitePlace } from '../../src/registry/store/sqlite/place.ts';
import { claimOf } from '../cases/claims.ts';
import { hasPostgres } from '../postgres/server.ts';
import { freshDatabase, openTestStore, silent, stopSharedPostgres } from '../postgres/store.ts';
import { temporaryFolder } from '../registry/kit.ts';

afterAll(stopSharedPostgres);

const MINUTE = 60_000;
const GIB = 1_073_741_824;
const ROOM: StoreStats = { files: {}, freeBytes: 100 * GIB, volumeBytes: 200 * GIB };

/** One process of a registry with what a test may break of it. */
type Process = {
  readonly attention: Attention;
  readonly store: Store;
  readonly ledger: StoredLedger;
  stats: StoreStats;
  differences: number;
  differing: ('receivers' | 'api_keys')[];
  ledgerFails: boolean;
};

let offset = 0;
let steps: (() => void)[] = [];
let closers: (() => void | Promise<void>)[] = [];
beforeEach(() => {
  [offset, steps, closers] = [0, [], []];
});
afterEach(async () => {
  for (const close of closers.toReversed()) await close();
});
const now = (): number => Date.now() + offset;
const clock = { now, monotonic: (): number => performance.now() + offset };

function startOn(store: Store): Process {
  const ledger = ledgerOf({ ...store.charges, now: store.isShared ? store.charges.now : now }, SPELLING);
  const attention = createAttention({ schedule: (_ms, run) => (steps.push(run), () => undefined), now, log: silent });
  const process: Process = {
    ...{ attention, store, ledger, stats: ROOM, differences: 0, differing: [], ledgerFails: false },
  };
  const write = async (): Promise<void> => {
    if (process.ledgerFails) throw new Error('The disk is full.');
  };
  const difference = { route: 'GET /a', field: 'amount' };
  watchRegistry(attention, {
    store: { ...store, stats: async () => process.stats },
    ledger,
    readiness: storeReadiness(write, { clock, log: silent }, { isShared: store.isShared, hasProxy: true }),
    registry: {
      differences: () => Array.from({ length: process.differences }, () => difference) as never,
      contacts: () => new Map(),
    },
    differing: () => process.differing,
    ...{ clock, random: createRandom() },
  });
  closers.push(() => attention.close());
  return process;
}

async function openSqlite(): Promise<Store> {
  const { folder, remove } = temporaryFolder();
  const store = await sqlitePlace(join(folder, 'tollgate.db')).open({
    random: createRandom(),
    now,
    log: silent,
    as: 'server',
  });
  closers.push(async () => {
    await store.close();
    remove();
  });
  return store;
}
async function openPostgres(url: string): Promise<Store> {
  const store = await openTestStore(url);
  closers.push(() => store.close());
  return store;
}
const told = async ({ attention }: Process): Promise<string[]> =>
  (await attention.ask()).map(({ code, subject }) => `${code} ${subject}`.trim());

const STORES: readonly (readonly [string, () => Promise<Store>])[] = [
  ['SQLite', openSqlite],
  ...(hasPostgres ? ([['PostgreSQL', async () => openPostgres(await freshDatabase())]] as const) : []),
];

test('behaviour: a store that keeps its callers waiting does not keep a readiness probe', async () => {
  const attention = createAttention({ schedule: (_ms, run) => (steps.push(run), () => undefined), now, log: silent });
  closers.push(() => attention.close());
  let asked = 0;
  const findings = [finding('store_low', 'There is little room.')];
  let answer = Promise.resolve(findings);
  attention.add(() => ((asked += 1), answer));
  attention.add(() => [finding('config_differs', 'Two routes differ.')]);
  const told = ['There is little room.', 'Two routes differ.'];
  expect((await attention.check.run()).detail).toBe(told.join(' '));
  const { promise, resolve } = Promise.withResolvers<typeof findings>();
  answer = promise;
  // What was found last stands, and the source is asked once however often the probe comes.
  for (let probe = 0; probe < 3; probe += 1) {
    const checking = attention.check.run();
    while (steps.length > 0) steps.pop()?.();
    expect((await checking).detail).toBe(told.join(' '));
  }
  expect(asked).toBe(2);
  resolve([]);
  await promise;
  answer = promise;
  await expect.poll(async () => (await attention.check.run()).detail).toBe(told[1]);
});

describe.each(STORES)('what needs somebody: %s', (_name, open) => {
  test('behaviour: each thing is raised when it happens, worst first, and cleared when it is over', async () => {
    const one = startOn(await open());
    expect(await told(one)).toEqual([]);
    // A settlement whose end nobody knows, claimed six minutes ago.
    const id = claimOf(1).id;
    const owner = { owner: 'run/one' };
    await one.ledger.claim(claimOf(1), { ...owner, leaseMs: 1_000, maxUnsettledPerPayer: 9 });
    await one.ledger.advance(id, { kind: 'settle_started', via: 'x', leaseMs: 1_000 }, owner);
    await one.ledger.advance(id, { kind: 'settle_unknown', reason: 'timeout', lookInMs: 999_999_999 }, owner);
    expect(await told(one)).toEqual([]);
    const { unknown } = await one.ledger.alarms();
    expect(unknown).toEqual({ count: 0, since: null });
    one.stats = { ...ROOM, freeBytes: GIB - 1 };
    one.differences = 2;
    one.differing = ['receivers'];
    one.ledgerFails = true;
    offset += 6 * MINUTE;
    const all = await one.attention.ask();
    const isShared = one.store.isShared;
    expect(all.map(({ code, subject, severity, count }) => [code, subject, severity, count])).toEqual([
      // The clock of a shared ledger is the database's own, which does not move with the test's.
      ...(isShared ? [] : [['settlement_unknown', '', 'page', 1]]),
      ['ledger_unavailable', '', 'page', 1],
      ['store_low', '', 'ticket', 1],
      ['config_differs', 'routes', 'ticket', 2],
      ['config_differs', 'receivers', 'ticket', 1],
      ...(isShared ? [['clock_off', '', 'ticket', 1]] : []),
    ]);
    for (const { detail } of all) expect(detail).toMatch(/^[A-Z0-9].*[^.][.]$/);
    expect((await one.attention.check.run()).detail).toContain('The disk is full. Free routes');
    const word = { kind: 'failed', by: 'operator', reason: 'never moved' } as const;
    expect((await one.ledger.advance(id, word, { owner: 'operator-1' })).kind).toBe('ok');
    one.stats = ROOM;
    one.differences = 0;
    one.differing = [];
    one.ledgerFails = false;
    if (isShared) offset = 0;
    expect(await told(one)).toEqual([]);
    expect(await one.attention.check.run()).toMatchObject({ ok: true });
  });

  test('behaviour: a webhook that fails and one that is disabled are raised with what they said, and cleared when they take events', async () => {
    const one = startOn(await open());
    const { webhooks } = one.store.charges;
    await webhooks.declare([{ id: 'books', types: [] }], undefined);
    const endpointId = 'books';
    const lines = async (): Promise<unknown[]> =>
      (await one.attention.ask()).map(({ code, subject, severity, count }) => [code, subject, severity, count]);
    const send = (): Promise<unknown> => webhooks.tell({ type: 'test', subject: '', content: '{}', endpointId });
    const rooms = [{ endpointId, free: 16, busy: [] }];
    const due = async (): Promise<readonly DueDelivery[]> => {
      const turn = await webhooks.turn({ sender: 'one', results: [], rooms });
      return turn.kind === 'ours' ? turn.due : [];
    };
    /** What is due gets `status` for an answer. */
    const answer = async (status: number): Promise<void> => {
      const said = { kind: 'answered', status, retryAfter: undefined, beginning: '' } as const;
      const times = { at: webhooks.now(), endedAt: webhooks.now(), durationMs: 1, draw: 0.5 };
      const results = (await due()).map((delivery) => concludeAttempt(delivery, said, times));
      expect(results.length).toBeGreaterThan(0);
      await webhooks.turn({ sender: 'one', results, rooms: [] });
    };
    await send();
    await send();
    expect(await lines()).toEqual([]);
    await answer(500);
    expect(await lines()).toEqual([['webhook_failing', 'books', 'ticket', 2]]);
    expect((await one.attention.ask())[0]?.detail).toContain('(it answered 500); 2 wait');
    await send();
    await answer(204);
    expect(await lines()).toEqual([]);
    await send();
    await answer(410);
    const [gone, ...others] = await one.attention.ask();
    expect([gone?.code, gone?.subject, gone?.link, others]).toEqual([
      ...['webhook_disabled', 'books', '/desk/keys?webhook=books', []],
    ]);
    expect(gone?.detail).toMatch(/switched off \(it answered 410\).*`tollgate webhooks enable books`/);
    await webhooks.enable('books');
    expect(await lines()).toEqual([]);
    await expect.poll(async () => (await due()).length).toBeGreaterThan(0);
    await answer(500);
    expect(await lines()).toMatchObject([['webhook_failing', 'books', 'ticket', 3]]);
    // An endpoint that no configuration names any more needs nobody.
    await webhooks.declare([{ id: 'other', types: [] }], webhooks.now());
    expect(await lines()).toEqual([]);
  });

  test('behaviour: what sidecars report stands under their names, and one that reports no more is silent', async () => {
    const { charges } = await open().then((store) => startOn(store).store);
    const store = { ...(await open()), charges };
    const one = startOn(store);
    const status = (attention: readonly AttentionFinding[], ending = false): string =>
      JSON.stringify({
        ...{
          name: 'edge-1',
          version: '0.1.0',
          since: '2026-01-01T00:00:00Z',
          revision: 1,
          ready: true,
          reasons: [],
          ending,
        },
        attention: attention.map(({ link: _link, ...each }) => each),
      });
    const report = (seq: number, json: string): Promise<unknown> =>
      charges.totals.add({ source: 'sidecar-instance-1', seq, rows: [], status: json });
    await report(1, status(judgeSync(301_000, 'another registry id', 'edge-1')));
    expect(await told(one)).toEqual(['sync_stale edge-1', 'routes_held_back edge-1']);
    await report(2, status(judgeFacilitator('f.example.com', 'slow', true)));
    expect(await told(one)).toEqual(['facilitator_failing f.example.com']);
    // What has no name of its own has the sidecar's, so that it is not taken for the registry's.
    await report(3, status(judgeClock(-9_000, 'the registry')));
    expect(await told(one)).toEqual(['clock_off edge-1']);
    await report(4, status([]));
    expect(await told(one)).toEqual([]);
    if (one.store.isShared) return;
    offset += MINUTE + 1_000;
    expect(await told(one)).toEqual(['sidecar_silent edge-1']);
    await report(5, status([]));
    expect(await told(one)).toEqual([]);
    await report(6, status([], true));
    offset += 2 * MINUTE;
    expect(await told(one)).toEqual([]);
  });
});

test.runIf(hasPostgres)(
  'behaviour: two processes that find the same raise it once and clear it once, and webhooks are told as often',
  async () => {
    const url = await freshDatabase();
    const [one, two] = [startOn(await openPostgres(url)), startOn(await openPostgres(url))];
    const { webhooks } = one.store.charges;
    await webhooks.declare([{ id: 'books', types: ['attention.raised', 'attention.cleared'] }], undefined);
    const low = { ...ROOM, freeBytes: 1 };
    [one.stats, two.stats] = [low, low];
    const both = await Promise.all([told(one), told(two), told(one), told(two)]);
    expect(both.every((each) => each.join() === 'store_low')).toBe(true);
    one.stats = ROOM;
    expect(await told(one)).toEqual(['store_low']);
    two.stats = ROOM;
    expect(await told(two)).toEqual([]);
    expect(await told(one)).toEqual([]);
    const deliveries = await webhooks.deliveries({ endpointId: 'books', limit: 10 });
    expect(deliveries.map(({ event }) => event.type).toSorted()).toEqual(['attention.cleared', 'attention.raised']);
    expect(JSON.parse(deliveries[0]?.event.content ?? '')).toMatchObject({ code: 'store_low', severity: 'ticket' });
  },
);

test('behaviour: of many processes the first raises and the last clears, since the first found it, as bad as the worst says', () => {
  const found = finding('store_low', 'It is full.');
  const at = (source: string, since: number, seenAt: number, severity: 'page' | 'ticket' = 'ticket') => ({
    ...{ ...found, source, since, seenAt, severity },
  });
  const first = planAttention([], 'a', [found], 1_000);
  expect([first.raised.length, first.cleared.length, first.write.length]).toEqual([1, 0, 1]);
  const second = planAttention([at('a', 1_000, 1_000)], 'b', [{ ...found, severity: 'page' }], 2_000);
  expect(second).toMatchObject({ raised: [], cleared: [], entries: [{ since: 1_000, severity: 'page' }] });
  // It is said again now and then, and nothing is written in between.
  expect(planAttention([at('a', 1_000, 9_000)], 'a', [found], 10_000).write).toEqual([]);
  expect(planAttention([at('a', 1_000, 9_000)], 'a', [found], 60_000).write).toMatchObject([{ since: 1_000 }]);
  // One that died has said nothing for a minute.
  const gone = planAttention([at('a', 1_000, 1_000)], 'b', [], 70_000);
  expect([gone.cleared.length, gone.remove.length, gone.entries.length]).toEqual([1, 1, 0]);
  const last = planAttention([at('a', 1, 9_000), at('b', 1, 9_000)], 'a', [], 10_000);
  expect([last.cleared.length, last.remove.length, last.entries.length]).toEqual([0, 1, 1]);
});

test('behaviour: the alerts that are shipped go by the same limits as what the desk says', () => {
  const alerts = readFileSync(new URL('../../config/prometheus/alerts.yml', import.meta.url), 'utf8');
  const exprOf = (name: string): string => alerts.split(`alert: ${name}\n`)[1]?.split('for:')[0] ?? '';
  expect(exprOf('TollgateRoutesStale')).toContain(`> ${STALE_MS / 1000}`);
  expect(exprOf('TollgateStoreVolumeFull')).toContain(`< ${LOW_BYTES}`);
  expect(exprOf('TollgateStoreVolumeFull')).toContain(`< ${LOW_SHARE}`);
});
