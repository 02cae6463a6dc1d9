// What every store of sums does: it adds what processes counted once, and tells it by minute, hour and day beside the money that
// settlements added up.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Ledger } from '../../src/domain/payment/ledger.ts';
import type { ChargeReports } from '../../src/domain/payment/reports.ts';
import { noRequests, type RequestCounts } from '../../src/domain/totals/request-counts.ts';
import { noOverhead } from '../../src/domain/totals/overhead.ts';
import { spansOf, STEP_MS, stepOf, TOTALS_STEPS, type TotalsStep } from '../../src/domain/totals/steps.ts';
import {
  MOST_ROUTES,
  OTHER_ROUTES,
  type CountedRow,
  type StepSums,
  type TotalsQuery,
  type TotalsStore,
} from '../../src/domain/totals/totals-store.ts';
import { MOST_CUSTOMER_NAMES, type SaleCount } from '../../src/domain/totals/sale-counts.ts';
import { abroad, claimOf, OTHER_ROUTE, proofOf, ROUTE_ID } from '../cases/claims.ts';

export type OpenedTotals = {
  /** Two ways to the same sums, as two processes have them. */
  readonly stores: readonly [TotalsStore, TotalsStore];
  readonly ledger: Ledger & ChargeReports;
  readonly now: () => number;
  readonly pass: (ms: number) => void;
  readonly close: () => Promise<void>;
};

const BIG = 10n ** 30n;
const DAY = Date.UTC(2026, 2, 1);
const { minute: MINUTE, hour: HOUR } = STEP_MS;

export function countsOf(counts: Partial<RequestCounts>): RequestCounts {
  return { ...noRequests(), ...counts };
}

export function minuteOf(startMs: number, counts: Partial<RequestCounts>, buckets: readonly number[] = []): CountedRow {
  const overhead = noOverhead();
  for (const bucket of buckets) overhead[bucket] = (overhead[bucket] ?? 0) + 1;
  return { step: 'minute', startMs, requests: countsOf(counts), overhead };
}

export function hourOf(startMs: number, routeId: string, counts: Partial<RequestCounts>): CountedRow {
  return { step: 'hour', startMs, routeId, requests: countsOf(counts) };
}

/** What a plan did in the hour of `startMs`: nothing of money unless `sale` says so. */
export function saleOf(
  startMs: number,
  sale: Pick<SaleCount, 'kind' | 'subject' | 'detail'> & Partial<SaleCount>,
): CountedRow {
  return { step: 'sale', startMs, sale: { requests: 1, amount: '0', scale: 0, ...sale } };
}

export function describeTotals(name: string, open: () => Promise<OpenedTotals>): void {
  describe(`sums: ${name}`, () => {
    let opened: OpenedTotals;
    let store: TotalsStore;
    let other: TotalsStore;
    let sources = 0;
    beforeAll(async () => {
      opened = await open();
      [store, other] = opened.stores;
    });
    afterAll(() => opened.close());

    const add = (rows: readonly CountedRow[]): ReturnType<TotalsStore['add']> =>
      store.add({ source: `source-${++sources}`, seq: 1, rows });
    const sums = (step: TotalsStep, fromMs: number, toMs: number, rest: Partial<TotalsQuery> = {}): Promise<StepSums> =>
      other.sums({ spans: [{ step, from: stepOf(fromMs, step), to: stepOf(toMs - 1, step) + 1 }], ...rest });
    const byStart = ({ requests }: StepSums): (readonly [number, RequestCounts])[] =>
      requests.map(({ start, requests: counts }) => [start, counts] as const).toSorted(([a], [b]) => a - b);

    test('behaviour: minutes of sums add up to hours and days over all routes, with the time that Tollgate took', async () => {
      await add([
        minuteOf(DAY + 5 * MINUTE, { free: 2, paid: 1 }, [0, 3, 3]),
        minuteOf(DAY + 6 * MINUTE, { error: 4 }, [19]),
      ]);
      await add([
        minuteOf(DAY + 6 * MINUTE, { free: 1, discovery: 1 }, [3]),
        minuteOf(DAY + HOUR, { refused: 5, released: 6, payment_required: 7 }),
      ]);
      expect(byStart(await sums('minute', DAY, DAY + 24 * HOUR))).toEqual([
        [stepOf(DAY, 'minute') + 5, countsOf({ free: 2, paid: 1 })],
        [stepOf(DAY, 'minute') + 6, countsOf({ error: 4, free: 1, discovery: 1 })],
        [stepOf(DAY, 'minute') + 60, countsOf({ refused: 5, released: 6, payment_required: 7 })],
      ]);
      const all = { free: 3, paid: 1, error: 4, discovery: 1 };
      const later = { refused: 5, released: 6, payment_required: 7 };
      expect(byStart(await sums('hour', DAY, DAY + 24 * HOUR))).toEqual([
        [stepOf(DAY, 'hour'), countsOf(all)],
        [stepOf(DAY, 'hour') + 1, countsOf(later)],
      ]);
      const day = await sums('day', DAY, DAY + 24 * HOUR);
      expect(byStart(day)).toEqual([[stepOf(DAY, 'day'), countsOf({ ...all, ...later })]]);
      const buckets = day.overhead.map(({ bucket, requests }) => [bucket, requests] as const);
      expect(buckets.toSorted(([a], [b]) => a - b)).toEqual([
        [0, 1],
        [3, 3],
        [19, 1],
      ]);
      expect((await sums('minute', DAY + 6 * MINUTE, DAY + 7 * MINUTE)).overhead.length).toBe(2);
      // Any time is the same sum, whatever steps it is put together from.
      const put = await other.sums({ spans: spansOf({ fromMs: DAY - HOUR + MINUTE, toMs: DAY + 25 * HOUR + MINUTE }) });
      expect(put.requests.reduce((sum, { requests }) => sum + requests.free, 0)).toBe(3);
    });

    test('behaviour: a batch of counts is added once, however often and whenever it comes, and what is missing is told', async () => {
      const at = DAY + 48 * HOUR;
      const batch = (seq: number) => ({
        source: 'one',
        seq,
        rows: [minuteOf(at, { free: 1 })],
        status: `{"n":${seq}}`,
      });
      expect(await store.add(batch(1))).toEqual({ kind: 'added', missing: 0 });
      expect(await other.add(batch(1))).toEqual({ kind: 'known' });
      expect(await store.add(batch(2))).toEqual({ kind: 'added', missing: 0 });
      expect(await store.add(batch(5))).toEqual({ kind: 'added', missing: 2 });
      expect(await other.add(batch(4))).toEqual({ kind: 'known' });
      expect(await store.add({ source: 'two', seq: 3, rows: [] })).toEqual({ kind: 'added', missing: 2 });
      expect(byStart(await sums('minute', at, at + MINUTE))).toEqual([[stepOf(at, 'minute'), countsOf({ free: 3 })]]);
      const known = (await other.sources()).filter(({ source }) => ['one', 'two'].includes(source));
      expect(known.map(({ source, seq, lost, status }) => [source, seq, lost, status])).toEqual([
        ['one', 5, 2, '{"n":5}'],
        ['two', 3, 2, null],
      ]);
      for (const { firstAt, lastAt } of known) {
        expect(firstAt).toBeLessThanOrEqual(lastAt);
        expect(Math.abs(opened.now() - lastAt)).toBeLessThan(60_000);
      }
    });

    test('behaviour: a batch that two give at the same time is added once, and batches of many add up', async () => {
      const at = DAY + 72 * HOUR;
      const batches = Array.from({ length: 12 }, (_, n) => ({
        ...{ source: `many-${n % 6}`, seq: 1 },
        rows: [minuteOf(at, { paid: 1 }), hourOf(at, ROUTE_ID, { paid: 1 })],
      }));
      const kinds = await Promise.all(batches.map(async (batch, n) => (await (n < 6 ? store : other).add(batch)).kind));
      expect(kinds.filter((kind) => kind === 'added').length).toBe(6);
      for (const step of ['hour', 'day'] as const)
        for (const rest of [{}, { routeId: ROUTE_ID }])
          expect(byStart(await sums(step, at, at + HOUR, rest)).map(([, counts]) => counts.paid)).toEqual([6]);
    });

    test('behaviour: sums of an hour and a day name 1,000 routes, and count the others together', async () => {
      const at = DAY + 96 * HOUR;
      const routes = Array.from({ length: MOST_ROUTES + 5 }, (_, n) => `route-${n}`);
      for (const half of [routes.slice(0, 600), routes.slice(600)])
        await add(half.map((routeId) => hourOf(at, routeId, { paid: 1 })));
      // The next hour names others, of which the day has no place left.
      await add([hourOf(at + HOUR, 'late', { paid: 1 }), hourOf(at + HOUR, 'route-0', { paid: 2 })]);
      const of = async (step: TotalsStep, routeId: string): Promise<number[]> =>
        byStart(await sums(step, at, at + 2 * HOUR, { routeId })).map(([, counts]) => counts.paid);
      expect(await of('hour', 'route-0')).toEqual([1, 2]);
      expect(await of('day', 'route-0')).toEqual([3]);
      expect(await of('hour', OTHER_ROUTES)).toEqual([5]);
      expect(await of('day', OTHER_ROUTES)).toEqual([6]);
      expect([await of('hour', 'late'), await of('day', 'late')]).toEqual([[1], []]);
      const { requests } = await other.sumsByRoute({
        spans: [{ step: 'day', from: stepOf(at, 'day'), to: stepOf(at, 'day') + 1 }],
      });
      expect(requests.length).toBe(MOST_ROUTES + 1);
      expect(requests.reduce((sum, { requests: counts }) => sum + counts.paid, 0)).toBe(MOST_ROUTES + 8);
    });

    test('behaviour: sums of many days by route are those of each day added up, and of no other day', async () => {
      const first = stepOf(DAY + 200 * HOUR, 'day');
      const days = Array.from({ length: 12 }, (_, n) => first + n);
      const at = (day: number): number => day * STEP_MS.day;
      await add([
        ...days.map((day) => hourOf(at(day) + HOUR, 'every-day', { paid: 1, free: 2 })),
        ...days.slice(3, 5).map((day) => hourOf(at(day), 'some-days', { paid: 10 })),
        ...[hourOf(at(first - 1), 'before', { paid: 100 }), hourOf(at(first + 12), 'after', { paid: 100 })],
        ...[hourOf(at(first - 1), 'every-day', { paid: 100 }), hourOf(at(first + 12), 'every-day', { paid: 100 })],
      ]);
      const span = { step: 'day', from: first, to: first + days.length } as const;
      const { requests } = await other.sumsByRoute({ spans: [span] });
      expect(requests.toSorted((a, b) => (a.routeId < b.routeId ? -1 : 1))).toEqual([
        { routeId: 'every-day', requests: countsOf({ paid: 12, free: 24 }) },
        { routeId: 'some-days', requests: countsOf({ paid: 20 }) },
      ]);
    });

    test('behaviour: what plans did adds up by hour and day, money exact beyond 64 bits and in its own decimals', async () => {
      const at = DAY + 120 * HOUR;
      const would = { kind: 'would_charge', subject: 'try', detail: 'USD' } as const;
      const known = { kind: 'customers', subject: 'partners', detail: 'known' } as const;
      const rows = [
        saleOf(at, { ...would, amount: String(BIG), scale: 2 }),
        saleOf(at, { ...would, requests: 4, amount: '7', scale: 2 }),
        saleOf(at, { ...would, amount: '5', scale: 18 }),
        saleOf(at, { kind: 'plan', subject: 'try', detail: 'observed', requests: 6 }),
        saleOf(at + HOUR, { kind: 'plan', subject: 'try', detail: 'observed', requests: 2 }),
        saleOf(at + HOUR, known),
      ];
      await Promise.all([add(rows), add(rows)]);
      const of = async (
        step: 'hour' | 'day',
        fromMs: number,
        toMs: number,
      ): Promise<readonly (readonly [string, string, number, number, string])[]> => {
        const span = { step, from: stepOf(fromMs, step), to: stepOf(toMs - 1, step) + 1 };
        const sums = await other.sales({ spans: [span] });
        return sums
          .filter(({ kind }) => kind !== 'customer')
          .map(({ kind, detail, scale, requests, amount }) => [kind, detail, scale, requests, amount] as const)
          .toSorted((a, b) => String(a).localeCompare(String(b)));
      };
      const first = [
        ['plan', 'observed', 0, 12, '0'],
        ['would_charge', 'USD', 18, 2, '10'],
        ['would_charge', 'USD', 2, 10, String(2n * BIG + 14n)],
      ];
      expect(await of('hour', at, at + HOUR)).toEqual(first);
      const [plans, ...money] = first;
      const both = [['customers', 'known', 0, 2, '0'], ['plan', 'observed', 0, 16, '0'], ...money];
      expect(plans).toBeDefined();
      for (const [step, to] of [
        ['hour', at + 2 * HOUR],
        ['day', at + 24 * HOUR],
      ] as const) {
        const sums = await of(step, at, to);
        // SQLite tells money row by row; its user adds up.
        expect(sums.filter(([kind]) => kind !== 'would_charge')).toEqual(both.slice(0, 2));
        const units = sums.flatMap(([kind, , scale, , amount]) =>
          kind === 'would_charge' && scale === 2 ? [BigInt(amount)] : [],
        );
        expect(units.reduce((a, b) => a + b, 0n)).toBe(2n * BIG + 14n);
      }
      expect(await of('hour', at - HOUR, at)).toEqual([]);
    });

    test('attack: made-up names of customers take 1,000 places of an hour and a day, the others count together', async () => {
      const at = DAY + 168 * HOUR;
      const customer = (detail: string, startMs = at): CountedRow =>
        saleOf(startMs, { kind: 'customer', subject: 'partners', detail });
      const names = Array.from({ length: MOST_CUSTOMER_NAMES + 5 }, (_, n) => `name-${n}`);
      for (const half of [names.slice(0, 600), names.slice(600)]) await add(half.map((name) => customer(name)));
      await add([customer('name-0'), customer('late'), customer('late', at + HOUR), customer('name-1', at + HOUR)]);
      const of = async (step: 'hour' | 'day', name: string, startMs = at): Promise<number> => {
        const sums = await other.sales({
          spans: [{ step, from: stepOf(startMs, step), to: stepOf(startMs, step) + 1 }],
        });
        expect(sums.length).toBeLessThanOrEqual(MOST_CUSTOMER_NAMES + 1);
        return sums.reduce((all, { detail, requests }) => all + (detail === name ? requests : 0), 0);
      };
      expect([await of('hour', 'name-0'), await of('hour', ''), await of('hour', 'late')]).toEqual([2, 6, 0]);
      expect([await of('hour', 'late', at + HOUR), await of('day', 'late'), await of('day', '')]).toEqual([1, 0, 7]);
      expect([await of('day', 'name-0'), await of('day', 'name-1')]).toEqual([2, 2]);
    });

    test('behaviour: money that settled stands in its minute, hour and day, exact beyond 64 bits, as the summary has it', async () => {
      const { ledger } = opened;
      // The first minute of a day, so that all of it is in one.
      opened.pass(STEP_MS.day - (opened.now() % STEP_MS.day));
      const begin = opened.now();
      const settle = async (claim: ReturnType<typeof claimOf>): Promise<void> => {
        await ledger.claim(claim, { owner: 'o', leaseMs: 60_000, maxUnsettledPerPayer: 100 });
        await ledger.advance(claim.id, { kind: 'settle_started', via: 'first', leaseMs: 60_000 }, { owner: 'o' });
        await ledger.advance(claim.id, { kind: 'settled', proof: proofOf(claim), leaseMs: 60_000 }, { owner: 'o' });
      };
      const route = { id: OTHER_ROUTE, method: '*', pattern: '/x' };
      await Promise.all([
        settle(claimOf(1)),
        settle(claimOf(2, { route, amount: BIG })),
        settle(claimOf(3, { route, amount: 10n ** 17n })),
      ]);
      opened.pass(2 * MINUTE);
      await settle(abroad(claimOf(4, { route, amount: BIG + 1n })));
      opened.pass(HOUR);
      await settle(claimOf(5, { price: { amount: '1', currency: 'USDC' } }));
      const end = opened.now() + 1;
      type Asked = Partial<TotalsQuery>;
      const money = async (
        step: TotalsStep,
        rest: Asked = {},
      ): Promise<readonly (readonly [number, string, number, bigint])[]> =>
        (await sums(step, begin, end, rest)).money
          .map(
            ({ start, currency, charges, amount }) => [start - stepOf(begin, step), currency, charges, amount] as const,
          )
          .toSorted(([a, x], [b, y]) => a - b || x.localeCompare(y));
      const first = 100_000n + BIG + 10n ** 17n;
      expect(await money('minute')).toEqual([
        [0, 'USD', 3, first],
        [2, 'USD', 1, BIG + 1n],
        [62, 'USDC', 1, 100_000n],
      ]);
      expect(await money('hour')).toEqual([
        [0, 'USD', 4, first + BIG + 1n],
        [1, 'USDC', 1, 100_000n],
      ]);
      expect(await money('day')).toEqual([
        [0, 'USD', 4, first + BIG + 1n],
        [0, 'USDC', 1, 100_000n],
      ]);
      expect(await money('day', { currency: 'USDC' })).toEqual([[0, 'USDC', 1, 100_000n]]);
      for (const step of ['hour', 'day'] as const) {
        expect(await money(step, { network: 'eip155:8453' })).toEqual([[0, 'USD', 1, BIG + 1n]]);
        expect(await money(step, { routeId: OTHER_ROUTE, network: 'eip155:8453' })).toEqual([[0, 'USD', 1, BIG + 1n]]);
        expect(await money(step, { routeId: OTHER_ROUTE })).toEqual([[0, 'USD', 3, 2n * BIG + 1n + 10n ** 17n]]);
        const spans = [{ step, from: stepOf(begin, step), to: stepOf(end, step) + 1 }];
        const byRoute = (await other.sumsByRoute({ spans })).money.map((each) => [
          each.routeId,
          each.currency,
          each.amount,
        ]);
        expect(byRoute.toSorted((a, b) => String(a).localeCompare(String(b)))).toEqual([
          [ROUTE_ID, 'USD', 100_000n],
          [ROUTE_ID, 'USDC', 100_000n],
          [OTHER_ROUTE, 'USD', 2n * BIG + 1n + 10n ** 17n],
        ]);
      }
      const summary = await ledger.summary({ fromMs: begin, toMs: end, bucket: 'total', limit: 100 });
      if (summary.kind !== 'sums') throw new Error(summary.kind);
      const told = summary.sums.reduce((sum, { amount }) => sum + amount, 0n);
      for (const step of TOTALS_STEPS)
        expect((await sums(step, begin, end)).money.reduce((sum, { amount }) => sum + amount, 0n)).toBe(told);
      // Of another network requests are not known: a network is a charge's alone.
      await add([minuteOf(begin, { free: 1 })]);
      expect((await sums('hour', begin, end, { network: 'eip155:8453' })).requests).toEqual([]);
    });

    test('behaviour: sums that are too old are taken away bit by bit, the money of hours and days stays', async () => {
      const at = DAY - 30 * 24 * HOUR;
      await add([0, 1, 2].map((hour) => minuteOf(at + hour * HOUR, { free: 1 }, [1])));
      await add([0, 1, 2].map((hour) => hourOf(at + hour * HOUR, ROUTE_ID, { free: 1 })));
      await add([0, 1, 2].map((hour) => saleOf(at + hour * HOUR, { kind: 'plan', subject: 'a', detail: 'paid' })));
      const before = {
        minute: stepOf(at + HOUR, 'minute'),
        hour: stepOf(at + 2 * HOUR, 'hour'),
        day: stepOf(at, 'day'),
      };
      const money = (await sums('day', opened.now() - STEP_MS.day, opened.now() + HOUR)).money;
      expect(money.length).toBeGreaterThan(0);
      const pruneAll = async (asked: typeof before, sourcesMs = 0): Promise<void> => {
        while (await store.prune({ ...asked, sourcesMs }));
      };
      await pruneAll(before);
      const left = async (step: TotalsStep, rest: Partial<TotalsQuery> = {}): Promise<number> =>
        (await sums(step, at, at + 24 * HOUR, rest)).requests.length;
      expect([await left('minute'), await left('hour'), await left('day')]).toEqual([2, 1, 1]);
      expect([await left('hour', { routeId: ROUTE_ID }), await left('day', { routeId: ROUTE_ID })]).toEqual([1, 1]);
      expect((await sums('minute', at, at + 24 * HOUR)).overhead.length).toBe(2);
      const sold = async (step: 'hour' | 'day'): Promise<number> => {
        const span = { step, from: stepOf(at, step), to: stepOf(at + 24 * HOUR, step) };
        return (await other.sales({ spans: [span] })).reduce((all, { requests }) => all + requests, 0);
      };
      expect([await sold('hour'), await sold('day')]).toEqual([1, 3]);
      const tomorrow = opened.now() + 2 * STEP_MS.day;
      await pruneAll(
        { minute: stepOf(tomorrow, 'minute'), hour: stepOf(tomorrow, 'hour'), day: stepOf(tomorrow, 'day') },
        tomorrow,
      );
      expect([await left('minute'), await left('hour'), await left('day')]).toEqual([0, 0, 0]);
      expect(await other.sources()).toEqual([]);
      expect([await sold('hour'), await sold('day')]).toEqual([0, 0]);
      const stays = await sums('day', opened.now() - STEP_MS.day, opened.now() + HOUR);
      expect([stays.requests, stays.money]).toEqual([[], money]);
      expect((await sums('minute', opened.now() - STEP_MS.day, opened.now() + HOUR)).money).toEqual([]);
    });
  });
}
