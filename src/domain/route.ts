// A protected route: the interface's section 2.1, every field. Schemas stand here once and serve the registry's bodies,
// the configuration's `routes`, a sidecar's feed and the OpenAPI document. Wire fields are snake_case; `fromWire` and
// `toWire` are the one place where they become the camelCase of the code and go back.
import { z } from 'zod';
import { AMOUNT_ADVICE, parsePrice } from './money.ts';
import { parsePattern } from './pattern.ts';

export type Route = {
  readonly id: string;
  readonly pattern: string;
  /** An upper-cased token, or `*` for any method. */
  readonly method: string;
  /** The decimal exactly as it was written; `parsePrice` reads it. */
  readonly amount: string;
  readonly currency: string;
  readonly name: string | null;
  readonly description: string | null;
  readonly status: 'active' | 'paused';
  readonly allowAnonymous: boolean;
  readonly source: string | null;
  readonly receiverConfigId: string | null;
  /** RFC 3339, UTC. */
  readonly createdAt: string;
  readonly updatedAt: string;
};

export const METHOD = /^[A-Z0-9!#$%&'+.^_`|~-]{1,32}$/;
export const CURRENCY = /^[A-Z][A-Z0-9]{2,9}$/;
const IDENTIFIER = /^[A-Za-z0-9_.-]{1,64}$/;

const upperCased = (value: string): string => value.toUpperCase();

/** Each writable field by itself; bodies compose them. The messages say what would be right. */
export const routeFields = {
  route_pattern: z.string().superRefine((value, context) => {
    const parsed = parsePattern(value);
    if (!parsed.ok) context.addIssue({ code: 'custom', message: parsed.reason });
  }),
  method: z
    .string()
    .transform(upperCased)
    .refine((value) => value === '*' || METHOD.test(value), 'an HTTP method such as GET, or * for any method'),
  amount: z
    .string(`quote the amount: ${AMOUNT_ADVICE}`)
    .refine((value) => parsePrice(value) !== undefined, AMOUNT_ADVICE),
  currency: z
    .string()
    .transform(upperCased)
    .refine((value) => CURRENCY.test(value), 'a currency code of 3 to 10 letters and digits, such as USD or USDC'),
  name: z.string().max(200, 'at most 200 characters').nullable(),
  description: z.string().max(1000, 'at most 1000 characters').nullable(),
  status: z.enum(['active', 'paused']),
  allow_anonymous: z.boolean(),
  source: z.string().regex(IDENTIFIER, 'up to 64 letters, digits, dots, dashes and underscores').nullable(),
  receiver_config_id: z.string().regex(IDENTIFIER, 'up to 64 letters, digits, dots, dashes and underscores').nullable(),
};

/** A route as every endpoint answers it and as a sidecar reads it from a feed. Members unknown to us are dropped. */
export const routeWire = z.object({
  id: z.uuid(),
  ...routeFields,
  created_at: z.iso.datetime({ offset: true }),
  updated_at: z.iso.datetime({ offset: true }),
});
export type RouteWire = z.infer<typeof routeWire>;

export function toWire(route: Route): RouteWire {
  return {
    id: route.id,
    route_pattern: route.pattern,
    method: route.method,
    amount: route.amount,
    currency: route.currency,
    name: route.name,
    description: route.description,
    status: route.status,
    allow_anonymous: route.allowAnonymous,
    source: route.source,
    receiver_config_id: route.receiverConfigId,
    created_at: route.createdAt,
    updated_at: route.updatedAt,
  };
}

export function fromWire(wire: RouteWire): Route {
  return {
    id: wire.id,
    pattern: wire.route_pattern,
    method: wire.method,
    amount: wire.amount,
    currency: wire.currency,
    name: wire.name,
    description: wire.description,
    status: wire.status,
    allowAnonymous: wire.allow_anonymous,
    source: wire.source,
    receiverConfigId: wire.receiver_config_id,
    createdAt: wire.created_at,
    updatedAt: wire.updated_at,
  };
}

/** Whether `wire` (anything that was parsed) is `route` exactly as `toWire` writes it, members unknown to us aside. */
export function isWireOf(wire: unknown, route: Route): boolean {
  return (
    isRecord(wire) &&
    wire['id'] === route.id &&
    wire['route_pattern'] === route.pattern &&
    wire['method'] === route.method &&
    wire['amount'] === route.amount &&
    wire['currency'] === route.currency &&
    wire['name'] === route.name &&
    wire['description'] === route.description &&
    wire['status'] === route.status &&
    wire['allow_anonymous'] === route.allowAnonymous &&
    wire['source'] === route.source &&
    wire['receiver_config_id'] === route.receiverConfigId &&
    wire['created_at'] === route.createdAt &&
    wire['updated_at'] === route.updatedAt
  );
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}

/** What the 402 calls the route: its description, else its name, else `METHOD pattern`. */
export function describeRoute(route: Route): string {
  return route.description || route.name || `${route.method} ${route.pattern}`;
}
