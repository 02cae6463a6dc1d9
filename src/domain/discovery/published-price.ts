// The price of a route as it is told to everybody. A plan may make it depend on the request: then it is told from the lowest
// to the highest that the plan can ask. A plan may sell passes: they are told beside it, or in its place if single requests are
// not sold.
import { formatPrice, parsePrice } from '../payment/money.ts';
import type { Route } from '../routing/route.ts';
import { coversPrice, type PassTerms } from '../selling/pass.ts';
import { STANDARD_PLAN } from '../selling/plan.ts';
import { highestSum, lowestSum, type PlanPrice } from '../selling/price.ts';

/** How a plan sells. `price`: by what a request asks; undefined: what its route says. `single`: requests one by one too. */
export type PublishedSale = {
  readonly price: PlanPrice | undefined;
  readonly passes: readonly PassTerms[];
  readonly single: boolean;
};

/** Plans that sell otherwise than by the price of a route, by their ids. */
export type PublishedPrices = ReadonlyMap<string, PublishedSale>;

export type PriceRange = { readonly min: string; readonly max: string };

type PricedRoute = Pick<Route, 'amount' | 'planId'>;

/** What the 402 of a route asks first: one amount, or a range if it depends on the request. */
export type FirstPrice = { readonly amount: string } | PriceRange;

export function firstPrice(route: PricedRoute, prices: PublishedPrices): FirstPrice {
  const sale = saleOf(route, prices);
  const [pass] = passesOf(route, prices);
  if (sale?.single === false && pass !== undefined) return { amount: pass.amount };
  const own = parsePrice(route.amount);
  if (sale?.price === undefined || own === undefined) return { amount: route.amount };
  const [min, max] = [formatPrice(lowestSum(sale.price, own)), formatPrice(highestSum(sale.price, own))];
  return min === max ? { amount: route.amount } : { min, max };
}

/** Passes that can be bought with a request of a route. */
export function passesOf(route: PricedRoute, prices: PublishedPrices): readonly PassTerms[] {
  return saleOf(route, prices)?.passes.filter((terms) => coversPrice(terms, route.amount)) ?? [];
}

/** Whether single requests of a route are sold. */
export function sellsSingle(route: PricedRoute, prices: PublishedPrices): boolean {
  return saleOf(route, prices)?.single !== false || passesOf(route, prices).length === 0;
}

function saleOf({ planId }: PricedRoute, prices: PublishedPrices): PublishedSale | undefined {
  return prices.get(planId ?? STANDARD_PLAN);
}
