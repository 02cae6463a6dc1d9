// A set of routes at one revision, compiled whole and immutable: what the data plane reads, and the only thing that
// crosses from the registry to it. Its look-up cache belongs to it and dies with it, so that no answer of an older set
// can outlive the swap. An invalid set throws and replaces nothing.
import { LRUCache } from 'lru-cache';
import { dearer, dearestOf, isBeyondDoubt, spells } from './dearest.ts';
import { withoutSuffix } from './fold.ts';
import { createMatcher, type Found, type Matcher } from './matcher.ts';
import { parsePrice } from './money.ts';
import { parsePattern } from './pattern.ts';
import { canonicalPath, plainPath, type CanonicalPath, type PathResult, type TargetOptions } from './target.ts';
import type { Route } from './route.ts';

export type RouteSet = { readonly registryId: string; readonly revision: number; readonly routes: readonly Route[] };

/** What was found for a method and a path. `keys`: the readings that were looked up. */
export type Match =
  /** `route` applies; paused means that it costs nothing. */
  | { readonly kind: 'route'; readonly route: Route }
  /** Only routes of other methods match; `dearest` is undefined where all of them are paused. */
  | { readonly kind: 'undeclared'; readonly dearest: Route | undefined }
  | { readonly kind: 'none' };

export type Resolution =
  | {
      readonly ok: true;
      readonly path: string;
      readonly keys: readonly string[];
      readonly match: Match;
    }
  | { readonly ok: false; readonly reason: string };

export type PathOptions = Pick<TargetOptions, 'encodedSlashes' | 'doubleSlashes' | 'folding'>;

export type Snapshot = RouteSet & {
  readonly paths: PathOptions;
  readonly matcher: Matcher;
  readonly byId: ReadonlyMap<string, Route>;
  /** Canonicalises and matches `rawPath` (without query) in one look-up; `hit` says whether the cache knew it. */
  readonly resolve: (method: string, rawPath: string) => Resolution;
  readonly cache: { hits: number; misses: number };
};

/** Per method. */
const CACHE_ENTRIES = 4096;
const CACHED_METHODS = 16;
const HASHED_TAIL = 24;
/** Routes compiled before a sliced compilation lets others run: about a millisecond. */
const SLICE = 256;

/** Compiles `set`. Throws an Error that names the route where a pattern, an amount, an id or a key is not valid. */
export function compileSnapshot(set: RouteSet, paths: PathOptions): Snapshot {
  const builder = createSnapshotBuilder(set, paths);
  for (const route of set.routes) builder.add(route);
  return builder.finish();
}

/** The same in slices: `breathe` is awaited between them, so that 100,000 routes do not stall the traffic. */
export async function compileSnapshotInSlices(
  set: RouteSet,
  paths: PathOptions,
  breathe: () => Promise<void>,
): Promise<Snapshot> {
  const builder = createSnapshotBuilder(set, paths);
  for (const [index, route] of set.routes.entries()) {
    builder.add(route);
    if (index % SLICE === SLICE - 1) await breathe();
  }
  return builder.finish();
}

function createSnapshotBuilder(
  set: RouteSet,
  paths: PathOptions,
): { add: (route: Route) => void; finish: () => Snapshot } {
  const { add: addToMatcher, matcher } = createMatcher(paths.folding);
  const byId = new Map<string, Route>();
  return {
    add: (route) => {
      const parsed = parsePattern(route.pattern);
      if (!parsed.ok) throw new Error(`route ${route.id}: ${parsed.reason}`);
      if (parsePrice(route.amount) === undefined) throw new Error(`route ${route.id}: the amount is not a price`);
      if (byId.has(route.id)) throw new Error(`route ${route.id}: the id stands twice`);
      const other = addToMatcher(route, parsed.pattern);
      if (other !== undefined) throw new Error(`route ${route.id}: route ${other.id} has the same method and pattern`);
      byId.set(route.id, route);
    },
    finish: () => withResolve(set, paths, matcher, byId),
  };
}

function withResolve(set: RouteSet, paths: PathOptions, matcher: Matcher, byId: ReadonlyMap<string, Route>): Snapshot {
  const cache = { hits: 0, misses: 0 };
  const known = new Map<string, LRUCache<string, Resolution>>();
  const cacheOf = (method: string): LRUCache<string, Resolution> => {
    const existing = known.get(method);
    if (existing !== undefined) return existing;
    const made = new LRUCache<string, Resolution>({ max: CACHE_ENTRIES });
    if (known.size < CACHED_METHODS) known.set(method, made);
    return made;
  };
  const admits = createDoorkeeper(CACHE_ENTRIES);
  const look = (method: string, canonical: PathResult): Resolution =>
    canonical.ok
      ? {
          ok: true,
          path: canonical.path,
          keys: canonical.keys,
          match: findMatch(matcher, canonical, method, paths.folding.suffix),
        }
      : canonical;
  const resolve = (method: string, rawPath: string): Resolution => {
    // A plain path is its own key: looking it up costs less than remembering it would.
    const plain = plainPath(rawPath);
    if (plain !== undefined) return look(method, plain);
    const resolutions = cacheOf(method);
    const hit = resolutions.get(rawPath);
    if (hit !== undefined) {
      cache.hits++;
      return hit;
    }
    cache.misses++;
    const resolution = look(method, canonicalPath(rawPath, paths));
    if (admits(rawPath)) resolutions.set(rawPath, resolution);
    return resolution;
  };
  return { ...set, paths, matcher, byId, resolve, cache };
}

/**
 * Lets a path into the cache when it is seen for the second time, so that a client who never repeats a path cannot push
 * out the paths that others do repeat. Remembers one hash per slot, of the path's end; a collision admits a stranger
 * now and then.
 */
function createDoorkeeper(slots: number): (path: string) => boolean {
  const seen = new Uint32Array(slots);
  return (path) => {
    let hash = path.length;
    for (let i = Math.max(0, path.length - HASHED_TAIL); i < path.length; i++)
      hash = Math.imul(hash ^ path.charCodeAt(i), 0x01000193);
    hash = (hash ^ (hash >>> 15)) >>> 0 || 1;
    const slot = hash % slots;
    const again = seen[slot] === hash;
    seen[slot] = again ? 0 : hash;
    return again;
  };
}

/**
 * The match over every reading of `path`. Where readings disagree the dearest price wins: whichever of them the upstream
 * takes, no less than its price was asked.
 */
export function findMatch(
  matcher: Matcher,
  { path, keys }: CanonicalPath,
  method: string,
  suffix: boolean,
): Match {
  const whole = bestOf(matcher, keys, method);
  if (typeof whole === 'object' && isBeyondDoubt(path, keys, whole)) return { kind: 'route', route: whole };
  const cut = suffix ? withoutSuffixes(keys) : NO_KEYS;
  if (typeof whole === 'object') {
    const spelled = spells(path, whole);
    const others = spelled.exactly ? [] : keys.flatMap((key) => matcher.findAll(key));
    // The second look-up is for paths that have no price without it, unless the route was meant letter by letter.
    if (whole.status === 'paused' && !spelled.last) others.push(...cut.flatMap((key) => matcher.findAll(key)));
    const dearest = dearestOf(others, method);
    return { kind: 'route', route: dearest === undefined ? whole : dearer(whole, dearest) };
  }
  const bare = cut.length > 0 ? bestOf(matcher, cut, method) : undefined;
  if (typeof bare === 'object') {
    return { kind: 'route', route: dearestOf(cut.flatMap((key) => matcher.findAll(key)), method) ?? bare };
  }
  if (whole === undefined && bare === undefined) return NO_MATCH;
  const others = [...keys, ...cut].flatMap((key) => matcher.findAll(key));
  const active = others.filter((route) => route.status === 'active');
  return { kind: 'undeclared', dearest: active.reduce<Route | undefined>(dearer, undefined) };
}

const NO_MATCH: Match = { kind: 'none' };
const NO_KEYS: readonly string[] = [];

/** Most paths have no dot in their last segment: nothing is made for them. */
function withoutSuffixes(keys: readonly string[]): readonly string[] {
  const dotted = keys.filter((key) => key.includes('.', key.lastIndexOf('/') + 2));
  return dotted.length === 0 ? NO_KEYS : dotted.flatMap(withoutSuffix);
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
