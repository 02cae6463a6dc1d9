// The price that a plan makes of what a request asks: the first rule that fits chooses the base, units are added, and a
// price service may replace the sum within its bounds. It stands in the configuration. Sums are exact integers, never a
// float, never rounded.
import { addPrices, comparePrices, multiplyPrices, timesPrice, withinDigits, type Price } from '../payment/money.ts';
import { problem, type Problem } from '../problem.ts';

/** Part of a request that a price depends on. */
export type PriceInput =
  | { readonly kind: 'query' | 'header' | 'param'; readonly name: string }
  /** Every parameter of the query, or of the pattern. */
  | { readonly kind: 'all'; readonly of: 'query' | 'param' }
  | { readonly kind: 'length' };

/** Inputs of one request by their names, such as `query.size`; undefined: the request has none of that name. */
export type PriceInputs = ReadonlyMap<string, string | undefined>;

export type PlanPrice = {
  /** The first that fits chooses the base of the price; none: it is the route's amount. */
  readonly rules: readonly PriceRule[];
  /** Added to the base; undefined: nothing is. */
  readonly units: UnitPrice | undefined;
  /** Asked for the price; undefined: nobody is. */
  readonly service: PriceService | undefined;
};

export type PriceRule = {
  /** Every one has to fit. */
  readonly when: readonly PriceCondition[];
  readonly base:
    | { readonly kind: 'amount'; readonly amount: Price }
    /** A multiple of the route's amount. */
    | { readonly kind: 'times'; readonly factor: Price };
};

/** An input has one of these values. */
export type PriceCondition = {
  readonly input: PriceInput;
  readonly exact: ReadonlySet<string>;
  /** Beginnings of values. */
  readonly beginnings: readonly string[];
};

/** A price for each unit of a number that the request names. `free`, `max` and `missing` are in the number's own measure. */
export type UnitPrice = {
  readonly of: PriceInput;
  readonly amount: Price;
  /** So many make one unit; the last one counts whole. */
  readonly per: number;
  /** So many cost nothing. */
  readonly free: number;
  readonly max: number;
  /** What a request without the number counts as. */
  readonly missing: number;
};

export type PriceService = {
  readonly url: string;
  /** Bounds of what it may say. */
  readonly min: Price;
  readonly max: Price;
  readonly timeoutMs: number;
  /** Milliseconds for which an answer is kept; 0: it is not. */
  readonly cacheMs: number;
  readonly inputs: readonly PriceInput[];
  readonly headers: Readonly<Record<string, string>>;
  /** What a request costs while the service cannot say: the route's amount, or nothing passes. */
  readonly whenAway: 'refuse' | 'route';
};

/** Name of an input as people write it. */
export function nameInput(input: PriceInput): string {
  switch (input.kind) {
    case 'length':
      return 'length';
    case 'all':
      return `${input.of}.*`;
    case 'query':
    case 'header':
    case 'param':
      return `${input.kind}.${input.name}`;
    default:
      return input satisfies never;
  }
}

/** Everything of a request that a price depends on, each once, in the order of their names. */
export function inputsOf({ rules, units, service }: PlanPrice): readonly PriceInput[] {
  const all = [
    ...rules.flatMap(({ when }) => when.map(({ input }) => input)),
    ...(units === undefined ? [] : [units.of]),
    ...(service?.inputs ?? []),
  ];
  const byName = new Map(all.map((input) => [nameInput(input), input]));
  return [...byName.keys()].toSorted().flatMap((name) => byName.get(name) ?? []);
}

/** The sum of a plan's rules and units for one request. */
export type PriceSum = { readonly price: Price; readonly rule: number | undefined; readonly units: number | undefined };

/** Sums up what a request costs on a route of `own` price, or why that cannot be told. */
export function sumPrice({ rules, units }: PlanPrice, own: Price, inputs: PriceInputs): PriceSum | Problem {
  let base = own;
  let chosen: number | undefined;
  for (const [index, rule] of rules.entries()) {
    const fitting = ruleFits(rule, inputs);
    if (typeof fitting === 'object') return fitting;
    if (!fitting) continue;
    base = baseOf(rule, own);
    chosen = index;
    break;
  }
  let price = base;
  let count: number | undefined;
  if (units !== undefined) {
    const counted = countUnits(units, inputs);
    if (typeof counted === 'object') return counted;
    count = counted;
    price = addPrices(base, timesPrice(units.amount, BigInt(counted)));
  }
  return withinDigits(price) ? { price, rule: chosen, units: count } : unpayable();
}

export function unpayable(): Problem {
  return problem('price_unpayable', 'What this request would cost has more digits than a price may have.');
}

function baseOf({ base }: PriceRule, own: Price): Price {
  return base.kind === 'amount' ? base.amount : multiplyPrices(own, base.factor);
}

function ruleFits({ when }: PriceRule, inputs: PriceInputs): boolean | Problem {
  for (const condition of when) {
    const { input } = condition;
    const name = nameInput(input);
    const value = inputs.get(name);
    if (value === undefined) return false;
    const isFitting = valueFits(condition, value);
    // Routers cut different ends off a segment: it has to mean the same however much of it the API reads.
    if (input.kind === 'param' && readingsOf(value).some((each) => valueFits(condition, each) !== isFitting))
      return ambiguous(`${name} can be read in two ways that cost different amounts`);
    if (!isFitting) return false;
  }
  return true;
}

function valueFits({ exact, beginnings }: PriceCondition, value: string): boolean {
  return exact.has(value) || beginnings.some((beginning) => value.startsWith(beginning));
}

const CUT = /[.;,&+?#]/;

/** Shorter readings of a path's segment: up to its first mark, and without its suffix. */
function readingsOf(value: string): readonly string[] {
  const first = value.search(CUT);
  if (first < 0) return NO_READINGS;
  const dot = value.lastIndexOf('.');
  return dot > first ? [value.slice(0, first), value.slice(0, dot)] : [value.slice(0, first)];
}

const NO_READINGS: readonly string[] = [];
const INTEGER = /^(?:0|[1-9]\d{0,14})$/;

function countUnits(units: UnitPrice, inputs: PriceInputs): number | Problem {
  const name = nameInput(units.of);
  const value = inputs.get(name);
  if (value === undefined) return unitsFor(units, units.missing);
  const number = INTEGER.test(value) ? Number(value) : Infinity;
  return number <= units.max
    ? unitsFor(units, number)
    : ambiguous(`${name} must be a whole number from 0 to ${units.max}, without a sign or leading zeros`);
}

function unitsFor({ free, per }: UnitPrice, number: number): number {
  return Math.ceil(Math.max(0, number - free) / per);
}

/** The highest price that a plan can make for a route of `own` price. */
export function highestSum({ rules, units, service }: PlanPrice, own: Price): Price {
  const most = [own, ...rules.map((rule) => baseOf(rule, own))].reduce(dearer);
  const sum =
    units === undefined
      ? most
      : addPrices(most, timesPrice(units.amount, BigInt(unitsFor(units, Math.max(units.max, units.missing)))));
  if (service === undefined) return sum;
  return service.whenAway === 'route' ? dearer(service.max, own) : service.max;
}

/** The lowest price that a plan can make for a route of `own` price: a request may name no units. */
export function lowestSum({ rules, service }: PlanPrice, own: Price): Price {
  const least = [own, ...rules.map((rule) => baseOf(rule, own))].reduce(cheaper);
  if (service === undefined) return least;
  return service.whenAway === 'route' ? cheaper(service.min, own) : service.min;
}

function dearer(a: Price, b: Price): Price {
  return comparePrices(a, b) < 0 ? b : a;
}

function cheaper(a: Price, b: Price): Price {
  return comparePrices(b, a) < 0 ? b : a;
}

/** Refuses a request whose price cannot be told, because two programs could read two things into it. */
export function ambiguous(what: string): Problem {
  return problem('price_ambiguous', `What this request costs cannot be told: ${what}.`);
}
