// The fields of a protected route (the interface's section 2.1), one row each, in the order of the wire. These rows
// make the type, the wire both ways, bodies, the patch, the store's columns, the reader of a feed and the
// configuration's `routes`. One more field is one more row and its use. The schemas' messages say what would be right.
import { z } from 'zod';
import { AMOUNT_ADVICE, parsePrice } from '../payment/money.ts';
import { parsePattern } from './pattern.ts';

export type RouteField = {
  /** Name on the wire, in a configuration and as a column. */
  readonly wire: string;
  /** Form that bodies and the configuration's `routes` write. */
  readonly schema: z.ZodType;
  /** Form that any registry may write in a feed: what decorates a route is cut to size, what decides about money has to be right. */
  readonly feed: z.ZodType;
  /** Tells which values `feed` takes without changing them. */
  readonly isPlain: (value: unknown) => boolean;
  readonly column: 'text' | 'nullable text' | 'flag';
  /** Party that sets it. `registry`: only the registry; `once`: who makes the route; `patch`: a dashboard too. */
  readonly writer: 'registry' | 'once' | 'patch';
  /** Value in a body that leaves the field out; without one it is required. */
  readonly initial?: string | boolean | null;
  /** Few values for many routes: equal ones are one string in memory. */
  readonly interned: boolean;
};

export const METHOD = /^[A-Z0-9!#$%&'+.^_`|~-]{1,32}$/;
const CURRENCY = /^[A-Z][A-Z0-9]{2,9}$/;
const IDENTIFIER = /^[A-Za-z0-9_.-]{1,64}$/;
const LOWER_ID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
/** Time as we write it ourselves: taken as it stands, because reading dates is what a large feed would spend its time on. */
const UTC = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
/** Time of creation if a registry does not say it. */
const NO_TIME = '1970-01-01T00:00:00.000Z';
const MAX_NAME = 200;
const MAX_DESCRIPTION = 1000;
const MAX_IDENTIFIER = 64;

const upperCased = (value: string): string => value.toUpperCase();
const isMethod = (value: unknown): boolean => typeof value === 'string' && (value === '*' || METHOD.test(value));
const isCurrency = (value: unknown): boolean => typeof value === 'string' && CURRENCY.test(value);
const isText = (value: unknown): boolean => typeof value === 'string';
const isTime = (value: unknown): boolean => typeof value === 'string' && UTC.test(value);
const isShort =
  (max: number) =>
  (value: unknown): boolean =>
    value === null || (typeof value === 'string' && value.length <= max && value.isWellFormed());

/** JSON can hold half a character; a store cannot, and memory must not differ from it. */
const words = (max: number) =>
  z
    .string()
    .max(max, `at most ${max} characters`)
    .transform((value) => value.toWellFormed())
    .nullable();
const identifier = () =>
  z.string().regex(IDENTIFIER, 'up to 64 letters, digits, dots, dashes and underscores').nullable();

/** Absent and `null` are the same in a feed: registries write either. */
const fedText = (max: number) =>
  z
    .string()
    .nullish()
    .transform((value) => value?.slice(0, max).toWellFormed() ?? null);
const fedTime = z
  .string()
  .nullish()
  .transform((value) => {
    if (value && UTC.test(value)) return value;
    const ms = Date.parse(value ?? '');
    return Number.isNaN(ms) ? NO_TIME : new Date(ms).toISOString();
  });

const method = z.string().transform(upperCased).refine(isMethod, 'an HTTP method such as GET, or * for any method');
const currency = z
  .string()
  .transform(upperCased)
  .refine(isCurrency, 'a currency code of 3 to 10 letters and digits, such as USD or USDC');
const status = z.enum(['active', 'paused']);

export const ROUTE_FIELDS = {
  id: {
    wire: 'id',
    schema: z.uuid(),
    feed: z.guid().transform((id) => id.toLowerCase()),
    isPlain: (value) => typeof value === 'string' && LOWER_ID.test(value),
    ...{ column: 'text', writer: 'registry', interned: false },
  },
  pattern: {
    wire: 'route_pattern',
    schema: z.string().superRefine((value, context) => {
      const parsed = parsePattern(value);
      if (!parsed.ok) context.addIssue({ code: 'custom', message: parsed.reason });
    }),
    // The compilation judges pattern and amount: it reads them anyway, and refuses the whole set.
    feed: z.string(),
    isPlain: isText,
    ...{ column: 'text', writer: 'patch', interned: false },
  },
  /** An upper-cased token, or `*` for any method. */
  method: {
    wire: 'method',
    schema: method,
    feed: method,
    isPlain: isMethod,
    ...{ column: 'text', writer: 'patch', interned: true },
  },
  /** The decimal exactly as it was written; `parsePrice` reads it. */
  amount: {
    wire: 'amount',
    schema: z
      .string(`quote the amount: ${AMOUNT_ADVICE}`)
      .refine((value) => parsePrice(value) !== undefined, AMOUNT_ADVICE),
    feed: z.string('an amount is a decimal written as a string'),
    isPlain: isText,
    ...{ column: 'text', writer: 'patch', interned: true },
  },
  currency: {
    wire: 'currency',
    schema: currency,
    feed: currency.nullish().transform((value) => value ?? 'USD'),
    isPlain: isCurrency,
    ...{ column: 'text', writer: 'patch', initial: 'USD', interned: true },
  },
  name: {
    wire: 'name',
    schema: words(MAX_NAME),
    feed: fedText(MAX_NAME),
    isPlain: isShort(MAX_NAME),
    ...{ column: 'nullable text', writer: 'patch', initial: null, interned: false },
  },
  description: {
    wire: 'description',
    schema: words(MAX_DESCRIPTION),
    feed: fedText(MAX_DESCRIPTION),
    isPlain: isShort(MAX_DESCRIPTION),
    ...{ column: 'nullable text', writer: 'patch', initial: null, interned: false },
  },
  status: {
    wire: 'status',
    schema: status,
    feed: status.nullish().transform((value) => value ?? 'active'),
    isPlain: (value) => value === 'active' || value === 'paused',
    ...{ column: 'text', writer: 'patch', initial: 'active', interned: true },
  },
  allowAnonymous: {
    wire: 'allow_anonymous',
    schema: z.boolean(),
    feed: z
      .boolean()
      .nullish()
      .transform((value) => value ?? true),
    isPlain: (value) => typeof value === 'boolean',
    ...{ column: 'flag', writer: 'patch', initial: true, interned: false },
  },
  source: {
    wire: 'source',
    schema: identifier(),
    feed: fedText(MAX_IDENTIFIER),
    isPlain: isShort(MAX_IDENTIFIER),
    ...{ column: 'nullable text', writer: 'once', interned: true },
  },
  receiverConfigId: {
    wire: 'receiver_config_id',
    schema: identifier(),
    // A receiver that no configuration can name counts as not known: 503, never free.
    feed: fedText(MAX_IDENTIFIER),
    isPlain: isShort(MAX_IDENTIFIER),
    ...{ column: 'nullable text', writer: 'patch', initial: null, interned: true },
  },
  /** Plan that it is sold by: an id that only the configuration of a process can fill (domain/selling/plan.ts). */
  planId: {
    wire: 'plan_id',
    schema: identifier(),
    // A plan that no configuration can name counts as not known: 503, never free.
    feed: fedText(MAX_IDENTIFIER),
    isPlain: isShort(MAX_IDENTIFIER),
    ...{ column: 'nullable text', writer: 'patch', initial: null, interned: true },
  },
  /** Time in RFC 3339, UTC. */
  createdAt: {
    wire: 'created_at',
    schema: z.iso.datetime({ offset: true }),
    feed: fedTime,
    isPlain: isTime,
    ...{ column: 'text', writer: 'registry', interned: true },
  },
  updatedAt: {
    wire: 'updated_at',
    schema: z.iso.datetime({ offset: true }),
    feed: fedTime,
    isPlain: isTime,
    ...{ column: 'text', writer: 'registry', interned: true },
  },
} as const satisfies Record<string, RouteField>;
