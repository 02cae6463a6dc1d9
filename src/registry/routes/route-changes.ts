// A wanted route: made of a body, or of a stored route and a patch, and whether it is allowed. Pure.
import type { FieldError } from '../../domain/problem.ts';
import { DEFAULT_RECEIVER, findUnpayable, mostDecimals, type Receiver } from '../../domain/payment/offer.ts';
import { fromWire, patchRoute, type Route, type RouteInput, type RoutePatch } from '../../domain/routing/route.ts';
import { parsePrice } from '../../domain/payment/money.ts';
import { parsePattern } from '../../domain/routing/pattern.ts';
import { refuseMethod } from '../../domain/routing/method.ts';
import { findPlan, type Plans } from '../../domain/selling/plan.ts';
import { findPriceFaults } from '../../domain/selling/price-faults.ts';
import type { NewRoute, StoredRoute, Writer } from '../store/ports.ts';

export type RouteRules = {
  readonly receivers: () => ReadonlyMap<string, Receiver>;
  /** Fate of a route whose receiver is not among them. */
  readonly unknownReceiver: () => 'refuse' | 'store';
  /** Methods that a proxy lets in. */
  readonly methods: () => ReadonlySet<string>;
  /** All plans that a route may name; undefined: they are not known here. */
  readonly plans?: () => Plans | undefined;
};

export function keyOf(pattern: string): string {
  const parsed = parsePattern(pattern);
  if (!parsed.ok) throw new Error(`a pattern that was checked is not valid: ${parsed.reason}`);
  return parsed.pattern.key;
}

export function makeRoute(id: string, input: RouteInput, now: string, writtenBy: Writer): NewRoute {
  return { ...fromWire({ ...input, id, created_at: now, updated_at: now }), writtenBy, declared: null };
}

export function findNewFaults(
  route: Route,
  { methods, receivers, unknownReceiver, plans }: RouteRules,
): readonly FieldError[] {
  return [
    ...findUnreceivable(route, methods()),
    ...findUnpayable(route, receivers(), unknownReceiver()),
    ...findUnplanned(route, plans?.()),
    ...findUnpayablePlan(route, receivers(), plans?.()),
  ];
}

/** Applies a patch; the result is `route` itself if it changes nothing. */
export function applyPatch(route: StoredRoute, patch: RoutePatch): StoredRoute {
  const changed = { ...route, ...patchRoute(route, patch) };
  return JSON.stringify(changed) === JSON.stringify(route) ? route : changed;
}

/** Pausing must work even if the receiver's configuration has moved on since: only what is asked anew is checked. */
export function findChangeFaults(route: Route, changed: Route, rules: RouteRules): readonly FieldError[] {
  const activated = changed.status === 'active' && route.status === 'paused';
  const repriced = activated || changed.amount !== route.amount || changed.currency !== route.currency;
  const repaid = repriced || changed.receiverConfigId !== route.receiverConfigId;
  const replanned = activated || changed.planId !== route.planId;
  return [
    ...(changed.method === route.method ? [] : findUnreceivable(changed, rules.methods())),
    ...(repaid ? findUnpayable(changed, rules.receivers(), rules.unknownReceiver()) : []),
    ...(replanned ? findUnplanned(changed, rules.plans?.()) : []),
    ...(repaid || replanned ? findUnpayablePlan(changed, rules.receivers(), rules.plans?.()) : []),
  ];
}

/** A route whose method no proxy lets in protects nothing. */
function findUnreceivable({ method }: Route, allowed: ReadonlySet<string>): readonly FieldError[] {
  const wrong = refuseMethod(method, allowed);
  return wrong === undefined
    ? []
    : [{ pointer: '/method', detail: `${method} ${wrong}${wrong.endsWith('?') ? '' : '.'}` }];
}

/** A route whose plan is not known where it is served answers 503 to everybody. */
function findUnplanned({ planId }: Route, plans: Plans | undefined): readonly FieldError[] {
  const found = plans === undefined ? undefined : findPlan({ planId }, plans);
  if (plans === undefined || found === undefined || !('code' in found)) return [];
  const known = [...plans.byId.keys()].join(', ');
  const detail = `There is no plan ${planId} here, so that every request would be refused. ${known === '' ? 'None is configured.' : `Configured are ${known}.`}`;
  return [{ pointer: '/plan_id', detail }];
}

const PARTS = { units: 'the units', service: 'the max of its price service', sum: 'the highest price' };

/** A price of the plan that the asset of the route's receiver cannot hold would be answered 503. */
function findUnpayablePlan(
  route: Pick<Route, 'amount' | 'planId' | 'receiverConfigId'>,
  receivers: ReadonlyMap<string, Receiver>,
  plans: Plans | undefined,
): readonly FieldError[] {
  const plan = plans && findPlan(route, plans);
  const receiver = receivers.get(route.receiverConfigId ?? DEFAULT_RECEIVER);
  const own = parsePrice(route.amount);
  if (plan === undefined || 'code' in plan || plan.price === undefined || !receiver || !own) return [];
  const decimals = mostDecimals(receiver);
  return findPriceFaults(plan.price, [own], decimals).map(({ kind, at }) => {
    const what = at.part === 'rule' ? `rule ${at.index + 1}` : PARTS[at.part];
    // What follows from the amount is the amount's fault; the rest is the plan's, whatever the amount.
    const pointer = at.part === 'sum' || (at.part === 'rule' && at.name === 'times') ? '/amount' : '/plan_id';
    const has =
      kind === 'decimals'
        ? `more digits after the point than the ${decimals} decimals of the asset of the receiver ${receiver.id}`
        : 'more than 12 digits before the point';
    return { pointer, detail: `Requests could not be paid: by the plan ${plan.id}, ${what} would have ${has}.` };
  });
}
