// Several facilitators of a way on Solana, over a real virtual machine and the reference's: each pays the fees of its own
// payments alone. A payment names its fee payer, and whoever verified it settles it; nobody else may.
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { until } from '../support/paid-tollgate.ts';
import { SVM_NETWORK } from '../support/svm/chain.ts';
import { startPaidSolana, type Asked, type PaidSolana } from '../support/svm/paid-solana.ts';
import type { SvmFacilitator } from '../support/svm/facilitator.ts';
import { keyOf } from '../support/svm/wire.ts';

const PRICE = 100_000n;
const NOT_MANAGED = 'invalid_exact_svm_fee_payer_not_managed_by_facilitator';
const DOWN = { kind: 'answer', status: 500, body: { error: 'down' } } as const;

let paid: PaidSolana;
let first: SvmFacilitator;
let second: SvmFacilitator;

beforeAll(async () => {
  paid = await startPaidSolana({
    routes: ['* /thing/* 0.10'],
    facilitators: ['facilitator', 'second'],
    handle: (req, res) => {
      req.resume();
      res.end(`thing of ${req.url ?? ''}`);
    },
    before: (all) => all.forEach(({ fault }) => fault('supported', DOWN, 1000)),
  });
  const [one, other] = paid.facilitators;
  if (one === undefined || other === undefined) throw new Error('two facilitators');
  [first, second] = [one, other];
}, 180_000);
afterAll(() => paid?.stop());
afterEach(() => second.clearFaults());

const feePayerOf = ({ accepts }: Asked): unknown => accepts[0]?.extra['feePayer'];
/** Calls of each facilitator since the last time. */
const counted = new Map<string, number>();
function asked(operation: 'verify' | 'settle'): number[] {
  return [first, second].map(({ url, calls }) => {
    const name = `${operation} ${url}`;
    const [before, now] = [counted.get(name) ?? 0, calls.filter((call) => call.operation === operation).length];
    counted.set(name, now);
    return now - before;
  });
}
/** All charges that money was taken for, once there is nothing to be done about any. */
async function delivered() {
  return until('all are delivered', async () => {
    const charges = (await paid.charges()).filter(({ status }) => status !== 'released');
    return charges.every(({ status }) => status === 'delivered') && charges;
  });
}

/** With another fee payer than the one it names. */
const withFeePayer = (required: Asked, feePayer: string): Asked => ({
  ...required,
  accepts: required.accepts.map((way) => ({ ...way, extra: { ...way.extra, feePayer } })),
});

test('behaviour: a way is left out until its fee payer is known: 503 if it is the only one, and 402 from then on', async () => {
  const response = await fetch(paid.url('/thing/early'));
  expect([response.status, response.headers.get('payment-required')]).toEqual([503, null]);
  expect(response.headers.get('retry-after')).toMatch(/^\d+$/);
  expect(await response.json()).toMatchObject({ code: 'facilitator_unavailable' });
  expect(paid.upstream.seen).toEqual([]);
  second.clearFaults();
  const line = await paid.tollgate().line(({ msg }) => msg === 'a way to pay is offered');
  expect(line).toMatchObject({ network: SVM_NETWORK, fee_payer: second.feePayer });
  expect(feePayerOf(await paid.ask('/thing/early'))).toBe(second.feePayer);
});

test('behaviour: a payment whose fee the first facilitator does not pay is verified and settled by the second alone', async () => {
  const before = paid.earned();
  const response = await paid.pay('/thing/second', await paid.sign('/thing/second'));
  expect([response.status, await response.text()]).toEqual([200, 'thing of /thing/second']);
  expect([asked('verify'), asked('settle'), paid.earned() - before]).toEqual([[1, 1], [0, 1], PRICE]);
});

test('behaviour: a facilitator that verified and takes no call to settle leaves nothing charged; the first is not asked instead', async () => {
  const credential = await paid.sign('/thing/away', 'POST');
  const before = paid.earned();
  second.fault('settle', { kind: 'answer', status: 429, body: { error: 'slow down' } });
  const response = await paid.pay('/thing/away', credential, { method: 'POST' });
  expect([response.status, await response.json()]).toEqual([
    503,
    expect.objectContaining({ code: 'facilitator_unavailable' }),
  ]);
  expect([asked('settle'), paid.earned() - before]).toEqual([[0, 1], 0n]);
  const again = await paid.pay('/thing/away', credential, { method: 'POST' });
  expect([again.status, await again.text(), asked('settle'), paid.earned() - before]).toEqual([
    ...[200, 'thing of /thing/away'],
    ...[[0, 1], PRICE],
  ]);
});

test('attack: an end that is not known is settled again through the one that verified alone, also after a kill', async () => {
  const credential = await paid.sign('/thing/killed', 'POST');
  const before = paid.earned();
  // A kill may come before it is written that an answer was delivered.
  await delivered();
  await paid.restart({ TOLLGATE_TEST_STOP_AT: 'after_settle_started' });
  asked('settle');
  const broken = paid.pay('/thing/killed', credential, { method: 'POST' }).catch(() => 'broken');
  await paid.tollgate().line(({ msg }) => msg === 'stopped for a test');
  first.clearFaults();
  await paid.restart();
  // It is not verified again: the charge says who did.
  second.fault('verify', { kind: 'drop_before' });
  expect(await broken).toBe('broken');
  const again = await until('its payer is served', async () => {
    const response = await paid.pay('/thing/killed', credential, { method: 'POST' });
    return response.status === 200 && response.text();
  });
  expect([again, asked('settle'), paid.earned() - before]).toEqual(['thing of /thing/killed', [0, 1], PRICE]);
});

test('behaviour: the fee payer that is offered changes, and a payment of the one before is taken', async () => {
  // Since the restart the first one is there.
  const credential = await paid.signFor(withFeePayer(await paid.ask('/thing/rotated'), second.feePayer));
  expect(feePayerOf(await paid.ask('/thing/rotated'))).toBe(first.feePayer);
  asked('verify');
  const before = paid.earned();
  expect((await paid.pay('/thing/rotated', credential)).status).toBe(200);
  expect([asked('verify'), asked('settle'), paid.earned() - before]).toEqual([[1, 1], [0, 1], PRICE]);
  expect((await paid.pay('/thing/first', await paid.sign('/thing/first'))).status).toBe(200);
  expect([asked('verify'), asked('settle'), paid.earned() - before]).toEqual([[1, 0], [1, 0], 2n * PRICE]);
});

test('refuses: a fee payer that nobody manages: 402 with a new quote, which can be paid', async () => {
  const stranger = withFeePayer(await paid.ask('/thing/stranger'), keyOf('stranger').address);
  const [before, charges] = [paid.earned(), (await paid.charges()).length];
  const response = await paid.pay('/thing/stranger', await paid.signFor(stranger));
  expect([response.status, response.headers.get('tollgate-reason')]).toEqual([
    402,
    `payment_refused: ${NOT_MANAGED}: pay with the fee payer that is named now`,
  ]);
  expect([asked('verify'), asked('settle'), paid.earned() - before]).toEqual([[1, 1], [0, 0], 0n]);
  expect((await paid.charges()).length).toBe(charges);
  const quote = JSON.parse(Buffer.from(response.headers.get('payment-required') ?? '', 'base64').toString()) as Asked;
  expect(feePayerOf(quote)).toBe(first.feePayer);
  expect((await paid.pay('/thing/stranger', await paid.signFor(quote))).status).toBe(200);
  expect(paid.earned() - before).toBe(PRICE);
});

test('behaviour: a payment is 503, not 402, if a facilitator that might know its fee payer is away', async () => {
  const stranger = withFeePayer(await paid.ask('/thing/perhaps'), keyOf('stranger').address);
  second.fault('verify', { kind: 'drop_before' });
  const response = await paid.pay('/thing/perhaps', await paid.signFor(stranger));
  expect([response.status, await response.json()]).toEqual([
    503,
    expect.objectContaining({ code: 'facilitator_unavailable' }),
  ]);
});

test('behaviour: the ledger and the chain agree to the last unit', async () => {
  const sum = (await delivered()).reduce((total, { amount_atomic: amount }) => total + BigInt(amount), 0n);
  expect(sum).toBe(paid.earned());
});
