// Keeps what the configuration said about a route when it was last applied: a column of the route, as JSON.
import { z } from 'zod';
import type { DeclaredRoute } from '../routes/three-way-merge.ts';
import { nullableText, type Row } from './rows.ts';

const nullable = z.string().nullable();
const declaredSchema = z.object({
  method: z.string(),
  route_pattern: z.string(),
  amount: z.string(),
  currency: z.string(),
  name: nullable,
  description: nullable,
  status: z.enum(['active', 'paused']),
  allow_anonymous: z.boolean(),
  receiver_config_id: nullable,
  // What was written before there were plans names none.
  plan_id: nullable.default(null),
}) satisfies z.ZodType<DeclaredRoute>;

export function readDeclared(row: Row): DeclaredRoute | null {
  const written = nullableText(row, 'declared');
  return written === null ? null : declaredSchema.parse(JSON.parse(written));
}

export function writeDeclared(declared: DeclaredRoute | null): string | null {
  return declared === null ? null : JSON.stringify(declaredSchema.parse(declared));
}
