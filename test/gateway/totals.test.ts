// Counts of requests on their way to the sums: counted in memory, handed over every few seconds, given again until they are taken,
// and never counted twice.
import { expect, test } from 'vitest';
import { noOverhead, OVERHEAD_BOUNDS, percentileMs } from '../../src/domain/totals/overhead.ts';
import { spansBy, spansOf, STEP_MS, keptSince, widen } from '../../src/domain/totals/steps.ts';
import { MOST_ROUTES, OTHER_ROUTES, type CountedRow, type TotalsBatch } from '../../src/domain/totals/totals-store.ts';
import { createTelemetry, startRecord } from '../../src/gateway/telemetry.ts';
import { startDelivery } from '../../src/gateway/totals/delivery.ts';
import { createTally, type Tally } from '../../src/gateway/totals/tally.ts';
import { createLog } from '../../src/host/log.ts';
import { createMetrics } from '../../src/host/metrics.ts';
import { countsOf, hourOf, minuteOf } from '../contract/totals.ts';

const { minute: MINUTE, hour: HOUR, day: DAY } = STEP_MS;
const NOON = Date.UTC(2026, 2, 10, 12);
const log = createLog('error', () => undefined, Date.now);

/** Time that a test moves: what was scheduled runs when its time comes. */
function heldTime(start: number) {
  let now = start;
  let waiting: { readonly at: number; readonly run: () => void }[] = [];
  return {
    now: () => now,
    schedule: (ms: number, run: () => void) => {
      const entry = { at: now + ms, run };
      waiting.push(entry);
      return () => void (waiting = waiting.filter((each) => each !== entry));
    },
    pass: async (ms: number): Promise<void> => {
      const end = now + ms;
      for (;;) {
        const next = waiting.filter(({ at }) => at <= end).toSorted((a, b) => a.at - b.at)[0];
        if (next === undefined) break;
        waiting = waiting.filter((each) => each !== next);
        now = next.at;
        next.run();
        for (let turn = 0; turn < 20; turn++) await Promise.resolve();
      }
      now = end;
    },
  };
}

function count(tally: Tally, outcome: 'free' | 'paid', routeId?: string): void {
  tally.open.all[outcome] += 1;
  tally.open.overhead[3] = (tally.open.overhead[3] ?? 0) + 1;
  if (routeId !== undefined) (tally.open.routes.get(routeId) ?? tally.open.add(routeId))[outcome] += 1;
}

function delivering(start = NOON, answers: ('taken' | 'refused' | Error)[] = []) {
  const time = heldTime(start);
  const tally = createTally(time.now);
  const given: TotalsBatch[] = [];
  const delivery = startDelivery({
    ...{ tally, source: 'one', everyMs: 10_000, clock: time, schedule: time.schedule, log },
    take: async (batch) => {
      given.push(batch);
      const answer = answers.shift() ?? 'taken';
      if (answer instanceof Error) throw answer;
      return answer;
    },
  });
  return { time, tally, given, delivery };
}

test('behaviour: telemetry counts each request once: its outcome, its route and the time that Tollgate took', () => {
  const tally = createTally(() => NOON);
  const settings = { config: { metrics: { maxRoutes: 1 }, log: { access: false } } };
  const current = { snapshot: undefined, cacheTotals: () => ({ hits: 0, misses: 0 }) };
  const telemetry = createTelemetry(createMetrics(), log, current, settings, { tally });
  const end = (outcome: 'free' | 'paid', routeId: string | undefined, ms: number, upstreamMs?: number): void => {
    const record = {
      ...startRecord({ socket: {} } as Parameters<typeof startRecord>[0], 0),
      outcome,
      routeId,
      upstreamMs,
    };
    telemetry.end(record, ms);
    telemetry.end(record, ms);
  };
  end('free', undefined, 0.2);
  end('paid', 'a', 20.05, 20);
  end('paid', 'a', 100_000);
  tally.close();
  const overhead = noOverhead();
  for (const bucket of [2, 1, 19]) overhead[bucket] = 1;
  expect(tally.take(10)).toEqual([
    { ...minuteOf(NOON, { free: 1, paid: 2 }), overhead },
    hourOf(NOON, 'a', { paid: 2 }),
  ]);
  expect(tally.take(10)).toEqual([]);
});

test('behaviour: the buckets of telemetry are those of overhead_duration_seconds', async () => {
  const metrics = createMetrics();
  metrics.duration('x_seconds', 'x', [])()(1);
  const bounds = [...(await metrics.text()).matchAll(/tollgate_x_seconds_bucket\{le="([\d.]+)"\}/g)].map(([, le]) =>
    Number(le),
  );
  expect(bounds).toEqual(OVERHEAD_BOUNDS);
});

test('behaviour: percentiles lie inside their bucket, by interpolation', () => {
  const buckets = noOverhead();
  expect(percentileMs(buckets, 0.5)).toBeNull();
  buckets[0] = 4;
  expect([percentileMs(buckets, 0.5), percentileMs(buckets, 1)]).toEqual([0.025, 0.05]);
  buckets[9] = 4;
  expect([percentileMs(buckets, 0.5), percentileMs(buckets, 0.75), percentileMs(buckets, 0.99)]).toEqual([
    0.05, 37.5, 49.5,
  ]);
  buckets[19] = 100;
  expect(percentileMs(buckets, 0.5)).toBe(60_000);
});

test('behaviour: any time is a few spans that touch and do not overlap, widened to what is kept', () => {
  const kept = keptSince(NOON, 90 * DAY);
  for (const [from, to] of [
    [NOON - 90 * MINUTE, NOON],
    [NOON - 40 * HOUR - 7 * MINUTE, NOON + 3 * MINUTE],
    [NOON - 30 * DAY - 12_345, NOON - 5],
    [NOON - 500 * DAY, NOON],
  ] as const) {
    const range = widen({ fromMs: from, toMs: to }, kept, 'minute');
    expect(range.fromMs).toBeLessThanOrEqual(from);
    expect(range.toMs).toBeGreaterThanOrEqual(to);
    let at = range.fromMs;
    for (const { step, from: first, to: last } of spansOf(range)) {
      expect([first * STEP_MS[step], last > first]).toEqual([at, true]);
      if (step === 'minute') expect(at).toBeGreaterThanOrEqual(kept.minuteMs);
      if (step === 'hour') expect(at).toBeGreaterThanOrEqual(kept.hourMs);
      at = last * STEP_MS[step];
    }
    expect(at).toBe(range.toMs);
  }
});

test('behaviour: a day that goes on is one span of a look at sums, and one that is cut before now is not', () => {
  const day = NOON / DAY - 0.5;
  expect(spansBy({ fromMs: NOON - 36 * HOUR, toMs: NOON + MINUTE }, NOON)).toEqual([
    { step: 'day', from: day - 1, to: day + 1 },
  ]);
  expect(spansBy({ fromMs: NOON - 2 * HOUR, toMs: NOON + MINUTE }, NOON)).toEqual([
    { step: 'hour', from: day * 24 + 10, to: day * 24 + 24 },
  ]);
  const cut = { fromMs: NOON - 36 * HOUR, toMs: NOON };
  expect(spansBy(cut, NOON)).toEqual(spansOf(cut));
  expect(spansOf(cut)).toHaveLength(2);
});

test('behaviour: counts are handed over every ten seconds, under the minute in which they were made', async () => {
  const { time, tally, given } = delivering(NOON + 55_000);
  count(tally, 'free');
  await time.pass(5_000);
  count(tally, 'paid', 'a');
  count(tally, 'paid', 'a');
  await time.pass(4_999);
  expect(given).toEqual([]);
  await time.pass(1);
  const paid = minuteOf(NOON + MINUTE, { paid: 2 }, [3, 3]);
  expect(given).toEqual([
    {
      source: 'one',
      seq: 1,
      rows: [minuteOf(NOON, { free: 1 }, [3]), paid, hourOf(NOON, 'a', { paid: 2 })],
      status: undefined,
    },
  ]);
  // Nothing was counted: nothing is written.
  await time.pass(60_000);
  expect(given.length).toBe(1);
});

test('attack: a batch that was perhaps taken is given again as it was, and what came since follows it', async () => {
  const { time, tally, given, delivery } = delivering(NOON, [new Error('no answer'), new Error('no answer')]);
  count(tally, 'free');
  await time.pass(10_000);
  count(tally, 'paid');
  await time.pass(10_000);
  expect(delivery.completeUntil()).toBe(NOON);
  await time.pass(10_000);
  expect(given.map(({ seq, rows }) => [seq, rows])).toEqual([
    [1, [minuteOf(NOON, { free: 1 }, [3])]],
    [1, [minuteOf(NOON, { free: 1 }, [3])]],
    [1, [minuteOf(NOON, { free: 1 }, [3])]],
    [2, [minuteOf(NOON, { paid: 1 }, [3])]],
  ]);
  expect(delivery.completeUntil()).toBe(NOON + 30_000);
});

test('behaviour: a stop hands over what is left; whoever wants no counts leaves no gap', async () => {
  const { time, tally, given, delivery } = delivering(NOON, ['refused']);
  count(tally, 'free');
  await time.pass(10_000);
  count(tally, 'paid');
  await delivery.close();
  expect(given.map(({ seq, rows }) => [seq, rows.length])).toEqual([
    [1, 1],
    [1, 1],
  ]);
  count(tally, 'paid');
  await time.pass(60_000);
  expect(given.length).toBe(2);
});

test('behaviour: each of many counts that wait is given once, in batches; a count older than two days leaves a gap', async () => {
  const away = Array.from({ length: 49 * 360 }, () => new Error('away'));
  const { time, tally, given } = delivering(NOON, away);
  count(tally, 'free');
  await time.pass(10_000);
  for (let n = 0; n < 900; n++) count(tally, 'free', `route-${n}`);
  await time.pass(10_000);
  const lost = given.length;
  await time.pass(50 * HOUR);
  const rows = given.slice(lost).filter(({ seq }) => seq > 1);
  // The first batch stays as it was; all that waited behind it is too old by then.
  expect(rows).toEqual([]);
  count(tally, 'paid');
  await time.pass(10_000);
  expect(given.at(-1)).toMatchObject({ seq: 3 });
});

test('behaviour: a moment names 1,000 routes, and what workers counted is added', () => {
  const tally = createTally(() => NOON);
  for (let n = 0; n < MOST_ROUTES + 3; n++) count(tally, 'paid', `route-${n}`);
  tally.close();
  tally.merge([minuteOf(NOON, { free: 5 }, [1]), hourOf(NOON, 'route-1', { paid: 1 })]);
  const rows: CountedRow[] = [];
  for (let taken = tally.take(400); taken.length > 0; taken = tally.take(400)) rows.push(...taken);
  const of = (routeId: string): unknown =>
    rows.flatMap((row) => (row.step === 'hour' && row.routeId === routeId ? [row.requests] : []))[0];
  expect([of('route-0'), of('route-1'), of(OTHER_ROUTES)]).toEqual([1, 2, 3].map((paid) => countsOf({ paid })));
  expect(rows.length).toBe(MOST_ROUTES + 2);
  expect(rows[0]).toMatchObject({ requests: countsOf({ free: 5, paid: MOST_ROUTES + 3 }) });
});

test('behaviour: what plans did is counted beside requests, by the hour, and handed over once', async () => {
  const { time, tally, given } = delivering();
  const named = { scale: 0, requests: 1, amount: '0' };
  tally.open.sales.add({ kind: 'plan', subject: 'a', detail: 'paid', ...named });
  tally.open.sales.add({ kind: 'plan', subject: 'a', detail: 'paid', ...named });
  tally.open.sales.add({ kind: 'would_charge', subject: 'a', detail: 'USD', scale: 2, requests: 1, amount: '10' });
  await time.pass(10_000);
  tally.merge([
    {
      step: 'sale',
      startMs: NOON,
      sale: { kind: 'would_charge', subject: 'a', detail: 'USD', scale: 2, requests: 2, amount: '5' },
    },
  ]);
  await time.pass(10_000);
  const rows = given.flatMap((batch) => batch.rows).filter(({ step }) => step === 'sale');
  expect(rows).toEqual([
    { step: 'sale', startMs: NOON, sale: { kind: 'plan', subject: 'a', detail: 'paid', ...named, requests: 2 } },
    ...[
      { requests: 1, amount: '10' },
      { requests: 2, amount: '5' },
    ].map((more) => ({
      ...{ step: 'sale', startMs: NOON },
      sale: { kind: 'would_charge', subject: 'a', detail: 'USD', scale: 2, ...more },
    })),
  ]);
});
