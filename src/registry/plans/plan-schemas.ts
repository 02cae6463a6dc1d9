// Schemas of the endpoint about plans: what each one decides, and what it earned and gave away in a time.
import { z } from 'zod';
import { WINDOW_LENGTHS } from '../../domain/selling/window.ts';
import { documented } from '../http/schemas.ts';
import { mapOf, money, overviewQuery, requests } from '../totals/totals-schemas.ts';

export const CUSTOMER_RESULTS = ['known', 'unknown', 'expired', 'quota', 'unavailable'] as const;

export const plansQuery = overviewQuery;

const time = z.iso.datetime();

const plan = z.object({
  id: z.string(),
  /** False: routes name it, or it was counted, but this process has no plan of this id. */
  known: z.boolean(),
  /** What decides about a request, in words and in order; null if the plan is not known here. */
  sells: z.string().nullable(),
  /** End of the dry run; null if there is none. */
  observe_until: time.nullable(),
  /** Whether the dry run goes on. */
  observing: z.boolean(),
  /** Routes that it sells now. */
  routes: z.int(),
  requests,
  /** What the routes that it sells now earned. */
  revenue: z.array(money),
  /** What a dry run would have asked for, for as many requests. */
  would_charge: z.array(z.object({ ...money.shape, requests: z.int() })),
});

const entry = z.object({
  id: z.string(),
  /** How they are known; null if this process has no entry of this id. */
  by: z.enum(['keys', 'jwt', 'networks', 'ask']).nullable(),
  /** Plans that let them pass. */
  plans: z.array(z.string()),
  quota: z.object({ requests: z.int(), window: z.enum(WINDOW_LENGTHS) }).nullable(),
  requests: z.object(mapOf(CUSTOMER_RESULTS, () => z.int())),
  /** Customers whom a key file names, most requests first, and the requests of all others. */
  names: z.array(z.object({ name: z.string(), requests: z.int() })),
  others: z.int(),
});

export const planList = z.object({
  /** Widened to whole hours, or days. */
  from: time,
  to: time,
  data: z.array(plan),
  customers: z.array(entry),
  as_of: time,
});

documented.add(planList, { id: 'PlanList', description: 'What plans earned and gave away, and who need not pay.' });
