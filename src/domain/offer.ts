// An offer is a route's price in the terms of one receiver: the ways to pay it, the price in the smallest unit of each way's
// asset, and a hash of everything a payer agrees to. A route that cannot be priced has no offer but a problem, and its
// requests are refused: never free.
import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { formatPrice, parsePrice, toAtomic, type Price } from './money.ts';
import { problem, type Problem } from './problem.ts';
import type { Receiver, ReceiverWay } from './receiver.ts';
import { describeRoute, type Route } from './route.ts';

export type Offer = {
  readonly route: Route;
  readonly receiver: Receiver;
  readonly price: Price;
  /** In order of preference, at least one. */
  readonly ways: readonly OfferedWay[];
  readonly description: string;
  /** 8 bytes over every term of the receiver: a quote is void once they change. */
  readonly termsHash: Buffer;
};

/** `amount`: the price in the smallest unit of the way's asset. */
export type OfferedWay = Pick<ReceiverWay, 'way' | 'networkName'> & { readonly amount: bigint };

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
  const ways = offeredWays(receiver, price);
  if (ways.length === 0) {
    return problem(
      'price_unpayable',
      `This route costs ${formatPrice(price)} ${route.currency}, more decimals than the ${mostDecimals(receiver)} of its asset.`,
    );
  }
  return { route, receiver, price, ways, description: describeRoute(route), termsHash: hashTerms(receiver) };
}

/** The ways whose asset has enough decimals for `price`. */
export function offeredWays({ ways }: Receiver, price: Price): readonly OfferedWay[] {
  return ways.flatMap(({ way, networkName }) => {
    const amount = toAtomic(price, way.decimals);
    return amount === undefined ? [] : [{ way, networkName, amount }];
  });
}

export function mostDecimals({ ways }: Receiver): number {
  return Math.max(...ways.map(({ way }) => way.decimals));
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

/** Over what is paid where, in an order that the configuration's does not change. */
function hashTerms({ id, ways }: Receiver): Buffer {
  const terms = ways.map(({ way: { network, scheme, asset, decimals, payTo, terms: own } }) =>
    JSON.stringify([
      network,
      scheme,
      asset,
      decimals,
      payTo,
      ...Object.keys(own)
        .toSorted()
        .map((name) => [name, own[name]]),
    ]),
  );
  return createHash('sha256')
    .update(JSON.stringify([id, ...terms.toSorted()]))
    .digest()
    .subarray(0, 8);
}
