// A protected route, made from the rows of routing/route-fields.ts: its type, its wire form both ways, and the shapes that
// bodies, the patch and the configuration's `routes` compose. `as` stands here alone: what is copied row by row has the
// types of the rows.
import { z } from 'zod';
import { ROUTE_FIELDS, type RouteField } from './route-fields.ts';

type Fields = typeof ROUTE_FIELDS;
type Name = keyof Fields;
type WritableName = { [K in Name]: Fields[K]['writer'] extends 'registry' ? never : K }[Name];
type PatchableName = { [K in Name]: Fields[K]['writer'] extends 'patch' ? K : never }[Name];
type BodySchema<F extends RouteField> = F extends { readonly initial: string | boolean | null }
  ? z.ZodDefault<F['schema']>
  : F['schema'];

export type Route = { readonly [K in Name]: z.output<Fields[K]['schema']> };
export type RouteWire = { [K in Name as Fields[K]['wire']]: z.output<Fields[K]['schema']> };

/** The rows with their names in the code, in the order of the wire. */
export const ROUTE_ROWS = Object.entries(ROUTE_FIELDS).map(([name, row]) => ({
  name,
  ...row,
})) as readonly (RouteField & {
  readonly name: Name;
})[];

/** Schema of each field by itself, as a body writes it, by its name on the wire. */
export const routeFields = shapeOf(
  () => true,
  (row) => row.schema,
) as {
  [K in Name as Fields[K]['wire']]: Fields[K]['schema'];
};

/** A route as every endpoint answers it and as a sidecar reads it from a feed. Members unknown to us are dropped. */
export const routeWire = z.object(routeFields);

/** The fields that a body or a file gives for a new route, without `source`: each has a default of its own for that. */
export const routeBody = shapeOf(({ writer }) => writer === 'patch', inBody) as {
  [K in PatchableName as Fields[K]['wire']]: BodySchema<Fields[K]>;
};

/** Schema of a patch. */
export const routePatch = shapeOf(
  ({ writer }) => writer === 'patch',
  (row) => row.schema.optional(),
) as { [K in PatchableName as Fields[K]['wire']]: z.ZodOptional<Fields[K]['schema']> };

/** Input that makes a route, by its names on the wire. */
export type RouteInput = { [K in WritableName as Fields[K]['wire']]: z.output<Fields[K]['schema']> };
export type RoutePatch = z.output<z.ZodObject<typeof routePatch>>;

/** A member of any registry's feed. */
export const feedRoute = z.object(
  shapeOf(
    () => true,
    (row) => row.feed,
  ),
) as unknown as z.ZodType<RouteWire>;

function shapeOf(
  wanted: (row: RouteField) => boolean,
  make: (row: RouteField) => z.ZodType,
): Record<string, z.ZodType> {
  return Object.fromEntries(ROUTE_ROWS.flatMap((row) => (wanted(row) ? [[row.wire, make(row)]] : [])));
}

function inBody({ schema, initial }: RouteField): z.ZodType {
  return initial === undefined ? schema : schema.default(initial);
}

export function toWire(route: Route): RouteWire {
  const wire: Record<string, unknown> = {};
  for (const row of ROUTE_ROWS) wire[row.wire] = route[row.name];
  return wire as RouteWire;
}

export function fromWire(wire: RouteWire): Route {
  const from: Readonly<Record<string, unknown>> = wire;
  return routeOf((row) => from[row.wire]);
}

/** Takes `wire` (anything that was parsed) if every row is plain, so that no schema would change it; else undefined. */
export function fromPlainWire(wire: unknown): Route | undefined {
  if (!isRecord(wire)) return undefined;
  for (const row of ROUTE_ROWS) if (!row.isPlain(wire[row.wire])) return undefined;
  return routeOf((row) => wire[row.wire]);
}

/**
 * An object with these members, to be copied and filled. JSON.parse makes room for all of them in the object itself; one
 * that gets them one by one keeps most of them in an array beside it: 35 of 170 bytes of a route, 2 to 3 % of the memory
 * with 100,000 routes (`npm run bench -- --only memory --routes 100000 --checkout ../without`).
 */
export function blankOf(names: readonly string[]): Readonly<Record<string, unknown>> {
  return JSON.parse(JSON.stringify(Object.fromEntries(names.map((name) => [name, null]))));
}

const BLANK = blankOf(ROUTE_ROWS.map(({ name }) => name));

/** A route of what `valueOf` says, which has the types of the rows. */
export function routeOf(valueOf: (row: (typeof ROUTE_ROWS)[number]) => unknown, blank = BLANK): Route {
  const route = { ...blank };
  for (const row of ROUTE_ROWS) route[row.name] = valueOf(row);
  // Two equal times are one string: 4 MB of 36 with 100,000 routes.
  if (route['updatedAt'] === route['createdAt']) route['updatedAt'] = route['createdAt'];
  return route as Route;
}

/** Makes `route` with what `patch` says. */
export function patchRoute<T extends Route>(route: T, patch: RoutePatch): T {
  const from: Readonly<Record<string, unknown>> = patch;
  const patched: Record<string, unknown> = { ...route };
  for (const { name, wire } of ROUTE_ROWS) if (from[wire] !== undefined) patched[name] = from[wire];
  return patched as T;
}

/** Whether `wire` (anything that was parsed) is `route` exactly as `toWire` writes it, members unknown to us aside. */
export function isWireOf(wire: unknown, route: Route): boolean {
  if (!isRecord(wire)) return false;
  for (const row of ROUTE_ROWS) if (wire[row.wire] !== route[row.name]) return false;
  return true;
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}

/** Describes a route for the 402: its description, else its name, else `METHOD pattern`. */
export function describeRoute(route: Route): string {
  return route.description || route.name || `${route.method} ${route.pattern}`;
}
