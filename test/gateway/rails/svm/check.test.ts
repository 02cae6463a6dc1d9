// Transactions of every kind that must not be taken for a payment, each one step away from an honest one that is; among
// them those that the reference facilitator calls valid.
import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { findTokenAccount } from '../../../../src/gateway/rails/svm/addresses.ts';
import { checkTransaction, readTransfer } from '../../../../src/gateway/rails/svm/check.ts';
import { MAX_TRANSACTION_BYTES, readTransaction } from '../../../../src/gateway/rails/svm/transaction.ts';
import {
  base58,
  buildTransaction,
  compact,
  computeLimit,
  computePrice,
  keyOf,
  memo,
  PROGRAMS,
  transferChecked,
  type Built,
  type Draft,
  type TransferDraft,
} from '../../../support/svm/wire.ts';

const [FEE_PAYER, PAYER, SHOP, OTHER] = ['fee payer', 'payer', 'shop', 'other'].map(keyOf) as [Key, Key, Key, Key];
type Key = ReturnType<typeof keyOf>;
const MINT = '4zMMC9srt5Ri5X14GAgXhaHii3GnPAEERYPJgZJDncDU';
const accountOf = (owner: string, mint = MINT): string => findTokenAccount(owner, mint) ?? '';

const TRANSFER: TransferDraft = {
  source: accountOf(PAYER.address),
  mint: MINT,
  destination: accountOf(SHOP.address),
  authority: PAYER.address,
  amount: 10_000n,
  decimals: 6,
};
const WANTED = { mint: MINT, decimals: 6, destination: TRANSFER.destination, amount: 10_000n };
const [LIMIT, PRICE, MOVE, MEMO] = [computeLimit(20_000), computePrice(1n), transferChecked(TRANSFER), memo('a memo')];
const HONEST: Draft = { feePayer: FEE_PAYER, sign: [PAYER], instructions: [LIMIT, PRICE, MOVE, MEMO] };

const build = (change: Partial<Draft> = {}): Built => buildTransaction({ ...HONEST, ...change });
const withMove = (change: Partial<TransferDraft>): Built =>
  build({ instructions: [LIMIT, PRICE, transferChecked({ ...TRANSFER, ...change }), MEMO] });
/** The bytes as a base64 text, changed after they were signed. */
const afterwards = (change: (bytes: Buffer) => Buffer): string => change(Buffer.from(build().bytes)).toString('base64');

/** What is said of a transaction. */
function judge(base64: string): string {
  const reading = readTransaction(base64);
  if (!reading.ok) return `malformed: ${reading.why}`;
  return checkTransaction(reading.transaction, WANTED)?.reason ?? 'ok';
}

const lighthouse = { program: PROGRAMS.lighthouse, data: Buffer.from('an assertion') };
const system = { program: PROGRAMS.system, data: Buffer.alloc(12) };

const FINE: readonly (readonly [what: string, base64: string])[] = [
  ['of the client of x402', build().base64],
  ['without a memo', build({ instructions: [LIMIT, PRICE, MOVE] }).base64],
  ['of the legacy version', build({ version: 'legacy' }).base64],
  ['with the assertions of a wallet', build({ instructions: [LIMIT, PRICE, MOVE, lighthouse, lighthouse] }).base64],
  [
    'of seven instructions',
    build({ instructions: [LIMIT, PRICE, MOVE, lighthouse, MEMO, lighthouse, lighthouse] }).base64,
  ],
  ['at the compute limit', build({ instructions: [computeLimit(1_400_000), PRICE, MOVE] }).base64],
  ['at the compute price', build({ instructions: [LIMIT, computePrice(5_000_000n), MOVE] }).base64],
  ['without padding', build().base64.replace(/=+$/, '')],
  ['with anything in the place of the fee payer’s signature', afterwards((bytes) => bytes.fill(0xaa, 1, 65))],
  [
    'with a memo that the payer signs',
    build({ instructions: [LIMIT, PRICE, MOVE, memo('x', [{ address: PAYER.address, signer: true }])] }).base64,
  ],
  ['from an account of another that the payer may spend', withMove({ source: accountOf(OTHER.address) }).base64],
  [`of ${MAX_TRANSACTION_BYTES} bytes`, sized(MAX_TRANSACTION_BYTES).base64],
];

test.each(FINE)('behaviour: a transaction %s is taken', (_, base64) => {
  expect(judge(base64)).toBe('ok');
});

test('behaviour: a transaction is read as it was signed', () => {
  const built = build({ blockhash: Buffer.alloc(32, 3) });
  const reading = readTransaction(built.base64);
  if (!reading.ok) throw new Error(reading.why);
  const { transaction } = reading;
  expect(transaction.signers).toEqual([FEE_PAYER.address, PAYER.address]);
  expect(transaction.blockhash).toBe(base58(Buffer.alloc(32, 3)));
  expect(transaction.messageHash).toBe(createHash('sha256').update(built.message).digest('hex'));
  expect(transaction.message).toEqual(built.message);
  const { source, mint, destination, authority, amount, decimals } = TRANSFER;
  expect(readTransfer(transaction)).toEqual({ source, mint, destination, authority, amount, decimals });
});

test('attack: one payment has one name, whatever stands in the fee payer’s place and however it is padded', () => {
  const names = [build().base64, build().base64.replace(/=+$/, ''), afterwards((bytes) => bytes.fill(0xaa, 1, 65))].map(
    (base64) => {
      const reading = readTransaction(base64);
      return reading.ok ? reading.transaction.messageHash : reading.why;
    },
  );
  expect(new Set(names).size).toBe(1);
});

/** A transaction of exactly `bytes`, by the length of its memo. */
function sized(bytes: number): Built {
  const instructions = (length: number): Draft['instructions'] => [LIMIT, PRICE, MOVE, memo('m'.repeat(length))];
  const over = build({ instructions: instructions(500) }).bytes.length - 500;
  return build({ instructions: instructions(bytes - over) });
}

const MALFORMED: readonly (readonly [what: string, base64: string, why: string])[] = [
  ['of no bytes', '', 'is not base64'],
  ['in the other alphabet', build().base64.replaceAll('+', '-').replaceAll('/', '_'), 'base64'],
  ['with a line break', `${build().base64.slice(0, 76)}\n${build().base64.slice(76)}`, 'is not base64'],
  [`of ${MAX_TRANSACTION_BYTES + 1} bytes`, sized(MAX_TRANSACTION_BYTES + 1).base64, 'is longer than 1232 bytes'],
  ['of 1,465 bytes', sized(1465).base64, 'is longer than 1232 bytes'],
  ['with a byte after its end', afterwards((bytes) => Buffer.concat([bytes, Buffer.of(0)])), 'has bytes after its end'],
  [
    'with signed bytes after its end',
    build({ message: (made) => Buffer.concat([made, Buffer.alloc(33)]) }).base64,
    'has bytes after its end',
  ],
  ['that breaks off', afterwards((bytes) => bytes.subarray(0, -1)), 'ends too early'],
  ['of version 1', build({ version: 1 }).base64, 'is of a version other than 0'],
  [
    'with a look-up table',
    build({ lookups: Buffer.concat([compact(1), OTHER.bytes, compact(1), Buffer.of(0), compact(0)]) }).base64,
    'uses address look-up tables',
  ],
  [
    'with a look-up table that adds nothing',
    build({ lookups: Buffer.concat([compact(1), OTHER.bytes, compact(0), compact(0)]) }).base64,
    'uses address look-up tables',
  ],
  [
    'with a number of signatures in two bytes',
    Buffer.concat([compact(2, 2), build().bytes.subarray(1)]).toString('base64'),
    'in another than the shortest form',
  ],
  [
    'with a number of accounts in two bytes',
    build({ message: (made) => Buffer.concat([made.subarray(0, 4), compact(made[4] ?? 0, 2), made.subarray(5)]) })
      .base64,
    'in another than the shortest form',
  ],
  [
    'with a number of accounts in three bytes',
    build({ message: (made) => Buffer.concat([made.subarray(0, 4), compact(made[4] ?? 0, 3), made.subarray(5)]) })
      .base64,
    'in another than the shortest form',
  ],
  ['with a number of 17 bits', Buffer.from('ffff7f', 'hex').toString('base64'), 'in another than the shortest form'],
  [
    'with more signatures than it requires',
    Buffer.concat([compact(3), Buffer.alloc(64), build().bytes.subarray(1)]).toString('base64'),
    'as many signatures as it requires',
  ],
  [
    'with fewer signatures than it requires',
    Buffer.concat([compact(1), build().bytes.subarray(65)]).toString('base64'),
    'as many signatures as it requires',
  ],
  [
    'whose fee payer may not be written',
    build({ message: withByte(2, () => 2) }).base64,
    'has a header that does not fit',
  ],
  [
    'with more read-only accounts than accounts',
    build({ message: withByte(3, () => 200) }).base64,
    'has a header that does not fit',
  ],
  [
    'with an index of no account',
    build({ message: (made) => lastOf(made, MOVE.data, -2, 99) }).base64,
    'names an account that it does not list',
  ],
  [
    'that runs an account that it does not list',
    build({ message: (made) => lastOf(made, MOVE.data, -7, 99) }).base64,
    'names an account that it does not list',
  ],
  [
    'that runs its fee payer',
    build({ message: (made) => lastOf(made, MOVE.data, -7, 0) }).base64,
    'runs its fee payer',
  ],
  [
    'that lists its fee payer twice',
    build({
      message: (made) => {
        const twice = Buffer.from(made);
        FEE_PAYER.bytes.copy(twice, 5 + 2 * 32);
        return twice;
      },
    }).base64,
    'names an account twice',
  ],
];

function withByte(at: number, change: (byte: number) => number): (made: Buffer) => Buffer {
  return (made) => {
    const changed = Buffer.from(made);
    changed[at] = change(changed[at] ?? 0);
    return changed;
  };
}

/** Sets the byte that stands `offset` before (after) where `data` begins. */
function lastOf(made: Buffer, data: Buffer, offset: number, byte: number): Buffer {
  const changed = Buffer.from(made);
  changed[made.indexOf(data) + offset] = byte;
  return changed;
}

test.each(MALFORMED)('refuses: a transaction %s', (_, base64, why) => {
  expect(judge(base64)).toMatch(/^malformed: /);
  expect(judge(base64)).toContain(why);
});

const WORD = 'invalid_exact_svm_payload_';
const REFUSED: readonly (readonly [what: string, base64: string, word: string])[] = [
  ['that nobody signed', build({ sign: [] }).base64, 'signature_invalid'],
  [
    'that another signed',
    afterwards((bytes) =>
      Buffer.concat([
        bytes.subarray(0, 65),
        build({ sign: [PAYER], blockhash: OTHER.bytes }).bytes.subarray(65, 129),
        bytes.subarray(129),
      ]),
    ),
    'signature_invalid',
  ],
  ['changed after it was signed', afterwards((bytes) => lastOf(bytes, MEMO.data, 0, 0x62)), 'signature_invalid'],
  [
    'with a third signer, by a memo',
    build({
      sign: [PAYER, OTHER],
      instructions: [LIMIT, PRICE, MOVE, memo('x', [{ address: OTHER.address, signer: true }])],
    }).base64,
    'excessive_signers',
  ],
  [
    'whose payer pays the fee',
    buildTransaction({ ...HONEST, feePayer: PAYER }).base64,
    'transaction_fee_payer_transferring_funds',
  ],
  [
    'with the fee payer in a memo’s accounts',
    build({ instructions: [LIMIT, PRICE, MOVE, memo('x', [{ address: FEE_PAYER.address }])] }).base64,
    'transaction_fee_payer_included_in_instruction_accounts',
  ],
  [
    'with the fee payer in an assertion’s accounts',
    build({
      instructions: [
        LIMIT,
        PRICE,
        MOVE,
        { ...lighthouse, accounts: [{ address: FEE_PAYER.address, signer: true, writable: true }] },
      ],
    }).base64,
    'transaction_fee_payer_included_in_instruction_accounts',
  ],
  [
    'with the fee payer’s money',
    withMove({ authority: FEE_PAYER.address }).base64,
    'transaction_fee_payer_transferring_funds',
  ],
  ['of two instructions', build({ instructions: [LIMIT, MOVE] }).base64, 'transaction_instructions_length'],
  [
    'of eight instructions',
    build({ instructions: [LIMIT, PRICE, MOVE, lighthouse, lighthouse, lighthouse, lighthouse, lighthouse] }).base64,
    'transaction_instructions_length',
  ],
  [
    'past the compute limit',
    build({ instructions: [computeLimit(1_400_001), PRICE, MOVE] }).base64,
    'transaction_instructions_compute_limit_instruction_too_high',
  ],
  [
    'past the compute price',
    build({ instructions: [LIMIT, computePrice(5_000_001n), MOVE] }).base64,
    'transaction_instructions_compute_price_instruction_too_high',
  ],
  [
    'with a compute price of 64 bits',
    build({ instructions: [LIMIT, computePrice(2n ** 64n - 1n), MOVE] }).base64,
    'transaction_instructions_compute_price_instruction_too_high',
  ],
  [
    'with limit and price the other way round',
    build({ instructions: [PRICE, LIMIT, MOVE] }).base64,
    'transaction_instructions_compute_limit_instruction',
  ],
  [
    'with a compute limit of another program',
    build({ instructions: [{ ...LIMIT, program: PROGRAMS.system }, PRICE, MOVE] }).base64,
    'transaction_instructions_compute_limit_instruction',
  ],
  [
    'with a compute limit cut short',
    build({ instructions: [{ ...LIMIT, data: LIMIT.data.subarray(0, 4) }, PRICE, MOVE] }).base64,
    'transaction_instructions_compute_limit_instruction',
  ],
  [
    'with a longer compute price',
    build({ instructions: [LIMIT, { ...PRICE, data: Buffer.concat([PRICE.data, Buffer.of(0)]) }, MOVE] }).base64,
    'transaction_instructions_compute_price_instruction',
  ],
  [
    'with a durable nonce',
    build({ instructions: [{ ...system, data: Buffer.of(4, 0, 0, 0) }, LIMIT, PRICE, MOVE] }).base64,
    'transaction_instructions_compute_limit_instruction',
  ],
  [
    'that transfers before it sets the price',
    build({ instructions: [LIMIT, MOVE, PRICE] }).base64,
    'transaction_instructions_compute_price_instruction',
  ],
  ['with two transfers', build({ instructions: [LIMIT, PRICE, MOVE, MOVE] }).base64, 'unknown_fourth_instruction'],
  [
    'that makes an account first',
    build({ instructions: [LIMIT, PRICE, MOVE, { program: PROGRAMS.associated, data: Buffer.of(1) }] }).base64,
    'unknown_fourth_instruction',
  ],
  [
    'with a foreign instruction in the fifth place',
    build({ instructions: [LIMIT, PRICE, MOVE, MEMO, system] }).base64,
    'unknown_fifth_instruction',
  ],
  [
    'with a foreign instruction in the sixth place',
    build({ instructions: [LIMIT, PRICE, MOVE, MEMO, lighthouse, system] }).base64,
    'unknown_sixth_instruction',
  ],
  [
    'with a foreign instruction in the seventh place',
    build({ instructions: [LIMIT, PRICE, MOVE, MEMO, lighthouse, lighthouse, system] }).base64,
    'unknown_seventh_instruction',
  ],
  [
    'with a memo of the first memo program',
    build({ instructions: [LIMIT, PRICE, MOVE, { ...MEMO, program: PROGRAMS.oldMemo }] }).base64,
    'unknown_fourth_instruction',
  ],
  [
    'with a second compute limit at its end',
    build({ instructions: [LIMIT, PRICE, MOVE, LIMIT] }).base64,
    'unknown_fourth_instruction',
  ],
  ['with two memos', build({ instructions: [LIMIT, PRICE, MOVE, MEMO, MEMO] }).base64, 'memo_count'],
  ['of Token-2022', withMove({ program: PROGRAMS.token2022 }).base64, 'no_transfer_instruction'],
  [
    'of a plain Transfer',
    build({ instructions: [LIMIT, PRICE, { ...MOVE, data: Buffer.concat([Buffer.of(3), MOVE.data.subarray(1, 9)]) }] })
      .base64,
    'no_transfer_instruction',
  ],
  [
    'of a burn',
    build({ instructions: [LIMIT, PRICE, { ...MOVE, data: Buffer.concat([Buffer.of(15), MOVE.data.subarray(1)]) }] })
      .base64,
    'no_transfer_instruction',
  ],
  [
    'of a transfer with bytes after its own',
    build({ instructions: [LIMIT, PRICE, { ...MOVE, data: Buffer.concat([MOVE.data, Buffer.of(0)]) }] }).base64,
    'no_transfer_instruction',
  ],
  [
    'of a transfer of three accounts',
    build({
      instructions: [
        LIMIT,
        PRICE,
        { ...MOVE, accounts: (MOVE.accounts ?? []).slice(0, 3) },
        memo('x', [{ address: PAYER.address, signer: true }]),
      ],
    }).base64,
    'no_transfer_instruction',
  ],
  [
    'of a transfer of five accounts',
    build({
      instructions: [LIMIT, PRICE, { ...MOVE, accounts: [...(MOVE.accounts ?? []), { address: OTHER.address }] }],
    }).base64,
    'no_transfer_instruction',
  ],
  ['of another mint', withMove({ mint: OTHER.address }).base64, 'mint_mismatch'],
  ['of other decimals', withMove({ decimals: 5 }).base64, 'mint_mismatch'],
  ['to another account', withMove({ destination: accountOf(OTHER.address) }).base64, 'recipient_mismatch'],
  ['to the wallet instead of its token account', withMove({ destination: SHOP.address }).base64, 'recipient_mismatch'],
  [
    'to the account that the wallet has of another mint',
    withMove({ destination: accountOf(SHOP.address, OTHER.address) }).base64,
    'recipient_mismatch',
  ],
  ['from the account that it pays', withMove({ source: TRANSFER.destination }).base64, 'recipient_mismatch'],
  [
    'in the name of somebody who did not sign',
    build({
      instructions: [
        LIMIT,
        PRICE,
        { ...MOVE, accounts: [...(MOVE.accounts ?? []).slice(0, 3), { address: OTHER.address }] },
        memo('x', [{ address: PAYER.address, signer: true }]),
      ],
    }).base64,
    'signature_invalid',
  ],
  ['of one less', withMove({ amount: 9_999n }).base64, 'amount_mismatch'],
  ['of one more', withMove({ amount: 10_001n }).base64, 'amount_mismatch'],
  ['of nothing', withMove({ amount: 0n }).base64, 'amount_mismatch'],
  ['of 64 bits', withMove({ amount: 2n ** 64n - 1n }).base64, 'amount_mismatch'],
];

test.each(REFUSED)('attack: a transaction %s', (_, base64, word) => {
  expect(judge(base64)).toBe(`${WORD}${word}`);
});

test('attack: no change of a byte makes another payment of a transaction, and none is more than an answer', () => {
  const { bytes } = build();
  const taken: number[] = [];
  for (let at = 0; at < bytes.length; at++) {
    for (const flip of [0x01, 0x80, 0xff]) {
      const changed = Buffer.from(bytes);
      changed[at] = (changed[at] ?? 0) ^ flip;
      if (judge(changed.toString('base64')) === 'ok') taken.push(at);
    }
  }
  // Nothing but the place of the fee payer's signature, which is not there yet.
  expect(Math.min(...taken)).toBe(1);
  expect(Math.max(...taken)).toBe(64);
});

test('attack: random bytes, and honest transactions cut at every byte, are answered', () => {
  const { bytes } = build();
  for (let at = 0; at < bytes.length; at++)
    expect(judge(bytes.subarray(0, at).toString('base64'))).toMatch(/^malformed/);
  let state = createHash('sha256').update('bytes').digest();
  for (let round = 0; round < 2000; round++) {
    state = createHash('sha256').update(state).digest();
    const noise = Buffer.concat([bytes.subarray(0, state.readUInt16LE(0) % bytes.length), state]);
    expect(judge(noise.toString('base64'))).not.toBe('ok');
  }
});
