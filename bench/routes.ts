// The routes that the bench protects and the paths that it asks for: made from a number alone, so that every run and every
// revision sees the same. Half of what an API has is literal, the rest parameters and wildcards, spread over fifty
// services; free paths end at different depths of the same tree, so that "free" is not the easy case. There are two
// editions of them, to put one in the place of the other: no id and no pattern is in both, every price is another one, and
// yet a path that costs something in one does so in the other, so that no moment of a swap may let it through.
import type { Route } from '../src/domain/routing/route.ts';

export const EDITIONS = ['first', 'second'] as const;
export type Edition = (typeof EDITIONS)[number];

export const ROUTE_AMOUNT = '0.01';
const AMOUNTS: Readonly<Record<Edition, string>> = { first: ROUTE_AMOUNT, second: '0.02' };

const SERVICES = 50;
const MADE_AT = '2026-01-01T00:00:00.000Z';

/** Route number `index`: always the same one. */
export function makeRoute(index: number, edition: Edition = 'first'): Route {
  const { pattern, method } = shapeOf(index);
  const number = index.toString(16).padStart(12, '0');
  return {
    id: `00000000-0000-400${EDITIONS.indexOf(edition)}-8000-${number}`,
    pattern: edition === 'first' ? pattern : widened(pattern),
    method,
    amount: AMOUNTS[edition],
    currency: 'USD',
    name: null,
    description: `Bench route ${index}`,
    status: 'active',
    allowAnonymous: true,
    source: 'bench',
    receiverConfigId: null,
    planId: null,
    createdAt: MADE_AT,
    updatedAt: MADE_AT,
  };
}

export function makeRoutes(count: number, edition: Edition = 'first'): Route[] {
  return Array.from({ length: count }, (_, index) => makeRoute(index, edition));
}

/** Paths that cost something for GET, spread over `count` routes: at most `limit` of them, no two alike. */
export function paidPaths(count: number, limit: number): string[] {
  return [...new Set(Array.from({ length: limit }, (_, n) => paidPath(Math.floor((n * count) / limit), n)))];
}

/** A path of route `index`; `n` fills its parameters. */
export function paidPath(index: number, n: number): string {
  const { pattern, method } = shapeOf(index);
  // Its neighbour is free for GET otherwise.
  if (method === 'POST') return paidPath(index - 1, n);
  return pattern.replace(':id', `item-${n}`).replace('*', `2026/report-${n}.pdf`);
}

/** The path of a wildcard route among the first `count` that nobody asked for before, for each new `n`. */
export function freshPaidPath(count: number): { readonly prefix: string } {
  const last = Math.floor((count - 1) / SHAPES) * SHAPES + WILDCARD;
  const index = last < count ? last : Math.max(WILDCARD, last - SHAPES);
  return { prefix: shapeOf(index).pattern.replace('*', '') };
}

/** Paths that no route covers: some leave the tree at once, some at its third level. */
export function freePaths(count: number, limit: number): string[] {
  return Array.from({ length: limit }, (_, n) => {
    const service = n % Math.min(SERVICES, count);
    return n % 2 === 0 ? `/public/catalogue/page-${n}` : `/v1/service${service}/open-${n}/summary`;
  });
}

export const FRESH_FREE = { prefix: '/v1/service1/open/' };

const SHAPES = 10;
const WILDCARD = 9;

function shapeOf(index: number): { pattern: string; method: string } {
  const base = `/v1/service${index % SERVICES}`;
  switch (index % SHAPES) {
    case 4:
      return { pattern: `${base}/records${index}/report`, method: 'GET' };
    case 5:
      return { pattern: `${base}/records${index}/import`, method: 'POST' };
    case 6:
    case 7:
      return { pattern: `${base}/items${index}/:id`, method: 'GET' };
    case 8:
      return { pattern: `${base}/items${index}/:id/export`, method: 'GET' };
    case WILDCARD:
      return { pattern: `${base}/files${index}/*`, method: '*' };
    default:
      return { pattern: `${base}/records${index}`, method: 'GET' };
  }
}

/** Another pattern that covers what is asked of `pattern`. */
function widened(pattern: string): string {
  if (pattern.endsWith('/*')) return pattern.replace('*', ':year/:report');
  return pattern.endsWith('/:id') ? pattern.replace(':id', '*') : `${pattern}/*`;
}
