// Schemas of the endpoints about sums: what was earned and how requests ended, by time and by route.
import { z } from 'zod';
import { CHARGE_STATES } from '../../domain/payment/charge-fields.ts';
import { routeWire } from '../../domain/routing/route.ts';
import { REQUEST_OUTCOMES } from '../../domain/totals/request-counts.ts';
import { TOTALS_STEPS } from '../../domain/totals/steps.ts';
import { totalsBatch } from '../../domain/totals/totals-wire.ts';
import { documented } from '../http/schemas.ts';

/** A time that steps can be counted to, in milliseconds since the epoch. */
const moment = z
  .string()
  .refine(
    (text) =>
      z.union([z.iso.datetime({ offset: true }), z.iso.date()]).safeParse(text).success && /^(19[7-9]|2)/.test(text),
    'a time such as 2026-01-31T00:00:00Z, or a date, from 1970 to 2999',
  )
  .transform((text) => Date.parse(text));
const currency = z
  .string()
  .regex(/^[A-Za-z][A-Za-z0-9]{2,9}$/, 'a currency such as USD')
  .transform((text) => text.toUpperCase());
const times = { from: moment.optional(), to: moment.optional() };
const SERIES_STEPS = [...TOTALS_STEPS, 'auto'] as const;
const RANKINGS = ['revenue', 'paid', 'payment_required', 'requests'] as const;
export type Ranking = (typeof RANKINGS)[number];

export const overviewQuery = z.object(times);
export const seriesQuery = z.object({
  ...times,
  step: z.enum(SERIES_STEPS, `one of ${SERIES_STEPS.join(', ')}`).default('auto'),
  route_id: z.string().min(1).max(64).optional(),
  currency: currency.optional(),
  network: z
    .string()
    .regex(/^[-a-z0-9]{3,8}:[-_a-zA-Z0-9]{1,32}$/, 'a network by its CAIP-2 name, with a colon in it')
    .optional(),
});
export const topRoutesQuery = z.object({
  ...times,
  by: z.enum(RANKINGS, `one of ${RANKINGS.join(', ')}`).default('requests'),
  currency: currency.optional(),
  limit: z
    .string()
    .regex(/^([1-9]\d?|100)$/, 'an integer from 1 to 100')
    .transform(Number)
    .default(10),
});

const time = z.iso.datetime();
export const requests = z.object(mapOf(REQUEST_OUTCOMES, () => z.int()));
export const money = z.object({ currency: z.string(), amount: z.string() });
const conversion = z.number().min(0).max(1).nullable();

export const overviewBody = z.object({
  /** Widened to whole steps of what is kept. */
  from: time,
  to: time,
  revenue: z.array(z.object({ ...money.shape, previous: z.string() })),
  requests,
  /** Requests in the same time before. */
  previous: requests,
  conversion,
  overhead_ms: z.object({ p50: z.number(), p99: z.number() }).nullable(),
  routes: z.object({ active: z.int(), paused: z.int() }),
  charges: z.object(mapOf(CHARGE_STATES, () => z.int())),
  sync: z.object({
    sidecars: z.int(),
    /** Sidecars that were not heard of for a minute, or say that they are not ready. */
    stale: z.int(),
    /** Sidecars that hand no counts over: their requests are in none of these numbers. */
    uncounted: z.int(),
    /** Batches of counts that never came, in the last 24 hours' sources. */
    lost: z.int(),
  }),
  as_of: time,
});

const column = z.array(z.number().nullable());
export const seriesBody = z.object({
  from: time,
  to: time,
  step: z.enum(TOTALS_STEPS),
  times: z.array(time),
  /** Columns as long as `times`. With `network` charges alone are known: `paid` is their number. */
  requests: z.partialRecord(z.enum(REQUEST_OUTCOMES), z.array(z.int())),
  revenue: z.array(z.object({ currency: z.string(), amounts: z.array(z.string()) })),
  overhead_ms: z.object({ p50: column, p99: column }).nullable(),
  /** The moment up to which nothing is missing any more. */
  complete_until: time,
});

export const topRoutesBody = z.object({
  from: time,
  to: time,
  data: z.array(
    z.object({
      route_id: z.string(),
      /** Null if it was deleted. */
      route: routeWire.nullable(),
      requests,
      revenue: z.array(money),
      conversion,
    }),
  ),
  /** All routes that are not listed, together. */
  others: z.object({ requests, revenue: z.array(money), conversion }),
});

export const totalsBody = totalsBatch;

export function mapOf<K extends string, V>(names: readonly K[], valueOf: () => V): Record<K, V> {
  return Object.fromEntries(names.map((name) => [name, valueOf()])) as Record<K, V>;
}

documented.add(overviewBody, { id: 'Overview', description: 'What was earned and how requests ended in a time.' });
documented.add(seriesBody, { id: 'Series', description: 'The same step by step, in columns of one length.' });
documented.add(topRoutesBody, {
  id: 'TopRoutes',
  description: 'Routes by what they earned or how often they were asked for.',
});
documented.add(totalsBody, { id: 'LedgerTotals', description: 'What a sidecar counted since its last batch.' });
