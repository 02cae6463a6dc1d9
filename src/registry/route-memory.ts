// The routes of this registry in memory, as far as its store told of them: what reads and lists answer from. Listeners hear
// of a change after it is applied here, so no listener can still see the old state in this process.
import { setImmediate } from 'node:timers/promises';
import { parsePattern } from '../domain/pattern.ts';
import type { Route } from '../domain/route.ts';
import { addAll, createSetDigest, type SetDigest } from '../domain/routing/set-digest.ts';
import type { RouteSet } from '../domain/snapshot.ts';
import type { Log } from '../host/log.ts';
import type { ChangeKind, Head, RouteStore, StoredRoute } from './store/ports.ts';

/** `reset`: anything may have changed, read the whole set again. A deleted route is given as it was. */
export type RouteEvent =
  | { readonly kind: ChangeKind; readonly revision: number; readonly route: Route }
  | { readonly kind: 'reset'; readonly revision: number };

type RouteFilter = {
  readonly limit: number;
  /** What `nextBefore` of the page before gave. */
  readonly before: number | undefined;
  readonly status: string | undefined;
  readonly method: string | undefined;
  readonly source: string | undefined;
  /** Part of the pattern or the name; ASCII letters match in either case. */
  readonly q: string | undefined;
};
/** Newest first. `nextBefore` is undefined on the last page. */
type RoutePage = { readonly routes: readonly Route[]; readonly nextBefore: number | undefined };

/** Describes a set, so that a follower of its changes can tell whether it has the whole of it. */
export type SetProof = { readonly revision: number; readonly routes: number; readonly digest: string };

export type RouteMemory = {
  readonly head: () => Head;
  /** Of the set as it is when this resolves. Reckoned with the first call and kept from then on. */
  readonly prove: () => Promise<SetProof>;
  /** Oldest first; the same array until something changes. */
  readonly routeSet: () => RouteSet;
  readonly get: (id: string) => StoredRoute | undefined;
  /** Oldest first. */
  readonly all: () => Iterable<StoredRoute>;
  /** The route with this method and, up to spelling, this pattern. */
  readonly find: (method: string, pattern: string) => StoredRoute | undefined;
  readonly list: (filter: RouteFilter) => RoutePage;
  readonly subscribe: (listener: (change: RouteEvent) => void) => () => void;
  /** False if a revision between is missing: then nothing is applied. */
  readonly apply: (kind: ChangeKind, head: Head, route: StoredRoute) => boolean;
  /** A new word of the configuration about a route is no change of the set. */
  readonly noteDeclared: (route: StoredRoute) => void;
  readonly replace: (loaded: Awaited<ReturnType<RouteStore['load']>>) => void;
};

export function createRouteMemory(
  registryId: string,
  loaded: Awaited<ReturnType<RouteStore['load']>>,
  log: Log,
): RouteMemory {
  const listeners = new Set<(change: RouteEvent) => void>();
  let { head } = loaded;
  let byId = indexIds(loaded.routes);
  // Made here and not with the first search: of 100,000 routes it takes 0.3 s, for which requests would wait.
  let byName = indexNames(loaded.routes);
  let set: (RouteSet & { readonly routes: readonly StoredRoute[] }) | undefined;
  let proof: { readonly digest: SetDigest; readonly whole: Promise<void> } | undefined;

  const tell = (change: RouteEvent): void => {
    for (const listener of listeners) {
      try {
        listener(change);
      } catch (error) {
        // The change is written whatever a listener makes of it.
        log.error('a listener of route changes failed', {
          error: error instanceof Error ? error.message : String(error),
        });
      }
    }
  };
  const forget = ({ id }: Route): void => {
    const known = byId.get(id);
    if (known === undefined) return;
    byName.get(known.method)?.delete(keyOf(known.pattern));
    proof?.digest.remove(known);
  };
  const keep = (route: StoredRoute): void => {
    forget(route);
    byId.set(route.id, route);
    addName(byName, route);
    proof?.digest.add(route);
    set = undefined;
  };
  const prove = async (): Promise<SetProof> => {
    if (proof === undefined) {
      const digest = createSetDigest();
      proof = { digest, whole: addAll(digest, [...byId.values()], setImmediate) };
    }
    const { digest, whole } = proof;
    await whole;
    // The set was read anew meanwhile.
    if (proof?.digest !== digest) return prove();
    return { revision: head.revision, routes: byId.size, digest: digest.hex() };
  };
  const routeSet = (): NonNullable<typeof set> =>
    (set ??= { registryId, revision: head.revision, routes: [...byId.values()] });

  return {
    head: () => head,
    prove,
    routeSet,
    get: (id) => byId.get(id),
    all: () => byId.values(),
    find: (method, pattern) => byName.get(method)?.get(keyOf(pattern)),
    list: (filter) => listOf(routeSet().routes, filter),
    subscribe: (listener) => {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    apply: (kind, written, route) => {
      if (written.revision !== head.revision + 1) return false;
      head = written;
      if (kind === 'deleted') {
        forget(route);
        byId.delete(route.id);
        set = undefined;
      } else keep(route);
      tell({ kind, revision: head.revision, route });
      return true;
    },
    noteDeclared: keep,
    replace: (fresh) => {
      ({ head } = fresh);
      byId = indexIds(fresh.routes);
      byName = indexNames(fresh.routes);
      set = undefined;
      proof = undefined;
      tell({ kind: 'reset', revision: head.revision });
    },
  };
}

/** By method and then by the pattern's key: what makes two routes one. A text of both would take 9 MB for 100,000 routes. */
type Names = Map<string, Map<string, StoredRoute>>;

// Entry by entry: a list of pairs for the constructor would be garbage as large as the index.
function indexIds(routes: readonly StoredRoute[]): Map<string, StoredRoute> {
  const index = new Map<string, StoredRoute>();
  for (const route of routes) index.set(route.id, route);
  return index;
}

function indexNames(routes: readonly StoredRoute[]): Names {
  const names: Names = new Map();
  for (const route of routes) addName(names, route);
  return names;
}

function addName(names: Names, route: StoredRoute): void {
  let ofMethod = names.get(route.method);
  if (ofMethod === undefined) names.set(route.method, (ofMethod = new Map()));
  ofMethod.set(keyOf(route.pattern), route);
}

/** Most patterns: they are their own key. To read 100,000 of them leaves garbage that stays, between what is kept. */
const PLAIN = /^(?:\/[a-z0-9_-]+)+$/;

function keyOf(pattern: string): string {
  if (PLAIN.test(pattern)) return pattern;
  const parsed = parsePattern(pattern);
  return parsed.ok ? parsed.pattern.key : pattern;
}

function listOf(routes: readonly StoredRoute[], { limit, before, status, method, source, q }: RouteFilter): RoutePage {
  const wanted = q === undefined ? undefined : containing(q);
  const found: StoredRoute[] = [];
  for (let index = routes.length - 1; index >= 0 && found.length <= limit; index--) {
    const route = routes[index];
    if (route === undefined || (before !== undefined && route.seq >= before)) continue;
    if (status !== undefined && route.status !== status) continue;
    if (method !== undefined && route.method !== method) continue;
    if (source !== undefined && route.source !== source) continue;
    if (wanted !== undefined && !wanted.test(route.pattern) && !(route.name !== null && wanted.test(route.name)))
      continue;
    found.push(route);
  }
  const page = found.slice(0, limit);
  return { routes: page, nextBefore: found.length > limit ? page.at(-1)?.seq : undefined };
}

/** ASCII letters in either case, everything else to the letter. */
function containing(part: string): RegExp {
  const source = part.replace(/[\\^$.*+?()[\]{}|/-]|[A-Za-z]/g, (character) =>
    /[A-Za-z]/.test(character) ? `[${character.toLowerCase()}${character.toUpperCase()}]` : `\\${character}`,
  );
  return new RegExp(source);
}
