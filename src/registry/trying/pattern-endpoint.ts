// GET /v1/billing/pattern: what a pattern would cover, before a route is made of it.
import { setImmediate as breathe } from 'node:timers/promises';
import type { z } from 'zod';
import { parsePattern } from '../../domain/routing/pattern.ts';
import { examplesOf, findShared } from '../../domain/routing/pattern-help.ts';
import { jsonResponse, type EndpointCall, type EndpointOutcome } from '../http/endpoint.ts';
import type { Services } from '../http/services.ts';
import type { PatternBody, patternQuery } from './pattern-schemas.ts';

export async function describePattern(
  { query }: EndpointCall<unknown, z.output<typeof patternQuery>>,
  { routes, snapshot }: Services,
): Promise<EndpointOutcome> {
  const { route_pattern, method } = query;
  const parsed = parsePattern(route_pattern);
  if (!parsed.ok) return jsonResponse(200, { ...INVALID, problem: sentenceOf(parsed.reason) } satisfies PatternBody);
  const { pattern } = parsed;
  const { matches, not } = examplesOf(pattern, snapshot().paths);
  const shared = await inSlices(findShared(pattern, method, routes.routeSet().routes));
  return jsonResponse(200, {
    ...{ valid: true, problem: null, key: pattern.key, matches: [...matches], not: [...not] },
    existing_id: routes.find({ route_pattern, method })?.id ?? null,
    shadows: shared.map(({ route, wins }) => ({
      route_id: route.id,
      by_whom: wins === 'this' ? 'this one' : route.id,
    })),
  } satisfies PatternBody);
}

/** Runs `work` to its end, and other requests between its slices. */
async function inSlices<T>(work: Generator<undefined, T>): Promise<T> {
  for (let step = work.next(); ; step = work.next()) {
    if (step.done === true) return step.value;
    await breathe();
  }
}

const INVALID = { valid: false, key: null, matches: [], not: [], existing_id: null, shadows: [] };

function sentenceOf(reason: string): string {
  return `${reason.charAt(0).toUpperCase()}${reason.slice(1)}.`;
}
