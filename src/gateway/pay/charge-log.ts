// Logs and counts what became of a charge: one log line when the money moved and one for whatever did not go as it
// should, the ordinary steps in between only at level debug; and the metrics of money, exact to the last unit. Never a
// credential, never a kept answer. The ledger is the truth: a settlement is told by its writer, once, and a process that
// is killed in between leaves it out.
import { flowOf, type Charge } from '../../domain/charge.ts';
import type { ChargeEvent } from '../../domain/payment/transition.ts';
import type { Log } from '../../host/log.ts';
import { addDecimals, type Decimal, type Metrics } from '../../host/metrics.ts';

/** How a presented payment ended. */
export type PaymentResult =
  | 'settled'
  | 'delivered'
  | 'settled_undelivered'
  | 'replayed'
  | 'released'
  | 'refused'
  | 'in_use'
  | 'already_used'
  | 'unknown'
  | 'unavailable';

export type ChargeLog = {
  /** `by`: the change that made `charge` what it is. */
  readonly changed: (charge: Charge, by: ChargeEvent['kind'] | 'claimed') => void;
  /** `network`: of the way that was chosen, CAIP-2. */
  readonly counted: (routeId: string, result: PaymentResult, network: string | undefined) => void;
};

type Revenue = { readonly labels: Readonly<Record<string, string>>; sum: Decimal };

const NO_WAY = 'none';

export function createChargeLog(metrics: Metrics, log: Log, routeLabel: (id: string) => string): ChargeLog {
  const payments = metrics.counter('payments_total', 'Presented payments, by how they ended.', [
    'route_id',
    'result',
    'network',
  ]);
  const revenues = new Map<string, Revenue>();
  metrics.exact(
    'counter',
    'revenue_total',
    'Settled money in the currency of the route, to the last unit.',
    ['route_id', 'currency', 'network'],
    (set) => {
      for (const { labels, sum } of revenues.values()) set(labels, sum);
    },
  );
  const counted: ChargeLog['counted'] = (routeId, result, network) =>
    payments(routeLabel(routeId), result, network ?? NO_WAY)(1);
  const earned = ({ route, price: { currency }, way, amount }: Charge): void => {
    const { network } = way;
    const routeId = routeLabel(route.id);
    const name = `${routeId} ${currency} ${network}`;
    const known = revenues.get(name);
    const sum = { units: amount, scale: way.decimals };
    if (known === undefined) revenues.set(name, { labels: { route_id: routeId, currency, network }, sum });
    else known.sum = addDecimals(known.sum, sum);
  };
  return {
    counted,
    changed: (charge, by) => {
      if (by === 'settled') {
        counted(charge.route.id, 'settled', charge.way.network);
        earned(charge);
      }
      const level = by === 'settled' || !isOrdinary(charge, by) ? 'info' : 'debug';
      if (log.enabled(level)) log[level](by === 'settled' ? 'charge settled' : 'charge', describe(charge, by));
    },
  };
}

/** A step of every payment: the ledger has it, and the line about the money says as much. */
function isOrdinary({ state, attempts, asks }: Charge, by: ChargeEvent['kind'] | 'claimed'): boolean {
  switch (state) {
    case 'claimed':
      return true;
    case 'settling':
      return attempts === 0 || by === 'looked';
    case 'delivered':
      return asks.all <= 1;
    case 'settled':
      return by === 'redeem_started';
    case 'released':
    case 'failed':
      return false;
    default:
      return state satisfies never;
  }
}

function describe(charge: Charge, by: ChargeEvent['kind'] | 'claimed'): Readonly<Record<string, unknown>> {
  const { id, state, route, requestId, payment, way, price, proof, reason, attempts, customerId } = charge;
  return {
    charge_id: id,
    state,
    by,
    request_id: requestId ?? undefined,
    route_id: route.id,
    customer_id: customerId ?? undefined,
    payer: payment.payer,
    network: way.network,
    asset: way.asset,
    scheme: way.scheme,
    pay_to_address: way.payTo,
    x402_version: charge.x402Version,
    flow: flowOf(charge),
    amount: price.amount,
    currency: price.currency,
    amount_atomic: charge.amount,
    transaction: proof?.transaction,
    reason: reason ?? undefined,
    attempts: attempts > 0 ? attempts : undefined,
  };
}
