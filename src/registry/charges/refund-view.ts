// Refunds of a charge as people see them: what was given back in all, and each transfer with who vouches for it, the chain or the
// operator alone.
import { z } from 'zod';
import { explorerPage } from '../../domain/payment/explorer.ts';
import { formatPrice } from '../../domain/payment/money.ts';
import type { KnownNetwork } from '../../domain/payment/network.ts';
import { readRefunds, refundedAmount } from '../../domain/payment/refund.ts';
import type { ListedCharge } from '../../domain/payment/reports.ts';

/** Members that refunds add to a charge. */
export const refundShape = {
  /** What was given back in all, and by which transactions; null: nothing. */
  refunded: z.object({ amount: z.string(), transactions: z.array(z.string()) }).nullable(),
  /** The transfers, oldest first. */
  refunds: z.array(
    z.object({
      transaction: z.string(),
      transaction_url: z.string().nullable(),
      /** Place of the transfer among those of its transaction; null if it is not proven. */
      log_index: z.int().nullable(),
      /** Whether the chain proves it. */
      proven: z.boolean(),
      amount: z.string(),
      amount_atomic: z.string(),
      reason: z.string().nullable(),
      recorded_at: z.iso.datetime(),
    }),
  ),
};

export type RefundView = { [K in keyof typeof refundShape]: z.infer<(typeof refundShape)[K]> };

export function viewRefunds(charge: ListedCharge, network: Pick<KnownNetwork, 'explorer'> | undefined): RefundView {
  const { decimals: scale } = charge.way;
  const given = refundedAmount(charge);
  const refunds = readRefunds(charge.refunds);
  return {
    refunded:
      given === 0n
        ? null
        : {
            amount: formatPrice({ units: given, scale }),
            transactions: refunds.map(({ transaction }) => transaction),
          },
    refunds: refunds.map(({ at, transaction, logIndex, amount, reason }) => ({
      transaction,
      transaction_url: network ? explorerPage(network.explorer, 'tx', transaction) : null,
      log_index: logIndex,
      proven: logIndex !== null,
      amount: formatPrice({ units: amount, scale }),
      amount_atomic: amount.toString(),
      reason: reason === '' ? null : reason,
      recorded_at: new Date(at).toISOString(),
    })),
  };
}
