// Checks a transaction against what it has to pay. It may hold what is on a list, and nothing else: two limits of what
// the fee payer spends, one transfer, and what wallets add. Facilitators check most of this too; the rest is checked
// here alone. A durable nonce is refused, because its instruction would have to come first. Source: x402, scheme
// `exact` on Solana; the reasons are its words if it has them.
import type { Refusal } from '../rail.ts';
import { TOKEN_PROGRAM } from './addresses.ts';
import { isSignedBy, type Instruction, type Transaction } from './transaction.ts';

/** The values that the one transfer has to have. */
export type ExpectedTransfer = {
  readonly mint: string;
  readonly decimals: number;
  /** The token account that is paid, not its owner. */
  readonly destination: string;
  readonly amount: bigint;
};

/** Transfer that the transaction says it makes. */
export type Transfer = {
  readonly source: string;
  readonly mint: string;
  readonly destination: string;
  readonly authority: string;
  readonly amount: bigint;
  readonly decimals: number;
};

const COMPUTE_BUDGET = 'ComputeBudget111111111111111111111111111111';
export const MEMO = 'MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr';
/** Asserts about the outcome, which wallets add to protect their owner. */
const LIGHTHOUSE = 'L2TExMFKdjpN9kozasaurPirfHy9P8sbXoAN1qA3S95';

const INSTRUCTIONS = { min: 3, max: 7 } as const;
const MAX_COMPUTE_UNITS = 1_400_000;
/** Micro-lamports for a unit. */
const MAX_COMPUTE_PRICE = 5_000_000n;

const SET_COMPUTE_LIMIT = { tag: 2, length: 5 } as const;
const SET_COMPUTE_PRICE = { tag: 3, length: 9 } as const;
const TRANSFER_CHECKED = { tag: 12, length: 10 } as const;

const ORDINALS = ['first', 'second', 'third', 'fourth', 'fifth', 'sixth', 'seventh'] as const;

export function checkTransaction(transaction: Transaction, wanted: ExpectedTransfer): Refusal | undefined {
  return (
    checkSigners(transaction) ??
    checkInstructions(transaction) ??
    checkTransfer(transaction, wanted) ??
    (isSignedBy(transaction, 1, transaction.signatures[1]) ? undefined : refuse('payload_signature_invalid'))
  );
}

/** The transfer; undefined if the third instruction is no transfer. */
export function readTransfer({ instructions }: Transaction): Transfer | undefined {
  const [, , instruction] = instructions;
  if (instruction === undefined || !isOf(instruction, TOKEN_PROGRAM, TRANSFER_CHECKED)) return undefined;
  const { accounts, data } = instruction;
  const [source, mint, destination, authority, ...more] = accounts;
  if (!source || !mint || !destination || !authority || more.length > 0) return undefined;
  return { source, mint, destination, authority, amount: data.readBigUInt64LE(1), decimals: data.readUInt8(9) };
}

/** The fee payer first, then who pays. */
function checkSigners({ signers: [feePayer, payer, third], instructions }: Transaction): Refusal | undefined {
  if (feePayer === undefined || payer === undefined) return refuse('payload_transaction_fee_payer_transferring_funds');
  if (third !== undefined) return refuse('payload_excessive_signers', 'two signers');
  return instructions.some(({ accounts }) => accounts.includes(feePayer))
    ? refuse('payload_transaction_fee_payer_included_in_instruction_accounts')
    : undefined;
}

function checkInstructions({ instructions }: Transaction): Refusal | undefined {
  const [limit, price, transfer, ...others] = instructions;
  if (!limit || !price || !transfer || instructions.length > INSTRUCTIONS.max)
    return refuse('payload_transaction_instructions_length', `${INSTRUCTIONS.min} to ${INSTRUCTIONS.max} instructions`);
  if (!isOf(limit, COMPUTE_BUDGET, SET_COMPUTE_LIMIT))
    return refuse('payload_transaction_instructions_compute_limit_instruction');
  if (limit.data.readUInt32LE(1) > MAX_COMPUTE_UNITS)
    return refuse(
      'payload_transaction_instructions_compute_limit_instruction_too_high',
      `at most ${MAX_COMPUTE_UNITS} units`,
    );
  if (!isOf(price, COMPUTE_BUDGET, SET_COMPUTE_PRICE))
    return refuse('payload_transaction_instructions_compute_price_instruction');
  if (price.data.readBigUInt64LE(1) > MAX_COMPUTE_PRICE)
    return refuse(
      'payload_transaction_instructions_compute_price_instruction_too_high',
      `at most ${MAX_COMPUTE_PRICE} micro-lamports a unit`,
    );
  const foreign = others.findIndex(({ program }) => program !== LIGHTHOUSE && program !== MEMO);
  if (foreign >= 0) return refuse(`payload_unknown_${ORDINALS[foreign + INSTRUCTIONS.min]}_instruction`);
  const memos = others.filter(({ program }) => program === MEMO).length;
  return memos > 1 ? refuse('payload_memo_count', 'at most one memo') : undefined;
}

function checkTransfer(transaction: Transaction, wanted: ExpectedTransfer): Refusal | undefined {
  const transfer = readTransfer(transaction);
  if (transfer === undefined)
    return refuse('payload_no_transfer_instruction', 'TransferChecked of the SPL Token program');
  const { source, mint, destination, authority, amount, decimals } = transfer;
  const [, payer] = transaction.signers;
  if (mint !== wanted.mint) return refuse('payload_mint_mismatch', `mint ${wanted.mint}`);
  if (decimals !== wanted.decimals) return refuse('payload_mint_mismatch', `${wanted.decimals} decimals`);
  if (destination !== wanted.destination) return refuse('payload_recipient_mismatch', `account ${wanted.destination}`);
  // A transfer from an account to itself moves nothing.
  if (source === destination) return refuse('payload_recipient_mismatch', 'another account than the one paid');
  if (authority !== payer) return refuse('payload_signature_invalid', 'the second signer as the authority');
  return amount === wanted.amount ? undefined : refuse('payload_amount_mismatch', `amount ${wanted.amount}`);
}

function isOf({ program, data }: Instruction, of: string, kind: { tag: number; length: number }): boolean {
  return program === of && data.length === kind.length && data[0] === kind.tag;
}

function refuse(word: string, expected?: string): Refusal {
  return { reason: `invalid_exact_svm_${word}`, ...(expected === undefined ? {} : { expected }) };
}
