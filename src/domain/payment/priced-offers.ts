// Offers of routes whose price depends on what is asked. Those of one route and price share everything that is written for
// payers; a request adds what its price depends on, to which its quote is bound.
import { LRUCache } from 'lru-cache';
import type { Problem } from '../problem.ts';
import type { Route } from '../routing/route.ts';
import { makeOffer, settledBy, type Offer, type OfferedPrice, type ReceiverSettle, type Receivers } from './offer.ts';

/** Makes the offer of a route at a price; `inputs`: everything that the price depends on, as one text. */
export type OfferAt = (route: Route, offered: OfferedPrice, inputs?: string) => Offer | Problem;

/** Prices of all routes that are remembered. A request that names another one has its offer made. */
const REMEMBERED = 4096;

export function createPricedOffers(
  receivers: Receivers,
  settleOf: (route: Route) => ReceiverSettle | undefined = () => undefined,
  complete: (offer: Offer) => Offer = (offer) => offer,
): OfferAt {
  const known = new LRUCache<string, { readonly route: Route; readonly offer: Offer | Problem }>({ max: REMEMBERED });
  const find = (route: Route, offered: OfferedPrice, isBound: boolean): Offer | Problem => {
    const { units, scale } = offered.price;
    const name = `${route.id} ${isBound} ${units}/${scale} ${offered.description ?? ''}`;
    const found = known.get(name);
    if (found?.route === route) return found.offer;
    const made = settledBy(makeOffer(route, receivers, offered), settleOf(route));
    const offer = 'code' in made ? made : complete(isBound ? { ...made, inputs: '' } : made);
    known.set(name, { route, offer });
    return offer;
  };
  return (route, offered, inputs) => {
    const shared = find(route, offered, inputs !== undefined);
    return 'code' in shared || inputs === undefined ? shared : { ...shared, shared, inputs };
  };
}
