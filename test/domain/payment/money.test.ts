import fc from 'fast-check';
import { expect, test } from 'vitest';
import { comparePrices, formatPrice, parsePrice, toAtomic } from '../../../src/domain/payment/money.ts';

test.each([
  ['0.10', 100_000n],
  ['1', 1_000_000n],
  ['0.000001', 1n],
  ['999999999999', 999_999_999_999_000_000n],
  ['0.100000000000', 100_000n],
])('behaviour: %s at six decimals is %d', (amount, atomic) => {
  const price = parsePrice(amount);
  expect(price && toAtomic(price, 6)).toBe(atomic);
});

test('refuses: a price of more decimals than the asset has, instead of cutting them off', () => {
  const price = parsePrice('0.0000001');
  expect(price && toAtomic(price, 6)).toBeUndefined();
  expect(price && toAtomic(price, 7)).toBe(1n);
});

test.each([
  ...['', '0', '0.0', '0.000', '-1', '+1', '1.', '.5', '01', '1e3', '1,5', ' 1', '1 ', '1_000', 'NaN', '0x1', '١'],
  ...['1000000000000', '0.0000000000000000001', '1\n'],
])('refuses: %j as an amount', (amount) => {
  expect(parsePrice(amount)).toBeUndefined();
});

test('behaviour: a price that is formatted reads back as the same price, and prices are ordered as numbers', () => {
  const price = fc.record({ units: fc.bigInt({ min: 1n, max: 10n ** 11n }), scale: fc.integer({ min: 0, max: 11 }) });
  fc.assert(
    fc.property(price, price, (a, b) => {
      const again = parsePrice(formatPrice(a));
      expect(again && comparePrices(again, a)).toBe(0);
      expect(Math.sign(comparePrices(a, b))).toBe(-Math.sign(comparePrices(b, a)) + 0);
      expect(comparePrices(a, { units: a.units + 1n, scale: a.scale })).toBe(-1);
    }),
  );
});

test.each([
  ['0.10', 1n, 1],
  ['5', 5n, 0],
  ['0.10', 100_000n, 6],
  ['1', 1_000_000n, 6],
  ['1.250001', 1_250_001n, 6],
  ['0', 0n, 6],
])('behaviour: a price is written as money, %s for %d with %d decimals', (text, units, scale) => {
  expect(formatPrice({ units, scale })).toBe(text);
});
