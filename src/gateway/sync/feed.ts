// A feed as it arrives: the bytes of a bare array of routes, ours or any registry's that serves the interface. What the
// interface leaves out has the defaults of CONTRACT section 2; what only decorates a route is cut to size; what decides
// about money has to be right, or the whole feed is refused. Parsed in slices, so that traffic goes on meanwhile; a route
// that did not change is the very object that it was, so that nothing that hangs on it is made anew.
import { setImmediate as breathe } from 'node:timers/promises';
import { z } from 'zod';
import { fromWire, isWireOf, pooled, routeFields, type Route } from '../../domain/route.ts';
import { createTextPool } from '../../domain/text-pool.ts';
import { createArrayCutter } from './json-array.ts';

export type FeedLimits = { readonly routes: number; readonly routeBytes: number };

export const FEED_LIMITS: FeedLimits = { routes: 200_000, routeBytes: 256 * 1024 };

/** `reason` names the first route that is wrong. */
export type FeedResult =
  | { readonly ok: true; readonly routes: readonly Route[] }
  | { readonly ok: false; readonly reason: string };

/** Bytes parsed before others run: about a millisecond. */
const SLICE_BYTES = 32 * 1024;
/** How many routes that were deleted one after the other are stepped over. */
const NEIGHBOURS = 64;
const MAX_REASON = 300;
/** Where a registry does not say when a route was made. */
const NO_TIME = '1970-01-01T00:00:00.000Z';
/** As we write it ourselves: taken as it stands, because reading dates is what a large feed would spend its time on. */
const UTC = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

const optionalText = (max: number) =>
  z
    .string()
    .nullish()
    .transform((value) => value?.slice(0, max).toWellFormed() ?? null);

const time = z
  .string()
  .nullish()
  .transform((value) => {
    if (value && UTC.test(value)) return value;
    const ms = Date.parse(value ?? '');
    return Number.isNaN(ms) ? NO_TIME : new Date(ms).toISOString();
  });

/**
 * Absent and `null` are the same here: registries write either. Members that are not known are dropped. Whether pattern
 * and amount are valid is for the compilation to say, which reads them anyway and refuses the whole set.
 */
const feedRoute = z.object({
  id: z.guid().transform((id) => id.toLowerCase()),
  route_pattern: z.string(),
  method: routeFields.method,
  amount: z.string('an amount is a decimal written as a string'),
  currency: routeFields.currency.nullish().transform((value) => value ?? 'USD'),
  name: optionalText(200),
  description: optionalText(1000),
  status: routeFields.status.nullish().transform((value) => value ?? 'active'),
  allow_anonymous: z
    .boolean()
    .nullish()
    .transform((value) => value ?? true),
  source: optionalText(64),
  // One that no configuration can name is a receiver that is not known: 503, never free.
  receiver_config_id: optionalText(64),
  created_at: time,
  updated_at: time,
});

/** `known`: the routes of the feed before. Rejects only where `chunks` does. */
export async function readFeed(
  chunks: Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
  limits: FeedLimits = FEED_LIMITS,
  known: readonly Route[] = [],
): Promise<FeedResult> {
  const cutter = createArrayCutter(limits.routeBytes);
  const pool = createTextPool();
  const routes: Route[] = [];
  /** Where in `known` the next route is expected. */
  let next = 0;
  for await (const chunk of chunks) {
    for (let start = 0; start < chunk.length; start += SLICE_BYTES) {
      const piece = cutter.push(chunk.subarray(start, start + SLICE_BYTES));
      if (!piece.ok) return piece;
      for (const member of piece.members) {
        const expected = known[next];
        if (expected !== undefined && isWireOf(member, expected)) {
          routes.push(expected);
          next++;
          continue;
        }
        const parsed = feedRoute.safeParse(member);
        if (!parsed.success) return { ok: false, reason: describe(routes.length, member, parsed.error) };
        const at = findNear(known, next, parsed.data.id);
        const old = known[at];
        if (old !== undefined) next = at + 1;
        // A registry that leaves members out says the same as before, too.
        routes.push(old !== undefined && isWireOf(parsed.data, old) ? old : pooled(fromWire(parsed.data), pool));
      }
      if (routes.length > limits.routes) return { ok: false, reason: `it holds more than ${limits.routes} routes` };
      await breathe();
    }
  }
  const end = cutter.end();
  return end.ok ? { ok: true, routes } : end;
}

/** Where the route with `id` stands in `routes`, at `from` or a little later; -1 where it does not. */
function findNear(routes: readonly Route[], from: number, id: string): number {
  for (let at = from; at < from + NEIGHBOURS && at < routes.length; at++) if (routes[at]?.id === id) return at;
  return -1;
}

function describe(index: number, member: unknown, error: z.ZodError): string {
  const id = z.object({ id: z.guid() }).safeParse(member).data?.id ?? `number ${index + 1}`;
  const issue = error.issues[0];
  const field = issue === undefined || issue.path.length === 0 ? '' : ` ${issue.path.join('.')}:`;
  return `route ${id}:${field} ${issue?.message ?? 'is not valid'}`.slice(0, MAX_REASON).toWellFormed();
}
