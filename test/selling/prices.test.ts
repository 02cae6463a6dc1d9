// Prices by what a request asks, as clients, upstreams and operators see them: rules, units, and quotes that are bound to what
// was asked.
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { makeUpPayment, readTerms } from '../support/made-up-payment.ts';
import { codeOf, seriesOf, startPlans, type Answer, type PlanKit } from './kit.ts';

const until = new Date(Date.now() + 86_400_000).toISOString();
const PRICE = `price: {
      rules: [
        { when: { query.size: [large, "xl*"] }, amount: "0.50" },
        { when: { header.x-model: [opus] }, times: "3" },
        { when: { param.kind: [video] }, amount: "0.80" },
      ],
      units: { of: query.n, amount: "0.01", free: 2, per: 2, max: 1000, missing: 4 } }`;
const PLANS = `selling:
  plans:
    - { id: p, ${PRICE} }
    - { id: seen, observe: { until: "${until}" }, ${PRICE} }
    - { id: bytes, price: { units: { of: length, amount: "0.001", per: 1024, max: 10240 } } }
    - { id: odd, price: { rules: [{ when: { query.size: [tiny] }, times: "0.00001" }] } }
    - { id: some, free: { requests: 1, window: day }, price: { rules: [{ when: { query.size: [large] }, amount: "0.50" }] } }
routes:
  - { method: GET, route_pattern: "/gen", amount: "0.10", plan_id: p }
  - { method: GET, route_pattern: "/kinds/:kind", amount: "0.10", plan_id: p }
  - { method: GET, route_pattern: "/seen", amount: "0.10", plan_id: seen }
  - { method: POST, route_pattern: "/bytes", amount: "0.10", plan_id: bytes }
  - { method: GET, route_pattern: "/odd", amount: "0.10", plan_id: odd }
  - { method: GET, route_pattern: "/some", amount: "0.10", plan_id: some }
  - { method: GET, route_pattern: "/plain", amount: "0.10" }
`;

let kit: PlanKit;
beforeAll(async () => {
  kit = await startPlans(PLANS);
});
afterAll(() => kit.close());

type Quote = { readonly amount: string; readonly charge_id: string };
const quoteOf = ({ body }: Answer): Quote => JSON.parse(body) as Quote;
const priceOf = async (target: string, headers: Readonly<Record<string, string | readonly string[]>> = {}) => {
  const answer = await kit.ask(target, { headers });
  return answer.status === 402 ? quoteOf(answer).amount : `${answer.status} ${String(codeOf(answer))}`;
};
/** A payment by the quote for one target, presented with another. */
const payFor = async (quoted: string, presented: string, headers = {}, presentedHeaders = headers): Promise<Answer> => {
  const asked = await kit.ask(quoted, { headers });
  const payment = makeUpPayment(readTerms(String(asked.headers['payment-required'])), kit.now());
  return kit.ask(presented, { headers: { ...presentedHeaders, 'payment-signature': payment } });
};

describe('a price by rules and units', () => {
  test.each([
    // Two of four missing units are free, and two make one.
    ['/gen', '0.11'],
    ['/gen?n=0', '0.10'],
    ['/gen?n=2', '0.10'],
    ['/gen?n=3', '0.11'],
    ['/gen?n=1000', '5.09'],
    ['/gen?size=large&n=0', '0.50'],
    ['/gen?size=xlarge&n=0', '0.50'],
    ['/gen?n=0&size=l%61rge', '0.50'],
    ['/gen?size=Large&n=0', '0.10'],
    ['/kinds/video?n=0', '0.80'],
    ['/kinds/text?n=0', '0.10'],
  ])('behaviour: %s costs %s', async (target, amount) => {
    expect(await priceOf(target)).toBe(amount);
  });

  test('behaviour: the first rule that fits decides, and a header can', async () => {
    expect(await priceOf('/gen?n=0', { 'x-model': 'opus' })).toBe('0.30');
    expect(await priceOf('/gen?n=0&size=large', { 'x-model': 'opus' })).toBe('0.50');
  });

  test('behaviour: the whole 402 says the price, in every way and place', async () => {
    const asked = await kit.ask('/gen?size=large&n=0');
    const body = JSON.parse(asked.body) as { amount: string; x402_requirements: { amount: string } };
    const terms = readTerms(String(asked.headers['payment-required']));
    expect([body.amount, body.x402_requirements.amount, terms.amount]).toEqual(['0.50', '0.50', '500000']);
  });

  test('behaviour: the length of the body is a price, and a body without one is 411', async () => {
    const send = async (bytes: number): Promise<string> =>
      quoteOf(await kit.ask('/bytes', { method: 'POST', body: 'x'.repeat(bytes) })).amount;
    expect([await send(0), await send(1), await send(1024), await send(1025)]).toEqual([
      '0.10',
      '0.101',
      '0.101',
      '0.102',
    ]);
    const chunked = await kit.ask('/bytes', { method: 'POST', headers: { 'transfer-encoding': 'chunked' } });
    expect([chunked.status, codeOf(chunked)]).toEqual([411, 'length_required']);
    const large = await kit.ask('/bytes', { method: 'POST', body: 'x'.repeat(10_241) });
    expect([large.status, codeOf(large)]).toEqual([400, 'price_ambiguous']);
  });

  test('refuses: a route whose plan would ask for more decimals than the asset has, or for too many digits, is 422 where it is written', async () => {
    expect(await priceOf('/odd?size=tiny')).toBe('0.000001');
    const write = async (method: string, path: string, body: object): Promise<unknown> => {
      const answer = await kit.dashboard(method, `/v1/billing/protected-routes${path}`, body);
      const { id, errors } = JSON.parse(answer.body) as { id?: string; errors?: { pointer: string; detail: string }[] };
      return errors ?? id;
    };
    const made = { route_pattern: '/finer', method: 'GET', amount: '0.01', plan_id: 'odd' };
    const tooFine = [
      {
        pointer: '/amount',
        detail:
          'Requests could not be paid: by the plan odd, rule 1 would have more digits after the point than the 6 decimals of the asset of the receiver default.',
      },
    ];
    expect(await write('POST', '', made)).toEqual(tooFine);
    expect(await write('POST', '', { ...made, amount: '999999999999', plan_id: 'p' })).toEqual([
      {
        pointer: '/amount',
        detail:
          'Requests could not be paid: by the plan p, the highest price would have more than 12 digits before the point.',
      },
    ]);
    const id = String(await write('POST', '', { ...made, plan_id: null }));
    expect(await write('PATCH', `/${id}`, { plan_id: 'odd' })).toEqual(tooFine);
    expect(await write('PATCH', `/${id}`, { amount: '0.10', plan_id: 'odd' })).toBe(id);
    expect(await write('PATCH', `/${id}`, { amount: '0.01' })).toEqual(tooFine);
    expect(await priceOf('/finer?size=tiny')).toBe('0.000001');
  });

  test('refuses: a price with more decimals than the asset has, of a plan that changed since: 503, never rounded', async () => {
    const finer = PLANS.replace('times: "0.00001"', 'times: "0.000001"');
    const own = await startPlans(PLANS);
    try {
      const made = { route_pattern: '/written', method: 'GET', amount: '0.10', plan_id: 'odd' };
      expect((await own.dashboard('POST', '/v1/billing/protected-routes', made)).status).toBe(201);
      await own.reload(finer.replace('"/odd", amount: "0.10"', '"/odd", amount: "1"'));
      const asked = await own.ask('/written?size=tiny');
      expect([asked.status, codeOf(asked)]).toEqual([503, 'price_unpayable']);
      expect(quoteOf(await own.ask('/written')).amount).toBe('0.10');
    } finally {
      await own.close();
    }
  });

  test('behaviour: a free request is not priced, and the 402 after it is', async () => {
    expect((await kit.ask('/some?size=large')).status).toBe(200);
    const asked = await kit.ask('/some?size=large');
    expect([quoteOf(asked).amount, asked.headers['tollgate-reason']]).toEqual(['0.50', 'free_used_up']);
  });

  test('behaviour: a dry run logs what it would have asked, with the inputs, and counts exactly that', async () => {
    expect((await kit.ask('/seen?size=xl&n=3', { headers: { 'x-model': 'opus' } })).status).toBe(200);
    await vi.waitFor(() =>
      expect(kit.lines.filter(({ msg }) => msg === 'would have asked')).toMatchObject([
        {
          amount: '0.51',
          inputs: { 'query.size': 'xl', 'query.n': '3', 'header.x-model': 'opus' },
          would_charge: true,
        },
      ]),
    );
    expect((await kit.ask('/seen?n=1&n=2')).status).toBe(200);
    await vi.waitFor(() =>
      expect(kit.lines.findLast(({ msg }) => msg === 'would have asked')).toMatchObject({
        problem: 'price_ambiguous',
        would_charge: false,
      }),
    );
    expect(seriesOf(await kit.metrics(), 'tollgate_would_charge_total')).toBe('0.51');
  });
});

describe('a quote for what was asked', () => {
  test('behaviour: it pays for the same request, with parameters in any order, and the upstream is told the price', async () => {
    expect((await payFor('/gen?size=large&n=0', '/gen?n=0&size=large&other=1')).status).toBe(200);
    expect([kit.told()['tollgate-amount'], kit.told()['tollgate-access']]).toEqual(['0.50', 'paid']);
    expect(String(kit.told()['tollgate-charge-id'])).toMatch(/^chg_[\w-]{124}$/);
  });

  test('behaviour: ids of routes without a price stay as they were', async () => {
    expect(quoteOf(await kit.ask('/plain')).charge_id).toMatch(/^chg_[\w-]{112}$/);
    expect(quoteOf(await kit.ask('/gen')).charge_id).toMatch(/^chg_[\w-]{124}$/);
  });

  test('attack: a quote for a cheap request does not pay for a dear one', async () => {
    const served = kit.upstream.seen.length;
    for (const [quoted, presented] of [
      ['/gen?n=1', '/gen?n=900'],
      ['/gen?n=1', '/gen?n=1&size=large'],
      ['/gen?n=1', '/gen'],
      ['/kinds/text', '/kinds/video'],
    ] as const) {
      const answer = await payFor(quoted, presented);
      expect([answer.status, answer.headers['tollgate-reason']], presented).toEqual([
        402,
        'quote_mismatch: it was made for a request that asks for something else',
      ]);
    }
    const model = await payFor('/gen', '/gen', {}, { 'x-model': 'opus' });
    expect([model.status, quoteOf(model).amount]).toEqual([402, '0.31']);
    expect(kit.upstream.seen.length).toBe(served);
    expect(kit.facilitated.filter((each) => each === 'settle')).toHaveLength(1);
  });

  test('behaviour: the price that was quoted stays good when the plan changes', async () => {
    const asked = await kit.ask('/gen?size=large&n=0');
    const payment = makeUpPayment(readTerms(String(asked.headers['payment-required'])), kit.now());
    await kit.reload(PLANS.replaceAll('"0.50"', '"0.90"'));
    expect(await priceOf('/gen?size=large&n=0')).toBe('0.90');
    const paid = await kit.ask('/gen?size=large&n=0', { headers: { 'payment-signature': payment } });
    expect([paid.status, kit.told()['tollgate-amount']]).toEqual([200, '0.50']);
    await kit.reload(PLANS);
  });
});
