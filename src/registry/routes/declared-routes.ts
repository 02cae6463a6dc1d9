// Applies what the configuration declares, in one transaction, and knows what of it the store does not follow.
import { routeName } from '../../domain/routing/pattern.ts';
import type { Route } from '../../domain/routing/route.ts';
import {
  differencesOf,
  leftOf,
  planDeclared,
  sweep,
  type DeclaredRoute,
  type DeclaredPlan,
  type Difference,
} from './three-way-merge.ts';
import type { Routes } from './registry-routes.ts';
import type { StoredRoute } from '../store/ports.ts';

type DeclaredRoutes = {
  /** Rejects with a sentence, and changes nothing, if a reload would delete all or most of them. */
  readonly apply: (file: readonly DeclaredRoute[], at: 'start' | 'reload') => Promise<DeclaredPlan>;
  /** Lists what store and configuration differ in at this moment. */
  readonly differences: () => readonly Difference[];
  /** Whether the configuration names this route: deleted, it is made again by the next start. */
  readonly names: (route: Route) => boolean;
};

export function createDeclaredRoutes(
  routes: Pick<Routes, 'all' | 'get' | 'find' | 'head' | 'writeTogether'>,
  isShared: boolean,
): DeclaredRoutes {
  let current: readonly DeclaredRoute[] = [];
  let known: { readonly revision: number; readonly differences: readonly Difference[] } | undefined;
  const applied = (): { readonly route: StoredRoute; readonly said: DeclaredRoute }[] =>
    [...routes.all()].flatMap((route) => (route.declared === null ? [] : [{ route, said: route.declared }]));
  const differences = (): readonly Difference[] => [
    ...differencesOf(current, routes.find),
    ...(isShared ? leftOf(current, applied()) : []),
  ];
  return {
    apply: async (file, at) => {
      const plan = await routes.writeTogether('config', (writes) => {
        const made = planDeclared({
          file,
          applied: applied(),
          find: routes.find,
          isShared,
          ...(at === 'reload' ? { before: current } : {}),
        });
        const swept = at === 'reload' ? sweep(made) : undefined;
        if (swept !== undefined) {
          throw new Error(`the new file ${swept}; if that is meant, restart: a start applies it`);
        }
        for (const { id } of made.deletes) writes.remove(stored(routes, id));
        for (const { was, next } of updatesOf(made, (id) => stored(routes, id))) writes.update(was, next);
        for (const declared of made.creates) writes.insert({ ...declared, source: 'config' }, declared);
        return made;
      });
      current = file;
      known = undefined;
      return plan;
    },
    differences: () => {
      const { revision } = routes.head();
      if (known?.revision !== revision) known = { revision, differences: differences() };
      return known.differences;
    },
    names: ({ method, pattern }) => {
      const name = routeName(method, pattern);
      return current.some((declared) => routeName(declared.method, declared.route_pattern) === name);
    },
  };
}

/** Lists stored routes that change, or of which the file says something else than before. */
function updatesOf(
  { changes, said, released }: DeclaredPlan,
  storedOf: (id: string) => StoredRoute,
): readonly { readonly was: StoredRoute; readonly next: StoredRoute }[] {
  const changed = new Map(changes.map(({ route, next }) => [route.id, next]));
  const gone = new Set(released);
  return [...new Set([...changed.keys(), ...said.keys(), ...gone])].map((id) => {
    const was = storedOf(id);
    const declared = said.get(id) ?? (gone.has(id) ? null : was.declared);
    return { was, next: { ...was, ...changed.get(id), declared } };
  });
}

function stored(routes: Pick<Routes, 'get'>, id: string): StoredRoute {
  const route = routes.get(id);
  if (route === undefined) throw new Error(`the route ${id} is gone`);
  return route;
}
