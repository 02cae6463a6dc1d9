// The rail against a real facilitator and a real chain: money moves once, every refusal is what it says, and whatever
// is lost on the way can be proven afterwards.
import { encodeFunctionData, toEventSelector, toFunctionSelector } from 'viem';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import {
  AUTHORIZATION_CANCELED,
  AUTHORIZATION_STATE,
  AUTHORIZATION_USED,
  TRANSFER,
} from '../../../src/gateway/rails/evm/look.ts';
import type { RailOffer } from '../../../src/domain/payment/way.ts';
import type { Look, PresentedPayment, Rail } from '../../../src/gateway/rails/rail.ts';
import { systemClock } from '../../../src/host/clock.ts';
import { SELECTORS } from '../../../src/gateway/rails/evm/token-facts.ts';
import {
  MISCHIEF,
  MULTICALL,
  MULTICALL_ABI,
  startChain,
  USDC,
  USDC_ABI,
  type Chain,
} from '../../support/chain/chain.ts';
import { startFacilitator } from '../../support/chain/facilitator.ts';
import type { TestFacilitator } from '../../support/facilitator-server.ts';
import { createPayer, type Payer, type Signed } from '../../support/chain/payer.ts';
import {
  FRESH,
  GO,
  PAY_TO,
  PRICE,
  facilitatorAt,
  json,
  looked,
  changed,
  makeOffer,
  makeRail,
  present,
  servicesOf,
  startScripted,
} from './kit.ts';

let chain: Chain;
let facilitator: TestFacilitator;
let payer: Payer;
let offer: RailOffer;
let rail: Rail;

beforeAll(async () => {
  chain = await startChain();
  facilitator = await startFacilitator({ rpcUrl: chain.rpcUrl, confirmationTimeoutMs: 400 });
  payer = await createPayer(chain);
  offer = makeOffer({ facilitators: [facilitatorAt(facilitator.url)], rpcUrls: [chain.rpcUrl] });
  rail = railFor(offer);
});
afterEach(async () => {
  facilitator.clearFaults();
  await chain.automine(true);
});
afterAll(async () => {
  await facilitator?.close();
  await chain?.stop();
});

// Nobody waits for the pace of a node here: a second passes whenever somebody looks at the clock.
let now = 0;
const railFor = ({ way }: RailOffer): Rail =>
  makeRail({ services: () => servicesOf(way), clock: { ...systemClock, monotonic: () => (now += 1000) } }).rail;

const until = ({ deadline }: PresentedPayment): { validBefore?: bigint } =>
  deadline === undefined ? {} : { validBefore: deadline };
const lookAt = (presented: PresentedPayment, by = rail, changes: Parameters<typeof looked>[0] = {}): Promise<Look> => {
  const { payer: from, unique: nonce } = presented.key;
  return by.look(looked({ payer: from, nonce, ...until(presented), ...changes }), 'reconciler');
};
const UNUSED = { kind: 'open', used: false };

test('behaviour: the topics and selectors are what their signatures hash to', () => {
  expect(AUTHORIZATION_USED).toBe(toEventSelector('AuthorizationUsed(address,bytes32)'));
  expect(AUTHORIZATION_CANCELED).toBe(toEventSelector('AuthorizationCanceled(address,bytes32)'));
  expect(TRANSFER).toBe(toEventSelector('Transfer(address,address,uint256)'));
  expect(AUTHORIZATION_STATE).toBe(toFunctionSelector('authorizationState(address,bytes32)'));
  expect(SELECTORS).toEqual({
    name: toFunctionSelector('name()'),
    version: toFunctionSelector('version()'),
    decimals: toFunctionSelector('decimals()'),
    domain: toFunctionSelector('eip712Domain()'),
  });
});

describe('verify and settle', () => {
  test('behaviour: a payment is verified, settled, on the chain and proven', async () => {
    const presented = await present(rail, payer, offer);
    const before = await chain.balanceOf(PAY_TO);
    expect(rail.check(presented, offer, Date.now())).toBeUndefined();
    expect(await rail.verify(presented, offer)).toEqual({ kind: 'valid', payer: presented.key.payer });
    expect(await chain.balanceOf(PAY_TO)).toBe(before);
    expect(await lookAt(presented)).toMatchObject(UNUSED);

    const settlement = await rail.settle(presented, offer, FRESH, GO);
    if (settlement.kind !== 'settled') throw new Error(JSON.stringify(settlement));
    expect(await chain.balanceOf(PAY_TO)).toBe(before + PRICE);
    expect(await lookAt(presented)).toMatchObject({ kind: 'proven', proof: { transaction: settlement.transaction } });
  });

  test('attack: a payment that was settled is refused, and settling it again is unknown', async () => {
    const presented = await present(rail, payer, offer);
    await rail.settle(presented, offer, FRESH, GO);
    const before = await chain.balanceOf(PAY_TO);
    expect(await rail.verify(presented, offer)).toEqual({
      kind: 'refused',
      reason: 'invalid_exact_evm_nonce_already_used',
    });
    expect(await rail.settle(presented, offer, FRESH, GO)).toMatchObject({ kind: 'unknown', via: expect.any(String) });
    expect(await chain.balanceOf(PAY_TO)).toBe(before);
  });

  test('refuses: a payer without the money', async () => {
    const poor = await createPayer(chain, 1n);
    const presented = await present(rail, poor, offer);
    expect(await rail.verify(presented, offer)).toEqual({
      kind: 'refused',
      reason: 'invalid_exact_evm_insufficient_balance',
    });
    expect(await rail.settle(presented, offer, FRESH, GO)).toMatchObject({ kind: 'refused' });
  });

  test('refuses: a payer who spent the money between verifying and settling', async () => {
    const spender = await createPayer(chain, PRICE);
    const [one, two] = [await present(rail, spender, offer), await present(rail, spender, offer)];
    expect((await rail.verify(one, offer)).kind).toBe('valid');
    expect((await rail.verify(two, offer)).kind).toBe('valid');
    expect((await rail.settle(one, offer, FRESH, GO)).kind).toBe('settled');
    expect(await rail.settle(two, offer, FRESH, GO)).toMatchObject({ kind: 'refused' });
    expect(await lookAt(two)).toMatchObject(UNUSED);
  });

  test('refuses: a payment that expired, before asking and by the facilitator', async () => {
    const validBefore = BigInt(Math.floor(Date.now() / 1000) - 1);
    const presented = await present(rail, payer, offer, { validBefore });
    const reason = 'invalid_exact_evm_payload_authorization_valid_before';
    expect(rail.check(presented, offer, Date.now())?.reason).toBe(reason);
    expect(await rail.verify(presented, offer)).toEqual({ kind: 'refused', reason });
    expect(await rail.settle(presented, offer, FRESH, GO)).toMatchObject({ kind: 'refused', reason });
  });

  test.each([
    ['another chain', { chainId: 8453 }],
    ['another token', { asset: '0x2222222222222222222222222222222222222222' }],
    ['another EIP-712 name', { name: 'USD Coin' }],
    ['another EIP-712 version', { version: '1' }],
  ])('attack: a payment is refused if its signature is for %s', async (_, wanted) => {
    const presented = await present(rail, payer, offer, wanted);
    expect(await rail.verify(presented, offer)).toEqual({ kind: 'refused', reason: 'invalid_exact_evm_signature' });
  });

  test('attack: a payment is refused if its signature is over less, with the amount written up', async () => {
    const signed = await payer.authorize({ to: PAY_TO, value: 1n });
    const authorization = { ...signed.authorization, value: PRICE.toString() };
    const presented = { ...(await present(rail, payer, offer)), payload: { ...signed, authorization } };
    expect(await rail.verify(presented, offer)).toMatchObject({
      kind: 'refused',
      reason: 'invalid_exact_evm_signature',
    });
  });

  test('behaviour: a signature in other hex, or with v 0 and 1, is the same payment and is settled once', async () => {
    const signed = await payer.authorize({ to: PAY_TO, value: PRICE });
    const v = Number.parseInt(signed.signature.slice(-2), 16) - 27;
    const presented = await present(rail, payer, offer);
    const spelled = {
      ...presented,
      payload: { ...signed, signature: `${signed.signature.slice(0, -2)}0${v}`.toUpperCase().replace('0X', '0x') },
    };
    expect((await rail.settle(spelled, offer, FRESH, GO)).kind).toBe('settled');
    expect((await rail.settle({ ...presented, payload: signed }, offer, FRESH, GO)).kind).toBe('unknown');
  });

  test('behaviour: two authorizations with one nonce: the second is not taken', async () => {
    const nonce = `0x${'77'.repeat(32)}`;
    const one = await present(rail, payer, offer, { nonce });
    const two = await present(rail, payer, offer, { nonce, validAfter: 1n });
    expect(two.key).toEqual(one.key);
    expect((await rail.settle(one, offer, FRESH, GO)).kind).toBe('settled');
    expect((await rail.verify(two, offer)).kind).toBe('refused');
    expect((await rail.settle(two, offer, FRESH, GO)).kind).toBe('unknown');
  });
});

describe('answers that get lost', () => {
  test('behaviour: a settlement whose answer is lost after it was made is unknown, and the chain proves it', async () => {
    const presented = await present(rail, payer, offer);
    facilitator.fault('settle', { kind: 'drop_after' });
    expect(await rail.settle(presented, offer, FRESH, GO)).toMatchObject({ kind: 'unknown', via: expect.any(String) });
    expect(await lookAt(presented)).toMatchObject({ kind: 'proven' });
  });

  test('behaviour: a settlement whose connection broke before it was made is unknown, and nothing is on the chain', async () => {
    const presented = await present(rail, payer, offer);
    facilitator.fault('settle', { kind: 'drop_before' });
    expect(await rail.settle(presented, offer, FRESH, GO)).toMatchObject({ kind: 'unknown', via: expect.any(String) });
    expect(await lookAt(presented)).toMatchObject(UNUSED);
    expect((await rail.settle(presented, offer, { ...FRESH, afterUnknown: true }, GO)).kind).toBe('settled');
  });

  test('behaviour: a settlement that is out of time after the money moved is unknown, and the chain proves it', async () => {
    const patient = changed(offer, { facilitators: [facilitatorAt(facilitator.url, { settleMs: 300 })] });
    const presented = await present(rail, payer, patient);
    facilitator.fault('settle', { kind: 'hold_after' });
    expect(await rail.settle(presented, patient, FRESH, GO)).toMatchObject({
      kind: 'unknown',
      via: expect.any(String),
    });
    // The facilitator goes on without us; on a busy machine it has only begun.
    await vi.waitFor(async () => expect(await lookAt(presented)).toMatchObject({ kind: 'proven' }));
  });

  test('behaviour: a settlement is pending until it is mined; the same facilitator then says so, one that forgot does not', async () => {
    const presented = await present(rail, payer, offer);
    await chain.automine(false);
    const pending = await rail.settle(presented, offer, FRESH, GO);
    expect(pending).toMatchObject({ kind: 'unknown', reason: 'settlement_pending', via: expect.any(String) });
    if (pending.kind !== 'unknown') throw new Error(pending.kind);
    expect(await lookAt(presented)).toMatchObject(UNUSED);
    await chain.mine();
    expect(await lookAt(presented)).toMatchObject({ kind: 'proven' });
    const settled = await rail.settle(presented, offer, { afterUnknown: true, via: pending.via }, GO);
    expect(settled).toMatchObject({ kind: 'settled', transaction: expect.stringMatching(/^0x[0-9a-f]{64}$/) });
    facilitator.forget();
    expect(await rail.settle(presented, offer, { afterUnknown: true, via: pending.via }, GO)).toMatchObject({
      kind: 'unknown',
      reason: 'invalid_exact_evm_nonce_already_used',
    });
  });

  test('behaviour: twenty payments at once are twenty settlements', async () => {
    const before = await chain.balanceOf(PAY_TO);
    const payments = await Promise.all(Array.from({ length: 20 }, () => present(rail, payer, offer)));
    const settlements = await Promise.all(payments.map((presented) => rail.settle(presented, offer, FRESH, GO)));
    expect(settlements.map(({ kind }) => kind)).toEqual(Array.from({ length: 20 }, () => 'settled'));
    expect(await chain.balanceOf(PAY_TO)).toBe(before + 20n * PRICE);
    const proofs = await Promise.all(payments.map((presented) => lookAt(presented)));
    const places = proofs.map((proof) =>
      proof.kind === 'proven' ? `${proof.proof.transaction}:${proof.proof.logIndex}` : proof.kind,
    );
    expect(new Set(places).size).toBe(20);
  });
});

describe('proof', () => {
  /** Settles with a token that emits its events in another way. */
  const settleOddly = async (mischief: bigint): Promise<PresentedPayment> => {
    const presented = await present(rail, payer, offer);
    await chain.write('setMischief', [mischief]);
    await rail.settle(presented, offer, FRESH, GO);
    await chain.write('setMischief', [MISCHIEF.none]);
    return presented;
  };

  test.each([
    ['the transfer comes first', MISCHIEF.transferFirst],
    ['something stands between the two', MISCHIEF.eventBetween],
    ['there is no transfer', MISCHIEF.noTransfer],
  ])('attack: a settlement proves no payment if %s', async (_, mischief) => {
    const presented = await settleOddly(mischief);
    expect(await lookAt(presented)).toEqual({ kind: 'impossible', reason: 'authorization_spent_elsewhere' });
  });

  test('attack: a payment with the same nonce to somebody else, or of another amount, is no proof', async () => {
    const elsewhere = '0x2222222222222222222222222222222222222222';
    const other = changed(offer, { payTo: elsewhere });
    const presented = await present(rail, payer, other);
    expect((await rail.settle(presented, other, FRESH, GO)).kind).toBe('settled');
    expect(await lookAt(presented)).toEqual({ kind: 'impossible', reason: 'authorization_spent_elsewhere' });
    const less = await lookAt(presented, rail, { payTo: elsewhere, amount: PRICE - 1n });
    expect(less).toEqual({ kind: 'impossible', reason: 'authorization_spent_elsewhere' });
    expect(await lookAt(presented, rail, { payTo: elsewhere })).toMatchObject({ kind: 'proven' });
  });

  test("attack: another payer's use of the same nonce is no proof", async () => {
    const nonce = `0x${'5e'.repeat(32)}`;
    const stranger = await createPayer(chain);
    const [mine, theirs] = [
      await present(rail, payer, offer, { nonce }),
      await present(rail, stranger, offer, { nonce }),
    ];
    expect((await rail.settle(theirs, offer, FRESH, GO)).kind).toBe('settled');
    expect(await lookAt(mine)).toMatchObject(UNUSED);
    expect(await lookAt(theirs)).toMatchObject({ kind: 'proven' });
  });

  test('attack: one transaction may hold several payments; each has a transfer of its own, and proves one', async () => {
    const [one, two] = [await present(rail, payer, offer), await present(rail, payer, offer)];
    const calls = [one, two].map(({ payload }) => {
      const { signature, authorization } = payload as Signed;
      const { from, to, value, validAfter, validBefore, nonce } = authorization;
      const args = [from, to, value, validAfter, validBefore, nonce, signature];
      const abi = USDC_ABI.filter(({ name, inputs }) => name === 'transferWithAuthorization' && inputs?.length === 7);
      return { target: USDC, callData: encodeFunctionData({ abi, functionName: 'transferWithAuthorization', args }) };
    });
    const data = encodeFunctionData({ abi: MULTICALL_ABI, functionName: 'tryAggregate', args: [true, calls] });
    const [sender] = (await chain.rpc('eth_accounts')) as string[];
    const transaction = await chain.rpc('eth_sendTransaction', [{ from: sender, to: MULTICALL, data }]);
    // Anvil mines soon after it has answered, not before.
    await chain.mine();
    const [first, second] = [await lookAt(one), await lookAt(two)];
    expect(first).toMatchObject({ kind: 'proven', proof: { transaction, logIndex: 1 } });
    expect(second).toMatchObject({ kind: 'proven', proof: { transaction, logIndex: 3 } });
  });

  test('behaviour: a payment counts once it is deep enough; until then it is used, and nobody settles again', async () => {
    const deep = changed(offer, { confirmations: 3 });
    const deepRail = railFor(deep);
    const presented = await present(rail, payer, deep);
    expect(await lookAt(presented, deepRail)).toMatchObject(UNUSED);
    await rail.settle(presented, deep, FRESH, GO);
    for (const _ of [1, 2]) {
      expect(await lookAt(presented, deepRail)).toMatchObject({ kind: 'open', used: true });
      await chain.mine();
    }
    expect(await lookAt(presented, deepRail)).toMatchObject({ kind: 'proven' });
  });

  test('behaviour: a payment that its payer cancelled never can be paid', async () => {
    const presented = await present(rail, payer, offer);
    await payer.cancel(presented.key.unique);
    expect(await lookAt(presented)).toEqual({ kind: 'impossible', reason: 'authorization_cancelled' });
    expect(await rail.settle(presented, offer, FRESH, GO)).toMatchObject({ kind: 'unknown' });
  });

  test('behaviour: a payment that is unused and past its end by the time of the chain never can be paid', async () => {
    const validBefore = BigInt(Math.floor(Date.now() / 1000) + 100);
    const presented = await present(rail, payer, offer, { validBefore });
    const snapshot = await chain.rpc('evm_snapshot', []);
    await chain.rpc('evm_increaseTime', [150]);
    await chain.mine();
    expect(await lookAt(presented)).toMatchObject(UNUSED);
    await chain.rpc('evm_increaseTime', [20]);
    await chain.mine();
    expect(await lookAt(presented)).toEqual({ kind: 'impossible', reason: 'authorization_expired_unused' });
    await chain.rpc('evm_revert', [snapshot]);
  });

  test('behaviour: a payment is found by and by through a node that refuses ranges, with eight calls a look', async () => {
    // Anvil's blocks are a second apart: what comes after them lives in the chain's time.
    const validBefore = BigInt(Math.floor(Date.now() / 1000) + 20_000);
    const presented = await present(rail, payer, offer, { validBefore });
    await chain.mine(350);
    expect(await rail.settle(presented, offer, FRESH, GO)).toMatchObject({ kind: 'settled' });
    await chain.mine(50);
    const createdAt = Date.now() + 350_000;
    const calls: string[] = [];
    const narrow = await startScripted((_, res, body) => {
      const { id, method, params } = JSON.parse(body);
      calls.push(method);
      const { fromBlock = '0x0', toBlock = '0x0' } = method === 'eth_getLogs' ? params[0] : {};
      if (Number(toBlock) - Number(fromBlock) >= 60) {
        return json(res, { jsonrpc: '2.0', id, error: { code: -32_005, message: 'range too large' } });
      }
      chain.rpc(method, params).then(
        (result) => json(res, { jsonrpc: '2.0', id, result }),
        () => res.destroy(),
      );
    });
    const through = railFor(changed(offer, { rpcUrls: [narrow.url] }));
    let seen = await lookAt(presented, through, { createdAt });
    for (let looks = 1; seen.kind === 'open' && looks < 9; looks++) {
      expect(calls.splice(0).filter((method) => method !== 'eth_chainId').length).toBeLessThanOrEqual(8);
      const { payer: from, unique: nonce } = presented.key;
      const charge = looked({ payer: from, nonce, createdAt, ...until(presented) });
      seen = await through.look({ ...charge, search: seen.search }, 'reconciler');
    }
    expect(seen).toMatchObject({ kind: 'proven' });
    await narrow.close();
  });
});
