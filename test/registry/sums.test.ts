// The endpoints about sums: overview, series and top routes, over both kinds of store, with a clock that stands.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { SPELLING } from '../../src/gateway/rails/rails.ts';
import { STEP_MS } from '../../src/domain/totals/steps.ts';
import { OTHER_ROUTES, type CountedRow, type TotalsStore } from '../../src/domain/totals/totals-store.ts';
import { ledgerOf, type StoredLedger } from '../../src/registry/store/stored-ledger.ts';
import { abroad, claimOf, NETWORK, proofOf } from '../cases/claims.ts';
import { countsOf, hourOf, minuteOf } from '../contract/totals.ts';
import { hasPostgres } from '../postgres/server.ts';
import { freshDatabase, openTestStore, stopSharedPostgres } from '../postgres/store.ts';
import { LEDGER_KEY, SDK_KEY, startRegistry, type Kit, type Reply } from './kit.ts';

const { minute: MINUTE, hour: HOUR, day: DAY } = STEP_MS;
/** Half a minute past noon. */
const NOW = Date.UTC(2026, 2, 10, 12, 0, 30);
const iso = (ms: number): string => new Date(ms).toISOString();

afterAll(stopSharedPostgres);

type Body = Record<string, unknown> & { detail: string };
const bodyOf = ({ body }: Reply): Body => JSON.parse(body.toString()) as Body;

const KINDS = ['SQLite', ...(hasPostgres ? ['PostgreSQL'] : [])];

describe.each(KINDS)('sums over HTTP, kept in %s', (kind) => {
  let kit: Kit;
  let ledger: StoredLedger;
  let totals: TotalsStore;
  let close = async (): Promise<void> => undefined;
  let routes: string[] = [];
  let shift = 0;

  const settle = async (claim: ReturnType<typeof claimOf>): Promise<void> => {
    await ledger.claim(claim, { owner: 'o', leaseMs: 60_000, maxUnsettledPerPayer: 100 });
    await ledger.advance(claim.id, { kind: 'settle_started', via: 'first', leaseMs: 60_000 }, { owner: 'o' });
    await ledger.advance(claim.id, { kind: 'settled', proof: proofOf(claim), leaseMs: 60_000 }, { owner: 'o' });
  };
  /** The clocks of the registry and of the store stand at `ms`. */
  const at = (ms: number): void => void (shift = ms);
  const get = async (path: string, query: Record<string, string | number> = {}): Promise<Reply> => {
    const search = new URLSearchParams(Object.entries(query).map(([name, value]) => [name, String(value)]));
    return kit.dashboard('GET', `/v1/billing/${path}?${search.toString()}`);
  };
  const ok = async (path: string, query: Record<string, string | number> = {}): Promise<Body> => {
    const reply = await get(path, query);
    expect([reply.status, reply.json.detail]).toEqual([200, undefined]);
    return bodyOf(reply);
  };

  beforeAll(async () => {
    at(NOW);
    const database = kind === 'SQLite' ? undefined : await freshDatabase();
    // Its clock is the server's: moved to where the test's stands.
    const shifted = { shift: () => shift - Date.now() };
    const store = database === undefined ? undefined : await openTestStore(database, shifted);
    const reports = store && ledgerOf(store.charges, SPELLING);
    kit = await startRegistry({ now: () => shift, ...(store && reports ? { reports, sums: store.charges } : {}) });
    ledger = reports ?? kit.ledger;
    ({ totals } = store?.charges ?? kit.ledger.store);
    close = async () => {
      await kit.close();
      await store?.close();
    };
    for (const pattern of ['/a', '/b', '/c']) {
      const body = { route_pattern: pattern, method: 'GET', amount: '0.10' };
      const { json } = await kit.dashboard('POST', '/v1/billing/protected-routes', { body });
      routes.push(json.id);
    }
    await kit.dashboard('PATCH', `/v1/billing/protected-routes/${routes[2]}`, { body: { status: 'paused' } });
    const [a = '', b = '', c = ''] = routes;
    const minutes: CountedRow[] = [
      minuteOf(NOW - 30 * MINUTE, { free: 10, paid: 3, payment_required: 6, released: 1 }, [
        ...Array<number>(19).fill(3),
        19,
      ]),
      minuteOf(NOW - 2 * HOUR, { refused: 2, error: 1, discovery: 4 }, [3, 3, 3, 3, 3, 3, 3]),
      minuteOf(NOW - 30 * HOUR, { free: 5, paid: 1, payment_required: 1 }, [4]),
      minuteOf(NOW - 20 * DAY, { free: 100 }, [5]),
    ];
    const hours: CountedRow[] = [
      hourOf(NOW - 30 * MINUTE, a, { paid: 2, payment_required: 1 }),
      hourOf(NOW - 30 * MINUTE, b, { paid: 1, payment_required: 5 }),
      hourOf(NOW - 2 * HOUR, c, { free: 9 }),
      hourOf(NOW - 2 * HOUR, OTHER_ROUTES, { paid: 50 }),
      hourOf(NOW - 20 * DAY, 'deleted', { paid: 7 }),
    ];
    await totals.add({ source: 'source-one', seq: 1, rows: [...minutes, ...hours] });
    const routeOf = (id: string) => ({ id, method: 'GET', pattern: '/x' });
    at(NOW - 30 * HOUR);
    await settle(claimOf(1, { route: routeOf(a) }));
    at(NOW - 30 * MINUTE);
    await settle(claimOf(2, { route: routeOf(a) }));
    await settle(claimOf(3, { route: routeOf(b), amount: 250_000n }));
    await settle(
      abroad(claimOf(4, { route: routeOf(b), price: { amount: '1', currency: 'EURC' }, amount: 10n ** 30n })),
    );
    at(NOW);
  });
  afterAll(() => close());

  test('behaviour: the overview is the last 24 hours to the minute, beside the 24 hours before', async () => {
    const overview = await ok('overview');
    expect(overview).toEqual({
      ...{ from: iso(NOW - 30_000 + MINUTE - DAY), to: iso(NOW - 30_000 + MINUTE), as_of: iso(NOW) },
      revenue: [
        { currency: 'EURC', amount: '1000000000000000000000000', previous: '0' },
        { currency: 'USD', amount: '0.35', previous: '0.10' },
      ],
      requests: countsOf({ free: 10, paid: 3, payment_required: 6, released: 1, refused: 2, error: 1, discovery: 4 }),
      previous: countsOf({ free: 5, paid: 1, payment_required: 1 }),
      conversion: 0.5,

      overhead_ms: { p50: 0.38, p99: 60_000 },
      routes: { active: 2, paused: 1 },
      charges: { claimed: 0, settling: 0, settled: 4, delivered: 0, released: 0, failed: 0 },
      sync: { sidecars: 0, stale: 0, uncounted: 0, lost: 0 },
    });
  });

  test('behaviour: an overview of any time is exact to what is kept, and empty where nothing happened', async () => {
    const old = await ok('overview', { from: iso(NOW - 21 * DAY), to: iso(NOW - 19 * DAY) });
    expect([old['from'], old['to']]).toEqual([iso(Date.UTC(2026, 1, 17, 12)), iso(Date.UTC(2026, 1, 19, 13))]);
    expect(old['requests']).toEqual(countsOf({ free: 100 }));
    const all = await ok('overview', { from: '2025-12-01', to: '2026-04-01' });
    expect(all['requests']).toEqual(
      countsOf({ free: 115, paid: 4, payment_required: 7, released: 1, refused: 2, error: 1, discovery: 4 }),
    );
    const none = await ok('overview', { from: '2026-01-01', to: '2026-01-02' });
    expect(none).toMatchObject({ revenue: [], conversion: null, overhead_ms: null, requests: countsOf({}) });
  });

  test('behaviour: a series has columns of one length, zeros where nothing happened, and days of UTC', async () => {
    const hours = await ok('series', { from: iso(NOW - 3 * HOUR), to: iso(NOW), step: 'hour' });
    const times = [9, 10, 11, 12].map((hour) => iso(Date.UTC(2026, 2, 10, hour)));
    expect(hours).toMatchObject({ step: 'hour', from: times[0], to: iso(Date.UTC(2026, 2, 10, 13)), times });
    expect(hours['requests']).toEqual({
      ...{ free: [0, 0, 10, 0], paid: [0, 0, 3, 0], payment_required: [0, 0, 6, 0], refused: [0, 2, 0, 0] },
      ...{ error: [0, 1, 0, 0], released: [0, 0, 1, 0], discovery: [0, 4, 0, 0] },
      ...{ observed: [0, 0, 0, 0], customer: [0, 0, 0, 0], pass: [0, 0, 0, 0], quota: [0, 0, 0, 0] },
    });
    expect(hours['revenue']).toEqual([
      { currency: 'EURC', amounts: ['0', '0', '1000000000000000000000000', '0'] },
      { currency: 'USD', amounts: ['0', '0', '0.35', '0'] },
    ]);
    expect(hours['overhead_ms']).toMatchObject({ p50: [null, 0.375, expect.any(Number), null] });
    expect(Date.parse(String(hours['complete_until']))).toBeLessThanOrEqual(NOW);

    const minutes = await ok('series', { from: iso(NOW - HOUR), to: iso(NOW) });
    expect(minutes).toMatchObject({ step: 'minute' });
    expect((minutes['requests'] as { free: number[] }).free.map((n, i) => [n, i]).filter(([n]) => n !== 0)).toEqual([
      [10, 30],
    ]);
    expect((minutes['times'] as string[]).length).toBe(61);

    const days = await ok('series', { from: iso(NOW - 30 * DAY), to: iso(NOW), currency: 'usd' });
    expect(days).toMatchObject({ step: 'day', from: '2026-02-08T00:00:00.000Z', to: '2026-03-11T00:00:00.000Z' });
    expect(days['revenue']).toEqual([{ currency: 'USD', amounts: [...Array<string>(29).fill('0'), '0.10', '0.35'] }]);

    const [a = ''] = routes;
    const ofRoute = await ok('series', { route_id: a });
    const { paid, free } = ofRoute['requests'] as Record<string, number[]>;
    expect([
      ofRoute['step'],
      paid?.reduce((x, y) => x + y),
      free?.reduce((x, y) => x + y),
      ofRoute['overhead_ms'],
    ]).toEqual(['hour', 2, 0, null]);
    const [usd] = ofRoute['revenue'] as { amounts: string[] }[];
    expect(usd?.amounts.filter((amount) => amount !== '0')).toEqual(['0.10']);
    const ofNetwork = await ok('series', { from: iso(NOW - HOUR), to: iso(NOW), step: 'hour', network: NETWORK });
    expect([ofNetwork['requests'], ofNetwork['overhead_ms']]).toEqual([{ paid: [2, 0] }, null]);
    expect(ofNetwork['revenue']).toEqual([{ currency: 'USD', amounts: ['0.35', '0'] }]);
  });

  test('behaviour: the top routes are ordered by what is asked, with all others together', async () => {
    const [a, b, c] = routes;
    const ids = (body: Body): unknown => (body['data'] as { route_id: string }[]).map((each) => each.route_id);
    const top = await ok('top-routes', { by: 'paid' });
    expect(ids(top)).toEqual([a, b, c]);
    expect((top['data'] as object[])[0]).toMatchObject({
      ...{ route: { id: a, route_pattern: '/a' }, requests: countsOf({ paid: 2, payment_required: 1 }), conversion: 1 },
      revenue: [{ currency: 'USD', amount: '0.10' }],
    });
    expect(top['others']).toEqual({ requests: countsOf({ paid: 50 }), revenue: [], conversion: null });
    expect(ids(await ok('top-routes', { by: 'payment_required' }))).toEqual([b, a, c]);
    expect(ids(await ok('top-routes'))).toEqual([c, b, a]);
    expect(ids(await ok('top-routes', { by: 'revenue', currency: 'usd', from: iso(NOW - 40 * HOUR) }))).toEqual([
      b,
      a,
      c,
    ]);
    expect(ids(await ok('top-routes', { by: 'revenue', currency: 'EURC' }))).toEqual([
      b,
      ...[String(a), String(c)].toSorted((x, y) => (x < y ? -1 : 1)),
    ]);
    const one = await ok('top-routes', { by: 'revenue', currency: 'USD', limit: 1 });
    expect([ids(one), one['others']]).toEqual([
      [b],
      {
        requests: countsOf({ paid: 52, free: 9, payment_required: 1 }),
        ...{ revenue: [{ currency: 'USD', amount: '0.10' }], conversion: 1 },
      },
    ]);
    const old = await ok('top-routes', { from: iso(NOW - 25 * DAY), to: iso(NOW - 10 * DAY) });
    expect(old['data']).toEqual([
      { route_id: 'deleted', route: null, requests: countsOf({ paid: 7 }), revenue: [], conversion: null },
    ]);
  });

  test.each<[string, Record<string, string | number>, RegExp]>([
    ['overview', { from: iso(NOW), to: iso(NOW) }, /from is not before its to/],
    ['overview', { from: iso(NOW), to: iso(NOW - 1) }, /from is not before its to/],
    ['overview', { from: 'yesterday' }, /from is not valid.*such as 2026-01-31T00:00:00Z/],
    ['overview', { from: '1969-12-31' }, /from 1970 to 2999/],
    ['overview', { to: '9999-12-31' }, /from 1970 to 2999/],
    ['overview', { from: '1990-01-01', to: '2026-01-01' }, /more than 3660 days apart/],
    ['overview', { step: 'hour' }, /not known here: step/],
    ['series', { step: 'week' }, /One of minute, hour, day, auto/],
    ['series', { step: 'minute' }, /1440 points of step=minute.*ask for step=hour/],
    ['series', { step: 'hour', from: '2026-01-01', to: '2026-03-01' }, /1416 points of step=hour.*ask for step=day/],
    ['series', { step: 'minute', from: '2026-03-01', to: '2026-03-09' }, /ask for step=hour/],
    [
      'series',
      { step: 'minute', from: '2026-03-01T00:00:00Z', to: '2026-03-01T01:00:00Z' },
      /48 hours; ask for step=hour/,
    ],
    ['series', { step: 'minute', from: iso(NOW - HOUR), route_id: 'x' }, /all routes together; ask for step=hour/],
    ['series', { step: 'day', from: '2020-01-01', to: '2026-01-01' }, /ask for a shorter time/],
    ['series', { from: '2020-01-01', to: '2026-01-01' }, /ask for a shorter time/],
    ['series', { network: 'base' }, /CAIP-2/],
    ['series', { currency: '$' }, /A currency such as USD/],
    ['top-routes', { by: 'revenue' }, /needs currency/],
    ['top-routes', { by: 'name' }, /One of revenue, paid, payment_required, requests/],
    ['top-routes', { limit: 0 }, /from 1 to 100/],
    ['top-routes', { limit: 101 }, /from 1 to 100/],
  ])('refuses: %s with %j, with what would be right', async (path, query, detail) => {
    const reply = await get(path, query);
    expect([reply.status, reply.json.code]).toEqual([400, 'malformed']);
    expect(reply.json.detail).toMatch(detail);
  });

  test('refuses: sums for anybody without a dashboard token, and counts from anybody without a key of the scope', async () => {
    for (const path of ['overview', 'series', 'top-routes'])
      for (const auth of [undefined, LEDGER_KEY])
        expect((await kit.ask('GET', `/v1/billing/${path}`, { auth })).status).toBe(401);
    const body = { source: 'sidecar-1', seq: 1, rows: [] };
    expect((await kit.ask('POST', '/v1/ledger/totals', { auth: SDK_KEY, body })).status).toBe(403);
    expect((await kit.dashboard('POST', '/v1/ledger/totals', { body })).status).toBe(401);
  });

  test('behaviour: a sidecar hands counts over once, however often it sends them; what is missing is logged and shown', async () => {
    const begin = NOW - 5 * HOUR;
    const status = {
      name: 'edge',
      version: '1',
      since: iso(NOW),
      revision: 3,
      ready: true,
      reasons: [],
      ending: false,
    };
    const send = (seq: number, rest: object = {}): Promise<Reply> => {
      const overhead = [2, ...Array<number>(19).fill(0)];
      const rows = [
        { step: 'minute', start: iso(begin), requests: { paid: 2 }, overhead },
        { step: 'hour', start: iso(begin), route_id: routes[0], requests: { paid: 2 } },
      ];
      return kit.ask('POST', '/v1/ledger/totals', {
        auth: LEDGER_KEY,
        body: { source: 'sidecar-1', seq, rows, status, ...rest },
      });
    };
    const paid = async (): Promise<unknown> => {
      const { requests } = await ok('series', { from: iso(begin), to: iso(begin + HOUR), step: 'hour' });
      return (requests as { paid: number[] }).paid[0];
    };
    for (const seq of [1, 1, 2, 1]) expect((await send(seq)).status).toBe(204);
    expect(await paid()).toBe(4);
    expect((await send(5)).status).toBe(204);
    expect(await paid()).toBe(6);
    expect(
      kit.logs.some((line) => line.includes('counts of requests are missing') && line.includes('"missing":2')),
    ).toBe(true);
    expect((await ok('overview'))['sync']).toEqual({ sidecars: 1, stale: 0, uncounted: 0, lost: 2 });
    for (const rest of [
      { rows: [{ step: 'minute', start: iso(NOW + 2 * HOUR), requests: {}, overhead: Array<number>(20).fill(0) }] },
      { rows: [{ step: 'day' }] },
      { seq: 0 },
      { source: 'a b' },
    ])
      expect((await send(6, rest)).status).toBe(422);
    expect(await paid()).toBe(6);
    at(NOW + 2 * MINUTE);
    expect((await ok('overview'))['sync']).toMatchObject({ sidecars: 0, stale: 1 });
    await send(6, { status: { ...status, ending: true }, rows: [] });
    expect((await ok('overview'))['sync']).toMatchObject({ sidecars: 0, stale: 0 });
    at(NOW);
  });
});
