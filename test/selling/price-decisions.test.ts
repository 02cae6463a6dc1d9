// Prices by what is asked, decided for other proxies: the same prices, refusals and quotes as those of the proxy, in every
// dialect.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ask, DIALECTS, SECRET, type Decided, type Dialect } from '../support/asker.ts';
import { makeUpPayment, readTerms } from '../support/made-up-payment.ts';
import { startPlans, type PlanKit } from './kit.ts';

let kit: PlanKit;
const NAMES = DIALECTS.map((_, index) => (index === 0 ? 'decision' : `decision[${index}]`));

beforeAll(async () => {
  kit = await startPlans(
    [
      'selling:',
      '  plans:',
      '    - { id: p, price: { rules: [{ when: { header.x-model: [opus] }, amount: "0.50" }], units: { of: query.n, amount: "0.01", max: 900, missing: 1 } } }',
      '    - { id: bytes, price: { units: { of: length, amount: "0.01", max: 900 } } }',
      'decision:',
      ...DIALECTS.map(
        (dialect) =>
          `  - { listen: "127.0.0.1:0", dialect: ${dialect}, secret: ${SECRET}, path_prefix: ${dialect === 'envoy' ? '/ask' : '""'} }`,
      ),
      'routes:',
      '  - { method: GET, route_pattern: "/gen", amount: "0.10", plan_id: p }',
      '  - { method: "*", route_pattern: "/bytes", amount: "0.10", plan_id: bytes }',
    ].join('\n'),
  );
});
afterAll(() => kit.close());

describe.each(DIALECTS)('%s', (dialect: Dialect) => {
  const asks = (target: string, headers: Record<string, string> = {}): Promise<Decided> => {
    const { port } = new URL(kit.urlOf(NAMES[DIALECTS.indexOf(dialect)] ?? ''));
    return ask(Number(port), dialect, { target, headers });
  };
  const outcomeOf = async (target: string, headers: Record<string, string> = {}): Promise<unknown> => {
    const { status, body } = await asks(target, headers);
    const { code, amount } = JSON.parse(body) as { code?: string; amount?: string };
    return [status, code ?? amount];
  };

  test('behaviour: a request costs what it asks for', async () => {
    expect(await outcomeOf('/gen')).toEqual([402, '0.11']);
    expect(await outcomeOf('/gen?n=7')).toEqual([402, '0.17']);
    expect(await outcomeOf('/gen?n=7', { 'X-Model': 'opus' })).toEqual([402, '0.57']);
  });

  test('attack: what could be read in two ways is refused, and so is a length that nobody told', async () => {
    for (const query of ['n=1&n=900', 'N=900', 'n=1&n%5B%5D=900'])
      expect([query, await outcomeOf(`/gen?${query}`)]).toEqual([query, [400, 'price_ambiguous']]);
    expect(await outcomeOf('/bytes')).toEqual([411, 'length_required']);
  });

  test('attack: a cheap quote does not pay for a dear request, and pays for its own', async () => {
    const quoted = await asks('/gen?n=1');
    const terms = readTerms(String(quoted.header('payment-required')));
    const headers = { 'payment-signature': makeUpPayment(terms, kit.now()) };
    const dear = await asks('/gen?n=900', headers);
    expect([dear.allows, dear.status, dear.header('tollgate-reason')]).toEqual([
      ...[false, 402, expect.stringContaining('quote_mismatch')],
    ]);
    const modelled = await asks('/gen?n=1', { ...headers, 'X-Model': 'opus' });
    expect([modelled.allows, modelled.status]).toEqual([false, 402]);
    expect((await asks('/gen?n=1', headers)).allows).toBe(true);
  });
});
