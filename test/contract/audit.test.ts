// The contract of stores for the audit log, over every kind: each change leaves one entry in its own transaction, none is without
// its change, and people find what they look for among a million.
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest';
import { NOBODY, type AuditCause, type AuditEntry } from '../../src/domain/audit.ts';
import { createLedger, type Ledger } from '../../src/domain/payment/ledger.ts';
import type { ChargeEvent } from '../../src/domain/payment/transition.ts';
import { concludeAttempt, type WebhookAnswer } from '../../src/domain/webhooks/attempt-outcome.ts';
import type { AttemptResult, DueDelivery, WebhookStore } from '../../src/domain/webhooks/webhook-store.ts';
import { SPELLING } from '../../src/gateway/rails/rails.ts';
import { createRandom } from '../../src/host/clock.ts';
import type { AuditFilter } from '../../src/registry/store/audit-ports.ts';
import type { NewSession } from '../../src/registry/store/desk-ports.ts';
import type { NewKey, RouteWrite, Store } from '../../src/registry/store/ports.ts';
import { openStore } from '../../src/registry/store/sqlite/store.ts';
import { storedRoute as route } from '../cases/routes.ts';
import { hasPostgres } from '../postgres/server.ts';
import { freshDatabase, openTestStore, silent, stopSharedPostgres } from '../postgres/store.ts';
import { claimOf, proofOf } from '../cases/claims.ts';
import { temporaryFolder } from '../registry/kit.ts';
import { openLedger } from '../support/sqlite-ledger.ts';

type Opened = Pick<Store, 'routes' | 'apiKeys' | 'desk' | 'audit'> & {
  readonly ledger: Ledger;
  readonly webhooks: WebhookStore;
  readonly close: () => void | Promise<void>;
};

afterAll(stopSharedPostgres);

const IMPLEMENTATIONS: readonly (readonly [string, () => Promise<Opened>])[] = [
  [
    'SQLite',
    async () => {
      const { folder, remove } = temporaryFolder();
      const file = join(folder, 'tollgate.db');
      const store = openStore(file, { random: createRandom(), busyMs: 5_000 });
      const ledger = openLedger(file, { now: Date.now, log: silent });
      const close = async (): Promise<void> => {
        await ledger.close();
        store.close();
        remove();
      };
      return { ...store, ledger, webhooks: ledger.store.webhooks, close };
    },
  ],
  ...(hasPostgres
    ? ([
        [
          'PostgreSQL',
          async () => {
            const store = await openTestStore(await freshDatabase());
            return { ...store, ledger: createLedger(store.charges, SPELLING), webhooks: store.charges.webhooks };
          },
        ],
      ] as const)
    : []),
];

const AT = Date.parse('2026-01-01T00:00:00.000Z');
const LATER = '2026-01-02T00:00:00.000Z';
const ANA: AuditCause = { actor: 'ana', via: 'jwt', requestId: 'r-1' };
const MANY = { maxRoutes: 100 };
const digestOf = (text: string): Buffer => createHash('sha256').update(text).digest();
const key = (id: string): NewKey => ({
  ...{ id, name: `name of ${id}`, scopes: ['sdk'], digest: digestOf(id) },
  ...{ createdAt: '2026-01-01T00:00:00.000Z', createdBy: 'ana' },
});
const session = (id: string): NewSession => ({
  ...{ id, digest: digestOf(id), keyDigest: digestOf(`key of ${id}`), subject: 'ana', role: 'viewer', via: 'link' },
  ...{ members: [], createdAt: AT, seenAt: AT, notAfter: null, origin: { address: '10.0.0.9', requestId: 'r-2' } },
});
const HOLDING = { createdAfter: 0, seenAfter: 0, now: AT };

describe.each(IMPLEMENTATIONS)('the audit log: %s', (_name, open) => {
  let store: Opened;
  beforeEach(async () => {
    store = await open();
  });
  afterEach(() => store.close());
  const entries = (filter: Partial<AuditFilter> = {}): ReturnType<Opened['audit']['list']> =>
    store.audit.list({ limit: 200, ...filter });

  test('behaviour: a route that is made, changed and deleted leaves one entry each, with what differs and who did it', async () => {
    const made = route('GET /a', { name: 'A' });
    const write = (writes: readonly RouteWrite[]): ReturnType<Opened['routes']['write']> =>
      store.routes.write(writes, MANY);
    await write([{ kind: 'insert', route: made, key: '/a', cause: ANA }]);
    const [was] = (await store.routes.load()).routes;
    if (was === undefined) throw new Error('no route');
    const dearer = { ...was, amount: '7', name: null, status: 'paused', updatedAt: LATER } as const;
    await write([{ kind: 'update', route: { ...dearer, writtenBy: 'api_key:app' }, key: '/a', was }]);
    const [now] = (await store.routes.load()).routes;
    if (now === undefined) throw new Error('no route');
    // What is not written leaves nothing: a duplicate, one that changed meanwhile, and one of which only the file's word changed.
    await write([
      { kind: 'insert', route: route('GET /a'), key: '/a', cause: ANA },
      { kind: 'update', route: { ...was, amount: '9' }, key: '/a', was, cause: ANA },
      { kind: 'update', route: { ...now, declared: null }, key: '/a', was: now, cause: ANA },
    ]);
    await write([{ kind: 'delete', was: now, by: 'config', at: LATER }]);
    const told = await entries({ subject: made.id });
    expect(told.map(({ kind, actor, via, requestId, at }) => [kind, actor, via, requestId, at])).toEqual([
      ['route.deleted', 'configuration', 'configuration', null, Date.parse(LATER)],
      ['route.updated', 'app', 'api_key', null, Date.parse(LATER)],
      ['route.created', 'ana', 'jwt', 'r-1', Date.parse(made.updatedAt)],
    ]);
    const [deleted, updated, created] = told;
    expect(updated).toMatchObject({
      from: { amount: was.amount, name: 'A', status: 'active' },
      to: { amount: '7', name: null, status: 'paused' },
    });
    expect(Object.keys(updated?.to ?? {}).toSorted()).toEqual(['amount', 'name', 'status']);
    expect([created?.from, created?.to]).toMatchObject([{}, { method: 'GET', route_pattern: '/a', name: 'A' }]);
    expect([deleted?.from, deleted?.to]).toMatchObject([{ amount: '7', route_pattern: '/a' }, {}]);
    expect(created?.to).not.toHaveProperty('description');
    expect(await entries()).toHaveLength(3);
  });

  test('behaviour: writes that are undone together leave no entry', async () => {
    const { revision } = (await store.routes.load()).head;
    const twice: readonly RouteWrite[] = ['/a', '/b', '/a'].map((pattern) => ({
      ...{ kind: 'insert', route: route(`GET ${pattern}`), key: pattern, cause: ANA },
    }));
    await expect(store.routes.write(twice, { ...MANY, ifRevision: revision })).rejects.toThrow('not written');
    expect(await entries()).toEqual([]);
    expect(await store.routes.write(twice, { ...MANY, ifRevision: 7 })).toBe('moved');
    expect(await entries()).toEqual([]);
  });

  test('behaviour: keys and sessions leave an entry when they are made and when they end, once, and nothing secret', async () => {
    expect(await store.apiKeys.insert(key('k1'), 1, ANA)).toBe('inserted');
    expect(await store.apiKeys.insert(key('k2'), 1, ANA)).toBe('full');
    expect(await store.apiKeys.revoke('k1', LATER, ANA)).toBe('revoked');
    expect(await store.apiKeys.revoke('k1', LATER, ANA)).toBe('already_revoked');
    expect(await store.apiKeys.revoke('k9', LATER, ANA)).toBe('unknown');
    expect(await store.desk.addSession(session('s1'), 1, HOLDING)).toBe('added');
    expect(await store.desk.addSession(session('s2'), 1, HOLDING)).toBe('full');
    expect(await store.desk.endSession('s1', { ...ANA, at: AT + 5 })).toBe(true);
    expect(await store.desk.endSession('s1', { ...ANA, at: AT + 5 })).toBe(false);
    expect(await store.desk.endAllSessions({ ...ANA, at: AT })).toBe(0);
    await store.desk.addSession(session('s3'), 1, HOLDING);
    expect(await store.desk.endAllSessions({ ...ANA, at: AT + 9 })).toBe(1);
    const told = (await entries()).map(({ n: _n, ...entry }) => entry);
    const by = { actor: 'ana', from: {} };
    expect(
      told.toSorted((a, b) => a.at - b.at || a.kind.localeCompare(b.kind) || a.subject.localeCompare(b.subject)),
    ).toEqual([
      { ...ANA, ...by, at: AT, kind: 'api_key.created', subject: 'k1', to: { name: 'name of k1', scopes: ['sdk'] } },
      ...['s1', 's3'].map((subject) => ({
        ...{ ...by, via: 'link', requestId: 'r-2', at: AT, kind: 'session.created', subject },
        to: { role: 'viewer', address: '10.0.0.9' },
      })),
      { ...ANA, ...by, at: AT + 5, kind: 'session.ended', subject: 's1', to: {} },
      { ...ANA, ...by, at: AT + 9, kind: 'session.ended', subject: '', to: { sessions: 1 } },
      {
        ...{ ...ANA, at: Date.parse(LATER), kind: 'api_key.revoked', subject: 'k1' },
        ...{ from: { revoked_at: null }, to: { revoked_at: LATER } },
      },
    ]);
    expect(JSON.stringify(told)).not.toContain(digestOf('k1').toString('hex'));
  });

  test('behaviour: a charge that an operator ends or refunds leaves an entry, and what a request does with it leaves none', async () => {
    const OPERATOR = { owner: 'operator-1', cause: { actor: 'root', via: 'command_line', requestId: null } } as const;
    const RUN = { owner: 'run/one' };
    const settling = async (n: number): Promise<string> => {
      const { id } = claimOf(n);
      await store.ledger.claim(claimOf(n), { ...RUN, leaseMs: 60_000, maxUnsettledPerPayer: 99 });
      await store.ledger.advance(id, { kind: 'settle_started', via: 'x', leaseMs: 60_000 }, RUN);
      await store.ledger.advance(id, { kind: 'settle_unknown', reason: 'timeout', lookInMs: 60_000 }, RUN);
      return id;
    };
    const said = async (id: string, event: ChargeEvent, actor = OPERATOR): Promise<string> =>
      (await store.ledger.advance(id, event, actor)).kind;
    const [failed, settled] = [await settling(1), await settling(2)];
    expect(await said(failed, { kind: 'failed', by: 'operator', reason: 'never moved' })).toBe('ok');
    expect(await said(failed, { kind: 'failed', by: 'operator', reason: 'again' })).toBe('conflict');
    const proof = proofOf(claimOf(2));
    expect(await said(settled, { kind: 'settled', proof, leaseMs: 0, by: 'operator' })).toBe('ok');
    expect(await said(settled, { kind: 'refunded', note: 'goodwill\0' })).toBe('ok');
    expect(await said(settled, { kind: 'refunded', note: 'twice' })).toBe('conflict');
    const told = await entries();
    expect(told.map(({ kind, subject, actor, via }) => [kind, subject, actor, via].join(' ')).toSorted()).toEqual([
      `charge.failed ${failed} root command_line`,
      `charge.refunded ${settled} root command_line`,
      `charge.settled ${settled} root command_line`,
    ]);
    const of = (kind: string): unknown => {
      const { from, to } = told.find((each) => each.kind === kind) ?? { from: {}, to: {} };
      return { from, to };
    };
    expect(of('charge.failed')).toEqual({
      from: { status: 'settling', reason: 'timeout' },
      to: { status: 'failed', reason: 'never moved' },
    });
    expect(of('charge.settled')).toMatchObject({
      from: { status: 'settling' },
      to: { transaction: proof.transaction },
    });
    expect(of('charge.refunded')).toMatchObject({
      from: { refunded_at: null },
      to: { refund_note: expect.stringContaining('goodwill') },
    });
  });

  test('behaviour: a webhook that is tested, sent to again, disabled by its endpoint and enabled leaves an entry each', async () => {
    const { webhooks } = store;
    const answers: readonly [WebhookAnswer, WebhookAnswer] = [
      { kind: 'answered', status: 500, retryAfter: undefined, beginning: 'out of memory' },
      { kind: 'answered', status: 410, retryAfter: undefined, beginning: 'no more\0' },
    ];
    const [failed, gone] = answers;
    const turn = async (results: readonly AttemptResult[] = []): Promise<DueDelivery> => {
      const rooms = [{ endpointId: 'books', free: 1, busy: [] }];
      const outcome = await webhooks.turn({ sender: 'one', results, rooms });
      const due = outcome.kind === 'ours' ? outcome.due[0] : undefined;
      if (due === undefined) throw new Error('nothing is due');
      return due;
    };
    const conclude = (due: DueDelivery, answer: WebhookAnswer): AttemptResult =>
      concludeAttempt(due, answer, { at: AT, endedAt: AT, durationMs: 5, draw: 0.5 });
    await webhooks.declare([{ id: 'books', types: [] }], undefined);
    const asked = { type: 'test', subject: '', content: '{}', endpointId: 'books' } as const;
    const event = await webhooks.tell(asked, ANA);
    const first = await turn();
    await webhooks.turn({ sender: 'one', results: [conclude(first, failed)], rooms: [] });
    expect(await webhooks.retry('books', event, ANA)).toBe(true);
    const again = await turn();
    const ended = [conclude(again, gone), conclude(again, gone)];
    await webhooks.turn({ sender: 'one', results: ended, rooms: [] });
    expect(await webhooks.enable('books', ANA)).toBe(true);
    // What changes nothing leaves none, and neither does an event that nobody asked for.
    expect([await webhooks.retry('books', 'evt_none', ANA), await webhooks.enable('nobody', ANA)]).toEqual([
      false,
      false,
    ]);
    await webhooks.tell({ type: 'attention.raised', subject: '', content: '{}' });
    const told = (await entries()).map(({ n: _n, at: _at, ...entry }) => entry);
    const books = { ...ANA, subject: 'books', from: {}, to: {} };
    expect(told.toSorted((a, b) => a.kind.localeCompare(b.kind))).toEqual([
      {
        ...{ ...books, ...NOBODY, kind: 'webhook.disabled', from: { status: 'failing' } },
        to: { status: 'disabled', last_error: 'it answered 410' },
      },
      { ...books, kind: 'webhook.enabled', from: { status: 'disabled' }, to: { status: 'ok' } },
      { ...books, kind: 'webhook.retried', to: { event_id: event } },
      { ...books, kind: 'webhook.tested', to: { event_id: event } },
    ]);
  });

  test('behaviour: a list is newest first by time, each filter is exact, and pages neither repeat nor leave out', async () => {
    const add = (at: number, more: Partial<AuditEntry> = {}): Promise<void> =>
      store.audit.add({
        ...ANA,
        at,
        kind: 'receiver.checked',
        subject: 'default',
        from: {},
        to: { ok: true },
        ...more,
      });
    // Clocks of two processes: a later entry may have an earlier time, and many have the same.
    for (const at of [5, 3, 3, 3, 9, 1]) await add(at);
    await add(4, { actor: 'ben\0', subject: "x' OR 1=1 --", kind: 'config.refused', to: { reason: 'é\0\u202E<b>' } });
    const all = await entries();
    expect(all.map(({ at }) => at)).toEqual([9, 5, 4, 3, 3, 3, 1]);
    const paged: number[] = [];
    for (let before: AuditFilter['before']; ;) {
      const page = await store.audit.list({ limit: 2, before });
      paged.push(...page.map(({ n }) => n));
      before = page.at(-1);
      if (page.length < 2) break;
    }
    expect(paged).toEqual(all.map(({ n }) => n));
    const times = async (filter: Partial<AuditFilter>): Promise<number[]> =>
      (await entries(filter)).map(({ at }) => at);
    expect(await times({ fromMs: 3, toMs: 5 })).toEqual([4, 3, 3, 3]);
    expect(await times({ kind: 'config.refused' })).toEqual([4]);
    expect(await times({ subject: "x' OR 1=1 --" })).toEqual([4]);
    expect(await times({ actor: 'ana', kind: 'receiver.checked', fromMs: 5 })).toEqual([9, 5]);
    expect(await times({ actor: 'an' })).toEqual([]);
    const [odd] = await entries({ kind: 'config.refused' });
    expect(String(odd?.to['reason']).replaceAll('\uFFFD', '\0')).toBe('é\0\u202E<b>');
  });

  test('behaviour: what is too old goes, and what is beyond the newest so many, a bounded part at a time', async () => {
    for (let at = 1; at <= 30; at++)
      await store.audit.add({ ...ANA, at, kind: 'receiver.checked', subject: '', from: {}, to: {} });
    expect(await store.audit.prune(11, 1_000)).toBe(false);
    expect((await entries()).map(({ at }) => at).at(-1)).toBe(11);
    expect(await store.audit.prune(0, 5)).toBe(false);
    expect((await entries()).map(({ at }) => at)).toEqual([30, 29, 28, 27, 26]);
    expect(await store.audit.prune(0, 5)).toBe(false);
    expect(await entries()).toHaveLength(5);
  });

  test('behaviour: long texts are cut, so that no caller fills the log with one entry', async () => {
    const long = 'x'.repeat(50_000);
    const to = Object.fromEntries(Array.from({ length: 300 }, (_, index) => [`m${index}`, long]));
    await store.audit.add({
      actor: long,
      via: 'jwt',
      requestId: null,
      at: 1,
      kind: 'config.taken',
      subject: long,
      from: {},
      to,
    });
    const [entry] = await entries();
    expect([entry?.actor.length, entry?.subject.length]).toEqual([200, 200]);
    expect(Object.keys(entry?.to ?? {})).toHaveLength(100);
    expect(JSON.stringify(entry).length).toBeLessThan(110_000);
  });
});
