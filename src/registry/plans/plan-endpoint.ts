// GET /v1/billing/plans: the plans by which routes are sold, with what each one earned and gave away in a time, and how
// customers who need not pay were taken. Plans that only sidecars know are listed by what is counted of them.
import type { z } from 'zod';
import type { Route } from '../../domain/routing/route.ts';
import type { CustomerEntry } from '../../domain/selling/customer.ts';
import { describePlan } from '../../domain/selling/plan-words.ts';
import { isObserving, STANDARD_PLAN, type SalesPlan } from '../../domain/selling/plan.ts';
import { noRequests, REQUEST_OUTCOMES, type RequestCounts } from '../../domain/totals/request-counts.ts';
import { createRevenue, type Revenue } from '../../domain/totals/revenue.ts';
import { OTHER_CUSTOMERS, type SaleCount } from '../../domain/totals/sale-counts.ts';
import { keptSince, spansBy, widen } from '../../domain/totals/steps.ts';
import type { RouteMoney } from '../../domain/totals/totals-store.ts';
import { fail, jsonResponse, type EndpointCall, type EndpointOutcome } from '../http/endpoint.ts';
import type { Services } from '../http/services.ts';
import { revenueOf, showRevenue } from '../totals/added-up.ts';
import { askedRange, iso } from '../totals/asked-range.ts';
import { withTotals } from '../totals/with-totals.ts';
import { CUSTOMER_RESULTS, type planList, type plansQuery } from './plan-schemas.ts';

type PlanList = z.input<typeof planList>;

/** Names of customers that an answer lists of each entry. */
const MOST_NAMES = 20;

export function listPlans(
  { query }: EndpointCall<unknown, z.output<typeof plansQuery>>,
  services: Services,
): Promise<EndpointOutcome> {
  return withTotals(services, async (totals) => {
    const now = services.clock.now();
    const asked = askedRange(query, now);
    if ('code' in asked) return fail(asked);
    const range = widen(asked, keptSince(now, totals.hoursKeptMs()), 'hour');
    const spans = spansBy(range, now);
    const [counts, { money }] = await Promise.all([totals.sales({ spans }), totals.sumsByRoute({ spans })]);
    const counted = Map.groupBy(counts, ({ kind }) => kind);
    const plans = services.matchRules().plans?.byId ?? new Map<string, SalesPlan>();
    const sold = soldRoutes(services.snapshot().routes);
    const ofPlans = Map.groupBy([...(counted.get('plan') ?? []), ...(counted.get('would_charge') ?? [])], subjectOf);
    const ids = [...sold.keys()].filter((id) => id !== STANDARD_PLAN);
    const planIds = new Set([...plans.keys(), ...[...ids, ...ofPlans.keys()].toSorted()]);
    // A plan `default` sells the routes that name none; without one these have no plan.
    if (sold.get(STANDARD_PLAN)?.isNamed === true) planIds.add(STANDARD_PLAN);
    const earned = Map.groupBy(money, ({ routeId }) => routeId);
    const entries = services.customers();
    const ofEntries = Map.groupBy([...(counted.get('customers') ?? []), ...(counted.get('customer') ?? [])], subjectOf);
    return jsonResponse(200, {
      ...{ from: iso(range.fromMs), to: iso(range.toMs) },
      data: [...planIds].map((id) => {
        const routes = sold.get(id)?.ids ?? [];
        const own = routes.flatMap((routeId) => earned.get(routeId) ?? []);
        return showPlan(id, { plan: plans.get(id), routes, money: own, counts: ofPlans.get(id) ?? [], now });
      }),
      customers: [...new Set([...entries.keys(), ...[...ofEntries.keys()].toSorted()])].map((id) =>
        showEntry(id, { entry: entries.get(id), plans: [...plans.values()], counts: ofEntries.get(id) ?? [] }),
      ),
      as_of: iso(now),
    } satisfies PlanList);
  });
}

function subjectOf({ subject }: SaleCount): string {
  return subject;
}

type SoldRoutes = { readonly ids: string[]; isNamed: boolean };

/** Routes by the plan that sells them; those that name none stand under the standard one. */
function soldRoutes(routes: Iterable<Pick<Route, 'id' | 'planId'>>): ReadonlyMap<string, SoldRoutes> {
  const sold = new Map<string, SoldRoutes>();
  for (const { id, planId } of routes) {
    const name = planId ?? STANDARD_PLAN;
    let own = sold.get(name);
    if (own === undefined) sold.set(name, (own = { ids: [], isNamed: false }));
    own.ids.push(id);
    if (planId !== null) own.isNamed = true;
  }
  return sold;
}

type PlanFacts = {
  readonly plan: SalesPlan | undefined;
  readonly routes: readonly string[];
  readonly money: readonly RouteMoney[];
  readonly counts: readonly SaleCount[];
  readonly now: number;
};

function showPlan(id: string, { plan, routes, money, counts, now }: PlanFacts): PlanList['data'][number] {
  const observe = plan?.observe;
  return {
    ...{ id, known: plan !== undefined, sells: plan === undefined ? null : describePlan(plan, now) },
    observe_until: observe === undefined ? null : iso(observe.untilMs),
    observing: plan !== undefined && isObserving(plan, now),
    routes: routes.length,
    requests: requestsOf(counts),
    revenue: showRevenue(revenueOf(money)),
    would_charge: showWouldCharge(counts),
  };
}

function requestsOf(counts: readonly SaleCount[]): RequestCounts {
  const sums = noRequests();
  for (const { kind, detail, requests } of counts) {
    const outcome = REQUEST_OUTCOMES.find((each) => kind === 'plan' && each === detail);
    if (outcome !== undefined) sums[outcome] += requests;
  }
  return sums;
}

function showWouldCharge(counts: readonly SaleCount[]): PlanList['data'][number]['would_charge'] {
  const money: Revenue = createRevenue();
  const requests = new Map<string, number>();
  for (const { kind, detail, scale, amount, requests: more } of counts) {
    if (kind !== 'would_charge') continue;
    money.add({ currency: detail, assetDecimals: scale, amount: BigInt(amount) });
    requests.set(detail, (requests.get(detail) ?? 0) + more);
  }
  return showRevenue(money).map((sum) => ({ ...sum, requests: requests.get(sum.currency) ?? 0 }));
}

type EntryFacts = {
  readonly entry: CustomerEntry | undefined;
  readonly plans: readonly SalesPlan[];
  readonly counts: readonly SaleCount[];
};

function showEntry(id: string, { entry, plans, counts }: EntryFacts): PlanList['customers'][number] {
  const sum = (kind: SaleCount['kind'], detail: string): number =>
    counts.reduce((all, each) => all + (each.kind === kind && each.detail === detail ? each.requests : 0), 0);
  const named = Map.groupBy(
    counts.filter(({ kind, detail }) => kind === 'customer' && detail !== OTHER_CUSTOMERS),
    ({ detail }) => detail,
  );
  const names = [...named]
    .map(([name, own]) => ({ name, requests: own.reduce((all, { requests }) => all + requests, 0) }))
    .toSorted((a, b) => b.requests - a.requests || (a.name < b.name ? -1 : 1));
  const further = names.slice(MOST_NAMES).reduce((all, { requests }) => all + requests, 0);
  const [known, unknown, expired, quota, unavailable] = CUSTOMER_RESULTS.map((result) => sum('customers', result));
  return {
    ...{ id, by: entry?.proof.kind ?? null, quota: entry?.quota ?? null },
    plans: plans.filter(({ customers }) => customers.includes(id)).map((plan) => plan.id),
    requests: {
      ...{ known: known ?? 0, unknown: unknown ?? 0, expired: expired ?? 0 },
      ...{ quota: quota ?? 0, unavailable: unavailable ?? 0 },
    },
    names: names.slice(0, MOST_NAMES),
    others: further + sum('customer', OTHER_CUSTOMERS),
  };
}
