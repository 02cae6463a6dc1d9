// Metrics of what plans do, made once for a process: a reload makes the ways to pass anew and goes on counting here.
import type { Offer } from '../../domain/payment/offer.ts';
import { addDecimals, type Decimal } from '../../host/decimal.ts';
import type { Metrics } from '../../host/metrics.ts';

export type SaleMetrics = {
  /** Counts what a request would have cost that passed in a dry run. */
  readonly wouldCharge: (offer: Offer) => void;
  /** Counts how a request that showed something of an entry of customers was taken. */
  readonly customer: (entry: string, result: 'known' | 'unknown' | 'expired' | 'quota' | 'unavailable') => void;
  /** Counts a free request that would have been charged for. */
  readonly free: (plan: string) => void;
};

type SumSeries = { readonly labels: Readonly<Record<string, string>>; sum: Decimal };

export function createSaleMetrics(metrics: Metrics, routeLabel: (id: string) => string): SaleMetrics {
  const would = new Map<string, SumSeries>();
  metrics.exact(
    'counter',
    'would_charge_total',
    'Money that requests would have cost that passed free in the dry run of a plan, to the last unit.',
    ['route_id', 'currency'],
    (set) => {
      for (const { labels, sum } of would.values()) set(labels, sum);
    },
  );
  const customers = metrics.counter(
    'customers_total',
    'Requests that showed something of customers who need not pay.',
    ['customers', 'result'],
  );
  const free = metrics.counter('free_requests_total', 'Requests that passed as free ones.', ['plan']);
  return {
    customer: (entry, result) => customers(entry, result)(1),
    free: (plan) => free(plan)(1),
    wouldCharge: ({ route, price }) => {
      const labels = { route_id: routeLabel(route.id), currency: route.currency };
      const name = `${labels.route_id} ${labels.currency}`;
      const series = would.get(name);
      if (series === undefined) would.set(name, { labels, sum: price });
      else series.sum = addDecimals(series.sum, price);
    },
  };
}
