// Looks on a Solana chain whether a transaction gave the money of a charge back: a transfer of the SPL Token program from somebody
// else to a token account of the payer, made by the transaction itself or by a program that it runs. Whose an account is, and how
// much is in it, the chain says before and after the transaction. A transfer's place is that among all transfers of the
// transaction, in the order in which they were made. It is younger than the payment by its slot, or, if the node does not have the
// payment, by its time.
import { z } from 'zod';
import type { RefundSubject } from '../../../domain/payment/refund-proof.ts';
import { failed, type NodeOutage } from '../away.ts';
import {
  FAILED_TRANSACTION,
  judgeTransfers,
  NO_SUCH_TRANSACTION,
  TOO_OLD,
  tooShallow,
  type FindRefund,
  type PayerTransfers,
  type SoughtOnNode,
} from '../sought-refund.ts';
import { readBase58, TOKEN_PROGRAM } from './addresses.ts';

const whole = z.number().int().min(0);
const address = z.string().max(44);
const instruction = z.object({
  programIdIndex: whole,
  accounts: z.array(whole).max(256),
  data: z.string().max(20_000),
});
const instructions = z.array(instruction).max(1000);
/** What a token account holds, before or after the transaction. */
const balance = z.object({
  accountIndex: whole,
  mint: address,
  owner: address.nullish(),
  uiTokenAmount: z.object({ amount: z.string().regex(/^\d{1,20}$/) }),
});
const balances = z.array(balance).max(256).nullish();
const transactionSchema = z
  .object({
    slot: whole,
    blockTime: z.number().int().nullish(),
    transaction: z.object({
      signatures: z.array(z.string().max(88)).max(256),
      message: z.object({ accountKeys: z.array(address).max(256), instructions }),
    }),
    meta: z
      .object({
        err: z.unknown(),
        innerInstructions: z
          .array(z.object({ index: whole, instructions }))
          .max(1000)
          .nullish(),
        loadedAddresses: z
          .object({ writable: z.array(address).max(256), readonly: z.array(address).max(256) })
          .nullish(),
        preTokenBalances: balances,
        postTokenBalances: balances,
      })
      .nullable(),
  })
  .nullable();
type Landed = NonNullable<z.output<typeof transactionSchema>>;
type Instruction = z.output<typeof instruction>;

/** Instructions of the token program that move tokens: the first byte, all bytes, and the place of the account that is paid. */
const TRANSFERS = [
  { tag: 3, length: 9, paid: 1 },
  { tag: 12, length: 10, paid: 2 },
] as const;

export const findSvmRefund: FindRefund = async (view) => {
  const { charge, sought, confirmations } = view;
  const landed = await readLanded(view, sought.transaction);
  if (landed === null) return NO_SUCH_TRANSACTION;
  if ('away' in landed) return landed;
  if (landed.meta === null) return { away: 'getTransaction: it lists more than it has' };
  if (landed.meta.err !== null) return FAILED_TRANSACTION;
  if (!landed.meta.postTokenBalances) return { away: 'getTransaction: it does not say what token accounts hold' };
  const slot = await view.node.ask(view.turn, 'getSlot', [{ commitment: 'confirmed' }], whole);
  if (slot.kind !== 'result') return failed(slot, 'getSlot');
  const depth = slot.value - landed.slot + 1;
  if (depth < confirmations) return tooShallow(Math.max(0, depth), confirmations);
  const young = await isYounger(view, landed);
  if (typeof young !== 'boolean') return young;
  if (!young) return TOO_OLD;
  return judgeTransfers(transfersTo(landed.transaction, landed.meta, charge.payment), sought.amount);
};

type Meta = NonNullable<Landed['meta']>;

/** Transfers to the payer, and what of the token left the payer again. */
function transfersTo(
  { message }: Landed['transaction'],
  meta: Meta,
  { payer, asset }: RefundSubject['payment'],
): PayerTransfers {
  const { accountKeys, instructions: outer } = message;
  const { innerInstructions, loadedAddresses, preTokenBalances, postTokenBalances } = meta;
  const keys = [...accountKeys, ...(loadedAddresses?.writable ?? []), ...(loadedAddresses?.readonly ?? [])];
  const inner = new Map(innerInstructions?.map((each) => [each.index, each.instructions]));
  const inOrder = outer.flatMap((each, index) => [each, ...(inner.get(index) ?? [])]);
  const all = inOrder.flatMap((each) => readTransfer(each, keys) ?? []);

  const ofPayer = (balances: Balances): readonly Balance[] =>
    (balances ?? []).filter(({ owner, mint }) => owner === payer && mint === asset);
  const accountsOf = (balances: Balances): ReadonlySet<string> =>
    new Set(ofPayer(balances).flatMap(({ accountIndex }) => keys[accountIndex] ?? []));
  const sumOf = (balances: Balances): bigint =>
    ofPayer(balances).reduce((sum, { uiTokenAmount }) => sum + BigInt(uiTokenAmount.amount), 0n);
  const [before, after] = [accountsOf(preTokenBalances), accountsOf(postTokenBalances)];
  const received = all.flatMap(({ from, paid, amount }, logIndex) =>
    after.has(paid) && !after.has(from) && !before.has(from) ? [{ logIndex, amount }] : [],
  );
  const gained = sumOf(postTokenBalances) - sumOf(preTokenBalances);
  return { received, taken: received.reduce((sum, { amount }) => sum + amount, 0n) > gained };
}

type Balance = z.output<typeof balance>;
type Balances = z.output<typeof balances>;

/** A transfer between two token accounts. */
type Transfer = { readonly from: string; readonly paid: string; readonly amount: bigint };

function readTransfer({ programIdIndex, accounts, data }: Instruction, keys: readonly string[]): Transfer | undefined {
  if (keys[programIdIndex] !== TOKEN_PROGRAM) return undefined;
  const keyAt = (index: number | undefined): string => keys[index ?? -1] ?? '';
  for (const { tag, length, paid } of TRANSFERS) {
    const bytes = readBase58(data, length);
    if (bytes?.[0] !== tag) continue;
    return { from: keyAt(accounts[0]), paid: keyAt(accounts[paid]), amount: bytes.readBigUInt64LE(1) };
  }
  return undefined;
}

async function isYounger(view: SoughtOnNode, refund: Landed): Promise<boolean | NodeOutage> {
  const { proof, settledAt } = view.charge;
  if (proof === null || proof.transaction === view.sought.transaction) return false;
  const payment = await readLanded(view, proof.transaction);
  if (payment !== null) return 'away' in payment ? payment : payment.slot < refund.slot;
  const { blockTime } = refund;
  return settledAt !== null && typeof blockTime === 'number' && blockTime >= Math.floor(settledAt / 1000);
}

async function readLanded({ node, turn }: SoughtOnNode, signature: string): Promise<Landed | null | NodeOutage> {
  const options = { commitment: 'confirmed', encoding: 'json', maxSupportedTransactionVersion: 0 };
  const answer = await node.ask(turn, 'getTransaction', [signature, options], transactionSchema);
  if (answer.kind !== 'result') return failed(answer, 'getTransaction');
  const { value } = answer;
  return value === null || value.transaction.signatures[0] === signature
    ? value
    : { away: 'the node contradicts itself' };
}
