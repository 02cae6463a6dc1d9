// The routes of this registry in memory, as far as its store told of them: what reads and lists answer from. Listeners hear
// of a change after it is applied here, so no listener can still see the old state in this process.
import { setImmediate } from 'node:timers/promises';
import { fnv1a } from '../../domain/fnv.ts';
import { routeName } from '../../domain/routing/pattern.ts';
import type { Route } from '../../domain/routing/route.ts';
import { createSetProver, type SetProof } from '../../domain/routing/set-proof.ts';
import type { RouteSet } from '../../domain/routing/snapshot.ts';
import type { Log } from '../../host/log.ts';
import type { ChangeKind, Head, RouteStore, StoredRoute } from '../store/ports.ts';

/** Event of the set. `reset`: anything may have changed, read all again. A deleted route is given as it was. */
export type RouteEvent =
  | { readonly kind: ChangeKind; readonly revision: number; readonly route: Route }
  | { readonly kind: 'reset'; readonly revision: number };

type RouteFilter = {
  readonly limit: number;
  /** Value of `nextBefore` from the page before. */
  readonly before: number | undefined;
  readonly status: string | undefined;
  readonly method: string | undefined;
  readonly source: string | undefined;
  /** Part of the pattern or the name; ASCII letters match in either case. */
  readonly q: string | undefined;
};
/** Newest first. `nextBefore` is undefined on the last page. */
type RoutePage = { readonly routes: readonly Route[]; readonly nextBefore: number | undefined };

export type RouteMemory = {
  readonly head: () => Head;
  /** Number of routes. */
  readonly count: () => number;
  /** Proves the set as it is when the promise resolves. */
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
  // The index is made here and not with the first search: 100,000 routes take 0.3 s, for which requests would wait.
  let names = createNames(loaded.routes);
  let set: (RouteSet & { readonly routes: readonly StoredRoute[] }) | undefined;
  const prover = createSetProver(
    { routes: () => byId.values(), head: () => ({ revision: head.revision, routes: byId.size }) },
    setImmediate,
  );

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
    names.remove(known);
    prover.change(known, undefined);
  };
  const keep = (route: StoredRoute): void => {
    forget(route);
    byId.set(route.id, route);
    names.add(route);
    prover.change(undefined, route);
    set = undefined;
  };
  const routeSet = (): NonNullable<typeof set> =>
    (set ??= { registryId, revision: head.revision, routes: [...byId.values()] });

  return {
    head: () => head,
    count: () => byId.size,
    prove: prover.prove,
    routeSet,
    get: (id) => byId.get(id),
    all: () => byId.values(),
    find: (method, pattern) => names.find(method, pattern),
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
      names = createNames(fresh.routes);
      set = undefined;
      prover.replace();
      tell({ kind: 'reset', revision: head.revision });
    },
  };
}

// Entry by entry: a list of pairs for the constructor would be garbage as large as the index.
function indexIds(routes: readonly StoredRoute[]): Map<string, StoredRoute> {
  const index = new Map<string, StoredRoute>();
  for (const route of routes) index.set(route.id, route);
  return index;
}

/** Routes by their names (`routeName`). */
type Names = {
  readonly find: (method: string, pattern: string) => StoredRoute | undefined;
  readonly add: (route: StoredRoute) => void;
  readonly remove: (route: StoredRoute) => void;
};

function createNames(routes: readonly StoredRoute[]): Names {
  // The names themselves would take 10 MB for 100,000 routes.
  const byHash = new Map<number, StoredRoute>();
  /** Routes that share the hash of another. */
  const others = new Map<string, StoredRoute>();
  const add = (route: StoredRoute): void => {
    const name = routeName(route.method, route.pattern);
    const hash = fnv1a(name);
    const first = byHash.get(hash);
    if (first === undefined || routeName(first.method, first.pattern) === name) byHash.set(hash, route);
    else others.set(name, route);
  };
  for (const route of routes) add(route);
  return {
    add,
    find: (method, pattern) => {
      const name = routeName(method, pattern);
      const first = byHash.get(fnv1a(name));
      return first !== undefined && routeName(first.method, first.pattern) === name ? first : others.get(name);
    },
    remove: (route) => {
      const name = routeName(route.method, route.pattern);
      const hash = fnv1a(name);
      if (byHash.get(hash)?.id === route.id) byHash.delete(hash);
      else others.delete(name);
    },
  };
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
