// Routes, and prices of plans, that cannot be paid with the receivers: each would answer 503 for ever, so it is refused before anything starts.
// Only receivers and routes that are valid by themselves are looked at.
import type { Networks } from '../domain/payment/network.ts';
import { parsePrice } from '../domain/payment/money.ts';
import { DEFAULT_RECEIVER, findUnpayable, mostDecimals, type Receiver } from '../domain/payment/offer.ts';
import { STANDARD_PLAN } from '../domain/selling/plan.ts';
import { findPriceFaults, type PriceFault } from '../domain/selling/price-faults.ts';
import { suggest } from '../domain/suggest.ts';
import { price, toPlanPrice } from './price.ts';
import { valueAt, type Issue } from './problems.ts';
import { receiverIssues } from './receiver-issues.ts';
import { receiverSchema, toReceiver } from './receivers.ts';
import { configRouteSchema } from './route-keys.ts';

type ReadReceivers = ReadonlyMap<string, Receiver>;

/** Complaints about routes and prices of plans that cannot be paid; `raw` may be wrong in any way. */
export function payableIssues(raw: Readonly<Record<string, unknown>>, networks: Networks): Issue[] {
  const { receivers: inputs, routes } = raw;
  if (!Array.isArray(inputs)) return [];
  const receivers: ReadReceivers = new Map(
    inputs.flatMap((input) => readReceiver(input, networks)).map((receiver) => [receiver.id, receiver]),
  );
  // An unreadable receiver may be the one whose asset has the decimals.
  const priced = receivers.size < inputs.length ? [] : unpayablePrices(raw, receivers);
  return [...(Array.isArray(routes) ? routeIssues(routes, inputs.length, receivers) : []), ...priced];
}

function routeIssues(routes: readonly unknown[], configured: number, receivers: ReadReceivers): Issue[] {
  return routes.flatMap((input: unknown, index): Issue[] => {
    const parsed = configRouteSchema.safeParse(input);
    if (!parsed.success) return [];
    const { receiver_config_id: named, currency, amount } = parsed.data;
    if (named !== null && !receivers.has(named)) {
      // An unreadable receiver may be the one that is meant.
      if (receivers.size < configured) return [];
      const meant = suggest(named, receivers.keys());
      const advice = meant === undefined ? 'write the id of one of `receivers`' : `did you mean ${meant}?`;
      return [{ path: ['routes', index, 'receiver_config_id'], message: `names no receiver; ${advice}` }];
    }
    return findUnpayable({ amount, currency, receiverConfigId: named }, receivers).map(({ pointer, detail }) => ({
      path: ['routes', index, pointer.slice(1)],
      message: `cannot be paid: ${detail.charAt(0).toLowerCase()}${detail.slice(1).replace(/\.$/, '')}`,
    }));
  });
}

/** Prices of plans that no asset could hold exactly: on the routes of the file by their receivers, else by any receiver. */
function unpayablePrices(raw: Readonly<Record<string, unknown>>, receivers: ReadReceivers): Issue[] {
  const plans = valueAt(raw, ['selling', 'plans']);
  const all: readonly unknown[] = Array.isArray(raw['routes']) ? raw['routes'] : [];
  const routes = all.flatMap((input) => configRouteSchema.safeParse(input).data ?? []);
  return (Array.isArray(plans) ? plans : []).flatMap((plan: unknown, index): Issue[] => {
    const given = price.safeParse(valueAt(plan, ['price']));
    if (!given.success) return [];
    const id = valueAt(plan, ['id']);
    const sold = routes.filter(({ plan_id: named }) => (named ?? STANDARD_PLAN) === id);
    const paidTo = sold.flatMap(({ receiver_config_id: named }) => receivers.get(named ?? DEFAULT_RECEIVER) ?? []);
    const judged = sold.length > 0 ? paidTo : [...receivers.values()];
    if (judged.length === 0) return [];
    // A route of the file has one receiver; where routes are not known, one that can be paid is enough.
    const most = sold.length > 0 ? Math.min(...judged.map(mostDecimals)) : Math.max(...judged.map(mostDecimals));
    const amounts = sold.flatMap(({ amount }) => parsePrice(amount) ?? []);
    return findPriceFaults(toPlanPrice(given.data), amounts, most).map((fault) => {
      const { path, message } = issueOf(fault, most);
      return { path: ['selling', 'plans', index, 'price', ...path], message: `cannot be paid: ${message}` };
    });
  });
}

function pathOf(at: PriceFault['at']): Issue['path'] {
  switch (at.part) {
    case 'rule':
      return ['rules', at.index, at.name];
    case 'units':
      return ['units', 'amount'];
    case 'service':
      return ['service', 'max'];
    case 'sum':
      return [];
    default:
      return at satisfies never;
  }
}

function issueOf({ at, kind }: PriceFault, decimals: number): Issue {
  const path = pathOf(at);
  const message =
    kind === 'decimals'
      ? `has more digits after the point than the ${decimals} decimals of the asset; write fewer`
      : 'its highest price has more than 12 digits before the point; write lower amounts or a lower max';
  return { path, message };
}

function readReceiver(input: unknown, networks: Networks): Receiver[] {
  const parsed = receiverSchema.safeParse(input);
  return parsed.success && receiverIssues([input], networks).length === 0 ? [toReceiver(parsed.data, networks)] : [];
}
