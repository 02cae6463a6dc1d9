// What a request costs by what its response said: exact, never over the price, rounded down once and only for units.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { meteredAmount, type Meter, type MeterReading } from '../../../src/domain/selling/meter/meter.ts';
import { parsePrice } from '../../../src/domain/payment/money.ts';

const LIMIT = { most: 50_000n, decimals: 6 };
const said = (text: string): MeterReading => ({ kind: 'read', text });
const header: Meter = { source: { kind: 'header' }, missing: 'max' };
const usage = (unit: string, missing: Meter['missing'] = 'max'): Meter => {
  const price = parsePrice(unit);
  if (price === undefined) throw new Error(`${unit} is no price`);
  return { source: { kind: 'usage', path: ['n'], unit: price, tailBytes: 1 }, missing };
};

describe('an amount', () => {
  it.each([
    ['0', 0n, 'metered'],
    ['0.00', 0n, 'metered'],
    ['0.012300', 12_300n, 'metered'],
    ['0.05', 50_000n, 'metered'],
    ['0.050001', 50_000n, 'over'],
    ['999999999999', 50_000n, 'over'],
    ['0.0000001', 50_000n, 'missing'],
    ['', 50_000n, 'missing'],
    ['-0.01', 50_000n, 'missing'],
    ['+0.01', 50_000n, 'missing'],
    ['1e-2', 50_000n, 'missing'],
    ['0.01 USD', 50_000n, 'missing'],
    ['0.01, 0.02', 50_000n, 'missing'],
    ['01', 50_000n, 'missing'],
    ['.01', 50_000n, 'missing'],
    ['NaN', 50_000n, 'missing'],
  ])('behaviour: %j of an upstream takes %s, %s', (text, amount, result) => {
    expect(meteredAmount(header, said(text), LIMIT)).toMatchObject({ amount, result });
  });

  it.each(['absent', 'malformed', 'twice', 'client_left'] as const)(
    'behaviour: %s takes the price or nothing, as the plan says',
    (kind) => {
      const missing = { result: 'missing', because: kind };
      expect(meteredAmount(header, { kind }, LIMIT)).toEqual({ ...missing, amount: 50_000n });
      expect(meteredAmount({ ...header, missing: 'zero' }, { kind }, LIMIT)).toEqual({ ...missing, amount: 0n });
    },
  );
});

describe('units', () => {
  it.each([
    ['1000', '0.000002', 2000n],
    ['1', '0.0000009', 0n],
    ['3', '0.0000009', 2n],
    ['1.5', '0.000001', 1n],
    ['1.5e3', '0.000001', 1500n],
    ['15E-1', '0.01', 15_000n],
    ['0', '0.01', 0n],
    ['0.0', '0.01', 0n],
    ['1e99', '0.01', 50_000n],
    ['9'.repeat(64), '0.01', 50_000n],
  ])('behaviour: %s units at %s take %s, rounded down', (text, unit, amount) => {
    expect(meteredAmount(usage(unit), said(text), LIMIT).amount).toBe(amount);
  });

  it.each(['-1', '-0', '1e100', '1E+999', '9'.repeat(65), 'null'])('refuses: %s units', (text) => {
    expect(meteredAmount(usage('0.01', 'zero'), said(text), LIMIT)).toMatchObject({ result: 'missing', amount: 0n });
  });

  it('behaviour: what is taken is never over the price, nor over the units, and less than one smallest unit below them', () => {
    const text = fc.tuple(fc.bigInt(0n, 10n ** 9n), fc.nat(9)).map(([units, scale]) => {
      const digits = String(units).padStart(scale + 1, '0');
      return scale === 0 ? digits : `${digits.slice(0, -scale)}.${digits.slice(-scale)}`;
    });
    fc.assert(
      fc.property(text, fc.bigInt(1n, 10n ** 12n), fc.nat(18), (count, units, scale) => {
        const meter: Meter = {
          source: { kind: 'usage', path: ['n'], unit: { units, scale }, tailBytes: 1 },
          missing: 'max',
        };
        const { amount, result } = meteredAmount(meter, said(count), LIMIT);
        const [whole = '', fraction = ''] = count.split('.');
        // The exact product in units of 10^-36.
        const exact = BigInt(whole + fraction) * units * 10n ** BigInt(36 - fraction.length - scale);
        const step = 10n ** 30n;
        if (result === 'over') expect([amount, exact >= (LIMIT.most + 1n) * step]).toEqual([LIMIT.most, true]);
        else expect([amount * step <= exact, exact < (amount + 1n) * step]).toEqual([true, true]);
      }),
      { seed: 38 },
    );
  });
});
