// The query of `GET /v1/protected-routes/match`. The registry's endpoint has this schema. A sidecar whose registry is away
// reads it with `readMatchQuery`, so both answer about the same path.
import { z } from 'zod';
import type { Problem } from '../problem.ts';
import { readQuery, unknownParameters, badQuery } from './query.ts';

export const matchQuery = z.object({
  path: z.string().startsWith('/', 'a path that starts with a slash'),
  method: z.string().regex(/^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,32}$/, 'an HTTP method such as GET'),
});
export type MatchQuery = Readonly<z.output<typeof matchQuery>>;

const NAMES = Object.keys(matchQuery.shape);

/** Reads a query without its `?`. The problem is `malformed`, also because of other parameters. */
export function readMatchQuery(query: string): MatchQuery | Problem {
  const asked = readQuery(query, new Set(NAMES));
  if ('code' in asked) return asked;
  if (asked.unknown.length > 0) return unknownParameters(asked.unknown, NAMES);
  const parsed = matchQuery.safeParse(asked.values);
  return parsed.success ? parsed.data : badQuery(parsed.error);
}
