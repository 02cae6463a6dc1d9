// Sums by route of days that are over are asked for once in five minutes, and all others each time.
import { expect, test, vi } from 'vitest';
import type { Span } from '../../src/domain/totals/steps.ts';
import type { RouteSums } from '../../src/domain/totals/totals-store.ts';
import { keepClosedDays } from '../../src/registry/totals/closed-days.ts';

const DAY = 86_400_000;
const TODAY = 20_000;
const days = (from: number, to: number): Span => ({ step: 'day', from, to });
const NOON = { now: TODAY * DAY + DAY / 2, monotonic: 1000 };

function counting() {
  const time = { ...NOON };
  const asked = vi.fn<(spans: readonly Span[]) => void>();
  let failing = false;
  const sums = keepClosedDays(
    async ({ spans }) => {
      asked(spans);
      if (failing) throw new Error('away');
      const money = spans.map(({ from, to }) => ({
        ...{ routeId: 'a', currency: 'USD', assetDecimals: 6, amount: BigInt(to - from) },
      }));
      return { requests: [], money };
    },
    { now: () => time.now, monotonic: () => time.monotonic },
  );
  const total = ({ money }: RouteSums): bigint => money.reduce((sum, { amount }) => sum + amount, 0n);
  return {
    ...{ time, asked },
    fails: (is: boolean) => void (failing = is),
    ask: async (...spans: Span[]) => total(await sums({ spans })),
  };
}

test('behaviour: many days that are over are read once in five minutes, the day that goes on each time', async () => {
  const { ask, asked, time } = counting();
  const hours: Span = { step: 'hour', from: 7, to: 9 };
  expect(await ask(hours, days(TODAY - 89, TODAY + 1))).toBe(92n);
  expect(asked.mock.calls).toEqual([[[hours, days(TODAY, TODAY + 1)]], [[days(TODAY - 89, TODAY)]]]);
  time.monotonic = 301_000;
  expect(await ask(days(TODAY - 89, TODAY + 1))).toBe(90n);
  expect(asked.mock.calls.slice(2)).toEqual([[[days(TODAY, TODAY + 1)]]]);
  time.monotonic = 301_001;
  expect(await ask(days(TODAY - 89, TODAY + 1))).toBe(90n);
  expect(asked.mock.calls.slice(3)).toEqual([[[days(TODAY, TODAY + 1)]], [[days(TODAY - 89, TODAY)]]]);
});

test('behaviour: a day is over an hour after its end, and six days are read each time', async () => {
  const { ask, asked, time } = counting();
  time.now = TODAY * DAY + 3_599_999;
  expect(await ask(days(TODAY - 8, TODAY + 1))).toBe(9n);
  expect(asked.mock.calls).toEqual([[[days(TODAY - 1, TODAY + 1)]], [[days(TODAY - 8, TODAY - 1)]]]);
  time.now = TODAY * DAY + 3_600_000;
  expect(await ask(days(TODAY - 8, TODAY + 1))).toBe(9n);
  expect(asked.mock.calls.slice(2)).toEqual([[[days(TODAY, TODAY + 1)]], [[days(TODAY - 8, TODAY)]]]);
  for (let times = 0; times < 2; times++) expect(await ask(days(TODAY - 6, TODAY))).toBe(6n);
  expect(asked.mock.calls.slice(4)).toEqual([[[days(TODAY - 6, TODAY)]], [[days(TODAY - 6, TODAY)]]]);
});

test('behaviour: two who ask at once are one question, and a failure is not kept', async () => {
  const { ask, asked, fails } = counting();
  fails(true);
  await expect(ask(days(TODAY - 30, TODAY))).rejects.toThrow('away');
  fails(false);
  asked.mockClear();
  expect(await Promise.all([ask(days(TODAY - 30, TODAY)), ask(days(TODAY - 30, TODAY))])).toEqual([30n, 30n]);
  expect(asked.mock.calls.filter(([spans]) => spans.length > 0)).toEqual([[[days(TODAY - 30, TODAY)]]]);
});
