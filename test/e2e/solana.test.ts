// Payments on Solana, over a real virtual machine with the reference client and facilitator: paid, refused, and killed at
// every named point of a charge's life. The chain's balance has the last word.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { CRASH_POINTS } from '../support/crash-point.ts';
import { createThings, payThroughKill, THINGS } from '../support/killed-thing.ts';
import { until } from '../support/paid-tollgate.ts';
import { SVM_NETWORK } from '../support/svm/chain.ts';
import { startPaidSolana, type PaidSolana } from '../support/svm/paid-solana.ts';

let paid: PaidSolana;
const things = createThings();

beforeAll(async () => {
  paid = await startPaidSolana({ routes: THINGS, handle: things.handle });
}, 180_000);

afterAll(() => paid?.stop());

test('behaviour: the reference client pays, and the receipt names the transaction that the chain has', async () => {
  const before = paid.earned();
  const response = await paid.payer.fetch(paid.url('/thing/first'));
  expect([response.status, await response.text()]).toEqual([200, 'thing of /thing/first']);
  expect(paid.earned() - before).toBe(100_000n);
  const receipt = JSON.parse(
    Buffer.from(response.headers.get('payment-response') ?? '', 'base64').toString(),
  ) as Record<string, unknown>;
  expect(receipt).toMatchObject({ success: true, network: SVM_NETWORK, payer: paid.payer.address });
  expect(paid.chain.rpc('getTransaction', [receipt['transaction'], { commitment: 'confirmed' }])).not.toBe(null);
  expect(paid.upstream.seen.at(-1)?.headers).toMatchObject({
    'tollgate-payer': paid.payer.address,
    'tollgate-network': SVM_NETWORK,
  });
});

test('attack: a payment that was used buys nothing more', async () => {
  const credential = await paid.sign('/thing/once');
  const before = paid.earned();
  expect((await paid.pay('/thing/once', credential)).status).toBe(200);
  expect((await paid.pay('/thing/other', credential)).status).toBe(402);
  expect(paid.earned() - before).toBe(100_000n);
});

/** Each point with one method, in turn: a kill costs two starts. */
const KILLS = CRASH_POINTS.map((stop, at) => [stop, at % 2 === 0 ? 'GET' : 'POST'] as const);

test.each(KILLS)('behaviour: if Tollgate is killed %s, a %s is charged once and delivered', async (stop, method) => {
  const target = `/thing/${stop}?${method}`;
  things.hold();
  await paid.restart({ TOLLGATE_TEST_STOP_AT: stop });
  const credential = await paid.sign(target, method);
  await payThroughKill(paid, { stop, target, method, credential });
  await until('it is delivered', async () => (await paid.charges())[0]?.status === 'delivered');
});

test('behaviour: after all these crashes the ledger equals the chain, to the last unit', async () => {
  const charges = await paid.charges();
  expect(new Set(charges.map(({ status }) => status))).toEqual(new Set(['delivered']));
  const sum = charges.reduce((total, { amount_atomic: amount }) => total + BigInt(amount), 0n);
  expect(sum).toBe(paid.earned());
});
