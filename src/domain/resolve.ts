// From a request's method and raw path to the route that applies, in one look-up: what was resolved before is remembered
// by its exact bytes; everything else is canonicalised, folded and matched. The memory belongs to one snapshot.
import { createPatterns, dearer, dearestOf, isBeyondDoubt, spells, type Patterns } from './dearest.ts';
import { withoutSuffix } from './fold.ts';
import type { Found, Matcher } from './matcher.ts';
import { createPathCache, type PathCache } from './path-cache.ts';
import type { Route } from './route.ts';
import { canonicalPath, type CanonicalPath, type TargetOptions } from './target.ts';

/** What was found for a method and a path. */
export type Match =
  /** `route` applies; paused means that it costs nothing. */
  | { readonly kind: 'route'; readonly route: Route }
  /** Only routes of other methods match; `dearest` is undefined where all of them are paused. */
  | { readonly kind: 'undeclared'; readonly dearest: Route | undefined }
  | { readonly kind: 'none' };

/** `keys`: the readings that were looked up. */
export type Resolution =
  | {
      readonly ok: true;
      readonly path: string;
      readonly keys: readonly string[];
      readonly match: Match;
    }
  | { readonly ok: false; readonly reason: string };

export type PathOptions = Pick<TargetOptions, 'encodedSlashes' | 'doubleSlashes' | 'folding'>;

export type Resolver = PathCache<Resolution>;

/** Lives and dies with `matcher`: what it remembers is true for no other. */
export function createResolver(matcher: Matcher, paths: PathOptions): Resolver {
  const patterns = createPatterns();
  return createPathCache((method, rawPath) => {
    const canonical = canonicalPath(rawPath, paths);
    if (!canonical.ok) return canonical;
    const { path, keys } = canonical;
    return { ok: true, path, keys, match: findMatch(matcher, canonical, method, paths.folding.suffix, patterns) };
  });
}

/**
 * The match over every reading of `path`. Where readings disagree the dearest price wins: whichever of them the upstream
 * takes, no less than its price was asked.
 */
function findMatch(
  matcher: Matcher,
  canonical: CanonicalPath,
  method: string,
  suffix: boolean,
  patterns: Patterns,
): Match {
  const { path, keys } = canonical;
  const whole = bestOf(matcher, keys, method);
  const active = typeof whole === 'object' && whole.status === 'active';
  if (active && isBeyondDoubt(path, keys, whole)) return { kind: 'route', route: whole };
  const cut = suffix ? withoutSuffixes(keys) : NO_KEYS;
  const covering = (of: readonly string[]): Route[] => of.flatMap((key) => matcher.findAll(key));
  if (typeof whole === 'object')
    return { kind: 'route', route: certain(whole, covering, canonical, cut, method, patterns) };
  const bare = cut.length > 0 ? bestOf(matcher, cut, method) : undefined;
  if (typeof bare === 'object') return { kind: 'route', route: bare };
  if (whole === undefined && bare === undefined) return NO_MATCH;
  // Of equally dear ones the same, whatever the order in which the routes came.
  const priced = covering([...keys, ...cut])
    .filter((route) => route.status === 'active')
    .sort((a, b) => (a.id < b.id ? -1 : 1));
  return { kind: 'undeclared', dearest: priced.reduce<Route | undefined>(dearer, undefined) };
}

/**
 * `whole`, or what is dearer among those that another router could run instead: what covers some reading of `path`, and
 * without a suffix (`cut`) where the path would cost nothing with it.
 */
function certain(
  whole: Route,
  covering: (of: readonly string[]) => Route[],
  { path, keys }: CanonicalPath,
  cut: readonly string[],
  method: string,
  patterns: Patterns,
): Route {
  const dearerIn = (of: readonly string[]): Route[] => covering(of).filter((other) => dearer(whole, other) !== whole);
  const read = dearerIn(keys);
  const bare = whole.status === 'active' ? [] : dearerIn(cut);
  if (read.length + bare.length === 0) return whole;
  const spelled = spells(path, whole, patterns);
  return dearestOf([whole, ...(spelled.exactly ? [] : read), ...(spelled.last ? [] : bare)], method, patterns) ?? whole;
}

const NO_MATCH: Match = { kind: 'none' };
const NO_KEYS: readonly string[] = [];

/** Most paths have no dot in their last segment: nothing is made for them. */
function withoutSuffixes(keys: readonly string[]): readonly string[] {
  let cut = NO_KEYS;
  for (const key of keys) {
    if (!key.includes('.', key.lastIndexOf('/') + 2)) continue;
    cut = cut.length === 0 ? withoutSuffix(key) : [...cut, ...withoutSuffix(key)];
  }
  return cut;
}

function bestOf(matcher: Matcher, keys: readonly string[], method: string): Found {
  let best: Found;
  for (const key of keys) {
    const found = matcher.find(key, method);
    if (typeof found !== 'object') best ??= found;
    else best = dearer(typeof best === 'object' ? best : undefined, found);
  }
  return best;
}
