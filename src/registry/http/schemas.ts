// Schemas of the registry: they validate bodies and queries, and the OpenAPI document is made from them. The fields of a
// route stand in domain/routing/route; here they are composed into bodies and get their public names.
import { z } from 'zod';
import { AMOUNT_PATTERN } from '../../domain/payment/money.ts';
import { PROBLEMS } from '../../domain/problem.ts';
import { ROUTE_ROWS, routeBody, routeFields, routePatch, routeWire } from '../../domain/routing/route.ts';

/**
 * Body of `register`: members that are not known here are dropped (the handler logs them), `id` and `plan_id` with them. A
 * plan may make requests free, so that an API key must not choose it.
 */
export const registerBody = z
  .object({ ...routeBody, source: routeFields.source.default('sdk') })
  .omit({ plan_id: true });
export type RegisterBody = z.input<typeof registerBody>;

/** Body of a dashboard's POST: members that are not known here are 422, because a person mistyped them. */
export const createBody = z.strictObject({ ...routeBody, source: routeFields.source.default('dashboard') });

/** A merge patch (RFC 7396): absent members stay, `null` only if the field is nullable. */
export const patchBody = z.strictObject(routePatch);

export const nothing = z.object({});

export const routeParams = z.object({ id: z.uuid().transform((id) => id.toLowerCase()) });

export const listQuery = z.object({
  limit: z
    .string()
    .regex(/^([1-9]\d?|1\d\d|200)$/, 'an integer from 1 to 200')
    .transform(Number)
    .default(50),
  cursor: z
    .string()
    .transform((cursor, context) => {
      const before = readCursor(cursor);
      if (before !== undefined) return before;
      context.addIssue({ code: 'custom', message: 'a next_cursor of an earlier answer' });
      return z.NEVER;
    })
    .optional(),
  status: routeFields.status.optional(),
  method: routeFields.method.optional(),
  source: z.string().max(64).optional(),
  q: z.string().max(200, 'at most 200 characters').optional(),
});

export const changesQuery = z.object({ limit: listQuery.shape.limit, cursor: listQuery.shape.cursor });

export const routeList = z.object({ data: z.array(routeWire), next_cursor: z.string().nullable() });
export const routeSet = z.array(routeWire);

export const changeList = z.object({
  data: z.array(
    z.object({
      at: z.iso.datetime(),
      by: z.string(),
      before: routeWire.nullable(),
      after: routeWire.nullable(),
    }),
  ),
  next_cursor: z.string().nullable(),
});

/** Events of the stream of routes, each with its data. */
export const routeEvents = {
  'route.created': routeWire,
  'route.updated': routeWire,
  'route.deleted': z.object({ id: z.uuid() }),
  reset: z.object({ revision: z.int() }),
  head: z.object({ revision: z.int(), routes: z.int(), digest: z.string() }),
};

export const matchBody = z.object({
  matched: z.boolean(),
  payment_required: z.boolean(),
  /** Present, and true, only if a proxy would refuse the path. */
  ambiguous: z.literal(true).optional(),
  route: routeWire.nullable(),
  params: z.record(z.string(), z.string()),
});

export const health = z.object({ status: z.literal('ok'), version: z.string(), timestamp: z.iso.datetime() });

/** RFC 9457, with `code`, `request_id` and `errors`. */
export const problemBody = z.object({
  type: z.string(),
  title: z.string(),
  status: z.int().min(400).max(599),
  detail: z.string(),
  code: z.enum(Object.keys(PROBLEMS)),
  errors: z.array(z.object({ pointer: z.string(), detail: z.string() })).optional(),
  existing_id: z.uuid().optional(),
  /** Ways to sign in to the desk, beside a session that is over. */
  sign_in: z.array(z.string()).optional(),
});

type Documentation = { id?: string; description?: string; pattern?: string; examples?: unknown[] };

/** Names of components in the OpenAPI document, and what the schemas themselves cannot say there. */
export const documented = z.registry<Documentation>();
documented.add(routeWire, { id: 'Route', description: 'A rule that says that requests to a path cost money.' });
documented.add(registerBody, { id: 'RouteRegistration', description: 'Members that are not known are ignored.' });
documented.add(createBody, { id: 'RouteCreation' });
documented.add(patchBody, { id: 'RoutePatch', description: 'A JSON merge patch (RFC 7396).' });
documented.add(routeList, { id: 'RouteList' });
documented.add(changeList, {
  id: 'RouteChanges',
  description:
    'Who changed a route, when, from what and to what. `by` is the subject of a dashboard token, the name of an API key, or `config`.',
});
documented.add(matchBody, { id: 'Match' });
documented.add(health, { id: 'Health' });
documented.add(problemBody, { id: 'Problem', description: 'RFC 9457. `code` is stable; `detail` is for people.' });
documented.add(routeFields.route_pattern, {
  description:
    'A path of literal segments, `:name` or `{name}` for one segment, and `/*` at the end for everything below.',
  examples: ['/reports/*'],
});
documented.add(routeFields.method, {
  description: 'An HTTP method, or `*` for any. Upper-cased when stored.',
  examples: ['GET'],
});
documented.add(routeFields.amount, {
  description: 'The price of one request: a decimal written as a string, greater than 0.',
  pattern: AMOUNT_PATTERN.source,
  examples: ['0.10'],
});
documented.add(routeFields.currency, { description: 'A currency code. Upper-cased when stored.', examples: ['USD'] });
documented.add(routeFields.status, { description: 'A paused route costs nothing.' });

/** Schemas that the document shows in place of one that validates: those change what they read. */
export const describedAs: ReadonlyMap<unknown, Readonly<Record<string, unknown>>> = new Map<
  unknown,
  Record<string, unknown>
>([
  ...ROUTE_ROWS.filter(({ initial }) => initial !== undefined).map(
    ({ wire, initial }): [unknown, Record<string, unknown>] => [Reflect.get(routeBody, wire), { default: initial }],
  ),
  // The limit is text in a URL, and a number for who generates a client from the document.
  [listQuery.shape.limit, { type: 'integer', minimum: 1, maximum: 200, default: 50, pattern: undefined }],
]);

/** The cursor of a page: opaque to clients. */
export function writeCursor(before: number): string {
  return Buffer.from(`r${before}`).toString('base64url');
}

function readCursor(cursor: string): number | undefined {
  const decoded = /^r([1-9]\d{0,14})$/.exec(Buffer.from(cursor, 'base64url').toString('latin1'))?.[1];
  return decoded === undefined || writeCursor(Number(decoded)) !== cursor ? undefined : Number(decoded);
}
