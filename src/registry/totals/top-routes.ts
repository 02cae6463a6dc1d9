// GET /v1/billing/top-routes: the routes that earned most, or were asked for most often, and all others together.
import type { z } from 'zod';
import { problem } from '../../domain/problem.ts';
import { toWire } from '../../domain/routing/route.ts';
import { allRequests, conversionOf, type RequestCounts } from '../../domain/totals/request-counts.ts';
import type { Revenue } from '../../domain/totals/revenue.ts';
import { keptSince, spansBy, widen } from '../../domain/totals/steps.ts';
import { OTHER_ROUTES, type RouteSums } from '../../domain/totals/totals-store.ts';
import { fail, jsonResponse, type EndpointCall, type EndpointOutcome } from '../http/endpoint.ts';
import type { Services } from '../http/services.ts';
import { requestsOf, revenueOf, showRevenue } from './added-up.ts';
import { askedRange, iso } from './asked-range.ts';
import type { Ranking, topRoutesQuery } from './totals-schemas.ts';
import { withTotals } from './with-totals.ts';

export function showTopRoutes(
  { query }: EndpointCall<unknown, z.output<typeof topRoutesQuery>>,
  services: Services,
): Promise<EndpointOutcome> {
  return withTotals(services, async (totals) => {
    const { by, currency, limit } = query;
    if (by === 'revenue' && currency === undefined)
      return fail(problem('malformed', 'The query needs currency: money of two currencies cannot be compared.'));
    const now = services.clock.now();
    const asked = askedRange(query, now);
    if ('code' in asked) return fail(asked);
    const range = widen(asked, keptSince(now, totals.hoursKeptMs()), 'hour');
    const ranked = rank(earnersOf(await totals.sumsByRoute({ spans: spansBy(range, now) })), by, currency ?? '');
    const top = ranked.filter(({ routeId }) => routeId !== OTHER_ROUTES).slice(0, limit);
    const listed = new Set(top);
    const others = ranked.filter((each) => !listed.has(each));
    const othersRevenue = revenueOf(others.flatMap(({ money }) => money));
    return jsonResponse(200, {
      ...{ from: iso(range.fromMs), to: iso(range.toMs) },
      data: top.map(({ routeId, requests, revenue }) => {
        const route = services.routes.get(routeId);
        return {
          route_id: routeId,
          route: route === undefined ? null : toWire(route),
          ...show(requests, revenue, currency),
        };
      }),
      others: show(requestsOf(others), othersRevenue, currency),
    });
  });
}

type Earner = {
  readonly routeId: string;
  readonly requests: RequestCounts;
  readonly money: RouteSums['money'];
  readonly revenue: Revenue;
};

function earnersOf({ requests, money }: RouteSums): readonly Earner[] {
  const counted = Map.groupBy(requests, ({ routeId }) => routeId);
  const earned = Map.groupBy(money, ({ routeId }) => routeId);
  return [...new Set([...counted.keys(), ...earned.keys()])].map((routeId) => {
    const own = earned.get(routeId) ?? [];
    return { routeId, requests: requestsOf(counted.get(routeId) ?? []), money: own, revenue: revenueOf(own) };
  });
}

/** Most first; equal ones by their id, so that two answers agree. */
function rank(earners: readonly Earner[], by: Ranking, currency: string): readonly Earner[] {
  const weighed = earners.map((earner) => ({ earner, weight: weightOf(earner, by, currency) }));
  const order = (a: (typeof weighed)[number], b: (typeof weighed)[number]): number => {
    if (a.weight !== b.weight) return a.weight > b.weight ? -1 : 1;
    return a.earner.routeId < b.earner.routeId ? -1 : 1;
  };
  return weighed.toSorted(order).map(({ earner }) => earner);
}

function weightOf({ requests, revenue }: Earner, by: Ranking, currency: string): number | bigint {
  switch (by) {
    case 'revenue':
      return revenue.weight(currency);
    case 'requests':
      return allRequests(requests);
    case 'paid':
    case 'payment_required':
      return requests[by];
    default:
      return by satisfies never;
  }
}

function show(requests: RequestCounts, revenue: Revenue, currency: string | undefined): object {
  return { requests, revenue: showRevenue(revenue, currency), conversion: conversionOf(requests) };
}
