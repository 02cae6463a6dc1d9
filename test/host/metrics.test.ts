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
