// Counts what plans do, for metrics and for sums; made once for a process: a reload makes the ways to pass anew and goes on
// counting here.
import type { Offer } from '../../domain/payment/offer.ts';
import type { SaleCount } from '../../domain/totals/sale-counts.ts';
import { addDecimals, type Decimal } from '../../host/decimal.ts';
import { METER_RESULTS, type MeteredAmount } from '../../domain/selling/meter/meter.ts';
import type { Metrics } from '../../host/metrics.ts';
import type { PriceFailure } from './pricing/price-service.ts';

export type SaleMetrics = {
  /** Counts what a request would have cost that passed in a dry run. */
  readonly wouldCharge: (offer: Pick<Offer, 'route' | 'price'>, plan: string) => void;
  /**
   * Counts how a request that showed something of an entry of customers was taken. `name`: that of a known customer, if the
   * owner gave it to him.
   */
  readonly customer: (entry: string, result: CustomerResult, name?: string) => void;
  /** Counts a request that the upstream's own sign-in decided about. */
  readonly asked: (routeId: string, isKnown: boolean) => void;
  /** Counts a free request that would have been charged for. */
  readonly free: (plan: string) => void;
  /** Counts how an attempt to learn a price from a price service ended, and its seconds. */
  readonly priceService: (result: 'priced' | PriceFailure, seconds: number) => void;
  /** Counts a pass that was sold. */
  readonly passSold: (plan: string, pass: string) => void;
  /** Counts a request that passed by a pass. */
  readonly passUsed: (plan: string, pass: string) => void;
  /** Counts what a use came to, in money of the sale of its pass. */
  readonly passDrawn: (plan: string, currency: string, worth: Decimal) => void;
  /** Counts a request whose response said what it costs, or did not. */
  readonly meter: (result: MeteredAmount['result']) => void;
};

export type CustomerResult = 'known' | 'unknown' | 'expired' | 'quota' | 'unavailable';

type SumSeries = { readonly labels: Readonly<Record<string, string>>; sum: Decimal };

/** `count`: hears of each count, for sums. */
export function createSaleMetrics(
  metrics: Metrics,
  routeLabel: (id: string) => string,
  count: (count: SaleCount) => void = () => undefined,
): SaleMetrics {
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
  const asked = metrics.counter('asked_total', "Requests that the upstream's own sign-in decided about.", [
    'route_id',
    'result',
  ]);
  const free = metrics.counter('free_requests_total', 'Requests that passed as free ones.', ['plan']);
  const sold = metrics.counter('passes_sold_total', 'Passes that were sold.', ['plan', 'pass']);
  const uses = metrics.counter('pass_uses_total', 'Requests that passed by a pass.', ['plan', 'pass']);
  const drawn = new Map<string, SumSeries>();
  const drawnHelp = 'Money of sold passes that uses of them came to, to the last unit.';
  metrics.exact('counter', 'pass_drawn_total', drawnHelp, ['plan', 'currency'], (set) => {
    for (const { labels, sum } of drawn.values()) set(labels, sum);
  });
  const services = metrics.duration(
    'price_service_duration_seconds',
    'Questions to price services of plans, from the question to the price or to why there is none.',
    ['result'],
  );
  const meter = metrics.counter(
    'meter_total',
    'Metered requests: as their response said, over their price, or without an amount that can be read.',
    ['result'],
  );
  // An alert compares them: each is there from the start.
  for (const result of METER_RESULTS) meter(result)(0);
  return {
    passSold: (plan, pass) => sold(plan, pass)(1),
    passUsed: (plan, pass) => uses(plan, pass)(1),
    passDrawn: (plan, currency, worth) => {
      const name = `${plan} ${currency}`;
      const series = drawn.get(name);
      if (series === undefined) drawn.set(name, { labels: { plan, currency }, sum: worth });
      else series.sum = addDecimals(series.sum, worth);
    },
    customer: (entry, result, name) => {
      customers(entry, result)(1);
      const counted = { subject: entry, scale: 0, requests: 1, amount: '0' };
      count({ kind: 'customers', detail: result, ...counted });
      if (name !== undefined) count({ kind: 'customer', detail: name, ...counted });
    },
    asked: (routeId, isKnown) => asked(routeLabel(routeId), isKnown ? 'known' : 'unknown')(1),
    priceService: (result, seconds) => services(result)(seconds),
    meter: (result) => meter(result)(1),
    free: (plan) => free(plan)(1),
    wouldCharge: ({ route, price }, plan) => {
      const { units, scale } = price;
      const named = { kind: 'would_charge', subject: plan, detail: route.currency } as const;
      count({ ...named, requests: 1, amount: String(units), scale });
      const labels = { route_id: routeLabel(route.id), currency: route.currency };
      const name = `${labels.route_id} ${labels.currency}`;
      const series = would.get(name);
      if (series === undefined) would.set(name, { labels, sum: price });
      else series.sum = addDecimals(series.sum, price);
    },
  };
}
