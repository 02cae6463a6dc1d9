// Plans and their dry run, as clients, upstreams and operators see them. A plan stands in the configuration; a route names it.
import type { RequestListener } from 'node:http';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { codeOf, seriesOf, startPlans, type PlanKit } from './kit.ts';

const LIST = '/v1/billing/protected-routes';
const DAY_MS = 86_400_000;
const until = new Date(Date.now() + DAY_MS).toISOString();
const route = (pattern: string, rest = ''): string =>
  `  - { method: GET, route_pattern: "${pattern}", amount: "0.10"${rest} }`;
const PLANS = `selling: { plans: [{ id: trial, observe: { until: "${until}" } }, { id: plain }, { id: careful, settle: before_forward }] }`;
const ROUTES = [
  'routes:',
  route('/none'),
  route('/plain', ', plan_id: plain'),
  route('/careful', ', plan_id: careful'),
  route('/trial', ', plan_id: trial'),
  '  - { method: POST, route_pattern: "/trial", amount: "0.25", plan_id: trial }',
  route('/paused', ', plan_id: trial, status: paused'),
  route('/shop/:id', ', plan_id: trial'),
  '  - { method: GET, route_pattern: "/shop/vault", amount: "0.05" }',
  route('/named', ', plan_id: trial, allow_anonymous: false'),
].join('\n');

let kit: PlanKit;
beforeAll(async () => {
  const handle: RequestListener = (req, res) => {
    if (req.url?.endsWith('?missing') === true) res.statusCode = 404;
    res.end('served');
  };
  kit = await startPlans(`${PLANS}\n${ROUTES}`, { handle, proxy: 'undeclared_methods: pay' });
});
afterAll(() => kit.close());

describe('plan_id', () => {
  test('behaviour: a dashboard sets the plan of a route and takes it away, in every Route, list, feed and history', async () => {
    const made = await kit.dashboard('POST', LIST, {
      route_pattern: '/made',
      method: 'GET',
      amount: '1',
      plan_id: 'plain',
    });
    expect([made.status, JSON.parse(made.body)]).toMatchObject([201, { plan_id: 'plain' }]);
    const { id } = JSON.parse(made.body) as { id: string };
    const feed = JSON.parse((await kit.registry('/v1/protected-routes/routes')).body) as { id: string }[];
    expect(feed.find((each) => each.id === id)).toMatchObject({ plan_id: 'plain' });
    const patched = await kit.dashboard('PATCH', `${LIST}/${id}`, { plan_id: null });
    expect([patched.status, JSON.parse(patched.body)]).toMatchObject([200, { plan_id: null }]);
    const history = JSON.parse((await kit.dashboard('GET', `${LIST}/${id}/changes`)).body) as { data: object[] };
    expect(history.data[0]).toMatchObject({ before: { plan_id: 'plain' }, after: { plan_id: null } });
  });

  test('refuses: a plan that this registry knows not to be there, with the ids that are', async () => {
    const made = await kit.dashboard('POST', LIST, {
      route_pattern: '/x',
      method: 'GET',
      amount: '1',
      plan_id: 'trail',
    });
    expect([made.status, JSON.parse(made.body)]).toMatchObject([422, { errors: [{ pointer: '/plan_id' }] }]);
    expect(made.body).toContain('trial, plain, careful');
    const odd = await kit.dashboard('POST', LIST, {
      route_pattern: '/x',
      method: 'GET',
      amount: '1',
      plan_id: 'no spaces',
    });
    expect(odd.status).toBe(422);
  });

  test('attack: an SDK that registers a route with a plan gets a route without one, and the log says so', async () => {
    const body = JSON.stringify({ route_pattern: '/sdk', method: 'GET', amount: '1', plan_id: 'trial' });
    const headers = { 'content-type': 'application/json' };
    const made = await kit.registry('/v1/protected-routes/routes/register', { method: 'POST', headers, body });
    expect([made.status, JSON.parse(made.body)]).toMatchObject([201, { plan_id: null }]);
    expect(kit.lines.find(({ msg }) => msg === 'members of a registration were ignored')).toMatchObject({
      members: ['plan_id'],
    });
    expect((await kit.ask('/sdk')).status).toBe(402);
  });
});

describe('a route with a plan', () => {
  test('behaviour: a plan that gives nothing away asks for the payment that the route asks for, byte for byte', async () => {
    const [none, plain] = [await kit.ask('/none'), await kit.ask('/plain')];
    const shape = ({ body, headers }: typeof none): unknown => [
      JSON.parse(body.replaceAll(/chg_[\w-]+/g, 'ID').replaceAll('/plain', '/none')),
      Object.keys(headers),
      headers['tollgate-reason'],
    ];
    expect([none.status, shape(none)]).toEqual([plain.status, shape(plain)]);
    const paid = await kit.pay('/plain');
    expect([paid.status, kit.told()['tollgate-access'], kit.told()['tollgate-amount']]).toEqual([200, 'paid', '0.10']);
    expect((await kit.pay('/none')).status).toBe(200);
    expect(kit.told()['tollgate-access']).toBeUndefined();
  });

  test('behaviour: the settle of a plan comes before that of the receiver', async () => {
    expect((await kit.pay('/careful?missing')).headers['payment-response']).toBeDefined();
    expect((await kit.pay('/plain?missing')).headers['payment-response']).toBeUndefined();
  });

  test('behaviour: a paused route stays free, and the upstream is told so', async () => {
    expect([(await kit.ask('/paused')).status, kit.told()['tollgate-access']]).toEqual([200, 'free']);
  });

  test('attack: a client that says how it was let in is not believed', async () => {
    await kit.ask('/trial', { headers: { 'Tollgate-Access': 'paid', Tollgate_Access: 'customer' } });
    expect(kit.upstream.seen.at(-1)?.rawHeaders.filter((name) => /tollgate.access/i.test(name))).toHaveLength(1);
    expect(kit.told()['tollgate-access']).toBe('observed');
  });

  test('refuses: a plan that is not there any more: 503, never free, and it is in force with the next request', async () => {
    const made = { route_pattern: '/later', method: 'GET', amount: '1', plan_id: 'other' };
    await kit.reload(`${PLANS.replace('{ id: plain }', '{ id: plain }, { id: other }')}\n${ROUTES}`);
    expect((await kit.dashboard('POST', LIST, made)).status).toBe(201);
    expect((await kit.ask('/later')).status).toBe(402);
    const served = kit.upstream.seen.length;
    await kit.reload(`${PLANS}\n${ROUTES}`);
    for (const headers of [{}, { 'payment-signature': 'e30=' }])
      expect(codeOf(await kit.ask('/later', { headers }))).toBe('plan_unknown');
    expect(kit.upstream.seen.length).toBe(served);
  });
});

describe('a dry run', () => {
  test('behaviour: it passes free with whatever it carries, nothing is taken, and it is told what it would have cost', async () => {
    const before = kit.facilitated.length;
    const answer = await kit.ask('/trial?a=1', {
      headers: { 'payment-signature': 'nonsense', 'cache-control': 'no-cache' },
    });
    expect([answer.status, answer.body, answer.headers['cache-control']]).toEqual([200, 'served', undefined]);
    expect(kit.told()).toMatchObject({ 'tollgate-access': 'observed', 'cache-control': 'no-cache' });
    expect(kit.told()['payment-signature']).toBeUndefined();
    expect(kit.facilitated.length).toBe(before);
    expect(kit.lines.findLast(({ msg }) => msg === 'would have asked')).toMatchObject({
      ...{ plan: 'trial', path: '/trial', amount: '0.10', currency: 'USD', would_charge: true },
    });
    expect(kit.lines.findLast(({ msg }) => msg === 'request')).toMatchObject({ outcome: 'observed', path: '/trial' });
  });

  test('behaviour: it counts what would have been charged exactly, and only answers that are charged', async () => {
    const id = (
      JSON.parse((await kit.dashboard('GET', `${LIST}?q=/trial`)).body) as { data: { id: string; method: string }[] }
    ).data;
    const sum = async (method: string): Promise<number> => {
      const labels = { route_id: id.find((each) => each.method === method)?.id ?? '', currency: 'USD' };
      return Math.round(100 * Number(seriesOf(await kit.metrics(), 'tollgate_would_charge_total', labels) ?? 0));
    };
    const [get, post] = [await sum('GET'), await sum('POST')];
    await kit.ask('/trial');
    await kit.ask('/trial?missing');
    // What is settled before it is forwarded is charged for any answer below 500.
    await kit.ask('/trial?missing', { method: 'POST', body: '{}' });
    expect([await sum('GET'), await sum('POST')]).toEqual([get + 10, post + 25]);
  });

  test('behaviour: metrics, readiness, match and try name it', async () => {
    expect(seriesOf(await kit.metrics(), 'tollgate_observe_until_timestamp_seconds', { plan: 'trial' })).toBe(
      String(Date.parse(until) / 1000),
    );
    expect(await kit.ready()).toContain(`the plan trial observes until ${until}`);
    const match = await kit.registry('/v1/protected-routes/match?path=/trial&method=GET');
    expect(JSON.parse(match.body)).toMatchObject({
      matched: true,
      payment_required: false,
      route: { plan_id: 'trial' },
    });
    const tried = JSON.parse((await kit.dashboard('GET', '/v1/billing/try?path=/trial&method=GET')).body) as object;
    expect(tried).toMatchObject({
      plan: { id: 'trial', decides: expect.stringContaining('a dry run') as string },
      answer: null,
    });
    const plain = JSON.parse((await kit.dashboard('GET', '/v1/billing/try?path=/plain&method=GET')).body) as object;
    expect(plain).toMatchObject({ payment_required: true, plan: { id: 'plain' }, answer: { status: 402 } });
  });

  test('refuses: what a dry run must not open: an ambiguous path, a neighbour by another spelling', async () => {
    const served = kit.upstream.seen.length;
    expect(codeOf(await kit.ask('/trial/%2e%2e/vault'))).toBe('target_ambiguous');
    for (const target of ['/shop/vault', '/shop/VAULT', '/shop/vault.json', '/shop/vault;x', '/shop/vault%20'])
      expect([target, (await kit.ask(target)).status]).toEqual([target, 402]);
    expect(kit.upstream.seen.length).toBe(served);
    expect((await kit.ask('/shop/q3')).status).toBe(200);
  });

  test('attack: an undeclared method is observed only if it can mean no other route', async () => {
    expect((await kit.ask('/shop/q3', { method: 'DELETE' })).status).toBe(200);
    expect((await kit.ask('/shop/vault', { method: 'DELETE' })).status).toBe(402);
  });

  test('behaviour: a route that is not open to anonymous callers is observed like others', async () => {
    expect((await kit.ask('/named')).status).toBe(200);
  });

  test('behaviour: it ends by itself, with a line a minute before and at its end, and charges from then on', async () => {
    kit.pass(DAY_MS + 1000);
    const answer = await kit.ask('/trial');
    expect([answer.status, answer.headers['tollgate-reason']]).toEqual([402, 'payment_required']);
    expect(codeOf(await kit.ask('/named'))).toBe('customer_required');
    expect((await kit.pay('/trial')).status).toBe(200);
    await kit.reload(`${PLANS}\n${ROUTES}`);
    await vi.waitFor(() =>
      expect(kit.lines.find(({ msg }) => String(msg).startsWith('the dry run of a plan is over'))).toBeDefined(),
    );
    expect(await kit.ready()).toContain('no plan observes');
  });
});
