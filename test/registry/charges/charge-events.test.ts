// Streams of charges, over real registries and both kinds of store: each change of state, whichever process made it.
import { join } from 'node:path';
import { SignJWT } from 'jose';
import { afterAll, afterEach, describe, expect, test } from 'vitest';
import type { Claim } from '../../../src/domain/payment/charge.ts';
import type { Ledger } from '../../../src/domain/payment/ledger.ts';
import type { ChargeChange } from '../../../src/domain/payment/reports.ts';
import { createLog } from '../../../src/host/log.ts';
import { SPELLING } from '../../../src/gateway/rails/rails.ts';
import { ledgerOf, type StoredLedger } from '../../../src/registry/store/stored-ledger.ts';
import { openLedger } from '../../support/sqlite-ledger.ts';
import { claimOf, OTHER_ROUTE, proofOf, ROUTE_ID } from '../../cases/claims.ts';
import { hasPostgres } from '../../postgres/server.ts';
import { freshDatabase, openTestStore, stopSharedPostgres } from '../../postgres/store.ts';
import { openEvents, SECRET, startRegistry, temporaryFolder, type Kit } from '../kit.ts';

const EVENTS = '/v1/billing/charges/events';
const log = createLog('error', () => undefined, Date.now);

type World = {
  readonly kit: Kit;
  /** The ledger of another process on the same store. */
  readonly other: StoredLedger;
  readonly pass: (ms: number) => void;
};
const closing: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});
afterAll(stopSharedPostgres);

const STORES: readonly (readonly [string, boolean, () => Promise<World>])[] = [
  [
    'SQLite',
    true,
    async () => {
      const { folder, remove } = temporaryFolder();
      closing.push(remove);
      const file = join(folder, 'tollgate.db');
      let shift = 0;
      const now = (): number => Date.now() + shift;
      const kit = await startRegistry({ file, now });
      closing.push(kit.close);
      const other = openLedger(file, { now, log });
      closing.push(other.close);
      return { kit, other, pass: (ms) => void (shift += ms) };
    },
  ],
  [
    'PostgreSQL',
    hasPostgres,
    async () => {
      const database = await freshDatabase();
      let shift = 0;
      const [own, theirs] = [
        await openTestStore(database, { shift: () => shift }),
        await openTestStore(database, { shift: () => shift }),
      ];
      const kit = await startRegistry({ now: () => Date.now() + shift, reports: ledgerOf(own.charges, SPELLING) });
      closing.push(own.close, theirs.close, kit.close);
      return { kit, other: ledgerOf(theirs.charges, SPELLING), pass: (ms) => void (shift += ms) };
    },
  ],
];

const step = async (ledger: Ledger, claim: Claim, until: 'claimed' | 'settling' | 'settled' | 'delivered') => {
  await ledger.claim(claim, { owner: 'o', leaseMs: 60_000, maxUnsettledPerPayer: 1000 });
  const events = [
    { kind: 'settle_started', via: 'v', leaseMs: 60_000 },
    { kind: 'settled', proof: proofOf(claim), leaseMs: 60_000 },
    { kind: 'delivered', partial: false },
  ] as const;
  const count = { claimed: 0, settling: 1, settled: 2, delivered: 3 }[until];
  for (const event of events.slice(0, count)) await ledger.advance(claim.id, event, { owner: 'o' });
};

type Opened = Awaited<ReturnType<typeof openEvents>>;
const listen = async (
  { kit }: World,
  query = '',
  headers: Record<string, string> = {},
  name = 'ops',
): Promise<Opened> => {
  const issuedAt = Math.floor(kit.clock.now() / 1000);
  const auth = await new SignJWT({})
    .setProtectedHeader({ alg: 'HS256', typ: 'JWT' })
    .setSubject(name)
    .setIssuer('tollgate')
    .setAudience('dashboard')
    .setIssuedAt(issuedAt)
    .setExpirationTime(issuedAt + 3600)
    .sign(Buffer.from(SECRET));
  const stream = await openEvents(kit.port, { Authorization: `Bearer ${auth}`, ...headers }, EVENTS + query);
  closing.push(stream.close);
  return stream;
};
type Told = { readonly event: string; readonly id: string; readonly data: Record<string, unknown> };
const next = async (stream: Opened): Promise<Told> => (await stream.next()) as Told;
/** How many of these a stream is told, with no more than 50 of one second. */
function toldOf(changes: readonly ChargeChange[]): number {
  let [told, second, ofSecond] = [0, 0, 0];
  for (const { at } of changes) {
    if (Math.floor(at / 1000) !== second) [second, ofSecond] = [Math.floor(at / 1000), 0];
    ofSecond += 1;
    if (ofSecond <= 50) told += 1;
  }
  return told;
}
const named = ({ event, data }: Told): string => `${event} ${String(data['id'])} ${String(data['status'])}`;

for (const [name, isThere, open] of STORES) {
  describe.skipIf(!isThere)(name, () => {
    test('behaviour: each change of a charge’s state is told as the charge stood then, whichever process made it', async () => {
      const world = await open();
      const stream = await listen(world);
      expect([stream.status, stream.headers['content-type']]).toEqual([200, 'text/event-stream']);
      await stream.until('\nid: ');
      await step(world.other, claimOf(1), 'delivered');
      const told = [await next(stream), await next(stream), await next(stream), await next(stream)];
      expect(told.map(named)).toEqual([
        ...['charge chg_test-1 claimed', 'charge chg_test-1 settling', 'charge chg_test-1 settled'],
        'charge chg_test-1 delivered',
      ]);
      const [claimed, , settled, delivered] = told.map(({ data }) => data);
      expect(claimed).toMatchObject({ transaction: null, settled_at: null, delivered_at: null, charged: false });
      expect(settled).toMatchObject({
        transaction: proofOf(claimOf(1)).transaction,
        delivered_at: null,
        charged: true,
      });
      expect(delivered).toMatchObject({ delivered_at: expect.any(String), network_name: 'base-sepolia' });
      const ids = told.map(({ id }) => Number(id));
      expect(ids).toEqual([0, 1, 2, 3].map((n) => (ids[0] ?? 0) + n));
      // What changes no state is no event.
      await world.other.renew('o', ['chg_test-1'], 1000);
      await step(world.other, claimOf(2), 'claimed');
      expect(named(await next(stream))).toBe('charge chg_test-2 claimed');
    });

    test('behaviour: a stream is told what fits its states and its route', async () => {
      const world = await open();
      const byState = await listen(world, '?status=settled,released');
      const byRoute = await listen(world, `?route_id=${OTHER_ROUTE}`);
      await Promise.all([byState.until('\nid: '), byRoute.until('\nid: ')]);
      await step(world.other, claimOf(1), 'delivered');
      await step(world.other, claimOf(2, { route: { id: OTHER_ROUTE, method: 'GET', pattern: '/x' } }), 'settled');
      expect([await next(byState), await next(byState)].map(named)).toEqual([
        ...['charge chg_test-1 settled', 'charge chg_test-2 settled'],
      ]);
      expect(named(await next(byRoute))).toBe('charge chg_test-2 claimed');
      for (const bad of ['?status=paid', '?currency=USD'])
        expect((await world.kit.dashboard('GET', EVENTS + bad)).status).toBe(400);
    });

    test('behaviour: Last-Event-ID resumes a stream of charges, with nothing lost and nothing twice; after 5 minutes it is a reset', async () => {
      const world = await open();
      const first = await listen(world);
      await first.until('\nid: ');
      await step(world.other, claimOf(1), 'claimed');
      const { id } = await next(first);
      first.close();
      await step(world.other, claimOf(1), 'settled');
      const again = await listen(world, '', { 'Last-Event-ID': id });
      expect([await next(again), await next(again)].map(named)).toEqual([
        ...['charge chg_test-1 settling', 'charge chg_test-1 settled'],
      ]);
      again.close();
      for (const unknown of ['999999999', 'x', '-1']) {
        const reset = await listen(world, '', { 'Last-Event-ID': unknown });
        expect((await next(reset)).event).toBe('reset');
        reset.close();
      }
      world.pass(5 * 60_000 + 1000);
      await step(world.other, claimOf(3), 'claimed');
      const late = await listen(world, '', { 'Last-Event-ID': id });
      expect((await next(late)).event).toBe('reset');
      await step(world.other, claimOf(4), 'claimed');
      expect(named(await next(late))).toBe('charge chg_test-4 claimed');
    });

    test('behaviour: if a stream is to tell more than 50 changes in one second, the rest is counted', async () => {
      const world = await open();
      const stream = await listen(world, `?route_id=${ROUTE_ID}`);
      await stream.until('\nid: ');
      await Promise.all(Array.from({ length: 400 }, (_, n) => step(world.other, claimOf(n + 1), 'claimed')));
      let [told, skipped] = [0, 0];
      while (told + skipped < 400) {
        const event = await next(stream);
        if (event.event === 'charge') told += 1;
        else skipped += Number(event.data['count']);
      }
      expect(told + skipped).toBe(400);
      expect(skipped).toBeGreaterThan(0);
      // A slow machine makes them in more than one second.
      expect(told).toBe(toldOf(await world.other.changesAfter(0, 500)));
    });
  });
}

test('behaviour: a stream ends when its token does', async () => {
  const [, , open] = STORES[0] ?? [];
  const world = await open?.();
  if (world === undefined) throw new Error('no store');
  const stream = await listen(world);
  await stream.until('\nid: ');
  world.pass(3_601_000);
  await stream.closed;
});

test('attack: an eleventh stream of one subject and a 101st in all are refused, until one ends', async () => {
  const [, , open] = STORES[0] ?? [];
  const world = await open?.();
  if (world === undefined) throw new Error('no store');
  const streams: Opened[] = [];
  for (let n = 0; n < 100; n++) streams.push(await listen(world, '', {}, `subject-${Math.floor(n / 10)}`));
  expect(new Set(streams.map(({ status }) => status))).toEqual(new Set([200]));
  expect((await listen(world, '', {}, 'subject-0')).status).toBe(429);
  const another = await listen(world, '', {}, 'somebody else');
  expect([another.status, Number(another.headers['retry-after']) > 0]).toEqual([429, true]);
  streams[99]?.close();
  await expect.poll(async () => (await listen(world, '', {}, 'somebody else')).status).toBe(200);
});

test('refuses: a stream without a token; a ledger that is away is 503', async () => {
  const kit = await startRegistry({ withoutLedger: true });
  closing.push(kit.close);
  expect((await kit.ask('GET', EVENTS)).status).toBe(401);
  expect((await kit.dashboard('GET', EVENTS)).json.code).toBe('ledger_unavailable');
});
