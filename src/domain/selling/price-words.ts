// Says in words what a request costs by the price of its plan, and by what: for `match`, `try` and the desk. It is asked about a
// path and a query, so it takes a request without headers and without a body.
import { formatPrice, parsePrice, type Price } from '../payment/money.ts';
import type { PlannedSale } from '../decide.ts';
import type { Problem } from '../problem.ts';
import { paramsOf } from '../routing/route-params.ts';
import { inputsOf, nameInput, sumPrice } from './price.ts';
import { createInputReader, writeInputs } from './price-inputs.ts';

/** Path as it is forwarded, and query with its question mark, as somebody asks about them. */
export type AskedTarget = { readonly path: string; readonly query: string };

/** What the request of a path and a query costs. */
export type AskedPrice =
  /** `service`: the price service says it, between these bounds. */
  | {
      readonly kind: 'price';
      readonly price: Price;
      readonly inputs: string;
      readonly service?: readonly [Price, Price];
    }
  | { readonly kind: 'refused'; readonly problem: Problem };

/** Finds what a request would cost; undefined: what its route says, or the most that its plan can ask. */
export function askPrice(
  { plan, route, isSpelled }: PlannedSale,
  { path, query }: AskedTarget,
): AskedPrice | undefined {
  const own = parsePrice(route.amount);
  if (plan.price === undefined || own === undefined || !isSpelled) return undefined;
  const params = (): ReturnType<typeof paramsOf> => paramsOf(route, path);
  const length = inputsOf(plan.price).some(({ kind }) => kind === 'length') ? '0' : undefined;
  const read = createInputReader(plan.price)({ query, rawHeaders: [], droppedHeaders: undefined, params, length });
  if ('code' in read) return { kind: 'refused', problem: read };
  const sum = sumPrice(plan.price, own, read);
  if ('code' in sum) return { kind: 'refused', problem: sum };
  const { service } = plan.price;
  const found = { kind: 'price', price: sum.price, inputs: writeInputs(read) } as const;
  return service === undefined ? found : { ...found, service: [service.min, service.max] };
}

/** Says it in a clause. */
export function describeAskedPrice(sale: PlannedSale, asked: AskedTarget): string | undefined {
  const { route, plan } = sale;
  const found = askPrice(sale, asked);
  if (found === undefined || plan.price === undefined) return undefined;
  const inputs = inputsOf(plan.price).map(nameInput).join(', ');
  if (found.kind === 'refused') return `${found.problem.code}: ${found.problem.detail}`;
  if (found.service !== undefined) {
    const [min, max] = found.service.map(formatPrice);
    return `its price service says the price, from ${min} to ${max} ${route.currency}, by ${inputs}`;
  }
  return `this request costs ${formatPrice(found.price)} ${route.currency}, by ${inputs}${isTold(plan.price) ? '' : '; headers and body are taken for absent'}`;
}

function isTold(price: Parameters<typeof inputsOf>[0]): boolean {
  return inputsOf(price).every(({ kind }) => kind !== 'header' && kind !== 'length');
}
