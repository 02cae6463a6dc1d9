// What a chain family is given to look for a refund: one node, and what is looked for.
import type { RefundProof, RefundSubject, SoughtRefund } from '../../domain/payment/refund-proof.ts';
import type { NodeOutage } from './away.ts';
import type { ChainNode, Turn } from './nodes.ts';

/** One node that is asked about one refund. */
export type SoughtOnNode = {
  readonly node: ChainNode;
  readonly turn: Turn;
  readonly charge: RefundSubject;
  readonly sought: SoughtRefund;
  /** Blocks that have to be there from the transfer's on, its own included. */
  readonly confirmations: number;
};

export type FindRefund = (view: SoughtOnNode) => Promise<RefundProof | NodeOutage>;

/** A transfer to the payer, by its place among those of its transaction. */
export type FoundTransfer = { readonly logIndex: number; readonly amount: bigint };

/** Transfers of the charge's token between its payer and others, in one transaction. */
export type PayerTransfers = {
  /** Transfers to the payer; one from the payer to itself gives nothing, and is none. */
  readonly received: readonly FoundTransfer[];
  /** Whether the transaction takes some of the payer's tokens as well, so that what came may be gone. */
  readonly taken: boolean;
};

/** Judges the transfers of a transaction to the payer. Other refunds may need the larger ones: the exact amount comes first. */
export function judgeTransfers({ received, taken }: PayerTransfers, amount: bigint): RefundProof {
  if (received.length > 0 && taken) return TAKEN_AGAIN;
  const enough = received.filter((each) => each.amount >= amount);
  if (enough.length > 0) {
    const order = enough.toSorted((a, b) =>
      a.amount === b.amount ? a.logIndex - b.logIndex : a.amount < b.amount ? -1 : 1,
    );
    return { kind: 'proven', logIndexes: order.map(({ logIndex }) => logIndex) };
  }
  const why =
    received.length === 0
      ? "it moves none of the charge's token from somebody else to the payer"
      : 'it moves less than that to the payer, in one transfer';
  return { kind: 'unproven', why };
}

export function tooShallow(depth: number, confirmations: number): RefundProof {
  return {
    kind: 'unproven',
    why: `it is ${depth} deep, and ${confirmations} confirmations are asked for; try again later`,
  };
}

export const NO_SUCH_TRANSACTION: RefundProof = {
  kind: 'unproven',
  why: 'the chain has no such transaction; if it was just sent, try again in a moment',
};
const TAKEN_AGAIN: RefundProof = {
  kind: 'unproven',
  why: "it takes the charge's token from the payer as well; send it in a transaction of its own",
};
export const FAILED_TRANSACTION: RefundProof = { kind: 'unproven', why: 'the transaction failed' };
export const TOO_OLD: RefundProof = { kind: 'unproven', why: 'it is not younger than the payment' };
