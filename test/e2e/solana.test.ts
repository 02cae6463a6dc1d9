// Payments on Solana, over a real virtual machine with the reference client and facilitator: paid, refused, and killed at
// every named point of a charge's life. The chain's balance has the last word.
import { sign } from 'node:crypto';
import { createSIWxPayload, encodeSIWxHeader, type SIWxExtensionInfo } from '@x402/extensions/sign-in-with-x';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { findTokenAccount } from '../../src/gateway/rails/svm/addresses.ts';
import { CRASH_POINTS } from '../support/crash-point.ts';
import { createThings, payThroughKill, THINGS } from '../support/killed-thing.ts';
import { until } from '../support/paid-tollgate.ts';
import { SVM_NETWORK, SVM_USDC } from '../support/svm/chain.ts';
import { startPaidSolana, type PaidSolana } from '../support/svm/paid-solana.ts';
import { createSvmPayer, type SvmPayer } from '../support/svm/payer.ts';
import { base58, buildTransaction, keyOf, transferChecked, unbase58 } from '../support/svm/wire.ts';

const PUBLIC = 'https://api.example.com';
let paid: PaidSolana;
const things = createThings();

beforeAll(async () => {
  paid = await startPaidSolana({
    ...{ routes: THINGS, handle: things.handle, proxy: `public_url: ${PUBLIC}` },
    more: [
      '  - { method: GET, route_pattern: /passed, amount: "0.10", plan_id: api }',
      'selling: { plans: [{ id: api, single: false, passes: [{ id: five, amount: "0.30", uses: 5 }] }] }',
    ].join('\n'),
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

test('behaviour: a refund is recorded once the chain shows a transfer back to the payer, for one charge, and with the chain away none is', async () => {
  const operator = keyOf('operator');
  paid.chain.airdrop(operator.address);
  paid.chain.mint(operator.address, 10_000_000n);
  const [source = '', destination = '', stranger = ''] = [operator, paid.payer, keyOf('stranger')].map(({ address }) =>
    findTokenAccount(address, SVM_USDC),
  );
  paid.chain.mint(keyOf('stranger').address, 0n);
  const send = (to: string, amount: bigint): string => {
    const { value } = paid.chain.rpc('getLatestBlockhash', [{ commitment: 'confirmed' }]) as {
      value: { blockhash: string };
    };
    const move = { source, destination: to, mint: SVM_USDC, authority: operator.address, amount, decimals: 6 };
    const { base64 } = buildTransaction({
      ...{ feePayer: operator, sign: [operator], blockhash: unbase58(value.blockhash) },
      instructions: [transferChecked(move)],
    });
    return String(paid.chain.rpc('sendTransaction', [base64]));
  };
  const bought = async (thing: string): Promise<string> => {
    expect((await paid.payer.fetch(paid.url(`/thing/${thing}`))).status).toBe(200);
    await until('it is delivered', async () => (await paid.charges())[0]?.status === 'delivered');
    return (await paid.charges())[0]?.id ?? '';
  };
  const said = async (id: string, transaction: string, more: object = {}): Promise<string> => {
    const { status, said: answer } = await paid.refund(id, { transaction, ...more });
    return typeof answer['code'] === 'string' ? `${status} ${answer['code']}` : String(status);
  };
  const before = send(destination, 100_000n);
  const [one, two] = [await bought('given-back'), await bought('kept')];
  const unproven = '422 refund_unproven';
  expect(await said(one, before)).toBe(unproven);
  expect(await said(one, base58(Buffer.alloc(64, 5)))).toBe(unproven);
  expect(await said(one, send(destination, 99_999n))).toBe(unproven);
  expect(await said(one, send(stranger, 100_000n))).toBe(unproven);
  expect(await said(one, `0x${'ab'.repeat(32)}`)).toBe('422 invalid');
  const back = send(destination, 100_000n);
  paid.chain.answer('getTransaction', 'drop', 2);
  expect(await said(one, back)).toBe('503 chain_unavailable');
  const { status, said: charge } = await paid.refund(one, { transaction: back, reason: 'too late' });
  expect(status).toBe(201);
  expect(charge).toMatchObject({
    refunded: { amount: '0.10', transactions: [back] },
    refunds: [{ transaction: back, proven: true, log_index: 0, amount_atomic: '100000', reason: 'too late' }],
  });
  expect([await said(one, back), await said(two, back)]).toEqual(['200', unproven]);
  // A larger amount does as well.
  expect(await said(two, send(destination, 150_000n))).toBe('201');
});

test('behaviour: a Solana wallet that bought a pass finds it by its signature, and another wallet does not', async () => {
  const bought = await paid.payer.fetch(paid.url('/passed'));
  expect([bought.status, bought.headers.get('tollgate-pass-left')]).toEqual([200, '4']);
  const earned = paid.earned();
  const signIn = async (by: SvmPayer): Promise<Response> => {
    const asked = await paid.ask('/passed');
    const declared = (asked.extensions as { 'sign-in-with-x': { info: SIWxExtensionInfo } })['sign-in-with-x'].info;
    const info = { ...declared, chainId: SVM_NETWORK, type: 'ed25519' } as const;
    const signMessage = async (message: Uint8Array): Promise<Uint8Array> =>
      new Uint8Array(sign(null, message, by.key.secret));
    const payload = await createSIWxPayload(info, { publicKey: by.address, signMessage }, `${PUBLIC}/passed`);
    return fetch(paid.url('/passed'), { headers: { 'sign-in-with-x': encodeSIWxHeader(payload) } });
  };
  const found = await signIn(paid.payer);
  expect([found.status, found.headers.get('tollgate-pass-left')]).toEqual([200, '3']);
  expect(found.headers.get('tollgate-pass')).toBe(bought.headers.get('tollgate-pass'));
  const unknown = await signIn(await createSvmPayer(paid.chain, 0n, 'stranger'));
  expect([unknown.status, unknown.headers.get('tollgate-reason')]).toEqual([402, 'pass_unknown']);
  expect(paid.earned()).toBe(earned);
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
