// A look at a store's routes without making, migrating or writing it: for commands that only explain.
import { DatabaseSync } from 'node:sqlite';
import type { Route } from '../../domain/route.ts';
import { createRandom } from '../../host/clock.ts';
import { createRouteStore } from './routes.ts';

/** Throws where the file cannot be read, or was written by an older version. */
export function readStoredRoutes(file: string): readonly Route[] {
  const db = new DatabaseSync(file, { readOnly: true });
  try {
    return createRouteStore(db, createRandom()).all().routes;
  } finally {
    db.close();
  }
}
