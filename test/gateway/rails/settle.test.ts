// The rail against a real facilitator and a real chain: money moves once, every refusal is what it says, and whatever
// is lost on the way can be proven afterwards.
import { encodeFunctionData, toEventSelector, toFunctionSelector } from 'viem';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { AUTHORIZATION_STATE, AUTHORIZATION_USED, TRANSFER } from '../../../src/gateway/rails/chain.ts';
import type { Evidence, Presented, RailOffer } from '../../../src/gateway/rails/rail.ts';
import { SELECTORS } from '../../../src/gateway/rails/token.ts';
import {
  MISCHIEF,
  MULTICALL,
  MULTICALL_ABI,
  startChain,
  USDC,
  USDC_ABI,
  type Chain,
} from '../../support/chain/chain.ts';
import { startFacilitator, type TestFacilitator } from '../../support/chain/facilitator.ts';
import { createPayer, type Payer, type Signed } from '../../support/chain/payer.ts';
import { PAY_TO, PRICE, facilitatorAt, makeOffer, makeRail, present } from './kit.ts';

const FRESH = { afterUnknown: false };
const { rail } = makeRail();

let chain: Chain;
let facilitator: TestFacilitator;
let payer: Payer;
let offer: RailOffer;
let evidence: Evidence;

beforeAll(async () => {
  chain = await startChain();
  facilitator = await startFacilitator({ rpcUrl: chain.rpcUrl, confirmationTimeoutMs: 400 });
  payer = await createPayer(chain);
  offer = makeOffer({ facilitators: [facilitatorAt(facilitator.url)], rpcUrl: chain.rpcUrl });
  const found = rail.evidence(offer.receiver);
  if (found === undefined) throw new Error('no evidence');
  evidence = found;
});
afterEach(async () => {
  facilitator.clearFaults();
  await chain.automine(true);
});
afterAll(async () => {
  await facilitator?.close();
  await chain?.stop();
});

async function head(): Promise<bigint> {
  const found = await evidence.head();
  if (found.kind !== 'head') throw new Error(found.detail);
  return found.block;
}

const prove = (presented: Presented, fromBlock = 0n) =>
  evidence.findProof({ key: presented.key, payTo: PAY_TO, amount: PRICE, fromBlock });

test('behaviour: topics and selectors are what their signatures hash to', () => {
  expect(AUTHORIZATION_USED).toBe(toEventSelector('AuthorizationUsed(address,bytes32)'));
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
    const [before, block] = [await chain.balanceOf(PAY_TO), await head()];
    expect(rail.check(presented, offer, Date.now())).toBeUndefined();
    expect(await rail.verify(presented, offer)).toEqual({ kind: 'valid', payer: presented.key.payer });
    expect(await chain.balanceOf(PAY_TO)).toBe(before);
    expect(await prove(presented, block)).toMatchObject({ kind: 'absent', complete: true });

    const settlement = await rail.settle(presented, offer, FRESH);
    if (settlement.kind !== 'settled') throw new Error(JSON.stringify(settlement));
    expect(settlement.receipt).toMatchObject({ success: true, payer: presented.key.payer, amount: '100000' });
    expect(await chain.balanceOf(PAY_TO)).toBe(before + PRICE);
    expect(await prove(presented, block)).toMatchObject({ kind: 'found', transaction: settlement.receipt.transaction });
    expect(await evidence.nonceState(presented.key)).toMatchObject({ kind: 'state', used: true });
  });

  test('attack: a payment that was settled is refused, and settling it again is unknown', async () => {
    const presented = await present(rail, payer, offer);
    await rail.settle(presented, offer, FRESH);
    const before = await chain.balanceOf(PAY_TO);
    expect(await rail.verify(presented, offer)).toEqual({
      kind: 'refused',
      reason: 'invalid_exact_evm_nonce_already_used',
    });
    expect(await rail.settle(presented, offer, FRESH)).toMatchObject({ kind: 'unknown', sent: true });
    expect(await chain.balanceOf(PAY_TO)).toBe(before);
  });

  test('refuses: a payer without the money', async () => {
    const poor = await createPayer(chain, 1n);
    const presented = await present(rail, poor, offer);
    expect(await rail.verify(presented, offer)).toEqual({
      kind: 'refused',
      reason: 'invalid_exact_evm_insufficient_balance',
    });
    expect(await rail.settle(presented, offer, FRESH)).toMatchObject({ kind: 'refused', final: true });
  });

  test('refuses: a payer who spent the money between verifying and settling', async () => {
    const spender = await createPayer(chain, PRICE);
    const [one, two] = [await present(rail, spender, offer), await present(rail, spender, offer)];
    expect((await rail.verify(one, offer)).kind).toBe('valid');
    expect((await rail.verify(two, offer)).kind).toBe('valid');
    expect((await rail.settle(one, offer, FRESH)).kind).toBe('settled');
    expect(await rail.settle(two, offer, FRESH)).toMatchObject({ kind: 'refused', final: true });
    expect(await prove(two)).toMatchObject({ kind: 'absent' });
  });

  test('refuses: what expired, before asking and by the facilitator', async () => {
    const validBefore = BigInt(Math.floor(Date.now() / 1000) - 1);
    const presented = await present(rail, payer, offer, { validBefore });
    const reason = 'invalid_exact_evm_payload_authorization_valid_before';
    expect(rail.check(presented, offer, Date.now())).toBe(reason);
    expect(await rail.verify(presented, offer)).toEqual({ kind: 'refused', reason });
    expect(await rail.settle(presented, offer, FRESH)).toMatchObject({ kind: 'refused', reason, final: true });
  });

  test.each([
    ['another chain', { chainId: 8453 }],
    ['another token', { asset: '0x2222222222222222222222222222222222222222' }],
    ['another EIP-712 name', { name: 'USD Coin' }],
    ['another EIP-712 version', { version: '1' }],
  ])('attack: a signature for %s', async (_, wanted) => {
    const presented = await present(rail, payer, offer, wanted);
    expect(await rail.verify(presented, offer)).toEqual({ kind: 'refused', reason: 'invalid_exact_evm_signature' });
  });

  test('attack: a signature over less, with the amount written up', async () => {
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
    expect((await rail.settle(spelled, offer, FRESH)).kind).toBe('settled');
    expect((await rail.settle({ ...presented, payload: signed }, offer, FRESH)).kind).toBe('unknown');
  });

  test('behaviour: two authorizations with one nonce: the second is not taken', async () => {
    const nonce = `0x${'77'.repeat(32)}`;
    const one = await present(rail, payer, offer, { nonce });
    const two = await present(rail, payer, offer, { nonce, validAfter: 1n });
    expect(two.key).toEqual(one.key);
    expect((await rail.settle(one, offer, FRESH)).kind).toBe('settled');
    expect((await rail.verify(two, offer)).kind).toBe('refused');
    expect((await rail.settle(two, offer, FRESH)).kind).toBe('unknown');
  });
});

describe('answers that get lost', () => {
  test('behaviour: settled, but the connection broke: unknown, and the chain proves it', async () => {
    const presented = await present(rail, payer, offer);
    const block = await head();
    facilitator.fault('settle', { kind: 'drop_after' });
    expect(await rail.settle(presented, offer, FRESH)).toMatchObject({ kind: 'unknown', sent: true });
    expect(await prove(presented, block)).toMatchObject({ kind: 'found' });
  });

  test('behaviour: not settled, and the connection broke: unknown, and nothing on the chain', async () => {
    const presented = await present(rail, payer, offer);
    facilitator.fault('settle', { kind: 'drop_before' });
    expect(await rail.settle(presented, offer, FRESH)).toMatchObject({ kind: 'unknown', sent: true });
    expect(await prove(presented)).toMatchObject({ kind: 'absent', complete: true });
    expect(await evidence.nonceState(presented.key)).toMatchObject({ kind: 'state', used: false });
    expect((await rail.settle(presented, offer, { afterUnknown: true })).kind).toBe('settled');
  });

  test('behaviour: out of time after the money moved: unknown, and the chain proves it', async () => {
    const patient = makeOffer({ ...offer.receiver, facilitators: [facilitatorAt(facilitator.url, { settleMs: 300 })] });
    const presented = await present(rail, payer, patient);
    facilitator.fault('settle', { kind: 'hold_after' });
    expect(await rail.settle(presented, patient, FRESH)).toMatchObject({ kind: 'unknown', sent: true });
    expect(await prove(presented)).toMatchObject({ kind: 'found' });
  });

  test('behaviour: pending until it is mined; the same facilitator then says so, one that forgot does not', async () => {
    const presented = await present(rail, payer, offer);
    const block = await head();
    await chain.automine(false);
    const pending = await rail.settle(presented, offer, FRESH);
    expect(pending).toMatchObject({ kind: 'unknown', reason: 'settlement_pending', sent: true });
    if (pending.kind !== 'unknown') throw new Error(pending.kind);
    expect(pending.transaction).toMatch(/^0x[0-9a-f]{64}$/);
    expect(await prove(presented, block)).toMatchObject({ kind: 'absent' });
    await chain.mine();
    expect(await prove(presented, block)).toMatchObject({ kind: 'found', transaction: pending.transaction });
    const settled = await rail.settle(presented, offer, { afterUnknown: true, via: pending.via });
    expect(settled).toMatchObject({ kind: 'settled', receipt: { transaction: pending.transaction } });
    facilitator.forget();
    expect(await rail.settle(presented, offer, { afterUnknown: true, via: pending.via })).toMatchObject({
      kind: 'unknown',
      reason: 'invalid_exact_evm_nonce_already_used',
    });
  });

  test('behaviour: twenty payments at once are twenty settlements', async () => {
    const before = await chain.balanceOf(PAY_TO);
    const payments = await Promise.all(Array.from({ length: 20 }, () => present(rail, payer, offer)));
    const settlements = await Promise.all(payments.map((presented) => rail.settle(presented, offer, FRESH)));
    expect(settlements.map(({ kind }) => kind)).toEqual(Array.from({ length: 20 }, () => 'settled'));
    expect(await chain.balanceOf(PAY_TO)).toBe(before + 20n * PRICE);
    const proofs = await Promise.all(payments.map((presented) => prove(presented)));
    const places = proofs.map((proof) =>
      proof.kind === 'found' ? `${proof.transaction}:${proof.logIndex}` : proof.kind,
    );
    expect(new Set(places).size).toBe(20);
  });
});

describe('proof', () => {
  /** Settles with a token that emits its events in another way. */
  const settleOddly = async (mischief: bigint): Promise<Presented> => {
    const presented = await present(rail, payer, offer);
    await chain.write('setMischief', [mischief]);
    await rail.settle(presented, offer, FRESH);
    await chain.write('setMischief', [MISCHIEF.none]);
    return presented;
  };

  test.each([
    ['the transfer comes first', MISCHIEF.transferFirst],
    ['something stands between the two', MISCHIEF.eventBetween],
    ['there is no transfer', MISCHIEF.noTransfer],
  ])('attack: %s', async (_, mischief) => {
    const presented = await settleOddly(mischief);
    expect(await evidence.nonceState(presented.key)).toMatchObject({ used: true });
    expect(await prove(presented)).toMatchObject({ kind: 'contradicted' });
  });

  test('attack: the same nonce, paid to somebody else or with another amount, is no proof', async () => {
    const elsewhere = '0x2222222222222222222222222222222222222222';
    const other = makeOffer({ ...offer.receiver, payTo: elsewhere });
    const presented = await present(rail, payer, other);
    expect((await rail.settle(presented, other, FRESH)).kind).toBe('settled');
    expect(await prove(presented)).toMatchObject({ kind: 'contradicted' });
    const search = { key: presented.key, payTo: elsewhere, fromBlock: 0n };
    expect(await evidence.findProof({ ...search, amount: PRICE - 1n })).toMatchObject({ kind: 'contradicted' });
    expect(await evidence.findProof({ ...search, amount: PRICE })).toMatchObject({ kind: 'found' });
  });

  test("attack: another payer's use of the same nonce is no proof", async () => {
    const nonce = `0x${'5e'.repeat(32)}`;
    const stranger = await createPayer(chain);
    const [mine, theirs] = [
      await present(rail, payer, offer, { nonce }),
      await present(rail, stranger, offer, { nonce }),
    ];
    expect((await rail.settle(theirs, offer, FRESH)).kind).toBe('settled');
    expect(await prove(mine)).toMatchObject({ kind: 'absent', complete: true });
    expect(await prove(theirs)).toMatchObject({ kind: 'found' });
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
    const [first, second] = [await prove(one), await prove(two)];
    expect(first).toMatchObject({ kind: 'found', transaction });
    expect(second).toMatchObject({ kind: 'found', transaction });
    if (first.kind !== 'found' || second.kind !== 'found') throw new Error('not found');
    expect(second.logIndex).toBe(first.logIndex + 2);
  });

  test('behaviour: it counts once it is deep enough', async () => {
    const deep = { ...offer, receiver: { ...offer.receiver, confirmations: 3 } };
    const deepEvidence = rail.evidence(deep.receiver);
    const presented = await present(rail, payer, deep);
    const fromBlock = await head();
    await rail.settle(presented, deep, FRESH);
    const search = { key: presented.key, payTo: PAY_TO, amount: PRICE, fromBlock };
    expect(await deepEvidence?.findProof(search)).toMatchObject({ kind: 'unconfirmed' });
    expect(await deepEvidence?.nonceState(presented.key)).toMatchObject({ used: false });
    await chain.mine();
    expect(await deepEvidence?.findProof(search)).toMatchObject({ kind: 'unconfirmed' });
    await chain.mine();
    expect(await deepEvidence?.findProof(search)).toMatchObject({ kind: 'found' });
    expect(await deepEvidence?.nonceState(presented.key)).toMatchObject({ used: true });
  });

  test('behaviour: a search from after the payment does not find it', async () => {
    const presented = await present(rail, payer, offer);
    await rail.settle(presented, offer, FRESH);
    await chain.mine();
    expect(await prove(presented, await head())).toMatchObject({ kind: 'absent', complete: true });
  });

  test('behaviour: the block of a time is the last one that is not after it', async () => {
    const before = await evidence.head();
    await chain.rpc('evm_increaseTime', [1000]);
    await chain.mine(3);
    if (before.kind !== 'head') throw new Error(before.detail);
    expect(await evidence.blockAt(before.time)).toEqual({ kind: 'block', block: before.block });
    expect(await evidence.blockAt(before.time + 999n)).toEqual({ kind: 'block', block: before.block });
    expect(await evidence.blockAt(before.time + 100_000n)).toEqual({ kind: 'block', block: before.block + 3n });
    expect(await evidence.blockAt(0n)).toEqual({ kind: 'block', block: 0n });
  });
});
