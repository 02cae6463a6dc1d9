// Metrics of several processes as one: sums that never go backwards, whoever dies, and gauges of those that live.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createMetricSums, createReporter } from '../../src/host/metric-sums.ts';
import { createMetrics, type Family, type Metrics } from '../../src/host/metrics.ts';

const MERGING = { tollgate_up: 'min', tollgate_open: 'max' } as const;

function primary(folds: Readonly<Record<string, (value: string) => string>> = {}) {
  const metrics = createMetrics();
  const sums = createMetricSums({ own: metrics.families, merging: MERGING, folds });
  const series = async (name = ''): Promise<readonly string[]> =>
    (await sums.text()).split('\n').filter((line) => line.startsWith(`tollgate_${name}`));
  return { metrics, sums, series };
}

/** A process that counts and reports over a channel of JSON. */
function worker(omitted: readonly string[] = []) {
  const metrics = createMetrics();
  const report = createReporter(metrics.families, new Set(omitted));
  return { metrics, report: async () => JSON.parse(JSON.stringify(await report())) as Family[] };
}

const count = (metrics: Metrics): ReturnType<Metrics['counter']> => metrics.counter('a_total', 'A help.', ['kind']);

test('behaviour: counters are added up, a report at a time, and stay when their process is gone', async () => {
  const { metrics, sums, series } = primary();
  const own = count(metrics);
  const [one, two] = [worker(), worker()];
  const [first, second] = [count(one.metrics), count(two.metrics)];
  own('x')(1);
  first('x')(10);
  second('x')(100);
  second('y')(0);
  sums.add(1, await one.report());
  sums.add(2, await two.report());
  const after = ['tollgate_a_total{kind="x"} 111', 'tollgate_a_total{kind="y"} 0'];
  expect(await series('a')).toEqual(after);
  // Nothing new is nothing more.
  sums.add(1, await one.report());
  sums.forget(2);
  expect(await series('a')).toEqual(after);
  // Its successor begins at nothing.
  const next = worker();
  count(next.metrics)('y')(1000);
  first('x')(5);
  sums.add(2, await next.report());
  sums.add(1, await one.report());
  expect(await series('a')).toEqual(['tollgate_a_total{kind="x"} 116', 'tollgate_a_total{kind="y"} 1000']);
});

test('behaviour: a series that nothing was counted in is not told twice, and a change not more than once', async () => {
  const { metrics, report } = worker(['tollgate_b_total']);
  count(metrics)('x')(0);
  metrics.counter('b_total', 'Of another process.', [])()(1);
  const own = async (): Promise<unknown[]> =>
    (await report()).filter(({ name, type }) => name.startsWith('tollgate_') && type === 'counter');
  expect(await own()).toMatchObject([{ name: 'tollgate_a_total', values: [{ labels: { kind: 'x' }, value: 0 }] }]);
  expect(await own()).toEqual([]);
});

test('behaviour: histograms are added up bucket by bucket, in order', async () => {
  const { sums, series } = primary();
  const [one, two] = [worker(), worker()];
  const [first, second] = [one, two].map(({ metrics }) => metrics.duration('took_seconds', 'A help.', ['by']));
  first?.('x')(0.3);
  second?.('x')(0.0001);
  second?.('x')(100);
  sums.add(2, await two.report());
  sums.add(1, await one.report());
  first?.('x')(0.3);
  sums.add(1, await one.report());
  const lines = await series('took');
  const buckets = lines.flatMap((line) => /le="(.+)"\} (\d+)$/.exec(line)?.slice(1) ?? []);
  const bounds = buckets.filter((_, at) => at % 2 === 0).map((bound) => (bound === '+Inf' ? Infinity : Number(bound)));
  expect(bounds).toEqual(bounds.toSorted((a, b) => a - b));
  expect(lines).toContain('tollgate_took_seconds_bucket{by="x",le="0.0001"} 1');
  expect(lines).toContain('tollgate_took_seconds_bucket{by="x",le="0.5"} 3');
  expect(lines).toContain('tollgate_took_seconds_bucket{by="x",le="60"} 3');
  expect(lines).toContain('tollgate_took_seconds_bucket{by="x",le="+Inf"} 4');
  expect(lines).toContain('tollgate_took_seconds_count{by="x"} 4');
  expect(lines.find((line) => line.startsWith('tollgate_took_seconds_sum'))).toMatch(/ 100\.60/);
});

test('behaviour: sums of money are exact', async () => {
  const { metrics, sums, series } = primary();
  const exact = (to: Metrics, units: () => bigint, scale: number): void =>
    to.exact('counter', 'money_total', 'A help.', ['in'], (set) => set({ in: 'USD' }, { units: units(), scale }));
  const one = worker();
  let units = 9_007_199_254_740_993n;
  exact(metrics, () => 1n, 2);
  exact(one.metrics, () => units, 6);
  sums.add(1, await one.report());
  sums.add(1, await one.report());
  expect(await series('money')).toEqual(['tollgate_money_total{in="USD"} 9007199254.750993']);
  units += 7n;
  sums.add(1, await one.report());
  sums.forget(1);
  expect(await series('money')).toEqual(['tollgate_money_total{in="USD"} 9007199254.751']);
});

test('behaviour: gauges are of those that live: summed up, or the highest, or the lowest', async () => {
  const { metrics, sums, series } = primary();
  const all = [metrics, worker(), worker()].map((each) =>
    'report' in each ? each : { metrics: each, report: undefined },
  );
  for (const [at, { metrics: each }] of all.entries()) {
    each.gauge('busy', 'A help.', [])()(at + 1);
    each.gauge('up', 'A help.', [])()(at === 1 ? 0 : 1);
    each.gauge('open', 'A help.', ['who'])('x')(at === 2 ? 1 : 0);
    each.gauge('odd', 'A help.', [])()(at === 0 ? 1 : Number.NaN);
  }
  for (const [at, { report }] of all.entries()) if (report !== undefined) sums.add(at, await report());
  const gauges = ['tollgate_busy 6', 'tollgate_up 0', 'tollgate_open{who="x"} 1', 'tollgate_odd 1'];
  expect(await series()).toEqual(gauges);
  sums.forget(1);
  expect(await series()).toEqual(['tollgate_busy 4', 'tollgate_up 1', 'tollgate_open{who="x"} 1', 'tollgate_odd 1']);
  sums.forget(2);
  // What it said last came late.
  for (const { report } of all.slice(2)) if (report !== undefined) sums.add(undefined, await report());
  expect(await series()).toEqual(['tollgate_busy 1', 'tollgate_up 1', 'tollgate_open{who="x"} 0', 'tollgate_odd 1']);
});

test('behaviour: values of a label are folded, so that there are no more of them than in one process', async () => {
  const kept = new Set<string>();
  const fold = (id: string): string => (kept.has(id) || kept.size < 2 ? (kept.add(id), id) : 'other');
  const { sums, series } = primary({ kind: fold });
  const [one, two] = [worker(), worker()];
  for (const [{ metrics }, kinds] of [
    [one, 'ab'],
    [two, 'bcd'],
  ] as const) {
    const counter = count(metrics);
    for (const kind of kinds) counter(kind)(1);
  }
  sums.add(1, await one.report());
  sums.add(2, await two.report());
  const lines = ['tollgate_a_total{kind="a"} 1', 'tollgate_a_total{kind="b"} 2', 'tollgate_a_total{kind="other"} 2'];
  expect(await series('a')).toEqual(lines);
});

test('model: whatever is counted, reported and killed in whatever order, the sum is what was reported', async () => {
  const step = fc.record({
    at: fc.nat(2),
    kind: fc.constantFrom('x', 'y'),
    do: fc.constantFrom('count', 'report', 'kill'),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
      const { sums, series } = primary();
      const start = () => {
        const made = worker();
        return { ...made, counter: count(made.metrics), waiting: { x: 0, y: 0 } };
      };
      const workers = [start(), start(), start()];
      const expected = { x: 0, y: 0 };
      for (const { at, kind, do: what } of steps) {
        const each = workers[at];
        if (each === undefined) continue;
        if (what === 'count') {
          each.counter(kind)(1);
          each.waiting[kind]++;
        } else if (what === 'report') {
          sums.add(at, await each.report());
          for (const name of ['x', 'y'] as const) expected[name] += each.waiting[name];
          each.waiting = { x: 0, y: 0 };
        } else {
          sums.forget(at);
          workers[at] = start();
        }
      }
      const lines = await series('a');
      for (const name of ['x', 'y'] as const) {
        const line = lines.find((each) => each.includes(`"${name}"`));
        expect(Number(line?.split(' ')[1] ?? 0)).toBe(expected[name]);
      }
    }),
    { numRuns: 30 },
  );
});
