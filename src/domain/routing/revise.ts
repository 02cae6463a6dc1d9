// Makes the next snapshot from the one in force and what differs. A price that changed among 100,000 routes is in force
// within microseconds, and nothing else is read again. Gives up, and says so, if compiling the whole set anew is the
// better way. An invalid change throws as it does when it is compiled, and leaves the snapshot in force as it is.
import type { Matcher, MatcherDraft } from './matcher.ts';
import type { Route } from './route.ts';
import { addRoute, checkAmount, snapshotOf, type RouteSet, type Snapshot, type StatusCounts } from './snapshot.ts';

/** Change of a set. A deleted route is given as it was. */
export type SetChange = {
  readonly kind: 'created' | 'updated' | 'deleted';
  /** Revision of the set with this change. */
  readonly revision: number;
  readonly route: Route;
};

type Differences = {
  readonly removed: readonly Route[];
  readonly replaced: readonly Route[];
  readonly added: readonly Route[];
};

/** Limit of differences: more than this are compiled anew, in slices of a few milliseconds at once. */
const MAX_DIFFERENCES = 1000;
/** Number of neighbours that are looked at to see what was added or removed between two routes that did not change. */
const NEIGHBOURS = 64;

/** Makes `base` with one change; undefined if `base` cannot have it. */
export function changeSnapshot(base: Snapshot, { kind, revision, route }: SetChange): Snapshot | undefined {
  const known = base.matcher.get(route.id);
  if ((known === undefined) !== (kind === 'created')) return undefined;
  const { registryId } = base;
  const differences = {
    removed: kind === 'deleted' ? [route] : [],
    replaced: kind === 'updated' ? [route] : [],
    added: kind === 'created' ? [route] : [],
  };
  return apply(base, { registryId, revision, routes: undefined }, differences);
}

/** Makes `set` from `base`: a route that did not change is the same object. Undefined if too many changed. */
export function reviseSnapshot(base: Snapshot, set: RouteSet): Snapshot | undefined {
  const differences = compareRoutes(base.routes, set.routes);
  return differences && apply(base, set, differences);
}

function apply(
  base: Snapshot,
  set: { readonly registryId: string; readonly revision: number; readonly routes: readonly Route[] | undefined },
  { removed, replaced, added }: Differences,
): Snapshot | undefined {
  const draft = base.matcher.draft();
  if (draft === undefined) return undefined;
  const counts = { ...base.counts };
  const moved: Route[] = [];
  // Removals come first, so that their patterns and ids are free for new routes.
  for (const route of removed) take(draft, base.matcher, route, counts);
  for (const route of replaced) {
    const old = base.matcher.get(route.id);
    if (old?.pattern === route.pattern && old.method === route.method) {
      checkAmount(route);
      draft.replace(route);
      counts[old.status]--;
      counts[route.status]++;
    } else {
      take(draft, base.matcher, route, counts);
      moved.push(route);
    }
  }
  for (const route of [...moved, ...added]) {
    addRoute(draft, route);
    counts[route.status]++;
  }
  return snapshotOf(set, base.paths, draft.done(), counts);
}

function take(draft: MatcherDraft, matcher: Matcher, { id }: Route, counts: Record<keyof StatusCounts, number>): void {
  const old = matcher.get(id);
  if (old === undefined) throw new Error(`route ${id}: it is not there`);
  draft.remove(id);
  counts[old.status]--;
}

/** Compares both lists in one pass. If the order changed as well, a route may be both removed and added. */
function compareRoutes(before: readonly Route[], after: readonly Route[]): Differences | undefined {
  const removed: Route[] = [];
  const replaced: Route[] = [];
  const added: Route[] = [];
  let [i, j] = [0, 0];
  while (i < before.length || j < after.length) {
    const [old, next] = [before[i], after[j]];
    if (old === next) {
      i++;
      j++;
      continue;
    }
    if (removed.length + replaced.length + added.length >= MAX_DIFFERENCES) return undefined;
    if (old === undefined && next !== undefined) {
      added.push(next);
      j++;
    } else if (next === undefined && old !== undefined) {
      removed.push(old);
      i++;
    } else if (old !== undefined && next !== undefined) {
      if (old.id === next.id) {
        replaced.push(next);
        i++;
        j++;
      } else if (isNear(old, after, j)) {
        added.push(next);
        j++;
      } else {
        removed.push(old);
        i++;
      }
    }
  }
  return { removed, replaced, added };
}

function isNear(route: Route, routes: readonly Route[], from: number): boolean {
  for (let i = from + 1; i <= from + NEIGHBOURS && i < routes.length; i++) if (routes[i] === route) return true;
  return false;
}
