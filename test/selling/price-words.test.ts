// What owners are told about prices by what is asked: `match`, `try`, `check` and the document of what is sold.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { NETWORKS } from '../../src/gateway/rails/rails.ts';
import { readConfig } from '../../src/config/load.ts';
import { configWarnings } from '../../src/config/warnings.ts';
import { startPlans, type PlanKit } from './kit.ts';

const PLANS = `discovery: { service_name: Images }
selling:
  plans:
    - { id: p, price: { rules: [{ when: { query.size: [large] }, amount: "0.50" }], units: { of: query.n, amount: "0.01", max: 10, missing: 1 } } }
    - { id: asks, price: { service: { url: "http://127.0.0.1:9/p", min: "0.02", max: "3", inputs: [query.n] } } }
routes:
  - { method: GET, route_pattern: "/gen", amount: "0.10", plan_id: p }
  - { method: GET, route_pattern: "/asks", amount: "0.10", plan_id: asks }
  - { method: GET, route_pattern: "/plain", amount: "0.10" }
`;
let kit: PlanKit;
beforeAll(async () => {
  kit = await startPlans(PLANS);
});
afterAll(() => kit.close());

const tried = async (path: string): Promise<string> => {
  const { body } = await kit.dashboard('GET', `/v1/billing/try?method=GET&path=${encodeURIComponent(path)}`);
  return (JSON.parse(body) as { plan: { decides: string } }).plan.decides;
};

test.each([
  ['/gen?size=large&n=4', 'this request costs 0.54 USD, by query.n, query.size'],
  ['/gen', 'this request costs 0.11 USD'],
  ['/gen?n=1&n=2', 'price_ambiguous: What this request costs cannot be told: its query has n more than once.'],
  ['/asks?n=1', 'its price service says the price, from 0.02 to 3 USD, by query.n'],
])('behaviour: try says what %s costs', async (path, words) => {
  expect(await tried(path)).toContain(words);
});

test.each([
  ['/gen?size=small', '0.60'],
  ['/asks?n=1', '3'],
])('attack: the 402 that a trial of %s shows is no cheap quote for a dear request', async (path, highest) => {
  const { body } = await kit.dashboard('GET', `/v1/billing/try?method=GET&path=${encodeURIComponent(path)}`);
  expect(body).toContain(`\\"amount\\":\\"${highest}`);
});

test('behaviour: the document of what is sold tells from what to what a price goes', async () => {
  await expect.poll(async () => (await kit.ask('/openapi.json')).status).toBe(200);
  const document = JSON.parse((await kit.ask('/openapi.json')).body) as {
    paths: Record<string, { get: { 'x-payment-info': { price: unknown } } }>;
  };
  expect(Object.entries(document.paths).map(([path, { get }]) => [path, get['x-payment-info'].price])).toEqual([
    ['/asks', { mode: 'dynamic', currency: 'USD', min: '0.02', max: '3' }],
    ['/gen', { mode: 'dynamic', currency: 'USD', min: '0.10', max: '0.60' }],
    ['/plain', { mode: 'fixed', currency: 'USD', amount: '0.10' }],
  ]);
  expect((await kit.ask('/llms.txt')).body).toContain('GET /gen, 0.10 to 0.60 USD per request');
});

test('behaviour: check warns if a value that the client chooses makes a request cheaper, and of what a decision is not told', () => {
  const warningsOf = (price: string): string => {
    const text = `proxy: { upstream: "http://127.0.0.1:3000" }
decision: [{ dialect: nginx, listen: "127.0.0.1:8409", trusted_peers: [127.0.0.1] }]
registry: {}
selling: { plans: [{ id: p, price: ${price} }] }
routes: [{ route_pattern: /a, amount: "0.10", plan_id: p }]`;
    const read = readConfig(text, { file: 't.yaml', path: '/t/t.yaml', env: {}, networks: NETWORKS, now: 0 });
    if (!read.ok) throw new Error(JSON.stringify(read.problems));
    return configWarnings(read.config, NETWORKS)
      .filter((each) => each.includes('the plan p'))
      .join('\n');
  };
  expect(warningsOf('{ rules: [{ when: { query.size: [small] }, amount: "0.05" }] }')).toContain(
    'rule 1 asks for less than the route, by query.size, which the client chooses',
  );
  expect(warningsOf('{ rules: [{ when: { query.size: [small] }, times: "0.5" }] }')).toContain('asks for less');
  expect(warningsOf('{ rules: [{ when: { query.size: [large] }, amount: "0.50" }] }')).toBe('');
  expect(
    warningsOf(
      '{ rules: [{ when: { header.x-model: [a] }, amount: "1" }], units: { of: length, amount: "0.01", max: 9 } }',
    ),
  ).toMatch(/prices by the headers x-model[^]*answered 411 there/);
});
