// The price of a route as it is told to everybody. A plan may make it depend on the request: then it is told from the lowest
// to the highest that the plan can ask.
import { formatPrice, parsePrice } from '../payment/money.ts';
import type { Route } from '../routing/route.ts';
import { STANDARD_PLAN } from '../selling/plan.ts';
import { highestSum, lowestSum, type PlanPrice } from '../selling/price.ts';

/** Prices of plans by the ids of these. */
export type PublishedPrices = ReadonlyMap<string, PlanPrice>;

export type PriceRange = { readonly min: string; readonly max: string };

/** The range of the prices of a route; undefined: it has one price. */
export function priceRange(
  { amount, planId }: Pick<Route, 'amount' | 'planId'>,
  prices: PublishedPrices,
): PriceRange | undefined {
  const price = prices.get(planId ?? STANDARD_PLAN);
  const own = parsePrice(amount);
  if (price === undefined || own === undefined) return undefined;
  const [min, max] = [formatPrice(lowestSum(price, own)), formatPrice(highestSum(price, own))];
  return min === max ? undefined : { min, max };
}
