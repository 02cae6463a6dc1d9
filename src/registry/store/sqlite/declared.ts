// What the configuration said about its routes when it was last applied, beside the routes and gone with them.
import type { DatabaseSync } from 'node:sqlite';
import { z } from 'zod';
import type { Declared } from '../../declared.ts';
import type { DeclaredStore } from '../ports.ts';
import { text } from './rows.ts';

const nullable = z.string().nullable();
const saidSchema = z.object({
  method: z.string(),
  route_pattern: z.string(),
  amount: z.string(),
  currency: z.string(),
  name: nullable,
  description: nullable,
  status: z.enum(['active', 'paused']),
  allow_anonymous: z.boolean(),
  receiver_config_id: nullable,
}) satisfies z.ZodType<Declared>;

export function createDeclaredStore(db: DatabaseSync): DeclaredStore {
  const sql = {
    all: db.prepare('SELECT route_id, said FROM declared_routes'),
    set: db.prepare(
      'INSERT INTO declared_routes (route_id, said) VALUES (?, ?) ON CONFLICT (route_id) DO UPDATE SET said = excluded.said',
    ),
    release: db.prepare('DELETE FROM declared_routes WHERE route_id = ?'),
  };
  return {
    all: () =>
      new Map(sql.all.all().map((row) => [text(row, 'route_id'), saidSchema.parse(JSON.parse(text(row, 'said')))])),
    set: (routeId, said) => void sql.set.run(routeId, JSON.stringify(saidSchema.parse(said))),
    release: (routeId) => void sql.release.run(routeId),
  };
}
