// The `selling` section: plans, by which routes are sold besides their price, and rules about them that need more than one
// key. What makes a request cheaper or free stands here and nowhere else: a registry only names a plan.
import { z } from 'zod';
import { plansOf, type SalesPlan, type Plans } from '../domain/selling/plan.ts';
import { suggest } from '../domain/suggest.ts';
import { WINDOW_LENGTHS } from '../domain/selling/window.ts';
import type { CustomerEntries } from '../domain/selling/customer.ts';
import { customerIssues, customerSection, toCustomer } from './customers.ts';
import { choice, count, identifier, text } from './fields.ts';
import { key, section } from './keys.ts';
import { meterIssues, meterSection, toMeter } from './meter.ts';
import { passIssues, passKeys, toPass } from './passes.ts';
import { price, priceIssues, toPlanPrice } from './price.ts';
import { isMap, valueAt, type Issue } from './problems.ts';

const MOST_PLANS = 64;
const MOST_CUSTOMERS = 64;
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

const free = section({
  requests: key('requests', count(1, 1_000_000_000), 'Requests of one identity in the window that cost nothing.'),
  window: key('window', choice(WINDOW_LENGTHS), 'The window, in UTC.'),
  by: key(
    'by',
    choice(['address', 'customer']).default('address'),
    'Whose requests they are: those of an address (IPv6: of a /64), or of the id in a trusted `customer_header`.',
  ),
  identities: key(
    'identities',
    count(1, 10_000_000).default(100_000),
    'Most identities that have free requests in one window; further ones pay.',
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
  customers: key(
    'customers',
    z.array(text('the id of an entry of `selling.customers`')).default([]),
    'Who passes without paying: ids of `selling.customers`.',
  ),
  free: key('free', free.optional(), 'Free requests. Left out: none.'),
  meter: key(
    'meter',
    meterSection.optional(),
    'Requests take of a pass by credit what their responses say, the price at most. Left out: the price.',
  ),
  ...passKeys,
  price: key('price', price.optional(), "What a request costs, by what it asks for. Left out: the route's amount."),
});

export function sellingSection(folder: string) {
  return section({
    public_keys_listen: key(
      'publicKeysListen',
      choice(['admin', 'registry']).default('admin'),
      'The listener that serves the public keys of `assertion`, at /.well-known/jwks.json. In a sidecar `registry` is `sync.listen`.',
    ),
    plans: key(
      'plans',
      z.array(plan).max(MOST_PLANS, `holds more than ${MOST_PLANS} plans; take some out`).default([]),
      `How routes are sold besides their price: up to ${MOST_PLANS} plans. A route's \`plan_id\` names one.`,
    ),
    customers: key(
      'customers',
      z.array(customerSection(folder)).max(MOST_CUSTOMERS, `holds more than ${MOST_CUSTOMERS} entries`).default([]),
      'Who need not pay. An entry has exactly one of `keys_file`, `jwt`, `networks` and `ask`.',
    ),
  });
}

type SellingSection = z.output<ReturnType<typeof sellingSection>>;

/** What is sold by plans, as the rest of the program sees it. */
export type SellingConfig = {
  readonly plans: Plans;
  readonly customers: CustomerEntries;
  /** Listener that serves the public keys of assertions. */
  readonly publicKeysListen: SellingSection['publicKeysListen'];
  /** Whether the configuration says anything about plans. */
  readonly isConfigured: boolean;
};

export function toSelling(given: SellingSection | undefined): SellingConfig {
  const { plans = [], customers = [], publicKeysListen = 'admin' } = given ?? {};
  return {
    plans: plansOf(plans.map(toPlan)),
    customers: new Map(customers.map((entry) => [entry.id, toCustomer(entry)])),
    publicKeysListen,
    isConfigured: plans.length > 0 || customers.length > 0,
  };
}

function toPlan({ settle, passes, meter, price: given, ...plan }: SellingSection['plans'][number]): SalesPlan {
  return {
    ...plan,
    settle: settle === 'inherit' ? undefined : settle,
    passes: passes.map((pass) => toPass(pass, meter !== undefined)),
    meter: meter && toMeter(meter),
    price: given === undefined ? undefined : toPlanPrice(given),
  };
}

type RawSection = Readonly<Record<string, unknown>>;

/** Complaints that need more than one key, or the time; `raw` may be wrong in any way. */
export function sellingIssues(raw: RawSection, nowMs: number): Issue[] {
  return [
    ...[...observationIssues(raw, nowMs), ...planIdIssues(raw), ...entryIssues(raw), ...freeIssues(raw)],
    ...plansIn(raw).flatMap((each, index) => passIssues(each, ['selling', 'plans', index], raw)),
    ...plansIn(raw).flatMap((each, index) =>
      priceIssues(valueAt(each, ['price']), ['selling', 'plans', index, 'price']),
    ),
    ...plansIn(raw).flatMap((each, index) => meterIssues(each, ['selling', 'plans', index], raw)),
  ];
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

/** Entries that are wrong as a whole, and plans that name an entry that is not there. */
function entryIssues(raw: RawSection): Issue[] {
  const given = valueAt(raw, ['selling', 'customers']);
  const entries: readonly unknown[] = Array.isArray(given) ? given : [];
  const ids = entries.map((entry) => valueAt(entry, ['id']));
  const known = ids.filter((id) => typeof id === 'string');
  const issues = entries.flatMap((entry, index) => customerIssues(entry, ['selling', 'customers', index]));
  if (known.length < ids.length) return issues;
  const named = plansIn(raw).flatMap((each, index): Issue[] => {
    const customers = valueAt(each, ['customers']);
    return (Array.isArray(customers) ? customers : []).flatMap((id: unknown, at): Issue[] => {
      if (typeof id !== 'string' || known.includes(id)) return [];
      const meant = suggest(id, known);
      const advice = meant === undefined ? 'write the id of one of `selling.customers`' : `did you mean ${meant}?`;
      return [{ path: ['selling', 'plans', index, 'customers', at], message: `names nobody; ${advice}` }];
    });
  });
  return [...issues, ...named];
}

/** A customer id that a client may make up would give everybody as many free requests as they like. */
function freeIssues(raw: RawSection): Issue[] {
  const trusted = valueAt(raw, ['proxy', 'customer_header_trusted']);
  if (!isMap(raw['proxy']) || trusted === true || trusted === 'true') return [];
  return plansIn(raw).flatMap((each, index): Issue[] => {
    if (valueAt(each, ['free', 'by']) !== 'customer') return [];
    const message =
      'is customer, but proxy.customer_header_trusted is not true: clients would make up as many customers as they like; write address';
    return [{ path: ['selling', 'plans', index, 'free', 'by'], message }];
  });
}
