// A look at a store's routes without making, migrating or writing it: for commands that only explain.
import { DatabaseSync } from 'node:sqlite';
import { createRandom } from '../../../host/clock.ts';
import type { StoredRoutes } from '../ports.ts';
import { createDeclaredStore } from './declared.ts';
import { createRouteStore } from './routes.ts';

/** Throws if the file cannot be read, or was written by an older version. */
export function readStoredRoutes(file: string): StoredRoutes {
  const db = new DatabaseSync(file, { readOnly: true });
  try {
    return { routes: createRouteStore(db, createRandom()).all().routes, said: createDeclaredStore(db).all() };
  } finally {
    db.close();
  }
}
