// Faults of a plan's price: amounts that no asset of a receiver can hold exactly. A request of such a price would be refused with
// 503 for ever, so it is found before: at the start, and where a route is written.
import { multiplyPrices, withinDigits, type Price } from '../payment/money.ts';
import { highestSum, type PlanPrice } from './price.ts';

export type PriceFault = {
  /** `decimals`: more of them than the asset has; `digits`: the highest price has more before the point than a price may have. */
  readonly kind: 'decimals' | 'digits';
  readonly at:
    | { readonly part: 'rule'; readonly index: number; readonly name: 'amount' | 'times' }
    | { readonly part: 'units' }
    /** The highest price that the service may say. */
    | { readonly part: 'service' }
    | { readonly part: 'sum' };
};

/** Finds the faults of a price on routes of these amounts, whose finest asset has so many decimals. */
export function findPriceFaults(price: PlanPrice, amounts: readonly Price[], decimals: number): PriceFault[] {
  const { rules, units, service } = price;
  const isFine = (each: Price): boolean => each.scale <= decimals;
  const ofRules = rules.flatMap(({ base }, index): PriceFault[] => {
    const made = base.kind === 'amount' ? [base.amount] : amounts.map((own) => multiplyPrices(own, base.factor));
    return made.every(isFine) ? [] : [{ kind: 'decimals', at: { part: 'rule', index, name: base.kind } }];
  });
  const ofUnits: PriceFault[] =
    units === undefined || isFine(units.amount) ? [] : [{ kind: 'decimals', at: { part: 'units' } }];
  const ofService: PriceFault[] =
    service === undefined || isFine(service.max) ? [] : [{ kind: 'decimals', at: { part: 'service' } }];
  const isTooHigh = amounts.some((own) => !withinDigits(highestSum(price, own)));
  return [
    ...ofRules,
    ...ofUnits,
    ...ofService,
    ...(isTooHigh ? [{ kind: 'digits', at: { part: 'sum' } } as const] : []),
  ];
}
