// The highest price that a plan can ask for a request of a route. If a path can be read in two ways, routes are compared by
// it: a plan that may ask for less must not hide a dearer route, nor be hidden by a cheaper one.
import { parsePrice, type Price } from '../payment/money.ts';
import type { Route } from '../routing/route.ts';
import { findPlan, type SalesPlan, type Plans } from './plan.ts';
import { highestSum } from './price.ts';

const NOTHING: Price = { units: 0n, scale: 0 };

/** Prices active routes for a comparison, by the highest price that their plan can ask. */
export function highestPriceBy(plans: Plans): (route: Route) => Price {
  return (route) => {
    if (route.status !== 'active') return NOTHING;
    const plan = findPlan(route, plans);
    return plan === undefined || 'code' in plan ? ownPrice(route) : highestPriceOf(route, plan);
  };
}

/** The highest price of `plan` for a request of `route`. */
export function highestPriceOf(route: Pick<Route, 'amount'>, { price }: Pick<SalesPlan, 'price'>): Price {
  const own = ownPrice(route);
  return price === undefined ? own : highestSum(price, own);
}

function ownPrice({ amount }: Pick<Route, 'amount'>): Price {
  return parsePrice(amount) ?? NOTHING;
}
