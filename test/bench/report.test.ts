// The bench's arithmetic and layout: a wrong median would not fail anything else, it would only be believed.
import { describe, expect, test } from 'vitest';
import { renderJson, renderMarkdown, type Report } from '../../bench/markdown.ts';
import { summarizeProfile } from '../../bench/profile.ts';
import {
  formatSpread,
  meanRound,
  median,
  percentile,
  ratio,
  renderSection,
  spread,
  table,
  type Section,
} from '../../bench/report.ts';

const SECTION: Section = {
  name: 'free',
  title: 'Free GET',
  columns: [
    { key: 'cpuUs', title: 'CPU us', digits: 1 },
    { key: 'added', title: 'added', digits: 0 },
  ],
  rows: [
    { name: 'nginx', rounds: [{ cpuUs: 10 }, { cpuUs: 20 }, { cpuUs: 12 }] },
    {
      name: 'Tollgate',
      rounds: [
        { cpuUs: 40, added: 5 },
        { cpuUs: 40, added: 7 },
        { cpuUs: 36, added: 6 },
      ],
    },
    { name: 'Tollgate @old', rounds: [{ cpuUs: 80 }, { cpuUs: 60 }, { cpuUs: 72 }] },
  ],
  skipped: [{ name: 'express', reason: 'not installed' }],
  references: { key: 'cpuUs', rows: ['nginx', 'absent'] },
  pairs: [['Tollgate', 'Tollgate @old']],
  remarks: ['A remark.'],
};

const REPORT: Report = {
  revision: 'abc1234',
  against: 'def5678',
  startedAt: '2026-01-01T00:00:00.000Z',
  command: 'npm run bench',
  machine: { cpu: 'a cpu', cores: 2, memoryGb: 8, kernel: '6.1', node: 'v26.0.0', pinned: false },
  verdicts: [],
  sections: [SECTION],
  remarks: ['It shows little.'],
};

describe('medians, spreads and ratios', () => {
  test('behaviour: a median is the middle value, or the mean of the two middle ones, whatever their order', () => {
    expect(median([9, 1, 5])).toBe(5);
    expect(median([100, 2, 4, 3])).toBe(3.5);
    expect(median([7])).toBe(7);
    expect(median([])).toBeNaN();
  });

  test('behaviour: a round of several processes is the mean of what all of them have', () => {
    expect(meanRound([{ cpuUs: 30, added: 1 }, { cpuUs: 40 }])).toEqual({ cpuUs: 35 });
    expect(meanRound([{ cpuUs: 30 }])).toEqual({ cpuUs: 30 });
    expect(meanRound([])).toEqual({});
  });

  test('behaviour: a spread is the median with the least and the most; of nothing there is none', () => {
    expect(spread([3, 1, 2])).toEqual({ median: 2, min: 1, max: 3, rounds: 3 });
    expect(spread([])).toBeUndefined();
  });

  test('behaviour: a percentile is the nearest rank', () => {
    const hundred = Array.from({ length: 100 }, (_, index) => index + 1);
    expect(percentile(hundred, 50)).toBe(50);
    expect(percentile(hundred, 99)).toBe(99);
    expect(percentile([4], 99)).toBe(4);
    expect(percentile([], 50)).toBe(0);
  });

  test('behaviour: ratios are taken round by round, not between medians', () => {
    const drifting = [{ us: 10 }, { us: 100 }, { us: 20 }];
    const twice = [{ us: 20 }, { us: 200 }, { us: 40 }];
    expect(ratio(twice, drifting, 'us')).toEqual({ median: 2, min: 2, max: 2, rounds: 3 });
  });

  test('behaviour: rounds that one side lacks, or with nothing to divide by, are left out of a ratio', () => {
    expect(ratio([{ us: 6 }, { us: 8 }], [{ us: 2 }], 'us')).toEqual({ median: 3, min: 3, max: 3, rounds: 1 });
    expect(ratio([{ us: 6 }], [{ us: 0 }], 'us')).toBeUndefined();
    expect(ratio([{ us: 6 }], [{ other: 1 }], 'us')).toBeUndefined();
  });
});

describe('tables', () => {
  test('behaviour: a spread is written as median (least-most), one round as a number, nothing as a dash', () => {
    expect(formatSpread(spread([1.26, 1.24, 1.31]), 1)).toBe('1.3 (1.2-1.3)');
    expect(formatSpread(spread([42.4]), 0)).toBe('42');
    expect(formatSpread(undefined, 1)).toBe('-');
  });

  test('behaviour: cells cannot break a table', () => {
    expect(table(['a', 'b'], [['x|y', '1']])).toBe('| a | b |\n| --- | ---: |\n| x\\|y | 1 |');
  });

  test('behaviour: a section of the report has a row for each contender, how cheap it is beside the references, and what was skipped', () => {
    const text = renderSection(SECTION);
    expect(text).toContain('## Free GET');
    expect(text).toContain('|  | CPU us | added | to nginx |');
    // 10/40, 20/40, 12/36.
    expect(text).toContain('| Tollgate | 40.0 (36.0-40.0) | 6 (5-7) | 0.33 (0.25-0.50) |');
    expect(text).toContain('| nginx | 12.0 (10.0-20.0) | - | 1.00 (1.00-1.00) |');
    expect(text).toContain('Not measured: express (not installed).');
    expect(text).toContain('A remark.');
  });

  test('behaviour: a report compares two revisions as new / old', () => {
    // 40/80, 40/60, 36/72.
    expect(renderSection(SECTION)).toContain('| Tollgate | 0.500 (0.500-0.667) | - |');
  });

  test('behaviour: the report names revision, machine and command, and what it does not show', () => {
    const text = renderMarkdown(REPORT, []);
    expect(text).toContain('Tollgate abc1234 against def5678');
    expect(text).toContain('a cpu, 2 cores, 8 GB, Linux 6.1, Node v26.0.0');
    expect(text).toContain('NOT pinned');
    expect(text).toContain('`npm run bench`');
    expect(text).toContain('- It shows little.');
  });

  test('behaviour: the JSON of a report holds every round beside medians, ratios and changes', () => {
    const read: unknown = JSON.parse(renderJson(REPORT));
    expect(read).toMatchObject({
      revision: 'abc1234',
      sections: [
        {
          rows: [
            {},
            {
              name: 'Tollgate',
              rounds: [{ cpuUs: 40, added: 5 }, {}, {}],
              summary: { cpuUs: { median: 40, min: 36, max: 40 } },
              ratios: { nginx: { min: 0.25, max: 0.5 } },
            },
            {},
          ],
          changes: { Tollgate: { cpuUs: { median: 0.5 } } },
        },
      ],
    });
  });
});

test('behaviour: a profile counts self time from when measuring began, without idling', () => {
  const frame = (functionName: string): { functionName: string; url: string; lineNumber: number } => ({
    functionName,
    url: functionName.startsWith('(') ? '' : 'file:///somewhere/src/domain/routing/matcher.ts',
    lineNumber: 79,
  });
  const profile = {
    nodes: [
      { id: 1, callFrame: frame('start') },
      { id: 2, callFrame: frame('walk') },
      { id: 3, callFrame: frame('(idle)') },
      { id: 4, callFrame: frame('(garbage collector)') },
    ],
    samples: [1, 2, 3, 2, 4],
    timeDeltas: [1000, 200, 5000, 100, 100],
    startTime: 10_000,
  };
  expect(summarizeProfile(profile, 11_050)).toEqual([
    { name: 'walk src/domain/routing/matcher.ts:80', percent: 75 },
    { name: '(garbage collector)', percent: 25 },
  ]);
});
