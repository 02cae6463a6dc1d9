// One receiver, two chains: public clients pay in either way, a payment is taken in the way that it names alone, and the ledger
// equals both chains.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { USDC } from '../support/chain/chain.ts';
import { PAY_TO, until } from '../support/paid-tollgate.ts';
import { startPaidWays, WALLETS, type Accepted, type PaidWays } from '../support/paid-ways.ts';
import { SVM_NETWORK, SVM_USDC } from '../support/svm/chain.ts';
import { SHOP } from '../support/svm/paid-solana.ts';

const EVM_NETWORK = 'eip155:84532';
const PRICE = 100_000n;

let paid: PaidWays;
beforeAll(async () => {
  paid = await startPaidWays(['* /thing/* 0.10']);
}, 180_000);
afterAll(() => paid?.stop());

const reasonOf = (response: Response): string | null => response.headers.get('tollgate-reason');
/** Calls about payments. */
const asked = (): number =>
  [...paid.facilitators.evm.calls, ...paid.facilitators.svm.calls].filter(({ operation }) => operation !== 'supported')
    .length;

async function offered(target: string, method?: string): Promise<{ evm: Accepted; svm: Accepted }> {
  const { accepts } = await paid.ask(target, method);
  const [evm, svm] = accepts;
  if (evm === undefined || svm === undefined) throw new Error('both are offered');
  return { evm, svm };
}

/** What the public client signs for these ways. */
async function signSolana(svm: Accepted) {
  const required = {
    x402Version: 2,
    error: '',
    resource: { url: paid.url('/thing/x') },
    accepts: [svm],
    extensions: {},
  };
  return paid.payers.svm.client.createPaymentPayload(required as never);
}

const authorize = (evm: Accepted, payTo = evm.payTo) =>
  paid.payers.evm.authorize({ to: payTo, value: BigInt(evm.amount), asset: USDC });

describe('a 402', () => {
  test('behaviour: a 402 shows its ways in their order, one reference for all; the body names the first, version 1 EVM alone', async () => {
    const { body, accepts } = await paid.ask('/thing/offer');
    expect(accepts.slice(0, 3)).toMatchObject([
      { network: EVM_NETWORK, asset: USDC, payTo: PAY_TO, amount: '100000' },
      { network: SVM_NETWORK, asset: SVM_USDC, payTo: SHOP, amount: '100000' },
      { network: EVM_NETWORK, asset: USDC, payTo: WALLETS[0], amount: '100000' },
    ]);
    expect(new Set(accepts.map(({ extra }) => extra.external_ref))).toEqual(new Set([body['charge_id']]));
    expect(body).toMatchObject({
      x402_requirements: { rail_config: { network: 'base-sepolia', pay_to_address: PAY_TO } },
      accepts: [{ network: 'base-sepolia', payTo: PAY_TO }],
    });
    expect((await paid.ask('/thing/offer', 'POST')).accepts.map(({ extra }) => extra.paymentFlow)).toEqual(
      accepts.map(() => 'upfront'),
    );
    expect(accepts.map(({ extra }) => extra.paymentFlow)).toEqual(accepts.map(() => undefined));
  });

  test('behaviour: the start and check name the ways that a 402 has no room for', async () => {
    const { accepts } = await paid.ask('/thing/offer', 'POST');
    expect(accepts.length).toBeLessThan(8);
    const said = 'the route * /thing/* at 0.10 USD does not show base-sepolia USDC';
    expect(paid.tollgate.lines.some(({ msg }) => msg.startsWith(said))).toBe(true);
    expect((await paid.cli('check')).stderr).toContain(said);
    expect((await paid.cli('check')).stdout).toContain('default (base-sepolia USDC, solana-devnet USDC, base-sepolia');
  });
});

describe('behaviour: public clients pay', () => {
  test.each(['GET', 'POST'] as const)('a public client pays on EVM, %s', async (method) => {
    const before = await paid.earned();
    const response = await paid.payers.evm.fetch(paid.url(`/thing/evm-${method}`), { method });
    expect([response.status, await response.text()]).toEqual([200, `thing of /thing/evm-${method}`]);
    expect(await paid.earned()).toEqual({ ...before, evm: before.evm + PRICE });
    expect(paid.upstream.seen.at(-1)?.headers).toMatchObject({ 'tollgate-network': EVM_NETWORK });
  });

  test.each(['GET', 'POST'] as const)('a public client pays on Solana, %s', async (method) => {
    const before = await paid.earned();
    const response = await paid.payers.svm.fetch(paid.url(`/thing/svm-${method}`), { method });
    expect([response.status, await response.text()]).toEqual([200, `thing of /thing/svm-${method}`]);
    expect(await paid.earned()).toEqual({ ...before, svm: before.svm + PRICE });
    expect(paid.upstream.seen.at(-1)?.headers).toMatchObject({ 'tollgate-network': SVM_NETWORK });
  });

  test('a public client pays by version 1, the first way of its network', async () => {
    const before = await paid.chains.evm.balanceOf(PAY_TO);
    const response = await paid.payers.evm.fetchV1(paid.url('/thing/v1'));
    expect([response.status, await response.text()]).toEqual([200, 'thing of /thing/v1']);
    expect(await paid.chains.evm.balanceOf(PAY_TO)).toBe(before + PRICE);
  });
});

test('behaviour: a way that is not shown is paid all the same', async () => {
  const { evm } = await offered('/thing/hidden');
  const payTo = WALLETS.at(-1) ?? '';
  expect((await paid.ask('/thing/hidden')).accepts.some((each) => each.payTo === payTo)).toBe(false);
  const accepted = { ...evm, payTo };
  const before = await paid.chains.evm.balanceOf(payTo);
  const response = await paid.pay('/thing/hidden', { x402Version: 2, accepted, payload: await authorize(accepted) });
  expect([response.status, await response.text()]).toEqual([200, 'thing of /thing/hidden']);
  expect(await paid.chains.evm.balanceOf(payTo)).toBe(before + PRICE);
});

describe('attack: a mixture of two ways is refused, nobody is asked, nothing moves and nothing is written', () => {
  type Mixed = (ways: { evm: Accepted; svm: Accepted }) => Promise<unknown>;
  const mixtures: readonly (readonly [string, string | RegExp, Mixed])[] = [
    [
      'a transaction of Solana in the EVM way',
      'way_mismatch: a payment of the kind of eip155:84532',
      async ({ evm, svm }) => ({ accepted: evm, payload: (await signSolana(svm)).payload }),
    ],
    [
      'an authorization of EVM in the way of Solana',
      `way_mismatch: a payment of the kind of ${SVM_NETWORK}`,
      async ({ evm, svm }) => ({ accepted: svm, payload: await authorize(evm) }),
    ],
    [
      'the mint of Solana on EVM',
      `way_mismatch: asset ${USDC} on ${EVM_NETWORK}`,
      async ({ evm, svm }) => ({ accepted: { ...evm, asset: svm.asset }, payload: await authorize(evm) }),
    ],
    [
      'the wallet of Solana on EVM',
      /^way_mismatch: payTo 0x1+ or 0x2+ or /,
      async ({ evm, svm }) => ({ accepted: { ...evm, payTo: svm.payTo }, payload: await authorize(evm) }),
    ],
    [
      'an authorization to the wallet of another way',
      `invalid_exact_evm_recipient_mismatch: ${PAY_TO}`,
      async ({ evm }) => ({ accepted: evm, payload: await authorize(evm, WALLETS[0]) }),
    ],
    [
      'the way of another wallet, signed for the first',
      `invalid_exact_evm_recipient_mismatch: ${WALLETS[0] ?? ''}`,
      async ({ evm }) => ({ accepted: { ...evm, payTo: WALLETS[0] }, payload: await authorize(evm) }),
    ],
    [
      'a network that is not offered',
      'way_mismatch: network eip155:8453 is not offered',
      async ({ evm }) => ({ accepted: { ...evm, network: 'eip155:8453' }, payload: await authorize(evm) }),
    ],
    [
      'another amount',
      'invalid_amount: 100000',
      async ({ evm }) => ({ accepted: { ...evm, amount: '1' }, payload: await authorize(evm) }),
    ],
    [
      'another scheme',
      'invalid_scheme: exact',
      async ({ svm }) => ({ ...(await signSolana(svm)), accepted: { ...svm, scheme: 'upto' } }),
    ],
  ];

  test.each(mixtures)('a mixture is refused: %s', async (_, reason, mix) => {
    const before = await paid.earned();
    const [calls, charges, served] = [asked(), (await paid.charges()).length, paid.upstream.seen.length];
    const mixed = await mix(await offered('/thing/mixed'));
    const response = await paid.pay('/thing/mixed', { x402Version: 2, ...(mixed as object) });
    expect(response.status).toBe(402);
    const told = reasonOf(response) ?? '';
    if (typeof reason === 'string') expect(told).toBe(`payment_refused: ${reason}`);
    else expect(told.replace('payment_refused: ', '')).toMatch(reason);
    expect(told.length).toBeLessThanOrEqual(200);
    await response.arrayBuffer();
    expect([asked(), (await paid.charges()).length, paid.upstream.seen.length]).toEqual([calls, charges, served]);
    expect(await paid.earned()).toEqual(before);
  });

  test('behaviour: the same parts of a payment, each where it belongs, are taken', async () => {
    const { evm, svm } = await offered('/thing/apart');
    const first = await paid.pay('/thing/apart', { x402Version: 2, accepted: evm, payload: await authorize(evm) });
    expect(first.status).toBe(200);
    const again = await offered('/thing/apart');
    expect(again.svm.network).toBe(svm.network);
    const second = await paid.pay('/thing/apart', await signSolana(again.svm));
    expect(second.status).toBe(200);
  });
});

test('behaviour: one quote pays once, in whichever way it is paid', async () => {
  const { evm, svm } = await offered('/thing/twice');
  const first = await paid.pay('/thing/twice', { x402Version: 2, accepted: evm, payload: await authorize(evm) });
  expect(first.status).toBe(200);
  const second = await paid.pay('/thing/twice', await signSolana(svm));
  expect([second.status, reasonOf(second)]).toEqual([402, 'quote_already_used']);
});

test('behaviour: a way whose facilitators are left alone stands last, and the 503 says what can be paid on', async () => {
  const { facilitators } = paid;
  facilitators.evm.fault('verify', { kind: 'answer', status: 401, body: { error: 'no' } }, 5);
  const details: string[] = [];
  for (let i = 0; i < 5; i++) {
    const { evm } = await offered('/thing/closed');
    const response = await paid.pay('/thing/closed', { x402Version: 2, accepted: evm, payload: await authorize(evm) });
    expect(response.status).toBe(503);
    const { code, detail } = (await response.json()) as { code: string; detail: string };
    expect(code).toBe('facilitator_unavailable');
    details.push(detail);
  }
  expect(details[0]).toMatch(new RegExp(`What can be paid on now: ${SVM_NETWORK}, ${EVM_NETWORK}\\.$`));
  expect(details[4]).toMatch(new RegExp(`What can be paid on now: ${SVM_NETWORK}\\.$`));
  const { body, accepts } = await paid.ask('/thing/closed');
  expect(accepts.map(({ network }) => network).slice(0, 2)).toEqual([SVM_NETWORK, EVM_NETWORK]);
  expect(body).toMatchObject({ x402_requirements: { rail_config: { network: 'solana-devnet' } } });
  expect((await paid.payers.svm.fetch(paid.url('/thing/closed'))).status).toBe(200);
  // One call at a time tries; the first that is answered brings it back.
  facilitators.evm.clearFaults();
  await until('it is back', async () => {
    const accepted = { ...accepts.find(({ network }) => network === EVM_NETWORK) } as Accepted;
    const again = await paid.pay('/thing/closed', { x402Version: 2, accepted, payload: await authorize(accepted) });
    await again.arrayBuffer();
    return again.status === 200;
  });
  expect((await paid.ask('/thing/closed')).accepts[0]?.network).toBe(EVM_NETWORK);
});

test('behaviour: after payments in two ways the ledger equals both chains, to the last unit', async () => {
  await until('all are delivered', async () =>
    (await paid.charges()).every(({ status }) => status === 'delivered' || status === 'released'),
  );
  const charges = await paid.charges();
  const settled = (network: string): bigint =>
    charges
      .filter(({ status, ['network']: on }) => status === 'delivered' && on === network)
      .reduce((sum, { amount_atomic: amount }) => sum + BigInt(amount), 0n);
  expect({ evm: settled(EVM_NETWORK), svm: settled(SVM_NETWORK) }).toEqual(await paid.earned());
  const { data } = await paid.get(`/v1/billing/charges?limit=200&network=${encodeURIComponent(SVM_NETWORK)}`);
  expect(new Set((data as { network: string }[]).map(({ network }) => network))).toEqual(new Set([SVM_NETWORK]));
});
