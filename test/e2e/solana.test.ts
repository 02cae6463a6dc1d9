// Payments on Solana, over a real virtual machine with the reference client and facilitator: paid, refused, and killed at
// every named point of a charge's life. The chain's balance has the last word.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { LEASE_MS } from '../../src/gateway/pay/lease.ts';
import { CRASH_POINTS } from '../support/crash-point.ts';
import { until } from '../support/paid-tollgate.ts';
import { SVM_NETWORK } from '../support/svm/chain.ts';
import { startPaidSolana, type PaidSolana } from '../support/svm/paid-solana.ts';

let paid: PaidSolana;
let holding: (() => void) | undefined;

beforeAll(async () => {
  paid = await startPaidSolana({
    routes: ['* /thing/* 0.10'],
    handle: (req, res) => {
      req.resume();
      res.writeHead(200, { 'content-type': 'text/plain' });
      if (!req.url?.includes('mid_body') || holding !== undefined) {
        res.end(`thing of ${req.url ?? ''}`);
        return;
      }
      res.write('half of ');
      holding = () => res.end('it');
    },
  });
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

test.each(KILLS)('behaviour: killed %s, a %s is charged once and delivered', async (stop, method) => {
  const target = `/thing/${stop}?${method}`;
  const before = paid.earned();
  holding = undefined;
  await paid.restart({ TOLLGATE_TEST_STOP_AT: stop });
  const credential = await paid.sign(target, method);
  const head = paid.pay(target, credential, { method });
  const first = head.then(
    async (response) => (await response.text().catch(() => 'broken')) !== 'broken',
    () => false,
  );
  if (stop === 'mid_body') await head;
  else await paid.tollgate().line(({ msg, ['at']: at }) => msg === 'stopped for a test' && at === stop);
  const moved = paid.earned() - before;
  expect(moved).toBe(['after_claim', 'after_settle_started'].includes(stop) ? 0n : 100_000n);
  if (stop === 'before_delivered') expect(await first).toBe(true);

  // It is killed here, with SIGKILL.
  await paid.restart();
  const ready = performance.now();
  expect(await first).toBe(stop === 'before_delivered');
  const again = await until('the payer has what was paid for', async () => {
    const response = await paid.pay(target, credential, { method });
    const body = await response.text();
    // Never 402: the payment is the payer's word for good.
    if (response.status !== 200) expect([409, 503]).toContain(response.status);
    return response.status === 200 ? body : undefined;
  });
  expect(performance.now() - ready).toBeLessThan(LEASE_MS - 2_000);
  expect(again).toBe(`thing of ${target}`);
  expect(paid.earned() - before).toBe(100_000n);
  await until('it is delivered', async () => (await paid.charges())[0]?.status === 'delivered');
});

test('behaviour: after all these crashes the ledger equals the chain, to the last unit', async () => {
  const charges = await paid.charges();
  expect(new Set(charges.map(({ status }) => status))).toEqual(new Set(['delivered']));
  const sum = charges.reduce((total, { amount_atomic: amount }) => total + BigInt(amount), 0n);
  expect(sum).toBe(paid.earned());
});
