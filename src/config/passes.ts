// The keys of a plan about passes: what can be bought beforehand, and how somebody shows that he has. A pass gives exactly one
// of seconds, uses and credit. Rules that need more than one key stand below: two equal amounts could not be told apart by
// what was paid.
import { z } from 'zod';
import { comparePrices, parsePrice, toAtomic } from '../domain/payment/money.ts';
import { PASS_SCOPES, type PassMeasure, type PassTerms } from '../domain/selling/pass.ts';
import { choice, count, described, duration, flag, identifier } from './fields.ts';
import { key, section } from './keys.ts';
import { isMap, valueAt, type Issue, type Path } from './problems.ts';
import { amountOf } from './route-keys.ts';

const MOST_PASSES = 4;
const DAY_MS = 86_400_000;
const MOST_VALID_MS = 800 * DAY_MS;
const USUAL_VALID_MS = 365 * DAY_MS;
const MEASURES = ['seconds', 'uses', 'credit'];

const price = (what: string) => described(amountOf(what), 'a decimal in quotes, such as "0.10"');

const pass = section({
  id: key('id', identifier('a name of this pass'), 'The name of the pass, in 402 answers, metrics and lists.'),
  amount: key(
    'amount',
    price('the price of the pass'),
    'The price of the pass, in the currency of the route that it is bought on.',
  ),
  seconds: key(
    'seconds',
    count(1, MOST_VALID_MS / 1000).optional(),
    'A pass by time: every request of its scope passes for so many seconds from the payment on.',
  ),
  uses: key(
    'uses',
    count(1, 1_000_000_000).optional(),
    'A pass by uses: so many requests of its scope, the one that buys it included.',
  ),
  credit: key(
    'credit',
    price('the credit').optional(),
    'A pass by credit: requests of its scope take their price from it, the one that buys it included.',
  ),
  valid: key(
    'validMs',
    duration(60_000, MOST_VALID_MS).optional(),
    'The life of a pass by uses or credit. What is left at its end lapses. Left out: 365d.',
  ),
  scope: key(
    'scope',
    choice(PASS_SCOPES).default('plan'),
    'What the pass is good for: all routes of the plan, or the route that it is bought on.',
  ),
});

/** The keys of a plan that are about passes. */
export const passKeys = {
  passes: key(
    'passes',
    z.array(pass).max(MOST_PASSES, `holds more than ${MOST_PASSES} passes; take some out`).default([]),
    `What can be bought beforehand: up to ${MOST_PASSES} passes, each with exactly one of \`seconds\`, \`uses\` and \`credit\`.`,
  ),
  single: key('single', flag().default(true), 'Whether single requests are sold too. `false`: passes alone are.'),
  wallet: key(
    'wallet',
    flag().default(true),
    'Whether a wallet finds the pass that it bought by its signature (`sign-in-with-x`). Needs `proxy.public_url`.',
  ),
  cookie: key('cookie', flag().default(false), 'Whether browsers are given passes by seconds as a cookie.'),
};

/** `isMetered`: requests take of a credit what their responses say. */
export function toPass(
  { seconds, uses, credit, validMs, ...rest }: z.output<typeof pass>,
  isMetered: boolean,
): PassTerms {
  const measure: PassMeasure =
    seconds !== undefined
      ? { kind: 'seconds', seconds }
      : uses !== undefined
        ? { kind: 'uses', uses }
        : { kind: 'credit', credit: credit ?? '', ...(isMetered ? { isMetered } : {}) };
  return { ...rest, ...measure, validMs: seconds === undefined ? (validMs ?? USUAL_VALID_MS) : seconds * 1000 };
}

type RawSection = Readonly<Record<string, unknown>>;

/** Complaints about the passes of one plan, which stands at `path`; `raw` may be wrong in any way. */
export function passIssues(plan: unknown, path: Path, raw: RawSection): Issue[] {
  const given = valueAt(plan, ['passes']);
  const passes: readonly unknown[] = Array.isArray(given) ? given : [];
  const issues = passes.flatMap((each, index) => measureIssues(each, [...path, 'passes', index]));
  issues.push(...sameIssues(passes, path), ...routeIssues(plan, passes, path, raw));
  issues.push(...decimalIssues(passes, path, raw));
  if (valueAt(plan, ['single']) === false && passes.length === 0)
    issues.push({
      path: [...path, 'single'],
      message: 'is false, but the plan has no passes: nothing would be for sale',
    });
  if (valueAt(plan, ['cookie']) === true && !passes.some((each) => valueAt(each, ['seconds']) !== undefined))
    issues.push({
      path: [...path, 'cookie'],
      message: 'is true, but no pass of the plan is by seconds, and only those come as a cookie; take it out',
    });
  return issues;
}

function measureIssues(pass: unknown, path: Path): Issue[] {
  if (!isMap(pass)) return [];
  const given = MEASURES.filter((name) => pass[name] !== undefined);
  const [first = '', second] = given;
  if (given.length === 0)
    return [{ path, message: 'says nothing of what it gives; write exactly one of seconds, uses and credit' }];
  if (second !== undefined)
    return [
      { path: [...path, second], message: `stands beside ${first}; write exactly one of seconds, uses and credit` },
    ];
  return first === 'seconds' && pass['valid'] !== undefined
    ? [{ path: [...path, 'valid'], message: 'stands beside seconds, which say how long the pass lives; take it out' }]
    : [];
}

function sameIssues(passes: readonly unknown[], path: Path): Issue[] {
  return passes.flatMap((each, index): Issue[] => {
    const before = passes.slice(0, index);
    const id = valueAt(each, ['id']);
    const price = priceAt(each);
    const at = [...path, 'passes', index];
    if (typeof id === 'string' && before.some((other) => valueAt(other, ['id']) === id))
      return [{ path: [...at, 'id'], message: 'is that of another pass of the plan; write one of its own' }];
    const isSame = before.some((other) => isSamePrice(priceAt(other), price));
    if (!isSame) return [];
    const message = 'is that of another pass of the plan: what was paid would not say what was bought; write another';
    return [{ path: [...at, 'amount'], message }];
  });
}

/** Routes of the file whose single price is that of a pass. */
function routeIssues(plan: unknown, passes: readonly unknown[], path: Path, { routes }: RawSection): Issue[] {
  if (valueAt(plan, ['single']) === false || !Array.isArray(routes)) return [];
  const id = valueAt(plan, ['id']);
  const prices = routes.flatMap((route: unknown) => {
    const named = valueAt(route, ['plan_id']) ?? 'default';
    return named === id ? (priceAt(route) ?? []) : [];
  });
  return passes.flatMap((each, index): Issue[] => {
    const price = priceAt(each);
    if (!prices.some((other) => isSamePrice(other, price))) return [];
    const message = 'is the price of a single request of a route of this plan; write another';
    return [{ path: [...path, 'passes', index, 'amount'], message }];
  });
}

/** Amounts with more decimals than any asset that is taken here. */
function decimalIssues(passes: readonly unknown[], path: Path, { receivers }: RawSection): Issue[] {
  const given: readonly unknown[] = Array.isArray(receivers) ? receivers : [];
  const decimals = given.flatMap((receiver) => {
    const ways = valueAt(receiver, ['ways']);
    return [receiver, ...(Array.isArray(ways) ? ways : [])].map((way) => valueAt(way, ['asset_decimals']));
  });
  const written = decimals.filter((each) => typeof each === 'number');
  const most = Math.max(USUAL_DECIMALS, ...written);
  return passes.flatMap((each, index): Issue[] => {
    const price = priceAt(each);
    if (price === undefined || toAtomic(price, most) !== undefined) return [];
    const message = `cannot be paid: no asset of a receiver has more than ${most} decimals`;
    return [{ path: [...path, 'passes', index, 'amount'], message }];
  });
}

/** Decimals of the assets that are known by name: USDC and its like. */
const USUAL_DECIMALS = 6;

function priceAt(holder: unknown): ReturnType<typeof parsePrice> {
  const amount = valueAt(holder, ['amount']);
  return typeof amount === 'string' ? parsePrice(amount) : undefined;
}

function isSamePrice(one: ReturnType<typeof parsePrice>, other: ReturnType<typeof parsePrice>): boolean {
  return one !== undefined && other !== undefined && comparePrices(one, other) === 0;
}
