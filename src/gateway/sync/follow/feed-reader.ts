// Reads a feed as it arrives: the bytes of a bare array of routes, from our registry or another one with the same
// interface. One wrong route refuses the whole feed. It is parsed in slices, so that traffic goes on. A route that did
// not change stays the same object, so that nothing made from it is made anew.
import { setImmediate as breathe } from 'node:timers/promises';
import { z } from 'zod';
import { feedRoute, fromPlainWire, fromWire, isWireOf, toWire, type Route } from '../../../domain/routing/route.ts';
import { createArrayCutter } from './json-array.ts';

export type FeedLimits = { readonly routes: number; readonly routeBytes: number };

export const FEED_LIMITS: FeedLimits = { routes: 200_000, routeBytes: 256 * 1024 };

/** Result of reading a feed. `reason` names the first route that is wrong. */
type FeedResult =
  | { readonly ok: true; readonly routes: readonly Route[] }
  | { readonly ok: false; readonly reason: string };

/** Number of bytes that are parsed before others run: about a millisecond. */
const SLICE_BYTES = 32 * 1024;
/** Number of routes deleted one after the other that are stepped over. */
const NEIGHBOURS = 64;
const MAX_REASON = 300;

/** Reads a feed. `known` has the routes of the feed before. Rejects only if `chunks` does. */
export async function readFeed(
  chunks: Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
  limits: FeedLimits = FEED_LIMITS,
  known: readonly Route[] = [],
): Promise<FeedResult> {
  const cutter = createArrayCutter(limits.routeBytes);
  const routes: Route[] = [];
  /** Place in `known` at which the next route is expected. */
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
        const read = readFeedRoute(member);
        if (!read.ok) return { ok: false, reason: describe(routes.length, member, read.error) };
        const at = findNear(known, next, read.route.id);
        const old = known[at];
        if (old !== undefined) next = at + 1;
        // A registry that leaves members out says the same as before, too.
        routes.push(old !== undefined && isWireOf(toWire(read.route), old) ? old : read.route);
      }
      if (routes.length > limits.routes) return { ok: false, reason: `it holds more than ${limits.routes} routes` };
      await breathe();
    }
  }
  const end = cutter.end();
  return end.ok ? { ok: true, routes } : end;
}

/** Finds the place of the route with `id` in `routes`, at `from` or a little later; -1 if it is not there. */
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

type FeedRoute = { readonly ok: true; readonly route: Route } | { readonly ok: false; readonly error: z.ZodError };

/**
 * Reads a member as our registry writes it, without the schema, which leaves several kilobytes of objects behind for
 * each. What the interface leaves out has the defaults of a registration. 100,000 routes take 260 ms of CPU so, and 920
 * ms through the schema. test/gateway/sync/follow/feed-reader.test.ts holds that both ways read the same.
 */
export function readFeedRoute(member: unknown): FeedRoute {
  const route = fromPlainWire(member);
  if (route !== undefined) return { ok: true, route };
  const parsed = feedRoute.safeParse(member);
  return parsed.success ? { ok: true, route: fromWire(parsed.data) } : { ok: false, error: parsed.error };
}
