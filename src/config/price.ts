// The keys of `price` of a plan: rules, units and a service, by which a request costs what it asks for. Beside the schema
// stand the rules that need more than one key, which look at data that may still be wrong in any way.
import { z } from 'zod';
import { AMOUNT_ADVICE, comparePrices, isPrice, parsePrice, type Price } from '../domain/payment/money.ts';
import { foldName } from '../domain/selling/fold-name.ts';
import {
  inputsOf,
  nameInput,
  type PlanPrice,
  type PriceCondition,
  type PriceInput,
  type PriceRule,
} from '../domain/selling/price.ts';
import { MOST_VALUE_BYTES } from '../domain/selling/price-inputs.ts';
import { choice, count, described, duration, isSafeUrl, text } from './fields.ts';
import { key, section } from './keys.ts';
import { isMap, valueAt, type Issue, type Path } from './problems.ts';

const MOST_RULES = 32;
const MOST_VALUES = 100;
const MOST_INPUTS = 32;
const MOST_NUMBER = 1_000_000_000_000;
const NAME = '[A-Za-z0-9_.~-]{1,64}';
const ONE_INPUT = new RegExp(`^(?:length|(?:query|param)\\.${NAME}|header\\.[A-Za-z0-9-]{1,64})$`);
const INPUT = new RegExp(`^(?:(?:query|param)\\.\\*|${ONE_INPUT.source.slice(1, -1)})$`);
/** Headers that do not go upstream as they came, or that hold a secret, which a log must not tell. */
const RESERVED =
  /^(?:tollgate.*|payment-.*|x-payment.*|x-forwarded-.*|x-real-ip|forwarded|x-accel-.*|x-sendfile.*|x-middleware-.*|x-invoke-.*|x-host|x-now-route-matches|x-http-method.*|x-method-override|x-request-id|traceparent|tracestate|if-.*|range|host|connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|expect|http2-settings|content-length|accept-encoding|cookie|authorization|sign-in-with-x|idempotency-key|(?:.*-)?(?:path-info|path-translated|request-uri|script-.*|(?:orig(?:inal)?|rewrite|rewritten|override|real|matched|unencoded)-.*|(?:url|uri|path|host)-override))$/i;

const INPUT_ADVICE =
  'query.NAME, header.NAME, param.NAME or length, with a name of up to 64 letters, digits, dashes and underscores';
const isReserved = (input: string): boolean => input.startsWith('header.') && RESERVED.test(input.slice(7));
const OWN_MEANING =
  'is a header that your API does not get as the client sends it, or that holds a secret; name another';

const oneInput = text(INPUT_ADVICE, (value) => ONE_INPUT.test(value)).refine((value) => !isReserved(value), {
  error: OWN_MEANING,
});
const anyInput = text(`${INPUT_ADVICE}, or query.* and param.* for all`, (value) => INPUT.test(value)).refine(
  (value) => !isReserved(value),
  { error: OWN_MEANING },
);

const amount = (advice: string = AMOUNT_ADVICE) => text(advice, isPrice).transform(priceOf);
const value = text(
  `a value of up to ${MOST_VALUE_BYTES} bytes, with a * at its end for any that begin so`,
  (given) => Buffer.byteLength(given) <= MOST_VALUE_BYTES && !given.slice(0, -1).includes('*'),
);

const conditions = described(
  z
    .record(
      oneInput,
      z
        .array(value)
        .min(1, 'is empty; write the values of which the request must have one')
        .max(MOST_VALUES, `holds more than ${MOST_VALUES} values`),
      {
        error: ({ input }) =>
          `${input === undefined ? 'is missing' : 'is not a section of inputs'}; write each input, such as query.size, with the list of its values`,
      },
    )
    .refine((given) => Object.keys(given).length > 0, { error: 'is empty; write an input with its values' }),
  'inputs, each with a list of values',
);

const rule = section({
  when: key(
    'when',
    conditions,
    'What a request must have: each input with its values, exact or up to a `*` at the end. All of them have to fit.',
  ),
  amount: key('amount', amount().optional(), 'What the request costs then, in the currency of its route.'),
  times: key(
    'times',
    amount('a decimal written as a string, such as "3" or "0.5", greater than 0').optional(),
    'What the request costs then, as a multiple of the amount of its route. In place of `amount`.',
  ),
});

const units = section({
  of: key('of', oneInput, 'The input that counts: a whole number, or `length`, the bytes of the body.'),
  amount: key('amount', amount(), 'What a unit costs, added to the price.'),
  per: key('per', count(1, MOST_NUMBER).default(1), 'So many make one unit; the last one counts whole.'),
  free: key('free', count(0, MOST_NUMBER).default(0), 'So many cost nothing.'),
  max: key('max', count(1, MOST_NUMBER), 'The largest number; a request with a larger one is 400.'),
  missing: key(
    'missing',
    count(0, MOST_NUMBER).optional(),
    'What a request without the number counts as: what your API takes then. Needed, but for `length`.',
  ),
});

const headers = described(
  z.record(
    text('a header name of letters, digits and dashes', (name) => /^[A-Za-z0-9-]{1,64}$/.test(name)),
    text('a header value of visible ASCII', (given) => /^[\x20-\x7e]{0,4096}$/.test(given)),
    { error: 'is not a section of headers; write each name with its value' },
  ),
  'names and values',
);

const service = section({
  url: key(
    'url',
    text('an https URL, or http to a loopback or private address', isSafeUrl),
    'The URL that is asked for the price, by POST. Redirects are not followed.',
  ),
  min: key('min', amount(), 'The lowest price that it may say.'),
  max: key('max', amount(), 'The highest price that it may say.'),
  timeout: key('timeoutMs', duration(10, 30_000).prefault('500ms'), 'Time for its answer.'),
  cache: key(
    'cacheMs',
    duration(0, 86_400_000).prefault('30s'),
    'How long an answer is good for equal requests; the `ttl` of the answer may be shorter. `0s`: not at all.',
  ),
  inputs: key(
    'inputs',
    z.array(anyInput).max(MOST_INPUTS, `holds more than ${MOST_INPUTS} inputs`).default([]),
    'What it is told of the request, beside method, path and route.',
  ),
  headers: key('headers', headers.default({}), 'Headers that are sent with every question.'),
  when_away: key(
    'whenAway',
    choice(['refuse', 'route']).default('refuse'),
    "While it cannot say: `refuse` answers 503, `route` asks for the route's amount.",
  ),
});

export const price = section({
  rules: key(
    'rules',
    z.array(rule).max(MOST_RULES, `holds more than ${MOST_RULES} rules`).default([]),
    "The first rule that fits says the price; if none does, it is the route's amount.",
  ),
  units: key('units', units.optional(), 'A price for each unit of a number in the request, added.'),
  service: key('service', service.optional(), 'A service of yours that says the price.'),
});

type PriceSection = z.output<typeof price>;

export function toPlanPrice({ rules, units: given, service: asked }: PriceSection): PlanPrice {
  return {
    rules: rules.map((each): PriceRule => ({
      when: Object.entries(each.when).map(([input, values]) => toCondition(input, values)),
      base:
        each.times === undefined
          ? { kind: 'amount', amount: each.amount ?? NOTHING }
          : { kind: 'times', factor: each.times },
    })),
    units: given && { ...given, of: toInput(given.of), missing: given.missing ?? 0 },
    service: asked && { ...asked, inputs: asked.inputs.map(toInput) },
  };
}

function toCondition(input: string, values: readonly string[]): PriceCondition {
  const isBeginning = (each: string): boolean => each.endsWith('*');
  return {
    input: toInput(input),
    exact: new Set(values.filter((each) => !isBeginning(each))),
    beginnings: values.filter(isBeginning).map((each) => each.slice(0, -1)),
  };
}

function toInput(written: string): PriceInput {
  if (written === 'length') return { kind: 'length' };
  const point = written.indexOf('.');
  const [kind, name] = [written.slice(0, point), written.slice(point + 1)];
  if (kind === 'header') return { kind, name: name.toLowerCase() };
  const of = kind === 'param' ? 'param' : 'query';
  return name === '*' ? { kind: 'all', of } : { kind: of, name };
}

const NOTHING: Price = { units: 0n, scale: 0 };

function priceOf(written: string): Price {
  return parsePrice(written) ?? NOTHING;
}

/** Complaints about the price of one plan; `given` may be wrong in any way. */
export function priceIssues(given: unknown, path: Path): Issue[] {
  if (!isMap(given)) return [];
  const isEmpty = Object.entries(given).every(
    ([name, each]) => name === 'rules' && Array.isArray(each) && each.length === 0,
  );
  if (isEmpty) return [{ path, message: 'says nothing; write rules, units or service' }];
  return [
    ...ruleIssues(given, path),
    ...unitIssues(given, path),
    ...boundIssues(given, path),
    ...nameIssues(given, path),
  ];
}

function ruleIssues(given: unknown, path: Path): Issue[] {
  const rules = valueAt(given, ['rules']);
  return (Array.isArray(rules) ? rules : []).flatMap((each: unknown, index): Issue[] => {
    if (!isMap(each)) return [];
    const has = ['amount', 'times'].filter((name) => each[name] !== undefined).length;
    const message = has === 0 ? 'has no price; write amount or times' : 'has amount and times; take one of them out';
    return has === 1 ? [] : [{ path: [...path, 'rules', index], message }];
  });
}

function unitIssues(given: unknown, path: Path): Issue[] {
  const [of, missing, max, free] = ['of', 'missing', 'max', 'free'].map((name) => valueAt(given, ['units', name]));
  if (!isMap(valueAt(given, ['units']))) return [];
  const issues: Issue[] = [];
  if (missing === undefined && of !== 'length')
    issues.push({
      path: [...path, 'units', 'missing'],
      message: 'is missing; write what a request without the number counts as: what your API takes then',
    });
  if (typeof missing === 'number' && typeof max === 'number' && missing > max)
    issues.push({ path: [...path, 'units', 'missing'], message: 'is more than max; write at most that' });
  if (typeof free === 'number' && typeof max === 'number' && free >= max)
    issues.push({
      path: [...path, 'units', 'free'],
      message: 'is not less than max: no unit would ever cost anything',
    });
  return issues;
}

function boundIssues(given: unknown, path: Path): Issue[] {
  const [min, max] = ['min', 'max'].map((name) => valueAt(given, ['service', name]));
  const [least, most] = [min, max].map((each) => (typeof each === 'string' ? parsePrice(each) : undefined));
  if (least === undefined || most === undefined || comparePrices(least, most) <= 0) return [];
  return [{ path: [...path, 'service', 'max'], message: 'is less than min; write at least that' }];
}

/** Two inputs of which no request could send one alone: each is another spelling of the other. */
function nameIssues(given: unknown, path: Path): Issue[] {
  const parsed = price.safeParse(given);
  if (!parsed.success) return [];
  const byFold = new Map<string, string>();
  for (const input of inputsOf(toPlanPrice(parsed.data))) {
    if (input.kind !== 'query') continue;
    const [fold, name] = [foldName(input.name), nameInput(input)];
    const other = byFold.get(fold);
    if (other !== undefined) {
      const message = `names ${other} and ${name}, which some APIs read as one; name one of them`;
      return [{ path, message }];
    }
    byFold.set(fold, name);
  }
  return [];
}
