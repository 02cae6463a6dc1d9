// GET /v1/billing/pattern: what a pattern would cover, before a route is made of it.
import type { z } from 'zod';
import { parsePattern } from '../../domain/routing/pattern.ts';
import { examplesOf, sharedPaths } from '../../domain/routing/pattern-help.ts';
import { jsonResponse, type EndpointCall, type EndpointOutcome } from '../http/endpoint.ts';
import type { Services } from '../http/services.ts';
import type { PatternBody, patternQuery } from './pattern-schemas.ts';

export function describePattern(
  { query }: EndpointCall<unknown, z.output<typeof patternQuery>>,
  { routes, snapshot }: Services,
): EndpointOutcome {
  const { route_pattern, method } = query;
  const parsed = parsePattern(route_pattern);
  if (!parsed.ok) return jsonResponse(200, { ...INVALID, problem: sentenceOf(parsed.reason) } satisfies PatternBody);
  const { pattern } = parsed;
  const { matches, not } = examplesOf(pattern, snapshot().paths);
  const shared = sharedPaths(pattern, method, routes.routeSet().routes);
  return jsonResponse(200, {
    ...{ valid: true, problem: null, key: pattern.key, matches: [...matches], not: [...not] },
    existing_id: routes.find({ route_pattern, method })?.id ?? null,
    shadows: shared.map(({ route, wins }) => ({
      route_id: route.id,
      by_whom: wins === 'this' ? 'this one' : route.id,
    })),
  } satisfies PatternBody);
}

const INVALID = { valid: false, key: null, matches: [], not: [], existing_id: null, shadows: [] };

function sentenceOf(reason: string): string {
  return `${reason.charAt(0).toUpperCase()}${reason.slice(1)}.`;
}
