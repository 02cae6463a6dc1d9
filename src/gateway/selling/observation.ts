// The dry run of a plan: a request passes free, whatever it carries, and is counted and logged as if it had been charged.
// Who asks for money later learns here what it would have been, without a payer noticing anything.
import { formatPrice, parsePrice, type Price } from '../../domain/payment/money.ts';
import type { Route } from '../../domain/routing/route.ts';
import { isObserving } from '../../domain/selling/plan.ts';
import { CREDIT_SCALE } from '../../domain/selling/pass-book.ts';
import { showInputs } from '../../domain/selling/price-inputs.ts';
import type { Offer } from '../../domain/payment/offer.ts';
import type { Problem } from '../../domain/problem.ts';
import type { Log } from '../../host/log.ts';
import type { PricedSale } from './pricing/priced-sale.ts';
import type { End } from '../outcome.ts';
import { grantAccess } from './grant.ts';
import { limitOf, type MeteredUse, type MeterRequests } from './metering.ts';
import type { SaleMetrics } from './sale-metrics.ts';
import { NEXT, type WayToPass } from './way-to-pass.ts';
import { whenKnown } from './when-known.ts';
import type { WouldCharge } from './would-charge.ts';

type ObservationDeps = {
  /** Offer at the price of a route, by whose receiver money moves. */
  readonly ownOffer: (route: Route) => Offer | Problem;
  readonly wouldCharge: WouldCharge;
  /** Hears what responses to requests of metered plans would take. */
  readonly meter: MeterRequests;
  readonly metrics: Pick<SaleMetrics, 'wouldCharge'>;
  readonly log: Log;
};

export function createObservation({ ownOffer, wouldCharge, meter, metrics, log }: ObservationDeps): WayToPass {
  return ({ sale, request, priced }) => {
    const { plan, route } = sale;
    if (!isObserving(plan, request.nowMs)) return NEXT;
    const price = priced();
    const about = { routeId: route.id, planId: plan.id, requestId: request.requestId };
    const metered = plan.meter && hearUnnoticed(meter, plan.meter, about);
    let charged = false;
    const tell = ({ offer, inputs }: PricedSale, end: End): void => {
      const cost = 'code' in offer || !charged || metered === undefined ? undefined : costOf(metered, offer, end);
      if (cost !== undefined) metrics.wouldCharge({ route, price: cost }, plan.id);
      const asked =
        'code' in offer
          ? { problem: offer.code }
          : { amount: cost === undefined ? offer.amount : formatPrice(cost), currency: route.currency };
      log.info('would have asked', {
        ...{ request_id: request.requestId, route_id: route.id, plan: plan.id, method: request.method },
        ...{ path: request.path, ...asked, would_charge: charged && !('code' in offer) },
        ...(inputs === undefined ? {} : { inputs: showInputs(inputs) }),
      });
    };
    return grantAccess('observed', sale, {
      hearer: metered?.hearer,
      beforeResponse: (head) => {
        charged = wouldCharge(ownOffer(route), request.method, head);
        if (charged && metered !== undefined) metered.head(head);
        else if (charged) void whenKnown(price, ({ offer }) => 'code' in offer || metrics.wouldCharge(offer, plan.id));
        return { kind: 'stream', headers: [] };
      },
      done: (end) => void whenKnown(price, (known) => tell(known, end)),
    });
  };
}

/** Hears a response as its meter does, but asks the upstream for nothing that the client would notice. */
function hearUnnoticed(meter: MeterRequests, ...asked: Parameters<MeterRequests>): MeteredUse {
  const use = meter(...asked);
  const { needs } = use.hearer;
  return { ...use, hearer: { ...use.hearer, needs: needs === 'whole body' ? 'plain body' : needs } };
}

const NOTHING: Price = { units: 0n, scale: 0 };

function costOf(metered: MeteredUse, offer: Offer, end: End): Price {
  const units = metered.amount(limitOf(offer), end);
  return parsePrice(formatPrice({ units, scale: CREDIT_SCALE })) ?? NOTHING;
}
