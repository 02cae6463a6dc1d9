// The dry run of a plan: a request passes free, whatever it carries, and is counted and logged as if it had been charged.
// Who asks for money later learns here what it would have been, without a payer noticing anything.
import type { PlannedSale } from '../../domain/decide.ts';
import type { Offer } from '../../domain/payment/offer.ts';
import type { Problem } from '../../domain/problem.ts';
import { isObserving } from '../../domain/selling/plan.ts';
import type { Log } from '../../host/log.ts';
import { grantAccess } from './grant.ts';
import type { SaleMetrics } from './sale-metrics.ts';
import { NEXT, type PlannedRequest, type WayToPass } from './way-to-pass.ts';
import type { WouldCharge } from './would-charge.ts';

type ObservationDeps = {
  readonly offerFor: (sale: PlannedSale, request: PlannedRequest) => Offer | Problem;
  readonly wouldCharge: WouldCharge;
  readonly metrics: Pick<SaleMetrics, 'wouldCharge'>;
  readonly log: Log;
};

export function createObservation({ offerFor, wouldCharge, metrics, log }: ObservationDeps): WayToPass {
  return ({ sale, request }) => {
    if (!isObserving(sale.plan, request.nowMs)) return NEXT;
    const offer = offerFor(sale, request);
    let charged = false;
    return grantAccess('observed', sale, {
      beforeResponse: (head) => {
        charged = wouldCharge(offer, request.method, head);
        if (charged && !('code' in offer)) metrics.wouldCharge(offer, sale.plan.id);
        return { kind: 'stream', headers: [] };
      },
      done: () => {
        const asked =
          'code' in offer ? { problem: offer.code } : { amount: offer.route.amount, currency: offer.route.currency };
        log.info('would have asked', {
          ...{ request_id: request.requestId, route_id: sale.route.id, plan: sale.plan.id, method: request.method },
          ...{ path: request.path, ...asked, would_charge: charged },
        });
      },
    });
  };
}
