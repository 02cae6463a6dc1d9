// One route of a feed. What the interface leaves out has the defaults of a registration. A member as our registry writes it
// is read without the schema, which leaves several kilobytes of objects behind for each: 100,000 routes take 260 ms of CPU
// so and 920 through the schema. test/gateway/sync/feed.test.ts holds that the short way differs in nothing.
import type { z } from 'zod';
import { feedRoute, fromPlainWire, fromWire, type Route } from '../../domain/route.ts';

export type FeedRoute =
  | { readonly ok: true; readonly route: Route }
  | { readonly ok: false; readonly error: z.ZodError };

export function readFeedRoute(member: unknown): FeedRoute {
  const route = fromPlainWire(member);
  if (route !== undefined) return { ok: true, route };
  const parsed = feedRoute.safeParse(member);
  return parsed.success ? { ok: true, route: fromWire(parsed.data) } : { ok: false, error: parsed.error };
}
