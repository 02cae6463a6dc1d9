// What looks say, over a real virtual machine: a payment that is there is found whatever else its payer did, and one that is
// not is given up only when it never can be.
import { sign } from 'node:crypto';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { furtherSearch } from '../../../../src/domain/payment/search.ts';
import type { Look, LookSubject } from '../../../../src/gateway/rails/rail.ts';
import { findTokenAccount } from '../../../../src/gateway/rails/svm/addresses.ts';
import { createLook } from '../../../../src/gateway/rails/svm/look.ts';
import { readTransaction, type Transaction } from '../../../../src/gateway/rails/svm/transaction.ts';
import { systemSchedule } from '../../../../src/host/clock.ts';
import {
  BLOCKHASH_BLOCKS,
  FINAL_BLOCKS,
  startSvm,
  SVM_NETWORK,
  SVM_USDC,
  type SvmChain,
} from '../../../support/svm/chain.ts';
import { base58, buildTransaction, memo, unbase58 } from '../../../support/svm/wire.ts';
import { FEE_PAYER, PAYER, payInstructions, SHOP } from './kit.ts';

const CLAIMED_MS = 1_790_000_000_000;

let chain: SvmChain;
let nowMs: number;

beforeEach(async () => {
  nowMs = CLAIMED_MS;
  chain = await startSvm(() => nowMs);
  chain.airdrop(FEE_PAYER.address);
  chain.mint(PAYER.address, 1_000_000n);
  chain.mint(SHOP.address, 0n);
});
afterEach(() => chain.stop());

type Payment = { readonly transaction: Transaction; readonly signed: string; readonly signature: string };

/** A payment of the latest blockhash, signed by both. */
function makePayment(text: string, amount = 10_000n): Payment {
  const { value } = chain.rpc('getLatestBlockhash', [{ commitment: 'confirmed' }]) as { value: { blockhash: string } };
  const { message, bytes } = buildTransaction({
    feePayer: FEE_PAYER,
    sign: [PAYER],
    blockhash: unbase58(value.blockhash),
    instructions: [...payInstructions(amount), memo(text)],
  });
  const reading = readTransaction(bytes.toString('base64'));
  if (!reading.ok) throw new Error(reading.why);
  const first = sign(null, message, FEE_PAYER.secret);
  first.copy(bytes, 1);
  return { transaction: reading.transaction, signed: bytes.toString('base64'), signature: base58(first) };
}

function send({ signed }: Payment): void {
  chain.rpc('sendTransaction', [signed, { skipPreflight: true }]);
}

type Options = { readonly isPublic?: boolean; readonly network?: string; readonly urls?: readonly string[] };

/** Looks again and again, each look with what the one before it left. */
function lookerFor({ transaction }: Payment, { isPublic = false, network = SVM_NETWORK, urls }: Options = {}) {
  let at = 0;
  const look = createLook({
    fetch,
    schedule: systemSchedule,
    // Calls wait for no second to be over.
    clock: { monotonic: () => (at += 1000) },
    nodesOf: () => ({ urls: urls ?? [chain.rpcUrl], isPublic: () => isPublic }),
    seek: () => ({ transaction, source: findTokenAccount(PAYER.address, SVM_USDC) ?? '', amount: 10_000n }),
  });
  const charge = {
    payment: { network, asset: SVM_USDC, payer: PAYER.address, unique: transaction.messageHash },
    createdAt: CLAIMED_MS,
    search: null,
  } as unknown as { -readonly [Field in keyof LookSubject]: LookSubject[Field] };
  return async (asker: 'payer' | 'reconciler' = 'reconciler'): Promise<Look> => {
    const seen = await look(charge, asker);
    // As a ledger keeps it.
    if (seen.kind === 'open') charge.search = furtherSearch(charge.search, seen.search);
    return seen;
  };
}

/** So many blocks that what was claimed before can land no more, and that this is finalized. */
const OVER = BLOCKHASH_BLOCKS + FINAL_BLOCKS + 1;

const proven = (payment: Payment) => ({
  kind: 'proven',
  proof: { transaction: payment.signature, logIndex: 0, amount: 10_000n, payer: PAYER.address },
});
const expired = { kind: 'impossible', reason: 'transaction_expired' };

test.each(['payer', 'reconciler'] as const)('behaviour: a payment that landed is proven (%s)', async (asker) => {
  const payment = makePayment('paid');
  const look = lookerFor(payment);
  expect(await look(asker)).toMatchObject({ kind: 'open', used: false });
  send(payment);
  expect(await look(asker)).toEqual(proven(payment));
});

test('behaviour: a payment that never landed is given up when a finalized block says that it is too late, not before', async () => {
  const payment = makePayment('late');
  const look = lookerFor(payment);
  expect(await look()).toMatchObject({ kind: 'open', search: { last_valid: String(BLOCKHASH_BLOCKS) } });
  chain.mine(OVER - 1);
  expect(await look()).toMatchObject({ kind: 'open' });
  chain.mine();
  expect(await look()).toEqual(expired);
});

test('behaviour: a payer is never told that it is too late, and never moves the end', async () => {
  const payment = makePayment('late');
  const look = lookerFor(payment);
  chain.mine(OVER);
  expect(await look('payer')).toEqual({ kind: 'open', used: false, search: null });
});

test('attack: a payment that lands in the last block in which it can is not too late', async () => {
  const payment = makePayment('late');
  const look = lookerFor(payment);
  await look();
  chain.mine(BLOCKHASH_BLOCKS - 1);
  send(payment);
  chain.mine(OVER);
  expect(await look()).toEqual(proven(payment));
});

test('behaviour: a payment that landed and failed did not pay, which is believed when it is too late', async () => {
  const [first, payment] = [makePayment('first', 1_000_000n), makePayment('second')];
  send(first);
  send(payment);
  const look = lookerFor(payment);
  expect(await look()).toMatchObject({ kind: 'open' });
  expect(await look('payer')).toMatchObject({ kind: 'open' });
  chain.mine(OVER);
  expect(await look()).toEqual({ kind: 'impossible', reason: 'transaction_failed' });
});

test('behaviour: other payments of the same payer do not count as the one looked for, and cost no call each', async () => {
  const payment = makePayment('wanted');
  for (let other = 0; other < 20; other++) send(makePayment(`other ${other}`));
  const look = lookerFor(payment);
  expect(await look()).toMatchObject({ kind: 'open' });
  expect(chain.calls.filter(({ method }) => method === 'getTransaction')).toEqual([]);
  send(payment);
  for (let other = 0; other < 20; other++) send(makePayment(`later ${other}`));
  expect(await look()).toEqual(proven(payment));
});

test('behaviour: a search that was not complete goes on at the next look, and ends nothing before it is', async () => {
  const payment = makePayment('wanted');
  const look = lookerFor(payment);
  send(payment);
  chain.mine(OVER);
  const others = Array.from({ length: 100 }, (_, at) => ({
    signature: base58(Buffer.alloc(64, at + 1)),
    blockTime: null,
  }));
  const full = { result: others };
  // The node lists what others sent to this account: ten full pages, and then the rest.
  chain.answer('getSignaturesForAddress', full, 10);
  const { signature: last } = others.at(-1) ?? {};
  expect(await look()).toEqual({
    ...{ kind: 'open', used: false },
    search: { last_valid: String(chain.height() + BLOCKHASH_BLOCKS), next: '1000', before: last },
  });
  chain.mine(OVER);
  // It had looked for what is confirmed; now it begins anew with what is finalized.
  chain.answer('getSignaturesForAddress', full, 10);
  expect(await look()).toMatchObject({ kind: 'open', search: { final: 'yes', before: last } });
  const asked = chain.calls.filter(({ method }) => method === 'getSignaturesForAddress').map(({ params }) => params[1]);
  expect(asked[0]).not.toHaveProperty('before');
  expect(asked[9]).toHaveProperty('before', last);
  expect(asked[10]).not.toHaveProperty('before');
  chain.answer('getSignaturesForAddress', { result: [{ signature: payment.signature, blockTime: 1_790_000_000 }] });
  expect(await look()).toEqual(proven(payment));
});

/** Pages of transactions that others sent to the account, each named by one byte. */
const pageOf = (from: number) => ({
  result: Array.from({ length: 100 }, (_, at) => ({ signature: base58(Buffer.alloc(64, from + at)), blockTime: null })),
});
const pagesAsked = () =>
  chain.calls
    .filter(({ method }) => method === 'getSignaturesForAddress')
    .map(({ params }) => (params[1] as { before?: string }).before);

test('behaviour: payers who insist search a busy account to its end, each look from where the one before stopped', async () => {
  const payment = makePayment('wanted');
  const look = lookerFor(payment);
  const back = pageOf(1).result.at(-1)?.signature;
  chain.answer('getSignaturesForAddress', pageOf(1), 10);
  expect(await look('payer')).toEqual({ kind: 'open', used: false, search: { next: '1000', before: back } });
  expect(pagesAsked()[0]).toBeUndefined();
  // The newest page first, for what has landed since; the rest from there.
  chain.answer('getSignaturesForAddress', pageOf(101), 10);
  expect(await look('payer')).toMatchObject({ search: { next: '1900' } });
  expect(pagesAsked().slice(10, 12)).toEqual([undefined, back]);
  // The reconciler goes on from there too.
  chain.answer('getSignaturesForAddress', { result: [{ signature: payment.signature, blockTime: 1_790_000_000 }] });
  send(payment);
  expect(await look()).toEqual(proven(payment));
  expect(pagesAsked().at(-1)).toBe(pageOf(101).result.at(-1)?.signature);
});

test('behaviour: a payment that landed since the search of a busy account began is seen on its newest page', async () => {
  const payment = makePayment('wanted');
  const look = lookerFor(payment);
  chain.answer('getSignaturesForAddress', pageOf(1), 10);
  await look('payer');
  send(payment);
  expect(await look('payer')).toEqual(proven(payment));
});

test('attack: a payer who insists moves nothing of the search that ends a charge', async () => {
  const payment = makePayment('late');
  const look = lookerFor(payment);
  await look();
  chain.mine(OVER);
  chain.answer('getSignaturesForAddress', pageOf(1), 10);
  const final = await look();
  expect(final).toMatchObject({ kind: 'open', search: { final: 'yes', next: '1000' } });
  chain.answer('getSignaturesForAddress', pageOf(101), 10);
  expect(await look('payer')).toEqual({ kind: 'open', used: false, search: null });
  // The last search goes on where it stopped itself, as of a finalized slot.
  expect(await look()).toEqual(expired);
  expect(pagesAsked()).toHaveLength(22);
  expect(pagesAsked().at(-1)).toBe(pageOf(1).result.at(-1)?.signature);
});

test('behaviour: a search that found nothing begins anew, in place of the one that is kept', async () => {
  const payment = makePayment('wanted');
  const look = lookerFor(payment);
  chain.answer('getSignaturesForAddress', pageOf(1), 10);
  await look();
  expect(await look()).toMatchObject({ kind: 'open', search: { round: '1' } });
  send(payment);
  expect(await look()).toEqual(proven(payment));
});

test('behaviour: a search goes back to the claim, not before it', async () => {
  nowMs = CLAIMED_MS - 121_000;
  send(makePayment('old'));
  nowMs = CLAIMED_MS;
  const payment = makePayment('wanted');
  const look = lookerFor(payment);
  await look();
  expect(chain.calls.filter(({ method }) => method === 'getSignaturesForAddress')).toHaveLength(1);
});

test.each([
  ['of another chain', 'getGenesisHash', { result: '5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d' }],
  ['that is behind', 'getSignaturesForAddress', { error: { code: -32_016, message: 'behind' } }],
  ['whose history is too short', 'getFirstAvailableBlock', { result: 1040 }],
  ['that says nothing of its history', 'getFirstAvailableBlock', { error: { code: -32_601, message: 'no' } }],
  ['that breaks off', 'getSignaturesForAddress', 'drop'],
  ['that answers something else', 'getSignaturesForAddress', { result: [{ signature: 'x', blockTime: 1 }] }],
  [
    'that answers more than it was asked for',
    'getSignaturesForAddress',
    { result: Array.from({ length: 101 }, () => ({ signature: '1'.repeat(64) })) },
  ],
  ['without heights', 'getEpochInfo', { result: { blockHeight: '9999', absoluteSlot: 1 } }],
] as const)('attack: a node %s ends nothing', async (_, method, answer) => {
  const payment = makePayment('wanted');
  const look = lookerFor(payment);
  if (method !== 'getGenesisHash') await look();
  chain.mine(OVER);
  chain.answer(method, answer, 2);
  expect((await look()).kind).not.toBe('impossible');
});

test('attack: a node that lists a transaction and shows another proves nothing', async () => {
  const [payment, other] = [makePayment('wanted'), makePayment('other')];
  send(payment);
  send(other);
  const shown = chain.rpc('getTransaction', [other.signature, { commitment: 'confirmed', encoding: 'base64' }]);
  chain.answer('getTransaction', { result: shown });
  const look = lookerFor(payment);
  expect(await look()).toMatchObject({ kind: 'open', used: false });
  chain.answer('getTransaction', { result: null });
  expect(await look()).toMatchObject({ kind: 'unavailable' });
  expect(await look()).toEqual(proven(payment));
});

test('behaviour: nodes that answer anybody are believed ten minutes later', async () => {
  const look = lookerFor(makePayment('wanted'), { isPublic: true });
  await look();
  chain.mine(OVER);
  expect(await look()).toMatchObject({ kind: 'open' });
  nowMs += 751_000;
  chain.mine(FINAL_BLOCKS + 1);
  expect(await look()).toEqual(expired);
});

test('behaviour: a node that is away makes way for the next', async () => {
  const payment = makePayment('wanted');
  send(payment);
  const look = lookerFor(payment, { urls: ['http://127.0.0.1:9', chain.rpcUrl] });
  expect(await look()).toEqual(proven(payment));
  expect(await lookerFor(payment, { urls: [] })()).toMatchObject({ kind: 'unavailable' });
});
