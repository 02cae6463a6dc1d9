// GET /v1/billing/plans: what plans decide, earned and gave away, over a registry that knows them and one whose sidecars do.
import { afterAll, expect, test } from 'vitest';
import { sellingSection, toSelling } from '../../src/config/selling.ts';
import type { CustomerEntry } from '../../src/domain/selling/customer.ts';
import { STEP_MS } from '../../src/domain/totals/steps.ts';
import type { CountedRow } from '../../src/domain/totals/totals-store.ts';
import { claimOf, proofOf } from '../cases/claims.ts';
import { countsOf, saleOf } from '../contract/totals.ts';
import { LEDGER_KEY, SDK_KEY, startRegistry, type Kit } from './kit.ts';

const { hour: HOUR, day: DAY } = STEP_MS;
const NOW = Date.UTC(2026, 2, 10, 12, 0, 30);
const iso = (ms: number): string => new Date(ms).toISOString();

const { plans: PLANS } = toSelling(
  sellingSection('/').parse({
    plans: [
      { id: 'default', free: { requests: 1, window: 'day' } },
      { id: 'members', customers: ['partners'] },
      { id: 'try', observe: { until: iso(NOW + DAY) } },
    ],
  }),
);
const PARTNERS: CustomerEntry = {
  ...{ id: 'partners', header: 'x-api-key', proof: { kind: 'keys', file: '/keys.txt' } },
  quota: { requests: 100, window: 'month' },
};

type Listed = {
  readonly from: string;
  readonly to: string;
  readonly data: readonly (Record<string, unknown> & { readonly id: string })[];
  readonly customers: readonly Record<string, unknown>[];
};

const open: Kit[] = [];
afterAll(async () => {
  for (const kit of open) await kit.close();
});

const COUNTED: readonly CountedRow[] = [
  saleOf(NOW - HOUR, { kind: 'plan', subject: 'default', detail: 'quota', requests: 7 }),
  saleOf(NOW - HOUR, { kind: 'plan', subject: 'default', detail: 'payment_required', requests: 3 }),
  saleOf(NOW - HOUR, { kind: 'plan', subject: 'members', detail: 'customer', requests: 40 }),
  saleOf(NOW - 2 * DAY, { kind: 'plan', subject: 'members', detail: 'customer', requests: 1000 }),
  saleOf(NOW - HOUR, { kind: 'plan', subject: 'try', detail: 'observed', requests: 5 }),
  saleOf(NOW - HOUR, {
    ...{ kind: 'would_charge', subject: 'try', detail: 'USD' },
    ...{ requests: 3, amount: '30', scale: 2 },
  }),
  saleOf(NOW - HOUR, { kind: 'would_charge', subject: 'try', detail: 'USD', amount: '4', scale: 3 }),
  saleOf(NOW - HOUR, { kind: 'would_charge', subject: 'try', detail: 'EURC', amount: '1' }),
  saleOf(NOW - HOUR, { kind: 'plan', subject: 'gone', detail: 'refused', requests: 2 }),
  saleOf(NOW - HOUR, { kind: 'customers', subject: 'partners', detail: 'known', requests: 40 }),
  saleOf(NOW - HOUR, { kind: 'customers', subject: 'partners', detail: 'unknown', requests: 4 }),
  saleOf(NOW - HOUR, { kind: 'customers', subject: 'elsewhere', detail: 'expired', requests: 1 }),
  ...Array.from({ length: 25 }, (_, n) =>
    saleOf(NOW - HOUR, { kind: 'customer', subject: 'partners', detail: `acme-${n}`, requests: n === 3 ? 9 : 1 }),
  ),
  saleOf(NOW - HOUR, { kind: 'customer', subject: 'partners', detail: '', requests: 6 }),
];

async function start(settings: Parameters<typeof startRegistry>[0]): Promise<{
  readonly kit: Kit;
  readonly list: (query?: string) => Promise<Listed>;
}> {
  const kit = await startRegistry({ now: () => NOW, ...settings });
  open.push(kit);
  await kit.ledger.store.totals.add({ source: 'source-one', seq: 1, rows: COUNTED });
  const list = async (query = ''): Promise<Listed> => {
    const { status, body } = await kit.dashboard('GET', `/v1/billing/plans${query}`);
    expect(status).toBe(200);
    return JSON.parse(body.toString()) as Listed;
  };
  return { kit, list };
}

test('behaviour: each plan says what it decides, earned, gave away and would have asked for; each entry how customers were taken', async () => {
  const { kit, list } = await start({ settings: { plans: PLANS, customers: new Map([['partners', PARTNERS]]) } });
  const routes: string[] = [];
  for (const [pattern, plan_id] of [
    ['/a', null],
    ['/b', 'members'],
    ['/c', 'members'],
  ]) {
    const body = { route_pattern: pattern, method: 'GET', amount: '0.10', plan_id };
    routes.push((await kit.dashboard('POST', '/v1/billing/protected-routes', { body })).json.id);
  }
  const { ledger } = kit;
  for (const [n, id = ''] of [routes[1], routes[2], routes[0]].entries()) {
    const claim = claimOf(n + 1, { route: { id, method: 'GET', pattern: '/x' } });
    await ledger.claim(claim, { owner: 'o', leaseMs: 60_000, maxUnsettledPerPayer: 100 });
    await ledger.advance(claim.id, { kind: 'settle_started', via: 'first', leaseMs: 60_000 }, { owner: 'o' });
    await ledger.advance(claim.id, { kind: 'settled', proof: proofOf(claim), leaseMs: 60_000 }, { owner: 'o' });
  }
  const { data, customers, from, to } = await list();
  expect([from, to]).toEqual([iso(Date.UTC(2026, 2, 9, 12)), iso(Date.UTC(2026, 2, 10, 13))]);
  expect(data).toEqual([
    {
      ...{ id: 'default', known: true, observe_until: null, observing: false, routes: 1, would_charge: [] },
      sells:
        '1 free request a day for each address, if no payment is presented, then a payment of the price of its route',
      ...{ requests: countsOf({ quota: 7, payment_required: 3 }), revenue: [{ currency: 'USD', amount: '0.10' }] },
    },
    {
      ...{ id: 'members', known: true, observe_until: null, observing: false, routes: 2, would_charge: [] },
      sells: 'free for customers of partners, then a payment of the price of its route',
      ...{ requests: countsOf({ customer: 40 }), revenue: [{ currency: 'USD', amount: '0.20' }] },
    },
    {
      ...{ id: 'try', known: true, observe_until: iso(NOW + DAY), observing: true, routes: 0, revenue: [] },
      sells: `free for everybody until ${iso(NOW + DAY)}, a dry run, then a payment of the price of its route`,
      requests: countsOf({ observed: 5 }),
      would_charge: [
        { currency: 'EURC', amount: '1', requests: 1 },
        { currency: 'USD', amount: '0.304', requests: 4 },
      ],
    },
    {
      ...{ id: 'gone', known: false, sells: null, observe_until: null, observing: false, routes: 0 },
      ...{ requests: countsOf({ refused: 2 }), revenue: [], would_charge: [] },
    },
  ]);
  const none = { known: 0, unknown: 0, expired: 0, quota: 0, unavailable: 0 };
  const [partners, elsewhere] = customers;
  expect(partners).toMatchObject({
    ...{ id: 'partners', by: 'keys', plans: ['members'], quota: { requests: 100, window: 'month' } },
    ...{ requests: { ...none, known: 40, unknown: 4 }, others: 11 },
  });
  expect(partners?.['names']).toHaveLength(20);
  expect(partners).toHaveProperty(['names', 0], { name: 'acme-3', requests: 9 });
  expect(elsewhere).toEqual({
    ...{ id: 'elsewhere', by: null, plans: [], quota: null, requests: { ...none, expired: 1 }, names: [], others: 0 },
  });
  const longer = await list(`?from=${iso(NOW - 3 * DAY)}&to=${iso(NOW)}`);
  expect(longer.data.find(({ id }) => id === 'members')?.['requests']).toEqual(countsOf({ customer: 1040 }));
});

test('behaviour: a registry whose sidecars alone know the plans lists them by what was counted and what routes name', async () => {
  const { kit, list } = await start({ settings: { plans: undefined } });
  const body = { route_pattern: '/a', method: 'GET', amount: '0.10', plan_id: 'named' };
  await kit.dashboard('POST', '/v1/billing/protected-routes', { body });
  const { data } = await list();
  expect(data.map(({ id, known, routes }) => [id, known, routes])).toEqual([
    ['default', false, 0],
    ['gone', false, 0],
    ['members', false, 0],
    ['named', false, 1],
    ['try', false, 0],
  ]);
});

test('refuses: plans for anybody without a dashboard token, a time that is none, and counts that are none', async () => {
  const [kit] = open;
  if (kit === undefined) throw new Error('no registry was started');
  for (const auth of [undefined, SDK_KEY, LEDGER_KEY])
    expect((await kit.ask('GET', '/v1/billing/plans', { auth })).status).toBe(401);
  expect((await kit.dashboard('GET', '/v1/billing/plans?from=yesterday')).status).toBe(400);
  const row = { step: 'sale', start: iso(NOW), kind: 'plan', subject: 'a', detail: 'paid', requests: 1 };
  const send = async (more: object, seq: number): Promise<number> => {
    const sent = { source: 'sidecar-one', seq, rows: [{ ...row, amount: '0', scale: 0, ...more }] };
    return (await kit.ask('POST', '/v1/ledger/totals', { auth: LEDGER_KEY, body: sent })).status;
  };
  expect(await send({}, 1)).toBe(204);
  for (const more of [{ amount: '-1' }, { amount: '1.5' }, { kind: 'money' }, { scale: 19 }, { subject: '' }])
    expect([more, await send(more, 2)]).toEqual([more, 422]);
});
