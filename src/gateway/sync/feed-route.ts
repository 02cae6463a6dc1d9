// One route of a feed. What the interface leaves out has the defaults of a registration; what only decorates a route is
// cut to size; what decides about money has to be right. A member as our registry writes it is read without the schema,
// which leaves several kilobytes of objects behind for each: with 100,000 of them the garbage collector, and not the
// reading, would be what traffic waits for. test/gateway/sync/feed.test.ts holds that the short way differs in nothing.
import { z } from 'zod';
import { fromWire, METHOD, CURRENCY, routeFields, type Route } from '../../domain/route.ts';

export type FeedRoute =
  | { readonly ok: true; readonly route: Route }
  | { readonly ok: false; readonly error: z.ZodError };

const MAX_NAME = 200;
const MAX_DESCRIPTION = 1000;
const MAX_IDENTIFIER = 64;
/** Where a registry does not say when a route was made. */
const NO_TIME = '1970-01-01T00:00:00.000Z';
/** As we write it ourselves: taken as it stands, because reading dates is what a large feed would spend its time on. */
const UTC = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
const LOWER_ID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

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
  name: optionalText(MAX_NAME),
  description: optionalText(MAX_DESCRIPTION),
  status: routeFields.status.nullish().transform((value) => value ?? 'active'),
  allow_anonymous: z
    .boolean()
    .nullish()
    .transform((value) => value ?? true),
  source: optionalText(MAX_IDENTIFIER),
  // One that no configuration can name is a receiver that is not known: 503, never free.
  receiver_config_id: optionalText(MAX_IDENTIFIER),
  created_at: time,
  updated_at: time,
});

export function readFeedRoute(member: unknown): FeedRoute {
  const route = readPlain(member);
  if (route !== undefined) return { ok: true, route };
  const parsed = feedRoute.safeParse(member);
  return parsed.success ? { ok: true, route: fromWire(parsed.data) } : { ok: false, error: parsed.error };
}

/** A member that the schema would take without changing anything; undefined for any other, right or wrong. */
function readPlain(member: unknown): Route | undefined {
  if (!isRecord(member)) return undefined;
  const { id, route_pattern: pattern, method, amount, currency, name, description, status, source } = member;
  const { allow_anonymous: allowAnonymous, receiver_config_id: receiverConfigId } = member;
  const { created_at: createdAt, updated_at: updatedAt } = member;
  if (typeof id !== 'string' || !LOWER_ID.test(id)) return undefined;
  if (typeof pattern !== 'string' || typeof amount !== 'string') return undefined;
  if (typeof method !== 'string' || (method !== '*' && !METHOD.test(method))) return undefined;
  if (typeof currency !== 'string' || !CURRENCY.test(currency)) return undefined;
  if (!isShort(name, MAX_NAME) || !isShort(description, MAX_DESCRIPTION)) return undefined;
  if (!isShort(source, MAX_IDENTIFIER) || !isShort(receiverConfigId, MAX_IDENTIFIER)) return undefined;
  if (status !== 'active' && status !== 'paused') return undefined;
  if (typeof allowAnonymous !== 'boolean') return undefined;
  if (typeof createdAt !== 'string' || !UTC.test(createdAt)) return undefined;
  if (typeof updatedAt !== 'string' || !UTC.test(updatedAt)) return undefined;
  return {
    id,
    pattern,
    method,
    amount,
    currency,
    name,
    description,
    status,
    allowAnonymous,
    source,
    receiverConfigId,
    createdAt,
    // One string for both: with 100,000 routes 4 MB of 36.
    updatedAt: updatedAt === createdAt ? createdAt : updatedAt,
  };
}

function isShort(text: unknown, max: number): text is string | null {
  return text === null || (typeof text === 'string' && text.length <= max && text.isWellFormed());
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}
