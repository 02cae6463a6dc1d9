// Looks on a Solana chain whether a transaction gave the money of a charge back: a transfer of the SPL Token program to the
// payer's token account, made by the transaction itself or by a program that it runs. Its place is that among all transfers of
// the transaction, in the order in which they were made. It is younger than the payment by its slot, or, if the node does not
// have the payment, by its time.
import { z } from 'zod';
import { failed, type NodeOutage } from '../away.ts';
import {
  FAILED_TRANSACTION,
  judgeTransfers,
  NO_SUCH_TRANSACTION,
  TOO_OLD,
  tooShallow,
  type FindRefund,
  type FoundTransfer,
  type SoughtOnNode,
} from '../sought-refund.ts';
import { findTokenAccount, readBase58, TOKEN_PROGRAM } from './addresses.ts';

const whole = z.number().int().min(0);
const address = z.string().max(44);
const instruction = z.object({
  programIdIndex: whole,
  accounts: z.array(whole).max(256),
  data: z.string().max(20_000),
});
const instructions = z.array(instruction).max(1000);
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
  const slot = await view.node.ask(view.turn, 'getSlot', [{ commitment: 'confirmed' }], whole);
  if (slot.kind !== 'result') return failed(slot, 'getSlot');
  const depth = slot.value - landed.slot + 1;
  if (depth < confirmations) return tooShallow(Math.max(0, depth), confirmations);
  const young = await isYounger(view, landed);
  if (typeof young !== 'boolean') return young;
  if (!young) return TOO_OLD;
  const account = findTokenAccount(charge.payment.payer, charge.payment.asset);
  return judgeTransfers(account === undefined ? [] : transfersTo(landed, account), sought.amount);
};

/** Transfers to a token account: it holds one token alone, so none of another can be among them. */
function transfersTo({ transaction, meta }: Landed, account: string): FoundTransfer[] {
  const { accountKeys, instructions: outer } = transaction.message;
  const keys = [...accountKeys, ...(meta?.loadedAddresses?.writable ?? []), ...(meta?.loadedAddresses?.readonly ?? [])];
  const inner = new Map(meta?.innerInstructions?.map((each) => [each.index, each.instructions]));
  const inOrder = outer.flatMap((each, index) => [each, ...(inner.get(index) ?? [])]);
  const all = inOrder.flatMap((each) => readTransfer(each, keys) ?? []);
  return all.flatMap(({ paid, amount }, logIndex) => (paid === account ? [{ logIndex, amount }] : []));
}

function readTransfer(
  { programIdIndex, accounts, data }: Instruction,
  keys: readonly string[],
): { readonly paid: string | undefined; readonly amount: bigint } | undefined {
  if (keys[programIdIndex] !== TOKEN_PROGRAM) return undefined;
  for (const { tag, length, paid } of TRANSFERS) {
    const bytes = readBase58(data, length);
    if (bytes?.[0] === tag) return { paid: keys[accounts[paid] ?? -1], amount: bytes.readBigUInt64LE(1) };
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
