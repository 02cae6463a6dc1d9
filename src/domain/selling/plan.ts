// Plans: how a route is sold besides its price. A plan says who need not pay, what is free, and when the money moves. It
// stands in the process's own configuration: a route only names it, so that nothing that makes a request cheaper comes over
// the network. A plan that is not known here is no plan: it is refused.
import type { ReceiverSettle } from '../payment/offer.ts';
import { problem, type Problem } from '../problem.ts';
import type { Route } from '../routing/route.ts';
import type { Meter } from './meter/meter.ts';
import type { PassTerms } from './pass.ts';
import type { PlanPrice } from './price.ts';
import type { WindowLength } from './window.ts';

export type SalesPlan = {
  readonly id: string;
  /** Dry run; undefined: the plan charges. */
  readonly observe: Observation | undefined;
  /** Time of the settlement; undefined: as the receiver says. */
  readonly settle: ReceiverSettle | undefined;
  /** Ids of the entries of `selling.customers` who pass without paying, in the order in which they are asked. */
  readonly customers: readonly string[];
  /** Free requests; undefined: none. */
  readonly free: FreeRequests | undefined;
  /** Meter of its requests, which passes by credit pay; undefined: each takes its price. */
  readonly meter: Meter | undefined;
  /** Passes that can be bought; none: requests are sold one by one. */
  readonly passes: readonly PassTerms[];
  /** Whether single requests are sold besides passes. */
  readonly single: boolean;
  /** Whether a wallet's signature finds the pass that it bought. */
  readonly wallet: boolean;
  /** Whether browsers are given passes by seconds as a cookie. */
  readonly cookie: boolean;
  /** What a request costs, by what it asks; undefined: what its route says. */
  readonly price: PlanPrice | undefined;
};

/** A dry run: until then requests pass free, and are counted as if they were charged. Milliseconds since the epoch. */
export type Observation = { readonly untilMs: number };

/** So many requests of one identity cost nothing in a window; no more than `identities` identities in each. */
export type FreeRequests = {
  readonly requests: number;
  readonly window: WindowLength;
  readonly by: 'address' | 'customer';
  readonly identities: number;
};

/** The plans of a process, each in one place: workers get copies of them, in which two places are two plans. */
export type Plans = {
  readonly byId: ReadonlyMap<string, SalesPlan>;
  /** Whether routes that name no plan have one. */
  readonly hasStandard: boolean;
};

/** Id of the plan that routes have if they name none. */
export const STANDARD_PLAN = 'default';

export const NO_PLANS: Plans = { byId: new Map(), hasStandard: false };

export function plansOf(list: readonly SalesPlan[]): Plans {
  const byId = new Map(list.map((plan) => [plan.id, plan]));
  return { byId, hasStandard: byId.has(STANDARD_PLAN) };
}

/** The plan of a route; undefined: it has none. A plan that is not known here is `plan_unknown`, and nothing passes. */
export function findPlan({ planId }: Pick<Route, 'planId'>, { byId }: Plans): SalesPlan | Problem | undefined {
  if (planId === null) return byId.get(STANDARD_PLAN);
  return byId.get(planId) ?? planUnknown(planId);
}

function planUnknown(id: string): Problem {
  return problem('plan_unknown', `This route is sold by the plan "${id}", which is not configured here.`);
}

/** Whether the dry run of a plan goes on at `nowMs`. */
export function isObserving({ observe }: SalesPlan, nowMs: number): boolean {
  return observe !== undefined && nowMs < observe.untilMs;
}

/** Says when the money of a route moves, if its plan does. */
export function settleBy(plans: Plans): (route: Pick<Route, 'planId'>) => ReceiverSettle | undefined {
  return (route) => {
    const plan = findPlan(route, plans);
    return plan === undefined || 'code' in plan ? undefined : plan.settle;
  };
}

/** Scope of a plan's free requests among the counters of a ledger. */
export function freeScope(plan: string): string {
  return `free ${plan}`;
}
