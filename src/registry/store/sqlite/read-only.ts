// A look at a store's routes without making, migrating or writing it: for commands that only explain.
import { DatabaseSync } from 'node:sqlite';
import { createRandom } from '../../../host/clock.ts';
import type { StoredRoute } from '../ports.ts';
import { createRouteRows } from './routes.ts';

/** Throws if the file cannot be read, or was written by an older version. */
export function readStoredRoutes(file: string): readonly StoredRoute[] {
  const db = new DatabaseSync(file, { readOnly: true });
  try {
    return createRouteRows(db, createRandom()).load().routes;
  } finally {
    db.close();
  }
}
