// Which transactions prove that the money of a charge was given back on Solana, over a real virtual machine: transfers that
// really moved the token from somebody to the payer, in whatever form, and nothing that only looks like one.
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { RefundProof, RefundSubject } from '../../../../src/domain/payment/refund-proof.ts';
import { createRefundProver } from '../../../../src/gateway/rails/refund-prover.ts';
import { findTokenAccount } from '../../../../src/gateway/rails/svm/addresses.ts';
import { systemClock, systemSchedule } from '../../../../src/host/clock.ts';
import { startSvm, SVM_NETWORK, SVM_USDC, type SvmChain } from '../../../support/svm/chain.ts';
import {
  base58,
  buildTransaction,
  keyOf,
  PROGRAMS,
  transferChecked,
  unbase58,
  type Draft,
  type Key,
} from '../../../support/svm/wire.ts';
import { PAYER, SHOP, WAY } from './kit.ts';

const OPERATOR = keyOf('operator');
const STRANGER = keyOf('stranger');
const [OTHER_MINT, MINT_2022] = [keyOf('another token').address, keyOf('a token of Token-2022').address];
const AMOUNT = 100_000n;
const CONFIRMATIONS = 2;
const LOOKUP_PROGRAM = 'AddressLookupTab1e1111111111111111111111111';

type Instruction = Draft['instructions'][number];

let chain: SvmChain;
let payment: string;
let old: string;

beforeAll(async () => {
  chain = await startSvm();
  for (const { address } of [OPERATOR, PAYER]) chain.airdrop(address);
  for (const { address } of [OPERATOR, PAYER, SHOP, STRANGER]) chain.mint(address, 1_000_000_000n);
  chain.createMint(OTHER_MINT, PROGRAMS.token);
  for (const { address } of [OPERATOR, PAYER]) chain.mint(address, 1_000_000_000n, OTHER_MINT);
  old = send([give()]);
  payment = send([give({ from: PAYER, to: accountOf(SHOP.address) })]);
});
afterAll(() => chain.stop());

function accountOf(owner: string, mint = SVM_USDC): string {
  return findTokenAccount(owner, mint) ?? '';
}

/** A transfer, by default of the amount from the operator to the payer. */
function give({ from = OPERATOR, to = accountOf(PAYER.address), amount = AMOUNT, source = '', mint = SVM_USDC } = {}) {
  return transferChecked({
    ...{ source: source === '' ? accountOf(from.address, mint) : source, destination: to },
    ...{ mint, authority: from.address, amount, decimals: 6 },
  });
}

/** The same in the older form, which names no token. */
function unchecked(made: Instruction): Instruction {
  const [source, , destination, authority] = made.accounts ?? [];
  const accounts = [source, destination, authority].flatMap((each) => each ?? []);
  return { ...made, accounts, data: Buffer.concat([Buffer.of(3), made.data.subarray(1, 9)]) };
}

type Sending = { readonly signers?: readonly Key[]; readonly loaded?: readonly string[]; readonly lookups?: Buffer };

/** Sends a transaction and buries it deep enough; its signature. */
function send(instructions: readonly Instruction[], { signers = [OPERATOR, PAYER], ...rest }: Sending = {}): string {
  const { value } = chain.rpc('getLatestBlockhash', [{ commitment: 'confirmed' }]) as { value: { blockhash: string } };
  const used = signers.filter(
    (key) =>
      key === signers[0] || instructions.some(({ accounts = [] }) => accounts.some((each) => isSigner(each, key))),
  );
  const [feePayer = OPERATOR] = used;
  const { base64 } = buildTransaction({
    ...{ feePayer, instructions, sign: used, blockhash: unbase58(value.blockhash) },
    ...rest,
  });
  const signature = String(chain.rpc('sendTransaction', [base64, { skipPreflight: true }]));
  chain.mine(CONFIRMATIONS - 1);
  return signature;
}

function isSigner({ address, signer }: { address: string; signer?: boolean | undefined }, key: Key): boolean {
  return signer === true && address === key.address;
}

/** A token account at an address of its own. */
function addAccount(
  name: string,
  owner: string,
  amount = 0n,
  { mint, program }: { mint: string; program: string } = { mint: SVM_USDC, program: PROGRAMS.token },
): string {
  const { address } = keyOf(name);
  const data = Buffer.alloc(165);
  unbase58(mint).copy(data, 0);
  unbase58(owner).copy(data, 32);
  data.writeBigUInt64LE(amount, 64);
  data.writeUInt8(1, 108);
  chain.setAccount(address, data, program);
  return address;
}

/** A new one for each look: a node is asked so many times a second by one. */
const proverOf = (): ReturnType<typeof createRefundProver> =>
  createRefundProver({
    ...{ fetch: globalThis.fetch, schedule: systemSchedule, clock: systemClock },
    services: () => ({ facilitators: [], rpcUrls: [chain.rpcUrl], rpcPublic: false, confirmations: CONFIRMATIONS }),
  });

function prove(transaction: string, { amount = AMOUNT, asset = SVM_USDC } = {}): Promise<RefundProof> {
  const paid: RefundSubject = {
    payment: { network: SVM_NETWORK, asset, payer: PAYER.address, unique: 'ab'.repeat(32) },
    way: { ...WAY, asset },
    proof: { transaction: payment, logIndex: 0, amount: AMOUNT, payer: PAYER.address },
    settledAt: Date.now(),
  };
  return proverOf().prove(paid, { transaction, amount });
}

async function why(transaction: string, of?: Parameters<typeof prove>[1]): Promise<string> {
  const proof = await prove(transaction, of);
  return 'why' in proof ? `${proof.kind}: ${proof.why}` : `${proof.kind}: ${proof.logIndexes.join(',')}`;
}

const NONE = "unproven: it moves none of the charge's token from somebody else to the payer";
const AGAIN = "unproven: it takes the charge's token from the payer as well; send it in a transaction of its own";

test('behaviour: a transfer in either form proves a refund, of the amount or of more', async () => {
  expect(await why(send([give()]))).toBe('proven: 0');
  expect(await why(send([unchecked(give())]))).toBe('proven: 0');
  expect(await why(send([give({ amount: AMOUNT + 1n })]))).toBe('proven: 0');
});

test('behaviour: of several transfers each has a place, and the one of the exact amount comes first', async () => {
  const both = send([
    give({ amount: 2n * AMOUNT }),
    give({ to: accountOf(STRANGER.address) }),
    unchecked(give()),
    give({ amount: 1n }),
  ]);
  expect(await why(both)).toBe('proven: 2,0');
});

test('behaviour: a transfer to any token account of the payer proves a refund', async () => {
  expect(await why(send([give({ to: addAccount('second account of the payer', PAYER.address) })]))).toBe('proven: 0');
});

test('behaviour: an account that the transaction names by a look-up table is found', async () => {
  const destination = accountOf(PAYER.address);
  const table = keyOf('look-up table').address;
  const head = Buffer.alloc(56);
  head.writeUInt32LE(1);
  head.writeBigUInt64LE(2n ** 64n - 1n, 4);
  chain.setAccount(table, Buffer.concat([head, unbase58(STRANGER.address), unbase58(destination)]), LOOKUP_PROGRAM);
  const lookups = Buffer.concat([Buffer.of(1), unbase58(table), Buffer.of(1, 1, 0)]);
  expect(await why(send([give()], { loaded: [destination], lookups }))).toBe('proven: 0');
});

test('behaviour: a transfer by a program that the transaction runs proves a refund', async () => {
  // The associated token program moves what landed in an account of an account to the wallet behind it.
  const middle = accountOf(PAYER.address, OTHER_MINT);
  chain.mint(middle, AMOUNT);
  const recover: Instruction = {
    program: PROGRAMS.associated,
    accounts: [
      { address: accountOf(middle), writable: true },
      { address: SVM_USDC },
      { address: accountOf(PAYER.address), writable: true },
      { address: middle },
      { address: OTHER_MINT },
      { address: PAYER.address, signer: true, writable: true },
      { address: PROGRAMS.token },
    ],
    data: Buffer.of(2),
  };
  const before = chain.balanceOf(PAYER.address) ?? 0n;
  const transaction = send([give({ to: accountOf(STRANGER.address), amount: 5n }), recover]);
  expect((chain.balanceOf(PAYER.address) ?? 0n) - before).toBe(AMOUNT);
  expect(await why(transaction)).toBe('proven: 1');
});

test('attack: what is no transfer of the token to the payer, young and deep enough, proves nothing', async () => {
  const failing: Instruction = { ...give(), data: Buffer.of(12, 0) };
  for (const [transaction, said] of [
    [old, 'unproven: it is not younger than the payment'],
    [payment, 'unproven: it is not younger than the payment'],
    [
      base58(Buffer.alloc(64, 9)),
      'unproven: the chain has no such transaction; if it was just sent, try again in a moment',
    ],
    [send([give({ to: accountOf(STRANGER.address) })]), NONE],
    [send([give({ mint: OTHER_MINT, to: accountOf(PAYER.address, OTHER_MINT) })]), NONE],
    [send([give({ amount: AMOUNT - 1n })]), 'unproven: it moves less than that to the payer, in one transfer'],
    [
      send([give({ amount: AMOUNT / 2n }), give({ amount: AMOUNT / 2n })]),
      'unproven: it moves less than that to the payer, in one transfer',
    ],
    [send([give(), failing]), 'unproven: the transaction failed'],
  ] as const)
    expect([said, await why(transaction)]).toEqual([said, said]);

  chain.automine(false);
  const shallow = send([give()]);
  chain.automine(true);
  expect(await why(shallow)).toContain('it is 1 deep, and 2 confirmations are asked for');
  chain.mine();
  expect(await why(shallow)).toBe('proven: 0');
});

test('attack: tokens that go from the payer to itself prove nothing', async () => {
  const second = addAccount('another account of the payer', PAYER.address, 1_000_000n);
  expect(await why(send([give({ from: PAYER })]))).toBe(NONE);
  expect(await why(send([give({ from: PAYER, to: second })]))).toBe(NONE);
  expect(await why(send([give({ from: PAYER, source: second })]))).toBe(NONE);
});

test('attack: tokens that leave the payer again in the same transaction prove nothing', async () => {
  const back = give({ from: PAYER, to: accountOf(OPERATOR.address) });
  expect(await why(send([give(), back]))).toBe(AGAIN);
  expect(await why(send([give(), give(), give({ from: PAYER, to: accountOf(STRANGER.address), amount: 1n })]))).toBe(
    AGAIN,
  );
  // They come to an account that is handed on to somebody else.
  const handed = addAccount('account that is handed on', PAYER.address);
  const data = Buffer.concat([Buffer.of(6, 2, 1), STRANGER.bytes]);
  const accounts = [
    { address: handed, writable: true },
    { address: PAYER.address, signer: true },
  ];
  const handOn: Instruction = { program: PROGRAMS.token, accounts, data };
  expect(await why(send([give({ to: handed }), handOn]))).toBe(NONE);
});

test('attack: an account at the place of the payer’s that is somebody else’s is not the payer’s', async () => {
  const { address } = keyOf('owner of a lost account');
  const data = Buffer.alloc(165);
  unbase58(SVM_USDC).copy(data, 0);
  unbase58(STRANGER.address).copy(data, 32);
  data.writeUInt8(1, 108);
  chain.setAccount(accountOf(address), data, PROGRAMS.token);
  const proof = await proverOf().prove(
    {
      payment: { network: SVM_NETWORK, asset: SVM_USDC, payer: address, unique: 'ab'.repeat(32) },
      ...{ way: WAY, settledAt: Date.now() },
      proof: { transaction: payment, logIndex: 0, amount: AMOUNT, payer: address },
    },
    { transaction: send([give({ to: accountOf(address) })]), amount: AMOUNT },
  );
  expect(proof.kind).toBe('unproven');
});

test('attack: a token of Token-2022, whose transfers may keep a part, proves nothing', async () => {
  chain.createMint(MINT_2022, PROGRAMS.token2022);
  const of = { mint: MINT_2022, program: PROGRAMS.token2022 };
  const source = addAccount('operator in Token-2022', OPERATOR.address, 1_000_000n, of);
  const destination = addAccount('payer in Token-2022', PAYER.address, 0n, of);
  const transaction = send([{ ...give({ source, to: destination, mint: MINT_2022 }), program: PROGRAMS.token2022 }]);
  expect(chain.rpc('getTransaction', [transaction, { commitment: 'confirmed' }])).toMatchObject({
    meta: { err: null },
  });
  expect(await why(transaction, { asset: MINT_2022 })).toBe(NONE);
});

test('refuses: what a node does not know, or says in contradiction, is not taken for an answer', async () => {
  const transaction = send([give()]);
  const shown = chain.rpc('getTransaction', [transaction, { commitment: 'confirmed' }]) as {
    transaction: object;
    meta: Record<string, unknown>;
  };
  const answer = async (method: string, result: unknown): Promise<string> => {
    if (result === 'drop') chain.answer(method, 'drop', 2);
    else chain.answer(method, { result });
    return (await prove(transaction)).kind;
  };
  expect(await answer('getTransaction', 'drop')).toBe('unavailable');
  expect(await answer('getSlot', 'drop')).toBe('unavailable');
  expect(await answer('getTransaction', { ...shown, meta: null })).toBe('unavailable');
  expect(await answer('getTransaction', { ...shown, meta: { ...shown.meta, postTokenBalances: null } })).toBe(
    'unavailable',
  );
  expect(await answer('getTransaction', { ...shown, meta: { ...shown.meta, postTokenBalances: [] } })).toBe('unproven');
  const other = send([give()]);
  expect(await answer('getTransaction', chain.rpc('getTransaction', [other, { commitment: 'confirmed' }]))).toBe(
    'unavailable',
  );
  // Less came than was sent.
  const { postTokenBalances } = shown.meta as {
    postTokenBalances: { owner: string; uiTokenAmount: { amount: string } }[];
  };
  const less = postTokenBalances.map((each) =>
    each.owner === PAYER.address
      ? { ...each, uiTokenAmount: { amount: String(BigInt(each.uiTokenAmount.amount) - 1n) } }
      : each,
  );
  expect(await answer('getTransaction', { ...shown, meta: { ...shown.meta, postTokenBalances: less } })).toBe(
    'unproven',
  );
  expect(await why(transaction)).toBe('proven: 0');
});
