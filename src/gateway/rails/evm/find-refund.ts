// Looks on an EVM chain whether a transaction gave the money of a charge back: a Transfer of its token to its payer, from somebody
// else. Its place is that among the logs of the transaction, as in the proof of a payment. It is younger than the payment by its
// block, or, if the node does not have the payment, by the block's time.
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
import { blockSchema, padAddress, quantity, receiptSchema, toHex, TRANSFER } from './look.ts';

const placedReceipt = receiptSchema.extend({ transactionIndex: quantity }).nullable();
type Receipt = NonNullable<ReturnType<typeof placedReceipt.parse>>;

const WORD_DIGITS = 64;

export const findEvmRefund: FindRefund = async (view) => {
  const { charge, sought, confirmations } = view;
  const receipt = await readReceipt(view, sought.transaction);
  if (receipt === null) return NO_SUCH_TRANSACTION;
  if ('away' in receipt) return receipt;
  if (receipt.status !== 1n) return FAILED_TRANSACTION;
  const head = await view.node.ask(view.turn, 'eth_getBlockByNumber', ['latest', false], blockSchema);
  if (head.kind !== 'result') return failed(head, 'eth_getBlockByNumber');
  const depth = head.value.number - receipt.blockNumber + 1n;
  if (depth < BigInt(confirmations)) return tooShallow(Math.max(0, Number(depth)), confirmations);
  const young = await isYounger(view, receipt);
  if (typeof young !== 'boolean') return young;
  if (!young) return TOO_OLD;
  return judgeTransfers(transfersTo(receipt, charge.payment), sought.amount);
};

/** Transfers of the token to the payer, and whether some left the payer. One from the payer to itself is neither. */
function transfersTo({ logs }: Receipt, { asset, payer }: RefundSubject['payment']): PayerTransfers {
  const self = `0x${padAddress(payer)}`;
  const moved = logs.flatMap(({ address, topics, data }, logIndex) => {
    const [event, from, to] = topics;
    const isOne = address === asset && topics.length === 3 && event === TRANSFER && data.length === 2 + WORD_DIGITS;
    return isOne && from !== to ? [{ logIndex, from, to, amount: BigInt(data) }] : [];
  });
  return {
    received: moved.flatMap(({ logIndex, to, amount }) => (to === self ? [{ logIndex, amount }] : [])),
    taken: moved.some(({ from, amount }) => from === self && amount > 0n),
  };
}

async function isYounger(view: SoughtOnNode, refund: Receipt): Promise<boolean | NodeOutage> {
  const { proof, settledAt } = view.charge;
  if (proof === null || proof.transaction === refund.transactionHash) return false;
  const payment = await readReceipt(view, proof.transaction);
  if (payment !== null) {
    if ('away' in payment) return payment;
    return payment.blockNumber === refund.blockNumber
      ? payment.transactionIndex < refund.transactionIndex
      : payment.blockNumber < refund.blockNumber;
  }
  const block = await view.node.ask(view.turn, 'eth_getBlockByNumber', [toHex(refund.blockNumber), false], blockSchema);
  if (block.kind !== 'result') return failed(block, 'eth_getBlockByNumber');
  return settledAt !== null && block.value.timestamp >= BigInt(Math.floor(settledAt / 1000));
}

async function readReceipt({ node, turn }: SoughtOnNode, transaction: string): Promise<Receipt | null | NodeOutage> {
  const answer = await node.ask(turn, 'eth_getTransactionReceipt', [transaction], placedReceipt);
  if (answer.kind !== 'result') return failed(answer, 'eth_getTransactionReceipt');
  const { value } = answer;
  return value === null || value.transactionHash === transaction ? value : { away: 'the node contradicts itself' };
}
