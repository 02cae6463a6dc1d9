// The `selling` section: plans, by which routes are sold besides their price, and rules about them that need more than one
// key. What makes a request cheaper or free stands here and nowhere else: a registry only names a plan.
import { z } from 'zod';
import { plansOf, type SalesPlan, type Plans } from '../domain/selling/plan.ts';
import { suggest } from '../domain/suggest.ts';
import { choice, identifier, text } from './fields.ts';
import { key, section } from './keys.ts';
import { isMap, valueAt, type Issue } from './problems.ts';

const MOST_PLANS = 64;
/** Longest dry run that may lie ahead. */
const LONGEST_OBSERVATION_DAYS = 92;
const DAY_MS = 86_400_000;
const TIME = 'a time in UTC, such as 2026-12-01T00:00:00Z';
const isTime = (value: string): boolean =>
  /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,3})?(?:Z|[+-]\d\d:\d\d)$/.test(value) && !Number.isNaN(Date.parse(value));

const observe = section({
  until: key(
    'untilMs',
    text(TIME, isTime).transform((value) => Date.parse(value)),
    `The end of the dry run, at most ${LONGEST_OBSERVATION_DAYS} days ahead. From then on the plan charges.`,
  ),
});

const plan = section({
  id: key(
    'id',
    identifier('a name of this plan'),
    'The name of the plan, which routes name in `plan_id`. `default`: for routes that name none.',
  ),
  observe: key(
    'observe',
    observe.optional(),
    'A dry run: requests pass free and are counted as if they were charged. Left out: the plan charges.',
  ),
  settle: key(
    'settle',
    choice(['inherit', 'auto', 'before_response', 'before_forward']).default('inherit'),
    'When the money moves, in place of the `settle` of the receiver. `inherit`: as the receiver says.',
  ),
});

export const sellingSection = section({
  plans: key(
    'plans',
    z.array(plan).max(MOST_PLANS, `holds more than ${MOST_PLANS} plans; take some out`).default([]),
    `How routes are sold besides their price: up to ${MOST_PLANS} plans. A route's \`plan_id\` names one.`,
  ),
});

type SellingSection = z.output<typeof sellingSection>;

/** What is sold by plans, as the rest of the program sees it. */
export type SellingConfig = {
  readonly plans: Plans;
  /** Whether the configuration says anything about it. */
  readonly isConfigured: boolean;
};

export function toSelling(given: SellingSection | undefined): SellingConfig {
  return { plans: plansOf((given?.plans ?? []).map(toPlan)), isConfigured: given !== undefined };
}

function toPlan({ id, observe, settle }: SellingSection['plans'][number]): SalesPlan {
  return { id, observe, settle: settle === 'inherit' ? undefined : settle, customers: [], free: undefined };
}

type RawSection = Readonly<Record<string, unknown>>;

/** Complaints that need more than one key, or the time; `raw` may be wrong in any way. */
export function sellingIssues(raw: RawSection, nowMs: number): Issue[] {
  return [...observationIssues(raw, nowMs), ...planIdIssues(raw)];
}

function observationIssues(raw: RawSection, nowMs: number): Issue[] {
  return plansIn(raw).flatMap((given, index): Issue[] => {
    const until = valueAt(given, ['observe', 'until']);
    if (typeof until !== 'string' || !isTime(until)) return [];
    if (Date.parse(until) - nowMs <= LONGEST_OBSERVATION_DAYS * DAY_MS) return [];
    const latest = new Date(nowMs + LONGEST_OBSERVATION_DAYS * DAY_MS).toISOString().slice(0, 10);
    const message = `is more than ${LONGEST_OBSERVATION_DAYS} days ahead, and a dry run that nobody ends is a free API; write a day up to ${latest}`;
    return [{ path: ['selling', 'plans', index, 'observe', 'until'], message }];
  });
}

/** A route of the file that names no plan of the file would be 503 for ever. */
function planIdIssues(raw: RawSection): Issue[] {
  const { routes, proxy } = raw;
  if (!Array.isArray(routes) || (!isMap(proxy) && !isMap(raw['selling']))) return [];
  const ids = plansIn(raw).flatMap((given) => {
    const id = valueAt(given, ['id']);
    return typeof id === 'string' ? [id] : [];
  });
  // A plan without a readable id may be the one that is meant.
  if (ids.length < plansIn(raw).length) return [];
  return routes.flatMap((route: unknown, index): Issue[] => {
    const named = valueAt(route, ['plan_id']);
    if (typeof named !== 'string' || ids.includes(named)) return [];
    const meant = suggest(named, ids);
    const advice = meant === undefined ? 'write the id of one of `selling.plans`' : `did you mean ${meant}?`;
    return [{ path: ['routes', index, 'plan_id'], message: `names no plan; ${advice}` }];
  });
}

function plansIn(raw: RawSection): readonly unknown[] {
  const plans = valueAt(raw, ['selling', 'plans']);
  return Array.isArray(plans) ? plans : [];
}
