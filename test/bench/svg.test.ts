// The bench's plots: bars as long as their numbers, nothing that breaks the file, nothing drawn that was not measured.
import { describe, expect, test } from 'vitest';
import { GOALS } from '../../bench/goals.ts';
import type { Section } from '../../bench/report.ts';
import { plotSection, plotTable } from '../../bench/svg.ts';
import { verdict } from '../../bench/table.ts';

const SECTION: Section = {
  name: 'free',
  title: 'Free GET',
  columns: [{ key: 'cpuUs', title: 'CPU us', digits: 1 }],
  rows: [
    { name: 'nginx', rounds: [{ cpuUs: 20 }] },
    { name: 'Tollgate, 10 routes', rounds: [{ cpuUs: 40 }, { cpuUs: 35 }, { cpuUs: 50 }] },
    { name: '<script>&"', rounds: [{ cpuUs: 30 }] },
    { name: 'nothing', rounds: [] },
  ],
  skipped: [],
  references: { key: 'cpuUs', rows: [] },
  pairs: [],
  remarks: [],
};

function widths(svg: string): number[] {
  return [...svg.matchAll(/<rect [^>]*width="([\d.]+)"/g)].map(([, width]) => Number(width));
}

describe('bars of a section', () => {
  const svg = plotSection(SECTION, 'a machine') ?? '';

  test('behaviour: bars of a section are as long as their medians, from zero', () => {
    const [nginx = 0, tollgate = 0, third = 0] = widths(svg);
    expect(tollgate / nginx).toBeCloseTo(2, 2);
    expect(third / nginx).toBeCloseTo(1.5, 2);
  });

  test('behaviour: every bar has its name and its number with the spread; a row that was not measured has no bar', () => {
    expect(svg).toContain('Tollgate, 10 routes</text>');
    expect(svg).toContain('>40.0 (35.0-50.0)</text>');
    expect(svg).not.toContain('nothing');
    expect(widths(svg)).toHaveLength(3);
  });

  test('behaviour: the bar of Tollgate stands out among its peers', () => {
    expect([...svg.matchAll(/<rect class="(\w+)"/g)].map(([, kind]) => kind)).toEqual(['peer', 'own', 'peer']);
  });

  test('behaviour: names cannot break the file of a plot', () => {
    expect(svg).not.toContain('<script>');
    expect(svg).toContain('&lt;script&gt;&amp;&quot;');
  });

  test('behaviour: a plot can be read on dark ground too', () => {
    expect(svg).toContain('prefers-color-scheme: dark');
    expect(svg).not.toMatch(/<rect[^>]*(width="960"|width="100%")/);
  });

  test('behaviour: a section without rows has no plot', () => {
    expect(plotSection({ ...SECTION, rows: [] }, '')).toBeUndefined();
  });
});

describe('the table as bars', () => {
  const [first, second, third] = GOALS;
  if (first === undefined || second === undefined || third === undefined) throw new Error('no goals');
  const at = (median: number): { median: number; min: number; max: number; rounds: number } => ({
    median,
    min: median,
    max: median,
    rounds: 1,
  });

  test('behaviour: a bar of the table is as long as what was measured is of what must be, cut off if it runs away', () => {
    const svg = plotTable(
      [verdict(first, at(first.must)), verdict(second, at(second.must / 2)), verdict(third, at(third.must * 100))],
      '',
    );
    const [met = 0, half = 0, cut = 0] = widths(svg);
    expect(met / half).toBeCloseTo(2, 1);
    expect(cut / met).toBeCloseTo(2.5, 1);
    expect(svg).toContain('›');
    expect([...svg.matchAll(/<rect class="(\w+)"/g)].map(([, kind]) => kind)).toEqual(['must', 'missed', 'aim']);
  });

  test('behaviour: a row of the table that was not measured has no bar and says so', () => {
    const svg = plotTable([verdict(first, undefined)], '');
    expect(widths(svg)).toEqual([]);
    expect(svg).toContain('not measured');
  });
});
