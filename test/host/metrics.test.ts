// What is read at a scrape: a value that is not known then is no series, with labels or without. A 0 instead would set off
// alerts, or keep one silent that waits for a series to be missing.
import { expect, test } from 'vitest';
import { createMetrics } from '../../src/host/metrics.ts';

test.each([
  ['gauge', 'free_bytes', [], {}],
  ['gauge', 'parts', ['part'], { part: 'one' }],
  ['counter', 'looks_total', [], {}],
] as const)(
  'behaviour: a metric of kind %s, %s, with labels %j that is not set is not there',
  async (kind, name, labels, values) => {
    const metrics = createMetrics();
    let known: number | undefined;
    metrics.observed(kind, name, 'A help.', labels, (set) => {
      if (known !== undefined) set(values, known);
    });
    const series = async (): Promise<readonly string[]> =>
      (await metrics.text()).split('\n').filter((line) => line.startsWith(`tollgate_${name}`));
    expect(await series()).toEqual([]);
    known = 7;
    expect(await series()).toEqual([expect.stringMatching(/ 7$/)]);
    known = undefined;
    expect(await series()).toEqual([]);
  },
);

test('behaviour: a value that takes too long or fails is not told, and keeps no other from being told', async () => {
  const late: (() => void)[] = [];
  const metrics = createMetrics((_ms, run) => (late.push(run), () => undefined));
  const { promise, resolve } = Promise.withResolvers<number>();
  metrics.observed('gauge', 'stored', 'A help.', [], async (set) => set({}, await promise));
  metrics.observed('counter', 'broken_total', 'A help.', [], () => Promise.reject(new Error('away')));
  metrics.observed('gauge', 'parts', 'A help.', [], (set) => set({}, 3));
  const told = async (): Promise<readonly string[]> => {
    const reading = metrics.text();
    for (const run of late.splice(0)) run();
    return (await reading).split('\n').filter((line) => line.startsWith('tollgate_'));
  };
  expect(await told()).toEqual(['tollgate_parts 3']);
  // What comes after its scrape belongs to no scrape.
  resolve(7);
  await promise;
  const reading = metrics.text();
  expect((await reading).split('\n').filter((line) => line.startsWith('tollgate_'))).toEqual([
    'tollgate_stored 7',
    'tollgate_parts 3',
  ]);
});

test('behaviour: an exact sum that is kept elsewhere is told to its last unit, and one that takes too long or fails is not', async () => {
  const late: (() => void)[] = [];
  const metrics = createMetrics((_ms, run) => (late.push(run), () => undefined));
  const { promise, resolve } = Promise.withResolvers<bigint>();
  metrics.exact('gauge', 'kept', 'A help.', ['in'], async (set) =>
    set({ in: 'USD' }, { units: await promise, scale: 18 }),
  );
  metrics.exact('gauge', 'broken', 'A help.', ['in'], () => Promise.reject(new Error('away')));
  metrics.exact('gauge', 'near', 'A help.', ['in'], (set) => set({ in: 'USD' }, { units: 5n, scale: 1 }));
  const told = (text: string): readonly string[] => text.split('\n').filter((line) => line.startsWith('tollgate_'));
  const reading = metrics.text();
  for (const run of late.splice(0)) run();
  expect(told(await reading)).toEqual(['tollgate_near{in="USD"} 0.5']);
  resolve(12_345_678_901_234_567_890_000_000_000_000_001n);
  await promise;
  expect(told(await metrics.text())).toEqual([
    'tollgate_kept{in="USD"} 12345678901234567.890000000000000001',
    'tollgate_near{in="USD"} 0.5',
  ]);
});
