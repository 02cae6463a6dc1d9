// Resolves a request's method and raw path to the route that applies, in one look-up. A path that was resolved before
// is remembered by its exact bytes. Any other is canonicalised, folded and matched. The memory belongs to one snapshot.
import {
  higherPriced,
  highestPricedOf,
  isBeyondDoubt,
  ownPrice,
  spells,
  untilExact,
  type PriceOf,
} from './highest-price.ts';
import { highestPriceBy } from '../selling/highest-price.ts';
import type { Plans } from '../selling/plan.ts';
import { TOO_MANY_READINGS } from './fold.ts';
import { withDashes } from './names.ts';
import type { TrieMatch, Matcher } from './matcher.ts';
import type { Route } from './route.ts';
import { isSpelled } from './path-spelling.ts';
import { canonicalPath, type CanonicalPath, type TargetOptions } from './target.ts';
import { type PathCache, createPathCache } from './path-cache.ts';

/** Result of a look-up for a method and a path. */
export type Match =
  /** `route` applies; paused means that it costs nothing. `spelled`: the path can mean no other route. Known with plans. */
  | { readonly kind: 'route'; readonly route: Route; readonly spelled?: true }
  /** Only routes of other methods match, the `declared` ones; `highestPriced` is undefined if all of them are paused. */
  | {
      readonly kind: 'undeclared';
      readonly highestPriced: Route | undefined;
      readonly declared: readonly string[];
      readonly spelled?: true;
    }
  | { readonly kind: 'none' };

/** Way to a match: `keys` are the readings that were looked up, `names` the other names that were. */
export type Resolution =
  | {
      readonly ok: true;
      readonly path: string;
      readonly keys: readonly string[];
      readonly names: readonly string[];
      readonly match: Match;
    }
  | { readonly ok: false; readonly reason: string };

export type PathOptions = Pick<TargetOptions, 'encodedSlashes' | 'doubleSlashes' | 'folding'> & {
  /** Plans by which routes are sold, if this process has any: they count with the highest price that they can ask. */
  readonly plans?: Plans | undefined;
};

export type Resolver = PathCache<Resolution>;

/** Lives and dies with `matcher`: what it remembers is true for no other. */
export function createResolver(matcher: Matcher, paths: PathOptions): Resolver {
  const { plans } = paths;
  const priceOf = plans === undefined ? ownPrice : highestPriceBy(plans);
  return createPathCache((method, rawPath) => {
    const canonical = canonicalPath(rawPath, paths);
    if (!canonical.ok) return canonical;
    const { path, keys } = canonical;
    const names = paths.folding.dashes && matcher.hasDashes() ? withDashes(canonical) : canonical.names;
    if (names === undefined) return { ok: false, reason: TOO_MANY_READINGS };
    const readings = { path, keys, names };
    const match = findMatch(matcher, readings, method, priceOf);
    return {
      ok: true,
      path,
      keys,
      names,
      match: plans === undefined ? match : noteSpelling(match, matcher, readings, method),
    };
  });
}

/** Adds to a match whether the path is spelled as its route is: only then a plan gives anything away. */
function noteSpelling(
  match: Match,
  matcher: Matcher,
  readings: Pick<CanonicalPath, 'path' | 'keys' | 'names'>,
  method: string,
): Match {
  switch (match.kind) {
    case 'none':
      return match;
    case 'route':
      return isSpelled(matcher, readings, match.route, method) ? { ...match, spelled: true } : match;
    case 'undeclared': {
      const { highestPriced } = match;
      return highestPriced !== undefined && isSpelled(matcher, readings, highestPriced)
        ? { ...match, spelled: true }
        : match;
    }
    default:
      return match satisfies never;
  }
}

/**
 * The match over every reading of `path`. If readings disagree the highest price wins: whichever of them the upstream
 * takes, no less than its price was asked.
 */
function findMatch(
  matcher: Matcher,
  { path, keys, names }: Pick<CanonicalPath, 'path' | 'keys' | 'names'>,
  method: string,
  priceOf: PriceOf,
): Match {
  const whole = bestOf(matcher, keys, method, priceOf);
  const covering = (of: readonly string[]): Route[] => of.flatMap((key) => matcher.findAll(key));
  if (typeof whole === 'object') {
    const active = whole.status === 'active';
    const reached = reachedBy(matcher, path, method);
    // If the path itself would cost nothing, all routes count that a router reaches by another name. Else only the one
    // that applies to each name.
    const named = active ? higherPricedOf(matcher, names, method, whole, priceOf) : names.flatMap(reached);
    if (active && named.length === 0 && isBeyondDoubt(path, keys, whole)) return { kind: 'route', route: whole };
    const read = covering(keys);
    // Routes that cover the path too were considered already: a more specific one won.
    const others = active ? named.filter((other) => !read.includes(other)) : named;
    const isHigherPriced = (other: Route): boolean => higherPriced(whole, other, priceOf) !== whole;
    if (!read.some(isHigherPriced) && !others.some(isHigherPriced)) return { kind: 'route', route: whole };
    const spelled = spells(path, whole);
    const could = [...(spelled.exactly ? NO_ROUTES : keys.flatMap(reached)), ...(spelled.last ? NO_ROUTES : others)];
    return { kind: 'route', route: highestPricedOf([whole, ...could], method, priceOf) ?? whole };
  }
  const named = names.length > 0 ? bestOf(matcher, names, method, priceOf) : undefined;
  if (typeof named === 'object') return { kind: 'route', route: named };
  if (whole === undefined && named === undefined) return NO_MATCH;
  const others = covering([...keys, ...names]);
  // If several routes are equally dear, it is always the same one, in whatever order they came.
  const priced = others.filter((route) => route.status === 'active').sort((a, b) => (a.id < b.id ? -1 : 1));
  return {
    kind: 'undeclared',
    declared: methodsOf(others),
    highestPriced: priced.reduce<Route | undefined>((highest, each) => higherPriced(highest, each, priceOf), undefined),
  };
}

/** The routes that a router could run for a reading of `path`: it passes over none that is spelled letter by letter. */
function reachedBy(matcher: Matcher, path: string, method: string): (reading: string) => readonly Route[] {
  // The readings of a path share most of their routes.
  let exact: Map<Route, boolean> | undefined;
  const isExact = (route: Route): boolean => {
    exact ??= new Map();
    const known = exact.get(route) ?? spells(path, route).exactly;
    exact.set(route, known);
    return known;
  };
  return (reading) => untilExact(matcher.findAll(reading), method, isExact);
}

/** Methods that `routes` declare: HEAD goes with GET. */
function methodsOf(routes: readonly Route[]): readonly string[] {
  const declared = new Set(routes.map(({ method }) => method));
  if (declared.has('GET')) declared.add('HEAD');
  return [...declared].sort();
}

const NO_MATCH: Match = { kind: 'none' };
const NO_ROUTES: readonly Route[] = [];

/** Finds the routes that apply to `names` and cost more than that of `whole`. */
function higherPricedOf(
  matcher: Matcher,
  names: readonly string[],
  method: string,
  whole: Route,
  priceOf: PriceOf,
): readonly Route[] {
  let found: Route[] | undefined;
  for (const name of names) {
    const route = matcher.find(name, method);
    if (typeof route === 'object' && higherPriced(whole, route, priceOf) !== whole) (found ??= []).push(route);
  }
  return found ?? NO_ROUTES;
}

function bestOf(matcher: Matcher, keys: readonly string[], method: string, priceOf: PriceOf): TrieMatch {
  let best: TrieMatch;
  for (const key of keys) {
    const found = matcher.find(key, method);
    if (typeof found !== 'object') best ??= found;
    else best = higherPriced(typeof best === 'object' ? best : undefined, found, priceOf);
  }
  return best;
}
