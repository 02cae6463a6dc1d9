// Payers whose wallet is a contract, over a real chain with the reference client and facilitators: on the chain already
// (ERC-1271), or put there with the first payment (ERC-6492). The first facilitator puts no wallet on the chain, the second
// does. The chain's balance has the last word.
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { USDC, WALLET_FACTORY } from '../support/chain/chain.ts';
import type { Payer } from '../support/chain/payer.ts';
import { createSmartWallet, wrap, type SmartWallet } from '../support/chain/smart-wallet.ts';
import type { Fault } from '../support/facilitator-server.ts';
import { PAY_TO, startPaidTollgate, until, type PaidTollgate } from '../support/paid-tollgate.ts';

const PRICE = 100_000n;
let paid: PaidTollgate;

beforeAll(async () => {
  paid = await startPaidTollgate({
    routes: ['* /thing/* 0.10'],
    facilitators: [{}, { account: 2, walletFactories: [WALLET_FACTORY] }],
    handle: (req, res) => {
      req.resume();
      res.end(`thing of ${req.url ?? ''}`);
    },
  });
}, 180_000);
afterAll(() => paid?.stop());
afterEach(() => paid.facilitators.forEach(({ clearFaults }) => clearFaults()));

/** What money arrived while `act` ran. */
async function earning(act: () => Promise<void>): Promise<bigint> {
  const before = await paid.earned();
  await act();
  return (await paid.earned()) - before;
}
const newest = async () => (await paid.charges())[0];
const receiptOf = (response: Response): Record<string, unknown> => {
  const header = response.headers.get('payment-response') ?? response.headers.get('x-payment-response') ?? '';
  return JSON.parse(Buffer.from(header, 'base64').toString()) as Record<string, unknown>;
};
const asked = (operation: 'verify' | 'settle'): number[] =>
  paid.facilitators.map(({ calls }) => calls.filter((call) => call.operation === operation).length);
/** How many more calls each facilitator had since `before`. */
const since = (before: readonly number[], operation: 'verify' | 'settle'): number[] =>
  asked(operation).map((count, at) => count - (before[at] ?? 0));
const sign = async (target: string, by: Payer, method = 'GET') => paid.sign(await paid.quote(target, method), by);

/** What the chain says of a transaction: who used which authorization, and the transfer right behind it. */
async function logsOf(transaction: unknown): Promise<string[][]> {
  const receipt = (await paid.chain.rpc('eth_getTransactionReceipt', [transaction])) as {
    logs: { address: string; topics: string[] }[];
  };
  return receipt.logs.map(({ address, topics }) => [address, ...topics.slice(1)].map((text) => text.toLowerCase()));
}
const topic = (address: string): string => `0x${address.slice(2).toLowerCase().padStart(64, '0')}`;

describe.each(['v2', 'v1'] as const)('by the client of %s', (version) => {
  const pay = ({ fetch, fetchV1 }: Payer, target: string) => (version === 'v2' ? fetch : fetchV1)(paid.url(target));

  async function expectPaid(response: Response, wallet: SmartWallet): Promise<void> {
    expect(response.status).toBe(200);
    const { transaction, payer, success } = receiptOf(response);
    expect([success, payer]).toEqual([true, wallet.address.toLowerCase()]);
    const [used, transfer] = await logsOf(transaction);
    expect(used?.slice(0, 2)).toEqual([USDC.toLowerCase(), topic(wallet.address)]);
    expect(transfer).toEqual([USDC.toLowerCase(), topic(wallet.address), topic(PAY_TO)]);
    const charge = await until('it is delivered', async () => {
      const last = await newest();
      return last?.status === 'delivered' && last;
    });
    expect(charge).toMatchObject({ payer: wallet.address.toLowerCase(), amount_atomic: String(PRICE) });
    expect(JSON.stringify(charge)).toContain(String(transaction));
  }

  test('behaviour: a wallet that is on the chain pays through the first facilitator', async () => {
    const wallet = await createSmartWallet(paid.chain);
    await wallet.deploy();
    const before = asked('settle');
    expect(await earning(async () => expectPaid(await pay(wallet, '/thing/deployed'), wallet))).toBe(PRICE);
    expect(since(before, 'settle')).toEqual([1, 0]);
  });

  test('behaviour: a wallet not yet on the chain, passed over by the first facilitator, is put there by the second and pays', async () => {
    const wallet = await createSmartWallet(paid.chain);
    expect(await wallet.isDeployed()).toBe(false);
    expect(await earning(async () => expectPaid(await pay(wallet, '/thing/first'), wallet))).toBe(PRICE);
    expect(await wallet.isDeployed()).toBe(true);
    // The same kind of signature holds from then on, for any facilitator.
    const before = asked('verify');
    expect(await earning(async () => expectPaid(await pay(wallet, '/thing/second'), wallet))).toBe(PRICE);
    expect(since(before, 'verify')).toEqual([1, 0]);
  });

  test('refuses: a payment that the smart wallet does not take for signed', async () => {
    const wallet = await createSmartWallet(paid.chain);
    await wallet.deploy();
    const forged = wallet.signing(
      ({ signature }) => `${signature.slice(0, 200)}00${signature.slice(202)}` as `0x${string}`,
    );
    expect(
      await earning(async () => {
        const response = await pay(forged, '/thing/forged');
        expect(response.status).toBe(402);
        expect(response.headers.get('tollgate-reason')).toBe('payment_refused: invalid_exact_evm_signature');
      }),
    ).toBe(0n);
  });

  test('attack: a wrapper that facilitators read and no transaction settles is 400, and nobody is asked', async () => {
    const wallet = await createSmartWallet(paid.chain);
    const before = asked('verify');
    for (const change of [
      { call: '0x' },
      { call: '0xdeadbe' },
      { factory: `0x${'0'.repeat(40)}` },
      { signature: '0x' },
    ]) {
      const payer = wallet.signing((parts) => wrap({ ...parts, ...change } as typeof parts));
      const response = await pay(payer, '/thing/wrapped');
      expect([response.status, await response.text()]).toEqual([400, expect.stringContaining('ERC-6492')]);
    }
    expect(since(before, 'verify')).toEqual([0, 0]);
  });
});

test('behaviour: a payment of a wallet whose answer was lost is found on the chain, and served without a second one', async () => {
  const wallet = await createSmartWallet(paid.chain);
  const credential = await sign('/thing/lost', wallet, 'POST');
  const earned = await earning(async () => {
    paid.facilitators[1]?.fault('settle', { kind: 'drop_after' });
    const lost = await paid.pay('/thing/lost', credential, { method: 'POST' });
    expect([lost.status, await lost.json()]).toEqual([503, expect.objectContaining({ code: 'settlement_unknown' })]);
    const again = await paid.pay('/thing/lost', credential, { method: 'POST' });
    expect([again.status, await again.text()]).toEqual([200, 'thing of /thing/lost']);
    const [used] = await logsOf(receiptOf(again)['transaction']);
    expect(used?.[1]).toBe(topic(wallet.address));
  });
  expect(earned).toBe(PRICE);
});

describe('what a facilitator does not take', () => {
  const NOT_ON_CHAIN = 'deploy the wallet first, or pay otherwise';
  const WORDS = [
    ['eip6492_factory_not_allowed', NOT_ON_CHAIN],
    ['invalid_exact_evm_payload_undeployed_smart_wallet', NOT_ON_CHAIN],
    ['smart_wallet_deployment_failed', NOT_ON_CHAIN],
    ['invalid_exact_evm_eip3009_not_supported', 'pay otherwise'],
  ] as const;
  const declines = (word: string): Fault => ({ kind: 'answer', body: { isValid: false, invalidReason: word } });

  test.each(WORDS)('behaviour: a facilitator’s %s asks the next one, which takes the payment', async (word) => {
    const wallet = await createSmartWallet(paid.chain);
    paid.facilitators[0]?.fault('verify', declines(word));
    const earned = await earning(async () => {
      expect((await wallet.fetch(paid.url('/thing/next'), { method: 'POST' })).status).toBe(200);
    });
    expect(earned).toBe(PRICE);
  });

  test.each(WORDS)('refuses: a payment if all say %s: 402, the word, help and a new quote', async (word, advice) => {
    const wallet = await createSmartWallet(paid.chain);
    const [credential, before] = [await sign('/thing/none', wallet), (await paid.charges()).length];
    for (const facilitator of paid.facilitators) facilitator.fault('verify', declines(word));
    const response = await paid.pay('/thing/none', credential);
    expect([response.status, response.headers.get('tollgate-reason')]).toEqual([
      402,
      `payment_refused: ${word}: ${advice}`,
    ]);
    expect(receiptOf(response)).toMatchObject({ success: false, errorReason: word });
    expect(response.headers.get('payment-required')).not.toBe(null);
    expect((await paid.charges()).length).toBe(before);
  });

  test('behaviour: a payer whose wallet nobody puts on the chain is told so, deploys it, and pays', async () => {
    const wallet = await createSmartWallet(paid.chain);
    paid.facilitators[1]?.fault('verify', declines('eip6492_factory_not_allowed'));
    const credential = await sign('/thing/deploys', wallet);
    const response = await paid.pay('/thing/deploys', credential);
    expect(response.headers.get('tollgate-reason')).toContain('eip6492_factory_not_allowed: deploy the wallet first');
    await wallet.deploy();
    const earned = await earning(async () => {
      expect((await paid.pay('/thing/deploys', credential)).status).toBe(200);
    });
    expect(earned).toBe(PRICE);
  });
});

describe.each(['GET', 'POST'])('a deployment that fails at settling (%s)', (method) => {
  const failed: Fault = {
    kind: 'answer',
    body: { success: false, errorReason: 'smart_wallet_deployment_failed', transaction: '', network: 'eip155:84532' },
  };

  test('behaviour: a deployment that fails at settling is settled by the next facilitator', async () => {
    const wallet = await createSmartWallet(paid.chain);
    // On the chain already: the first facilitator verifies it, so it is asked to settle first.
    await wallet.deploy();
    const [credential, before] = [await sign('/thing/fails', wallet, method), asked('settle')];
    paid.facilitators[0]?.fault('settle', failed);
    const earned = await earning(async () => {
      expect((await paid.pay('/thing/fails', credential, { method })).status).toBe(200);
    });
    expect([earned, since(before, 'settle')]).toEqual([PRICE, [1, 1]]);
  });

  test('refuses: a payment whose deployment fails at all facilitators: 402 with that word, not charged, and free again', async () => {
    const wallet = await createSmartWallet(paid.chain);
    const credential = await sign('/thing/failed', wallet, method);
    for (const facilitator of paid.facilitators) facilitator.fault('settle', failed);
    const earned = await earning(async () => {
      const response = await paid.pay('/thing/failed', credential, { method });
      expect([response.status, response.headers.get('tollgate-reason')]).toEqual([
        402,
        'payment_refused: smart_wallet_deployment_failed: deploy the wallet first, or pay otherwise',
      ]);
      expect(receiptOf(response)).toMatchObject({ success: false, errorReason: 'smart_wallet_deployment_failed' });
      expect((await newest())?.status).toBe('released');
    });
    expect(earned).toBe(0n);
    expect(
      await earning(async () => expect((await paid.pay('/thing/failed', credential, { method })).status).toBe(200)),
    ).toBe(PRICE);
  });

  test('behaviour: a failed deployment that names a transaction is an unknown end, and nobody else is asked', async () => {
    const wallet = await createSmartWallet(paid.chain);
    const [credential, before] = [await sign('/thing/sent', wallet, method), asked('settle')];
    // The second facilitator verifies it, so it is asked to settle first.
    paid.facilitators[1]?.fault('settle', {
      ...failed,
      body: { ...(failed.body as object), transaction: `0x${'9a'.repeat(32)}` },
    });
    const response = await paid.pay('/thing/sent', credential, { method });
    expect([response.status, await response.json()]).toEqual([
      503,
      expect.objectContaining({ code: 'settlement_unknown' }),
    ]);
    expect(since(before, 'settle')).toEqual([0, 1]);
    expect(
      await earning(async () => expect((await paid.pay('/thing/sent', credential, { method })).status).toBe(200)),
    ).toBe(PRICE);
  });
});

test('behaviour: the ledger and the chain agree to the last unit', async () => {
  const ends = async () => (await paid.charges()).filter(({ status }) => status !== 'released');
  await until('all are delivered', async () => (await ends()).every(({ status }) => status === 'delivered'));
  const sum = (await ends()).reduce((total, { amount_atomic: amount }) => total + BigInt(amount), 0n);
  expect(sum).toBe(await paid.earned());
});
