// Prices by what is asked, for real: a chain, a facilitator, Tollgate as a process. The chain's balance has the last word on
// what a cheap quote paid for.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startPaidTollgate, type PaidTollgate } from '../support/paid-tollgate.ts';

const PRICE =
  'price: { rules: [{ when: { query.size: [large] }, amount: "0.50" }, { when: { header.x-model: [opus] }, times: "7" }], units: { of: query.n, amount: "0.01", max: 100, missing: 0 } }';
let paid: PaidTollgate;
let failing = false;

beforeAll(async () => {
  paid = await startPaidTollgate({
    routes: ['GET /gen 0.10', 'GET /first 0.10 upfront'],
    more: `selling: { plans: [{ id: default, ${PRICE} }] }`,
    handle: (req, res) => {
      req.resume();
      if (failing) res.writeHead(500).end('broken');
      else res.end(`${req.url} ${String(req.headers['x-model'])}`);
    },
  });
}, 180_000);
afterAll(() => paid?.stop());

test('behaviour: a payer signs the price of the very request, and exactly that arrives', async () => {
  const before = await paid.earned();
  const accepted = await paid.quote('/gen?size=large&n=7');
  expect([accepted.amount, accepted.extra.external_ref.length]).toEqual(['570000', 'chg_'.length + 124]);
  const answer = await paid.pay('/gen?n=7&size=large', await paid.sign(accepted));
  expect([answer.status, await answer.text()]).toEqual([200, '/gen?n=7&size=large undefined']);
  await expect.poll(paid.earned).toBe(before + 570_000n);
  expect((await paid.charges())[0]).toMatchObject({ amount_atomic: '570000', amount: '0.57' });
});

test('attack: a real payment of a cheap quote runs no dear request, and takes no money for it', async () => {
  const before = await paid.earned();
  const served = paid.upstream.seen.length;
  const credential = await paid.sign(await paid.quote('/gen?n=1'));
  for (const [target, headers] of [
    ['/gen?n=100', {}],
    ['/gen?n=1&size=large', {}],
    ['/gen?n=1', { 'x-model': 'opus' }],
  ] as const) {
    const answer = await paid.pay(target, credential, { headers });
    expect([answer.status, answer.headers.get('tollgate-reason')], target).toEqual([
      402,
      expect.stringContaining('quote_mismatch'),
    ]);
  }
  for (const target of ['/gen?n=1&n=100', '/gen?n=1&N=100', '/gen?n=1;n=100', '/gen?n=1&n[]=100'])
    expect((await paid.pay(target, credential)).status, target).toBe(400);
  expect(paid.upstream.seen.length).toBe(served);
  expect(await paid.earned()).toBe(before);
  // The payment is still good for what it was made for.
  expect((await paid.pay('/gen?n=1', credential)).status).toBe(200);
  await expect.poll(paid.earned).toBe(before + 110_000n);
});

test('attack: what was paid for and failed is fetched again for the same inputs alone, though only a header differs', async () => {
  const before = await paid.earned();
  const credential = await paid.sign(await paid.quote('/first?n=1'));
  failing = true;
  expect((await paid.pay('/first?n=1', credential)).status).toBe(500);
  failing = false;
  await expect.poll(paid.earned).toBe(before + 110_000n);
  const served = paid.upstream.seen.length;
  const dear = await paid.pay('/first?n=1', credential, { headers: { 'x-model': 'opus' } });
  expect([dear.status, dear.headers.get('tollgate-reason'), paid.upstream.seen.length]).toEqual([
    ...[402, expect.stringContaining('payment_already_used'), served],
  ]);
  // An API that failed is left alone for a moment.
  await expect
    .poll(async () => (await paid.pay('/first?n=1', credential)).text(), { timeout: 30_000 })
    .toBe('/first?n=1 undefined');
  expect(await paid.earned()).toBe(before + 110_000n);
});
