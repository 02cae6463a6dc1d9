// The `meter` of a plan: the price of a request is the most that it takes of a pass by credit, and its response says what it
// takes. Below stand the rules that need more than one key. Every way that there is pays an exact amount beforehand, so a
// metered plan sells credit and nothing else by the request.
import { comparePrices, parsePrice, type Price } from '../domain/payment/money.ts';
import type { Meter } from '../domain/selling/meter/meter.ts';
import type { z } from 'zod';
import { choice, count, described, text } from './fields.ts';
import { key, section } from './keys.ts';
import { isMap, valueAt, type Issue, type Path } from './problems.ts';
import { amountText } from './route-keys.ts';

const MOST_TAIL_BYTES = 1024 * 1024;
const USUAL_TAIL_BYTES = 16 * 1024;
const MOST_NAMES = 16;
const MOST_PATH = 256;
const PATH = 'names of members with dots between them, such as usage.total_tokens';

function isPath(value: string): boolean {
  const names = value.split('.');
  return value.length <= MOST_PATH && names.length <= MOST_NAMES && names.every((name) => name !== '');
}

const unit = described(amountText.clone(), 'a decimal in quotes, such as "0.000002"');

export const meterSection = section({
  from: key(
    'source',
    choice(['header', 'trailer', 'usage']),
    'What says how much is taken: the header `Tollgate-Charge-Amount` of the response, a trailer of that name, or a number in its body (`usage`).',
  ),
  missing: key(
    'missing',
    choice(['max', 'zero']).default('max'),
    'What is taken if the amount is missing, malformed, there twice, or the client left before it came: the price, or nothing.',
  ),
  unit: key('unit', unit.optional(), 'The price of one unit of `usage`, in the currency of the route.'),
  usage: key(
    'path',
    text(PATH, isPath).optional(),
    'The number of units in a JSON body, or in the last event of a stream that has it. Only objects are gone into.',
  ),
  tail: key(
    'tailBytes',
    count(1, MOST_TAIL_BYTES).default(USUAL_TAIL_BYTES),
    'Bytes of data in an event of a stream; larger ones are not read.',
  ),
});

const NO_UNIT: Price = { units: 0n, scale: 0 };

export function toMeter({ source, missing, unit, path, tailBytes }: z.output<typeof meterSection>): Meter {
  if (source !== 'usage') return { missing, source: { kind: source } };
  const price = parsePrice(unit ?? '') ?? NO_UNIT;
  return { missing, source: { kind: source, path: (path ?? '').split('.'), unit: price, tailBytes } };
}

/** Complaints about the meter of one plan, which stands at `path`; plan and configuration may be wrong in any way. */
export function meterIssues(plan: unknown, path: Path, raw: Readonly<Record<string, unknown>>): Issue[] {
  const meter = valueAt(plan, ['meter']);
  if (!isMap(meter)) return [];
  const at = [...path, 'meter'];
  const issues: Issue[] = [];
  const { from } = meter;
  if (from === 'usage')
    for (const [name, advice] of Object.entries(NEEDED))
      if (meter[name] === undefined) issues.push({ path: [...at, name], message: `is missing; write ${advice}` });
  const given = valueAt(plan, ['passes']);
  const passes: readonly unknown[] = Array.isArray(given) ? given : [];
  if (!passes.some((pass) => valueAt(pass, ['credit']) !== undefined))
    issues.push({
      path: at,
      message: 'takes what a request costs of a pass by credit, and the plan has none; add one to `passes`',
    });
  const single = valueAt(plan, ['single']);
  if (single === undefined || single === true)
    issues.push({
      path: [...path, 'single'],
      message: 'is true, but a payment of a single request is exact and pays no metered one; write false',
    });
  issues.push(...routeIssues(plan, passes, raw));
  return issues;
}

/** Routes of the file that cost more than any pass of the plan holds: nothing could be sold for them. */
function routeIssues(
  plan: unknown,
  passes: readonly unknown[],
  { routes }: Readonly<Record<string, unknown>>,
): Issue[] {
  const credits = passes.map((pass) => priceAt(pass, 'credit'));
  // A price by what is asked may be lower, and other passes hold every price.
  if (!Array.isArray(routes) || credits.includes(undefined) || valueAt(plan, ['price']) !== undefined) return [];
  return routes.flatMap((route: unknown, index): Issue[] => {
    const price = priceAt(route, 'amount');
    if (price === undefined || (valueAt(route, ['plan_id']) ?? 'default') !== valueAt(plan, ['id'])) return [];
    if (credits.length === 0 || credits.some((credit) => credit !== undefined && comparePrices(credit, price) >= 0))
      return [];
    const message = 'is more than any credit that its plan sells, so that nobody could pay it; raise a credit';
    return [{ path: ['routes', index, 'amount'], message }];
  });
}

function priceAt(holder: unknown, name: string): Price | undefined {
  const amount = valueAt(holder, [name]);
  return typeof amount === 'string' ? parsePrice(amount) : undefined;
}

/** Keys that `from: usage` needs, and what to write there. */
const NEEDED = {
  unit: 'the price of one unit, such as "0.000002"',
  usage: PATH,
};
