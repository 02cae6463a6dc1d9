// Tells whether a path can mean no other route than the one that was found. If another router could run a neighbour's
// handler for it, what a plan gives away is not given: the neighbour may be for sale.
import { coversMethod, isBeyondDoubt, spells } from './highest-price.ts';
import type { Matcher } from './matcher.ts';
import type { Route } from './route.ts';

type Readings = { readonly path: string; readonly keys: readonly string[]; readonly names: readonly string[] };

/**
 * Whether no router can take the path for that of another active route. `method` left out: routes for any method count.
 */
export function isSpelled(matcher: Matcher, { path, keys, names }: Readings, route: Route, method?: string): boolean {
  // A route that was found for its method is the most specific one that covers a plain path.
  if (method !== undefined && names.length === 0 && isBeyondDoubt(path, keys, route)) return true;
  const counts = (other: Route): boolean =>
    other !== route && other.status === 'active' && (method === undefined || coversMethod(other.method, method));
  const named = names.some((name) => matcher.findAll(name).some(counts));
  let below = false;
  for (const key of keys) {
    const covering = matcher.findAll(key);
    const place = covering.indexOf(route);
    // A router that reads the path so runs the more specific route first.
    if (covering.some((other, at) => counts(other) && (place < 0 || at < place))) return false;
    below ||= covering.some(counts);
  }
  if (!below && !named) return true;
  const spelled = spells(path, route);
  return (!below || spelled.exactly) && (!named || spelled.last);
}
