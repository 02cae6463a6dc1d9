// The dry run of a plan: a request passes free, whatever it carries, and is counted and logged as if it had been charged.
// Who asks for money later learns here what it would have been, without a payer noticing anything.
import type { Route } from '../../domain/routing/route.ts';
import { isObserving } from '../../domain/selling/plan.ts';
import { showInputs } from '../../domain/selling/price-inputs.ts';
import type { Offer } from '../../domain/payment/offer.ts';
import type { Problem } from '../../domain/problem.ts';
import type { Log } from '../../host/log.ts';
import type { PricedSale } from './pricing/priced-sale.ts';
import { grantAccess } from './grant.ts';
import type { SaleMetrics } from './sale-metrics.ts';
import { NEXT, type WayToPass } from './way-to-pass.ts';
import { whenKnown } from './when-known.ts';
import type { WouldCharge } from './would-charge.ts';

type ObservationDeps = {
  /** Offer at the price of a route, by whose receiver money moves. */
  readonly ownOffer: (route: Route) => Offer | Problem;
  readonly wouldCharge: WouldCharge;
  readonly metrics: Pick<SaleMetrics, 'wouldCharge'>;
  readonly log: Log;
};

export function createObservation({ ownOffer, wouldCharge, metrics, log }: ObservationDeps): WayToPass {
  return ({ sale, request, priced }) => {
    if (!isObserving(sale.plan, request.nowMs)) return NEXT;
    const price = priced();
    let charged = false;
    const tell = ({ offer, inputs }: PricedSale): void => {
      const asked =
        'code' in offer ? { problem: offer.code } : { amount: offer.amount, currency: offer.route.currency };
      log.info('would have asked', {
        ...{ request_id: request.requestId, route_id: sale.route.id, plan: sale.plan.id, method: request.method },
        ...{ path: request.path, ...asked, would_charge: charged },
        ...(inputs === undefined ? {} : { inputs: showInputs(inputs) }),
      });
    };
    return grantAccess('observed', sale, {
      beforeResponse: (head) => {
        charged = wouldCharge(ownOffer(sale.route), request.method, head);
        if (charged) void whenKnown(price, ({ offer }) => 'code' in offer || metrics.wouldCharge(offer, sale.plan.id));
        return { kind: 'stream', headers: [] };
      },
      done: () => void whenKnown(price, tell),
    });
  };
}
