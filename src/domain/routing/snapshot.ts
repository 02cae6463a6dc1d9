// A set of routes at one revision, immutable: what the data plane reads, and the only thing that crosses from the registry
// to it. Compiled whole, or made from the one before it by what differs (revise.ts); an invalid set throws and replaces
// nothing. Its look-up cache belongs to it and dies with it, so that no answer, and no price, can outlive the swap.
import { draftMatcher, type Matcher, type MatcherDraft } from './matcher.ts';
import { isPrice } from '../payment/money.ts';
import { parsePattern } from './pattern.ts';
import { createResolver, type PathOptions, type Resolver } from './resolve.ts';
import type { Route } from './route.ts';

export type { Match, PathOptions, Resolution } from './resolve.ts';

export type RouteSet = { readonly registryId: string; readonly revision: number; readonly routes: readonly Route[] };

/** Set of routes in force: `resolve` canonicalises and matches a raw path (without query). */
export type Snapshot = RouteSet &
  Resolver & {
    readonly paths: PathOptions;
    readonly matcher: Matcher;
    /** Number of routes by their status. */
    readonly counts: StatusCounts;
  };

export type StatusCounts = Readonly<Record<Route['status'], number>>;

/** Routes compiled before a sliced compilation lets others run: about a millisecond. */
const SLICE = 256;

/** Compiles `set`. Throws an Error that names the route if a pattern, an amount, an id or a key is not valid. */
export function compileSnapshot(set: RouteSet, paths: PathOptions): Snapshot {
  const draft = draftMatcher(paths.folding);
  const counts = { active: 0, paused: 0 };
  for (const route of set.routes) {
    addRoute(draft, route);
    counts[route.status]++;
  }
  return snapshotOf(set, paths, draft.done(), counts);
}

/** Compiles a snapshot in slices: `breathe` is awaited between them, so that 100,000 routes do not stall the traffic. */
export async function compileSnapshotInSlices(
  set: RouteSet,
  paths: PathOptions,
  breathe: () => Promise<void>,
): Promise<Snapshot> {
  const draft = draftMatcher(paths.folding);
  const counts = { active: 0, paused: 0 };
  for (const [index, route] of set.routes.entries()) {
    addRoute(draft, route);
    counts[route.status]++;
    if (index % SLICE === SLICE - 1) await breathe();
  }
  return snapshotOf(set, paths, draft.done(), counts);
}

/** Throws an Error that names the route if it is not valid. */
export function addRoute(draft: MatcherDraft, route: Route): void {
  const parsed = parsePattern(route.pattern);
  if (!parsed.ok) throw new Error(`route ${route.id}: ${parsed.reason}`);
  checkAmount(route);
  const wrong = draft.add(route, parsed.pattern);
  if (wrong !== undefined) throw new Error(`route ${route.id}: ${wrong}`);
}

export function checkAmount(route: Route): void {
  if (!isPrice(route.amount)) throw new Error(`route ${route.id}: the amount is not a price`);
}

/** Makes a snapshot. `set.routes` may be made when it is asked for: the data plane never asks. */
export function snapshotOf(
  set: { readonly registryId: string; readonly revision: number; readonly routes: readonly Route[] | undefined },
  paths: PathOptions,
  matcher: Matcher,
  counts: StatusCounts,
): Snapshot {
  const { registryId, revision } = set;
  let { routes } = set;
  return {
    registryId,
    revision,
    get routes() {
      return (routes ??= matcher.list());
    },
    paths,
    matcher,
    counts,
    ...createResolver(matcher, paths),
  };
}
