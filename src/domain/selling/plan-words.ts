// Says in words what decides about a request of a route with a plan: for `match`, `check` and the desk.
import type { PlannedSale } from '../decide.ts';
import { formatPrice } from '../payment/money.ts';
import { highestPriceOf } from './highest-price.ts';
import { CHARGE_AMOUNT } from './meter/meter.ts';
import { isObserving, type SalesPlan } from './plan.ts';
import type { PassTerms } from './pass.ts';
import { inputsOf, nameInput } from './price.ts';

/** Says what decides about a request, in the order in which it is asked. */
export function describeSale({ plan, route, isSpelled }: PlannedSale, nowMs: number): string {
  const most = `${formatPrice(highestPriceOf(route, plan))} ${route.currency} at most`;
  if (!isSpelled && plan.meter !== undefined)
    return `the plan ${plan.id} sells nothing here, because the path could mean another route: 503 price_unpayable`;
  if (!isSpelled)
    return `the plan ${plan.id} gives nothing away here, because the path could mean another route: ${most}`;
  const paid = bought(plan, most);
  return `by the plan ${plan.id}: ${[...waysOf(plan, nowMs), paid].join(', then ')}${metered(plan)}`;
}

/** Says what a plan decides about the requests of its routes, in the order in which it is asked. */
export function describePlan(plan: SalesPlan, nowMs: number): string {
  const { price } = plan;
  const asked = price === undefined ? '' : ` as it is changed by ${inputsOf(price).map(nameInput).join(', ')}`;
  const paid = bought(plan, `the price of its route${asked}`);
  return [...waysOf(plan, nowMs), paid].join(', then ') + metered(plan);
}

/** What is left to be paid; `cost`: of a single request. */
function bought({ single, passes, meter }: SalesPlan, cost: string): string {
  if (meter !== undefined) return `a payment for a pass, of which it takes ${cost.replace(/( at most)?$/, ' at most')}`;
  return single || passes.length === 0 ? `a payment of ${cost}` : 'a payment for such a pass';
}

/** Says what a request takes of a pass by credit; empty if that is its price. */
function metered({ meter }: SalesPlan): string {
  if (meter === undefined) return '';
  const { source, missing } = meter;
  const otherwise = missing === 'max' ? 'the price' : 'nothing';
  const said =
    source.kind === 'usage'
      ? `the number ${source.path.join('.')} of its response says`
      : `the ${source.kind} ${CHARGE_AMOUNT} of its response says`;
  return `; a pass by credit is charged what ${said}, the price at most, and ${otherwise} if it says none`;
}

/** Says what a plan gives away, in the order in which it is asked. */
function waysOf(plan: SalesPlan, nowMs: number): readonly string[] {
  const { observe, customers, free, passes } = plan;
  const ways: string[] = [];
  if (observe !== undefined && isObserving(plan, nowMs))
    ways.push(`free for everybody until ${new Date(observe.untilMs).toISOString()}, a dry run`);
  if (customers.length > 0) ways.push(`free for customers of ${customers.join(', ')}`);
  if (passes.length > 0) ways.push(`free with a pass (${passes.map(describePass).join(', ')})`);
  if (free !== undefined)
    ways.push(
      `${free.requests} free ${free.requests === 1 ? 'request' : 'requests'} ${free.window === 'hour' ? 'an' : 'a'} ${free.window} for each ${free.by}, if no payment is presented`,
    );
  return ways;
}

function describePass(pass: PassTerms): string {
  switch (pass.kind) {
    case 'seconds':
      return `${pass.id}: ${pass.amount} for ${pass.seconds} seconds`;
    case 'uses':
      return `${pass.id}: ${pass.amount} for ${pass.uses} uses`;
    case 'credit':
      return `${pass.id}: ${pass.amount} for a credit of ${pass.credit}`;
    default:
      return pass satisfies never;
  }
}
