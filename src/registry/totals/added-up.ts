// Sums of steps and routes added up for an answer. Money is added here and not in SQL: it may exceed 64 bits, and two assets of
// one currency may have different decimals.
import { noOverhead, percentileMs } from '../../domain/totals/overhead.ts';
import { addRequests, noRequests, type RequestCounts } from '../../domain/totals/request-counts.ts';
import { createRevenue, type Money, type Revenue } from '../../domain/totals/revenue.ts';
import type { OverheadSum } from '../../domain/totals/totals-store.ts';

export function requestsOf(rows: Iterable<{ readonly requests: RequestCounts }>): RequestCounts {
  const counts = noRequests();
  for (const { requests } of rows) addRequests(counts, requests);
  return counts;
}

export function revenueOf(rows: Iterable<Money>): Revenue {
  const revenue = createRevenue();
  for (const money of rows) revenue.add(money);
  return revenue;
}

export function showRevenue(revenue: Revenue, only?: string): { currency: string; amount: string }[] {
  const currencies = only === undefined ? revenue.currencies() : [only];
  return currencies.map((currency) => ({ currency, amount: revenue.text(currency) }));
}

type Percentiles = { readonly p50: number | null; readonly p99: number | null };

export function percentilesOf(rows: Iterable<Pick<OverheadSum, 'bucket' | 'requests'>>): Percentiles {
  const buckets = noOverhead();
  for (const { bucket, requests } of rows) buckets[bucket] = (buckets[bucket] ?? 0) + requests;
  return { p50: percentileMs(buckets, 0.5), p99: percentileMs(buckets, 0.99) };
}
