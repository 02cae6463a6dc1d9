// Who is told what became of a charge: one log line when the money moved and one for whatever did not go as it should, the
// ordinary steps in between only at level debug; and the metrics of money. Never a credential, never a kept answer. The
// ledger is the truth; what is counted here is for dashboards and alarms.
import type { Charge } from '../../domain/charge.ts';
import { formatPrice } from '../../domain/money.ts';
import type { Log } from '../../host/log.ts';
import type { Metrics } from '../../host/metrics.ts';

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
  readonly changed: (charge: Charge) => void;
  readonly counted: (routeId: string, result: PaymentResult) => void;
};

export function createChargeLog(metrics: Metrics, log: Log, routeLabel: (id: string) => string): ChargeLog {
  const payments = metrics.counter('payments_total', 'Presented payments, by how they ended.', ['route_id', 'result']);
  const revenue = metrics.counter(
    'revenue_total',
    'Settled money in the currency of the route, for dashboards; the ledger is the truth.',
    ['route_id', 'currency'],
  );
  const counted: ChargeLog['counted'] = (routeId, result) => payments(routeLabel(routeId), result)(1);
  return {
    counted,
    changed: (charge) => {
      const level = isOrdinary(charge) ? 'debug' : 'info';
      if (log.enabled(level)) log[level]('charge', describe(charge));
      if (charge.state !== 'settled' || charge.undeliveredAt !== null || charge.asks > 0) return;
      counted(charge.route.id, 'settled');
      const { amount, assetDecimals } = charge.terms;
      // A float is good enough for a graph.
      revenue(
        routeLabel(charge.route.id),
        charge.price.currency,
      )(Number(formatPrice({ units: amount, scale: assetDecimals })));
    },
  };
}

/** A step of every payment: the ledger has it, and the line about the money says as much. */
function isOrdinary({ state, attempts, undeliveredAt }: Charge): boolean {
  switch (state) {
    case 'claimed':
      return true;
    case 'settling':
      return attempts === 0;
    case 'delivered':
      return undeliveredAt === null;
    case 'settled':
    case 'released':
    case 'failed':
      return false;
    default:
      return state satisfies never;
  }
}

function describe(charge: Charge): Readonly<Record<string, unknown>> {
  return {
    charge_id: charge.id,
    state: charge.state,
    route_id: charge.route.id,
    payer: charge.payment.payer,
    network: charge.payment.network,
    amount: charge.price.amount,
    currency: charge.price.currency,
    atomic: charge.terms.amount,
    transaction: charge.proof?.transaction,
    reason: charge.reason ?? undefined,
    attempts: charge.attempts > 0 ? charge.attempts : undefined,
  };
}
