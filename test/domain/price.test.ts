// Properties of prices by what a request asks: sums are exact, lie within what a plan can ask, and are made of what every reader
// of a query agrees about.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { comparePrices, parsePrice, type Price } from '../../src/domain/payment/money.ts';
import { foldName } from '../../src/domain/selling/fold-name.ts';
import { highestSum, lowestSum, sumPrice, type PlanPrice, type PriceInput } from '../../src/domain/selling/price.ts';
import { createInputReader, writeInputs, type PricedRequest } from '../../src/domain/selling/price-inputs.ts';

const N: PriceInput = { kind: 'query', name: 'n' };
const SIZE: PriceInput = { kind: 'query', name: 'size' };
const ask = (query: string): PricedRequest => ({
  ...{ query, rawHeaders: [], droppedHeaders: undefined, params: () => ({}), length: undefined },
});

const decimal = fc
  .tuple(fc.bigInt({ min: 1n, max: 10n ** 9n }), fc.integer({ min: 0, max: 6 }))
  .map(([units, scale]) => {
    const digits = units.toString().padStart(scale + 1, '0');
    const [whole, fraction] = [digits.slice(0, digits.length - scale), digits.slice(digits.length - scale)];
    return parsePrice(fraction === '' ? whole : `${whole}.${fraction}`);
  })
  .filter((price) => price !== undefined);
const plan = fc.record({
  rules: fc.array(
    fc.record({
      when: fc.constantFrom('a', 'b', 'c*').map((value) => [
        {
          input: SIZE,
          exact: new Set(value.endsWith('*') ? [] : [value]),
          beginnings: value.endsWith('*') ? [value.slice(0, -1)] : [],
        },
      ]),
      base: fc.oneof(
        decimal.map((amount) => ({ kind: 'amount', amount }) as const),
        decimal.map((factor) => ({ kind: 'times', factor }) as const),
      ),
    }),
    { maxLength: 4 },
  ),
  units: fc.option(
    fc.record({
      ...{ of: fc.constant(N), amount: decimal, per: fc.integer({ min: 1, max: 9 }) },
      ...{ free: fc.integer({ min: 0, max: 20 }), max: fc.integer({ min: 21, max: 1000 }) },
      missing: fc.integer({ min: 0, max: 21 }),
    }),
    { nil: undefined },
  ),
  service: fc.constant(undefined),
});

const SCALE = 18n;
const rational = ({ units, scale }: Price): bigint => units * 10n ** (SCALE - BigInt(scale));

describe('a sum', () => {
  test('behaviour: it is exact, and not less or more than the plan can ask', () => {
    fc.assert(
      fc.property(
        plan,
        decimal,
        fc.constantFrom('a', 'b', 'cd', 'e'),
        fc.nat(1000),
        (price: PlanPrice, own, size, n) => {
          const number = Math.min(n, price.units?.max ?? n);
          const read = createInputReader(price)(ask(`?size=${size}&n=${number}`));
          if ('code' in read) throw new Error(read.detail);
          const sum = sumPrice(price, own, read);
          if ('code' in sum) return sum.code === 'price_unpayable';
          const rule = price.rules.find(
            ({ when: [first] }) =>
              first?.exact.has(size) === true || (first?.beginnings.includes('c') === true && size === 'cd'),
          );
          const base =
            rule === undefined
              ? rational(own)
              : rule.base.kind === 'amount'
                ? rational(rule.base.amount)
                : (rational(own) * rational(rule.base.factor)) / 10n ** SCALE;
          const { free = 0, per = 1, amount } = price.units ?? {};
          const paid = Math.max(0, number - free);
          const count = BigInt(Math.floor(paid / per) + (paid % per > 0 ? 1 : 0));
          expect(rational(sum.price)).toBe(base + (amount === undefined ? 0n : count * rational(amount)));
          expect(comparePrices(sum.price, highestSum(price, own))).toBeLessThanOrEqual(0);
          expect(comparePrices(sum.price, lowestSum(price, own))).toBeGreaterThanOrEqual(0);
          return true;
        },
      ),
      { numRuns: 2000 },
    );
  });
});

const PLAN: PlanPrice = {
  rules: [
    {
      when: [{ input: SIZE, exact: new Set(['l']), beginnings: [] }],
      base: { kind: 'amount', amount: { units: 5n, scale: 0 } },
    },
  ],
  units: { of: N, amount: { units: 1n, scale: 2 }, per: 1, free: 0, max: 999, missing: 1 },
  service: undefined,
};
const piece = fc.oneof(
  fc.constantFrom(
    'n',
    'N',
    'size',
    '%6e',
    '%6E',
    '%',
    '%00',
    '[',
    ']',
    '[]',
    '[0]',
    ';',
    '&',
    '=',
    '+',
    '.',
    '_',
    '!',
    '?',
    '5',
    '900',
    '%26',
    '%3D',
    '%3B',
    'l',
  ),
  fc.constantFrom('%EF%BD%8E', '%E2%80%8B', '%u006e', '%25', '%FF', 'x'),
);

describe('a query', () => {
  test('attack: whatever is priced, every reader of a URL finds the same values, or none under any spelling', () => {
    const read = createInputReader(PLAN);
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
        const query = `?${pieces.join('')}`;
        const inputs = read(ask(query));
        if ('code' in inputs) return;
        const params = new URLSearchParams(query);
        for (const name of ['n', 'size']) {
          const folded = [...params].filter(([key]) => foldName(key) === name);
          const value = inputs.get(`query.${name}`);
          expect([query, folded.map(([, each]) => each)]).toEqual([query, value === undefined ? [] : [value]]);
          expect([query, params.getAll(name)]).toEqual([query, value === undefined ? [] : [value]]);
        }
      }),
      { numRuns: 20_000 },
    );
  });

  test('behaviour: the order of parameters changes nothing that a quote is bound to', () => {
    const read = createInputReader(PLAN);
    const textOf = (query: string): string => {
      const inputs = read(ask(query));
      return 'code' in inputs ? inputs.code : writeInputs(inputs);
    };
    expect(textOf('?n=1&size=l&x=2')).toBe(textOf('?y=3&size=l&n=1'));
    expect(textOf('?n=1')).not.toBe(textOf('?n=2'));
    expect(textOf('?size=')).not.toBe(textOf(''));
  });
});
