// An offer is a route's price in the terms of one receiver: the price in the asset's smallest unit, and a hash of
// everything a payer agrees to. A route that cannot be priced has no offer but a problem, and its requests are refused:
// never free.
import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { formatPrice, parsePrice, toAtomic, type Price } from './money.ts';
import { problem, type Problem } from './problem.ts';
import type { Receiver } from './receiver.ts';
import { describeRoute, type Route } from './route.ts';

export type Offer = {
  readonly route: Route;
  readonly receiver: Receiver;
  readonly price: Price;
  /** `price` in the smallest unit of `receiver.asset`. */
  readonly atomic: bigint;
  readonly description: string;
  /** 8 bytes over every term of the receiver: a quote is void once they change. */
  readonly termsHash: Buffer;
};

export type Receivers = ReadonlyMap<string, Receiver>;

/** Takes the money of routes that name no receiver. */
export const DEFAULT_RECEIVER = 'default';

/** The offer for `route`, or `receiver_unknown` / `price_unpayable`. */
export function makeOffer(route: Route, receivers: Receivers): Offer | Problem {
  const id = route.receiverConfigId ?? DEFAULT_RECEIVER;
  const receiver = receivers.get(id);
  if (receiver === undefined) {
    return problem('receiver_unknown', `This route is paid to the receiver "${id}", which is not configured here.`);
  }
  if (!receiver.currencies.includes(route.currency)) {
    return problem('price_unpayable', `This route is priced in ${route.currency}, which its receiver does not take.`);
  }
  const price = parsePrice(route.amount);
  if (price === undefined) return problem('price_unpayable', 'This route has an amount that is not a price.');
  const atomic = toAtomic(price, receiver.assetDecimals);
  if (atomic === undefined) {
    return problem(
      'price_unpayable',
      `This route costs ${formatPrice(price)} ${route.currency}, more decimals than the ${receiver.assetDecimals} of its asset.`,
    );
  }
  return { route, receiver, price, atomic, description: describeRoute(route), termsHash: hashTerms(receiver) };
}

/** Offers that are not made again. */
const REMEMBERED = 4096;

/** Remembers the offers of the routes that were asked for last. Not valid for another set of receivers. */
export function createOffers(receivers: Receivers): (route: Route) => Offer | Problem {
  const offers = new LRUCache<Route, Offer | Problem>({
    max: REMEMBERED,
    memoMethod: (route) => makeOffer(route, receivers),
  });
  return (route) => offers.memo(route);
}

function hashTerms(receiver: Receiver): Buffer {
  const terms = [
    receiver.id,
    receiver.scheme,
    receiver.caip2,
    receiver.asset.toLowerCase(),
    receiver.assetDecimals,
    receiver.assetName,
    receiver.assetVersion,
    receiver.payTo.toLowerCase(),
  ];
  return createHash('sha256').update(JSON.stringify(terms)).digest().subarray(0, 8);
}
