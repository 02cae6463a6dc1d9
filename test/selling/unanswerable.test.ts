// Plans that depend on what the API answers, asked of decision listeners, which never see an answer: refused in every dialect,
// whatever the request shows. A peer's gate that forwards such a request opens the route to any made-up credential.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ask, DIALECTS, SECRET, type Decided, type Dialect } from '../support/asker.ts';
import { startPlans, type PlanKit } from './kit.ts';

let kit: PlanKit;
const NAMES = DIALECTS.map((_, index) => (index === 0 ? 'decision' : `decision[${index}]`));

beforeAll(async () => {
  kit = await startPlans(
    [
      'selling:',
      '  plans: [{ id: own, customers: [own, office] }, { id: own-free, customers: [own], free: { requests: 5, window: day } }, { id: office, customers: [office] }, { id: metered, single: false, meter: { from: header }, passes: [{ id: c, amount: "0.90", credit: "0.90" }] }]',
      '  customers: [{ id: own, header: X-Own, ask: { statuses: [401] } }, { id: office, networks: [10.1.0.0/16] }]',
      'decision:',
      ...DIALECTS.map(
        (dialect) =>
          `  - { listen: "127.0.0.1:0", dialect: ${dialect}, secret: ${SECRET}, path_prefix: ${dialect === 'envoy' ? '/ask' : '""'} }`,
      ),
      'routes:',
      ...['own', 'own-free', 'office', 'metered'].map(
        (id) => `  - { method: GET, route_pattern: "/${id}/*", amount: "0.10", plan_id: ${id} }`,
      ),
    ].join('\n'),
    { proxy: 'cors_origins: ["https://app.example.com"]' },
  );
});
afterAll(() => kit.close());

describe.each(DIALECTS)('%s', (dialect: Dialect) => {
  const asks = (target: string, headers: Record<string, string> = {}): Promise<Decided> => {
    const { port } = new URL(kit.urlOf(NAMES[DIALECTS.indexOf(dialect)] ?? ''));
    return ask(Number(port), dialect, { target, headers });
  };

  test('attack: a plan with ask or meter is 503 plan_unanswerable, with any credential, without one, and with free requests left', async () => {
    for (const path of ['/own/a', '/own-free/a', '/metered/a'])
      for (const headers of [{}, { 'X-Own': 'right' }, { 'X-Own': 'made-up' }]) {
        const { allows, status, body } = await asks(path, headers);
        expect([path, headers, allows, status, JSON.parse(body)]).toEqual([
          ...[path, headers, false, 503],
          expect.objectContaining({ code: 'plan_unanswerable' }),
        ]);
      }
    expect(kit.upstream.seen).toEqual([]);
  });

  // Traefik's own middleware answers preflights.
  test.skipIf(dialect === 'traefik')(
    'behaviour: a preflight allows the headers of customers, as the proxy does',
    async () => {
      const port = Number(new URL(kit.urlOf(NAMES[DIALECTS.indexOf(dialect)] ?? '')).port);
      const headers = { origin: 'https://app.example.com', 'access-control-request-method': 'GET' };
      const { status, header } = await ask(port, dialect, { method: 'OPTIONS', target: '/office/a', headers });
      expect([status, header('access-control-allow-headers')]).toEqual([204, expect.stringContaining('x-own')]);
    },
  );

  test('behaviour: a plan that needs no answer of the API is decided there as it is by the proxy', async () => {
    const { allows, status } = await asks('/office/a');
    expect([allows, status]).toEqual([false, 402]);
  });
});

test('behaviour: the proxy beside the listeners asks the API about the same routes', async () => {
  expect((await kit.ask('/own/a', { headers: { 'X-Own': 'right' } })).status).toBe(200);
});
