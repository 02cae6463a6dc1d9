// Warns of prices of plans that are allowed and may lose money: a value that the client chooses makes a request cheaper, or a
// decision listener is not told what a price depends on.
import { comparePrices, parsePrice, type Price } from '../domain/payment/money.ts';
import { STANDARD_PLAN, type SalesPlan } from '../domain/selling/plan.ts';
import { inputsOf, nameInput, type PlanPrice } from '../domain/selling/price.ts';
import type { LoadedConfig } from './config.ts';

export function priceWarnings({ selling, routes, decision }: LoadedConfig): string[] {
  return [...selling.plans.byId.values()].flatMap((plan): string[] => {
    const { price } = plan;
    if (price === undefined) return [];
    const own = routes
      .filter(({ plan_id: named }) => (named ?? STANDARD_PLAN) === plan.id)
      .flatMap(({ amount }) => parsePrice(amount) ?? []);
    return [...loweredBy(plan, price, own), ...(decision === undefined ? [] : untold(plan, price))];
  });
}

function loweredBy({ id }: SalesPlan, { rules }: PlanPrice, own: readonly Price[]): string[] {
  return rules.flatMap(({ when, base }, index): string[] => {
    const lowers =
      base.kind === 'times'
        ? comparePrices(base.factor, { units: 1n, scale: 0 }) < 0
        : own.some((each) => comparePrices(base.amount, each) < 0);
    if (!lowers) return [];
    const chosen = when.map(({ input }) => nameInput(input)).join(' and ');
    return [
      `the plan ${id}: rule ${index + 1} asks for less than the route, by ${chosen}, which the client chooses: make sure that your API gives less for exactly these values`,
    ];
  });
}

function untold({ id }: SalesPlan, price: PlanPrice): string[] {
  const inputs = inputsOf(price);
  const headers = inputs.flatMap((input) => (input.kind === 'header' ? [input.name] : []));
  return [
    ...(headers.length === 0
      ? []
      : [
          `the plan ${id} prices by the headers ${headers.join(', ')}: the proxy before the decision listener has to pass them on, once and as they came, or a request counts as one without them`,
        ]),
    ...(inputs.some(({ kind }) => kind === 'length')
      ? [`the plan ${id} prices by length, which a decision listener is not told: its routes are answered 411 there`]
      : []),
  ];
}
