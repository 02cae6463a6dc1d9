// What a change of a charge says about its refunds, for the stores: how much more was given back, which transfer proves it, and
// whether somebody is told. A transfer proves one thing alone: one charge that was paid, or one refund.
import type { Charge } from '../../domain/payment/charge.ts';
import { readRefunds, refundedAmount, type Refund } from '../../domain/payment/refund.ts';

/** Place of a transfer on a chain. */
export type TransferPlace = { readonly network: string; readonly transaction: string; readonly logIndex: number };

type RefundChange = {
  /** Money that was given back with this change, in the smallest unit of the asset. */
  readonly amount: bigint;
  /** The transfer that proves it; null if the operator's word does. */
  readonly proof: TransferPlace | null;
  /** Whether it was not recorded before: one that is proven later is told no second time. */
  readonly isNew: boolean;
};

/** Reads a change that says something about refunds. */
export function refundChangeOf(before: Charge, after: Charge): RefundChange {
  const known = readRefunds(before.refunds);
  const all = readRefunds(after.refunds);
  const isProven = ({ logIndex }: Refund): boolean => logIndex !== null;
  const provenBefore = new Set(known.filter(isProven).map(({ transaction }) => transaction));
  const proven = all.find((each) => isProven(each) && !provenBefore.has(each.transaction));
  const { network } = after.payment;
  return {
    amount: refundedAmount(after) - refundedAmount(before),
    proof:
      proven === undefined || proven.logIndex === null
        ? null
        : { network, transaction: proven.transaction, logIndex: proven.logIndex },
    isNew: all.length > known.length || before.refundedAt !== after.refundedAt,
  };
}
