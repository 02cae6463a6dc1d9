// Adds up what a store of charges reports: money by buckets of time, and what is owed. Here and not in SQL: sums may be
// larger than the integers of SQL, and claim-policy.ts alone decides what is owed.
import type {
  Bucket,
  ListedCharge,
  OwedSum,
  RefundedSum,
  Sum,
  Summary,
  SummaryQuery,
} from '../../domain/payment/reports.ts';
import { refundedAmount } from '../../domain/payment/refund.ts';
import { integer, text, type Row } from './rows.ts';

export const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** Adds up `rows`: sums of an hour each, earliest first. */
export function addUp(rows: Iterable<Row>, { fromMs, bucket, groupBy, limit }: SummaryQuery): Summary {
  const sums = new Map<string, Sum>();
  for (const row of rows) {
    const sum: Sum = {
      start: bucketStart(bucket, integer(row, 'hour') * HOUR_MS, fromMs),
      routeId: groupBy === 'network' ? null : text(row, 'route_id'),
      currency: text(row, 'currency'),
      network: text(row, 'network'),
      asset: text(row, 'asset'),
      assetDecimals: integer(row, 'asset_decimals'),
      charges: integer(row, 'charges'),
      amount: BigInt(text(row, 'amount')),
      refunded: BigInt(text(row, 'refunded')),
    };
    const key = JSON.stringify([sum.start, sum.routeId, sum.currency, sum.network, sum.asset, sum.assetDecimals]);
    const known = sums.get(key);
    if (known === undefined && sums.size >= limit) return { kind: 'too_long' };
    sums.set(
      key,
      known === undefined
        ? sum
        : {
            ...known,
            charges: known.charges + sum.charges,
            amount: known.amount + sum.amount,
            refunded: known.refunded + sum.refunded,
          },
    );
  }
  return { kind: 'sums', sums: [...sums.values()] };
}

function bucketStart(bucket: Bucket, at: number, from: number): number {
  switch (bucket) {
    case 'hour':
      return at - (at % HOUR_MS);
    case 'day':
      return at - (at % DAY_MS);
    case 'month': {
      const date = new Date(at);
      return Date.UTC(date.getUTCFullYear(), date.getUTCMonth());
    }
    case 'total':
      return from;
    default:
      return bucket satisfies never;
  }
}

export function sumOwed(
  rows: Iterable<{ readonly charge: ListedCharge; readonly owed: OwedSum['because'] }>,
): readonly OwedSum[] {
  const sums = new Map<string, OwedSum>();
  for (const { charge, owed } of rows) {
    const { currency } = charge.price;
    const { decimals: assetDecimals } = charge.way;
    const name = `${currency} ${owed} ${assetDecimals}`;
    const known = sums.get(name);
    sums.set(name, {
      ...{ currency, because: owed, assetDecimals },
      charges: (known?.charges ?? 0) + 1,
      amount: (known?.amount ?? 0n) + charge.amount - refundedAmount(charge),
    });
  }
  return [...sums.values()];
}

/** Adds up sums of money that was given back. */
export function sumRefunds(rows: Iterable<Row>): readonly RefundedSum[] {
  const sums = new Map<string, RefundedSum>();
  for (const row of rows) {
    const [currency, assetDecimals] = [text(row, 'currency'), integer(row, 'asset_decimals')];
    const name = `${currency} ${assetDecimals}`;
    const amount = (sums.get(name)?.amount ?? 0n) + BigInt(text(row, 'amount'));
    sums.set(name, { currency, assetDecimals, amount });
  }
  return [...sums.values()];
}
