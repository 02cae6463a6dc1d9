// Applies what the configuration declares, in one transaction, and knows what of it the store does not follow.
import type { Route } from '../domain/route.ts';
import type { RouteBook } from './book.ts';
import {
  differencesOf,
  nameOf,
  planDeclared,
  sweep,
  type Declared,
  type DeclaredPlan,
  type Difference,
} from './declared.ts';
import type { DeclaredStore } from './store/ports.ts';

export type DeclaredRoutes = {
  /** Throws a sentence, and changes nothing, if a reload would delete all or most of them. */
  readonly apply: (file: readonly Declared[], at: 'start' | 'reload') => DeclaredPlan;
  /** What store and configuration differ in at this moment. */
  readonly differences: () => readonly Difference[];
  /** Whether the configuration names this route: deleted, it is made again by the next start. */
  readonly names: (route: Route) => boolean;
};

export function createDeclaredRoutes(book: RouteBook, store: DeclaredStore): DeclaredRoutes {
  let current: readonly Declared[] = [];
  let known: { readonly revision: number; readonly differences: readonly Difference[] } | undefined;
  return {
    apply: (file, at) => {
      const plan = book.writeTogether('config', (writes) => {
        const applied = [...store.all()].flatMap(([id, said]) => {
          const route = book.get(id);
          return route === undefined ? [] : [{ route, said }];
        });
        const made = planDeclared({ file, applied, find: book.find, ...(at === 'reload' ? { before: current } : {}) });
        const swept = at === 'reload' ? sweep(made) : undefined;
        if (swept !== undefined) {
          throw new Error(`the new file ${swept}; if that is meant, restart: a start applies it`);
        }
        for (const route of made.deletes) writes.remove(route);
        for (const { next } of made.changes) writes.update(next);
        for (const declared of made.creates) {
          store.set(writes.insert({ ...declared, source: 'config' }).id, declared);
        }
        for (const [id, said] of made.said) store.set(id, said);
        for (const id of made.released) store.release(id);
        return made;
      });
      current = file;
      known = undefined;
      return plan;
    },
    differences: () => {
      const { revision } = book.head();
      if (known?.revision !== revision) known = { revision, differences: differencesOf(current, book.find) };
      return known.differences;
    },
    names: ({ method, pattern }) => {
      const name = nameOf(method, pattern);
      return current.some((declared) => nameOf(declared.method, declared.route_pattern) === name);
    },
  };
}
