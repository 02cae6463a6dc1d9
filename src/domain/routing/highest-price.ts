// Finds the route that applies if routers could disagree. A pattern may match only because spellings were folded:
// another router may pass over it and run the next best one. So unless the path spells the winner letter by letter, the
// highest price of all routes that could apply counts. A paused or cheap route never lends its price to a neighbour's
// handler. A plain path with a plain winner needs none of this.
import { LRUCache } from 'lru-cache';
import { comparePrices, parsePrice, type Price } from '../payment/money.ts';
import { parsePattern, type PatternResult } from './pattern.ts';
import type { Route } from './route.ts';

/**
 * Patterns that are not read again, whichever snapshot they stand in. If they are, a path among dearer routes takes 13.5
 * us in place of 4.2 (`npm run bench -- --only matcher --checkout ../without`).
 */
const patterns = new LRUCache<string, PatternResult>({ max: 1024, memoMethod: parsePattern });

const NOTHING: Price = { units: 0n, scale: 0 };
/** A pattern that folding leaves as it is. */
const FOLDED = /^[a-z0-9_/:*{}-]+$/;

/** Prices a route for a comparison; a paused one costs nothing. */
export type PriceOf = (route: Route) => Price;

export function higherPriced(a: Route | undefined, b: Route, priceOf: PriceOf): Route {
  return a === undefined || comparePrices(priceOf(b), priceOf(a)) > 0 ? b : a;
}

/** The price that a route itself says. */
export function ownPrice(route: Route): Price {
  return route.status === 'active' ? (parsePrice(route.amount) ?? NOTHING) : NOTHING;
}

/** The path is its own only reading, and so is the pattern: no router can read it in another way. */
export function isBeyondDoubt(path: string, keys: readonly string[], route: Route): boolean {
  return keys.length === 1 && keys[0] === path && FOLDED.test(route.pattern);
}

/** Tells whether `path` spells every literal of the route's pattern exactly. `last`: its last segment is one too. */
export function spells(path: string, route: Route): { readonly exactly: boolean; readonly last: boolean } {
  const parsed = patterns.memo(route.pattern);
  if (!parsed.ok) return { exactly: false, last: false };
  const { segments } = parsed.pattern;
  // One segment more than the pattern has says already that there are more.
  const parts = path.split('/', segments.length + 2).slice(1);
  for (const [index, segment] of segments.entries()) {
    switch (segment.kind) {
      case 'wildcard':
        return { exactly: true, last: false };
      case 'param':
        if (parts[index] === undefined || parts[index] === '') return { exactly: false, last: false };
        break;
      case 'literal':
        if (decodeURIComponent(parts[index] ?? '') !== segment.text) return { exactly: false, last: false };
        break;
      default:
        segment satisfies never;
    }
  }
  const exactly = parts.length === Math.max(1, segments.length);
  return { exactly, last: exactly && segments.at(-1)?.kind !== 'param' };
}

/**
 * The beginning of `routes` (the most specific first), up to the first pattern that covers `method` and is spelled
 * letter by letter. No router passes over that one.
 */
export function untilExact(
  routes: readonly Route[],
  method: string,
  isExact: (route: Route) => boolean,
): readonly Route[] {
  const reached: Route[] = [];
  let last: string | undefined;
  for (const route of routes) {
    const key = keyOf(route);
    if (last !== undefined && key !== last) break;
    reached.push(route);
    if (rankOf(route.method, method) > 0 && isExact(route)) last = key;
  }
  return reached;
}

/** The highest priced of `candidates` that cover `method`; of one pattern only the route whose method fits best. */
export function highestPricedOf(candidates: readonly Route[], method: string, priceOf: PriceOf): Route | undefined {
  const best = new Map<string, Route>();
  for (const route of candidates) {
    const rank = rankOf(route.method, method);
    if (rank === 0) continue;
    const key = keyOf(route);
    const other = best.get(key);
    // The first route of one pattern and method stays: it is the one that won.
    if (other === undefined || rank > rankOf(other.method, method)) best.set(key, route);
  }
  return best.values().reduce<Route | undefined>((highest, each) => higherPriced(highest, each, priceOf), undefined);
}

function keyOf(route: Route): string {
  const parsed = patterns.memo(route.pattern);
  return parsed.ok ? parsed.pattern.key : route.id;
}

/** Whether a route that declares one method is for requests of another. */
export function coversMethod(declared: string, method: string): boolean {
  return rankOf(declared, method) > 0;
}

function rankOf(declared: string, method: string): number {
  if (declared === method) return 3;
  if (declared === 'GET' && method === 'HEAD') return 2;
  return declared === '*' ? 1 : 0;
}
