// What is owed as a file of comma-separated values, a line for one transfer: what pays it out needs the network, the token, the
// account and the amount, and what records it afterwards the charge. Of a charge that was given back in part, the rest.
import { formatPrice } from '../../domain/payment/money.ts';
import { refundedAmount } from '../../domain/payment/refund.ts';
import type { ListedCharge } from '../../domain/payment/reports.ts';
import { cellOf } from './charge-csv.ts';

const LINE_END = '\r\n';
const COLUMNS = ['charge_id', 'network', 'asset', 'to', 'amount', 'amount_atomic', 'since', 'reason'] as const;

export function owedHeader(): string {
  return COLUMNS.join(',') + LINE_END;
}

export function owedLine(charge: ListedCharge): string {
  const { id, payment, way, amount, settledAt, owed } = charge;
  const units = amount - refundedAmount(charge);
  const cells: Record<(typeof COLUMNS)[number], string> = {
    charge_id: id,
    network: payment.network,
    asset: way.asset,
    to: payment.payer,
    amount: formatPrice({ units, scale: way.decimals }),
    amount_atomic: units.toString(),
    since: settledAt === null ? '' : new Date(settledAt).toISOString(),
    reason: owed ?? '',
  };
  return COLUMNS.map((name) => cellOf(cells[name])).join(',') + LINE_END;
}
