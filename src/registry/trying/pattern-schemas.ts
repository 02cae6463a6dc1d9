// Schemas of the endpoint that describes a pattern.
import { z } from 'zod';
import { routeFields } from '../../domain/routing/route.ts';
import { documented } from '../http/schemas.ts';

export const patternQuery = z.object({
  route_pattern: z.string().max(2048, 'at most 2,048 characters'),
  method: routeFields.method.default('*'),
});

const paths = z.array(z.string());
export const patternBody = z.object({
  valid: z.boolean(),
  problem: z.string().nullable(),
  key: z.string().nullable(),
  matches: paths,
  not: paths,
  existing_id: z.uuid().nullable(),
  shadows: z.array(z.object({ route_id: z.uuid(), by_whom: z.string() })),
});
export type PatternBody = z.output<typeof patternBody>;

documented.add(patternBody, {
  id: 'PatternHelp',
  description:
    'What a pattern would do. `shadows` names at most 20 routes that cover paths of it; `by_whom` is `this one` or the id of the route that wins there.',
});
