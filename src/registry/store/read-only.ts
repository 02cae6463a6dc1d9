// A look at a store's routes without making, migrating or writing it: for commands that only explain.
import { DatabaseSync } from 'node:sqlite';
import type { Route } from '../../domain/route.ts';
import { createRandom } from '../../host/clock.ts';
import type { Declared } from '../declared.ts';
import { createDeclaredStore } from './declared.ts';
import { createRouteStore } from './routes.ts';

export type StoredRoutes = {
  readonly routes: readonly Route[];
  /** What the configuration said when it was last applied, by route id. */
  readonly said: ReadonlyMap<string, Declared>;
};

/** Throws where the file cannot be read, or was written by an older version. */
export function readStoredRoutes(file: string): StoredRoutes {
  const db = new DatabaseSync(file, { readOnly: true });
  try {
    return { routes: createRouteStore(db, createRandom()).all().routes, said: createDeclaredStore(db).all() };
  } finally {
    db.close();
  }
}
