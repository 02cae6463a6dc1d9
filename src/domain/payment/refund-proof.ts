// The port to what a chain says of a refund. A refund is proven by a transfer of the charge's token to its payer, younger than
// the payment and deep enough not to be undone, whoever sent it.
import type { Charge } from './charge.ts';

/** The transfer that is looked for. `transaction`: in its canonical spelling. `amount`: it gives back so much at least. */
export type SoughtRefund = { readonly transaction: string; readonly amount: bigint };

/** Facts of the charge that the transfer belongs to. */
export type RefundSubject = Pick<Charge, 'payment' | 'way' | 'proof' | 'settledAt'>;

/** Sentences are for the operator; none holds what a node said. */
export type RefundProof =
  /** Places of transfers that fit, among those of the transaction. The one of the exact amount is first. */
  | { readonly kind: 'proven'; readonly logIndexes: readonly number[] }
  /** The chain was read, and says no such thing. */
  | { readonly kind: 'unproven'; readonly why: string }
  /** No node is known for this network. */
  | { readonly kind: 'unreadable'; readonly why: string }
  /** No node answered. */
  | { readonly kind: 'unavailable'; readonly why: string };

export type RefundProver = {
  /** Whether the text has the form of a transaction of the network. */
  readonly isTransaction: (network: string, text: string) => boolean;
  readonly prove: (charge: RefundSubject, sought: SoughtRefund) => Promise<RefundProof>;
};
