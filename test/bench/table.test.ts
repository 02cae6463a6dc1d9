// The table that Tollgate is held to: which number is compared with what, and when a row counts as met. A verdict that is
// kinder than the number would be believed.
import { describe, expect, test } from 'vitest';
import { GOALS, type Goal } from '../../bench/goals.ts';
import { changingName, NGINX, PAID_GET, swappedName, tollgateName, CONSTANT } from '../../bench/names.ts';
import type { Row, Section } from '../../bench/report.ts';
import { judge, renderTable, verdict } from '../../bench/table.ts';
import { SCENARIOS } from '../../bench/scenarios.ts';

function goal(what: string): Goal {
  const found = GOALS.find((each) => each.what === what);
  if (found === undefined) throw new Error(`no goal ${what}`);
  return found;
}

function section(name: string, rows: readonly Row[]): Section {
  return {
    name,
    title: name,
    columns: [],
    rows,
    skipped: [],
    references: { key: '', rows: [] },
    pairs: [],
    remarks: [],
  };
}

function row(name: string, key: string, values: readonly number[]): Row {
  return { name, rounds: values.map((value) => ({ [key]: value })) };
}

function measured(sections: readonly Section[]): Record<string, readonly [number | undefined, string]> {
  return Object.fromEntries(
    judge(sections).map(({ goal: { what }, value, standing }) => [what, [value?.median, standing] as const]),
  );
}

describe('what is compared with what', () => {
  test('behaviour: a share of nginx is its CPU over that of Tollgate with 10,000 routes, round by round', () => {
    const free = section('free', [
      row(NGINX, 'cpuUs', [10, 20, 30]),
      row(tollgateName(10), 'cpuUs', [1, 1, 1]),
      row(tollgateName(10_000), 'cpuUs', [20, 80, 60]),
      row(tollgateName(100_000), 'cpuUs', [1.1, 1.2, 1.3]),
    ]);
    expect(measured([free])).toEqual({
      'free GET, share of nginx': [0.5, 'aim'],
      'a request at 100,000 routes, to one at 10': [1.2, 'missed'],
    });
  });

  test('behaviour: added latency is compared the other way round: less is better', () => {
    const latency = section('latency', [
      row(NGINX, 'addedUs', [50, 50]),
      row(tollgateName(10_000), 'addedUs', [100, 150]),
    ]);
    expect(measured([latency])).toEqual({ 'p50 added at 2,000/s, to nginx': [2.5, 'must'] });
  });

  test('behaviour: one round in which nginx added next to nothing does not decide the row of added latency', () => {
    const latency = section('latency', [
      row(NGINX, 'addedUs', [50, -3, 60]),
      row(tollgateName(10_000), 'addedUs', [100, 120, 110]),
    ]);
    const [found] = judge([latency]);
    // 110/50; without the first 115/28.5, without the second 105/55, without the third 110/23.5.
    expect(found?.value?.median).toBeCloseTo(2.2);
    expect(found?.value?.min).toBeCloseTo(105 / 55);
    expect(found?.value?.max).toBeCloseTo(110 / 23.5);
  });

  test('behaviour: a 402 is compared with a node:http server that answers the same bytes', () => {
    const demands = section('payment-required', [
      row(CONSTANT, 'cpuUs', [16]),
      row(tollgateName(10_000), 'cpuUs', [20]),
    ]);
    expect(measured([demands])['402, share of a constant node:http']).toEqual([0.8, 'must']);
  });

  test('behaviour: figures of the table without a peer are read as they are, nanoseconds as microseconds', () => {
    const found = measured([
      section('matcher', [{ name: '100000 routes', rounds: [{ hotNs: 300, freshNs: 2001 }] }]),
      section('change', [row(changingName(100_000), 'maxMs', [9])]),
      section('swap', [row(swappedName(100_000), 'maxMs', [50])]),
      section('paid', [row(PAID_GET, 'perCore', [1499])]),
      section('memory', [{ name: tollgateName(10_000), rounds: [{ idleMb: 75, heldMb: 300.5 }] }]),
    ]);
    expect(found).toMatchObject({
      'matcher, 100,000 routes: hot': [0.3, 'must'],
      'matcher, 100,000 routes: never seen': [2.001, 'missed'],
      '100,000 routes changed: longest pause': [9, 'aim'],
      '100,000 routes swapped for 100,000 others: longest pause': [50, 'must'],
      'paid GET a second and core': [1499, 'missed'],
      'resident, idle': [75, 'aim'],
      'resident, 10,000 idle connections': [300.5, 'missed'],
    });
  });

  test('refuses: results with other numbers of routes than the table is about', () => {
    const free = section('free', [row(NGINX, 'cpuUs', [10]), row(tollgateName(1000), 'cpuUs', [10])]);
    expect(judge([free]).map(({ standing }) => standing)).toEqual(['not measured', 'not measured']);
  });

  test('behaviour: rows of the table whose scenarios did not run are left out, and every row has a scenario', () => {
    expect(judge([])).toEqual([]);
    const names = new Set(SCENARIOS.map(({ name }) => name));
    expect(GOALS.filter((each) => !names.has(each.section))).toEqual([]);
  });

  test('behaviour: the aim of a row is never less than what must be', () => {
    expect(
      GOALS.filter(({ better, must, aim }) => (better === 'more' ? aim < must : aim > must)).map(({ what }) => what),
    ).toEqual([]);
  });
});

describe('when a row counts as met', () => {
  const spread = (median: number): { median: number; min: number; max: number; rounds: number } => ({
    median,
    min: median,
    max: median,
    rounds: 3,
  });

  test.each([
    ['free GET, share of nginx', 0.2799, 'missed'],
    ['free GET, share of nginx', 0.28, 'must'],
    ['free GET, share of nginx', 0.4499, 'must'],
    ['free GET, share of nginx', 0.45, 'aim'],
    ['download of 10 MB, CPU to nginx', 1.3, 'must'],
    ['download of 10 MB, CPU to nginx', 1.3001, 'missed'],
    ['download of 10 MB, CPU to nginx', 1, 'aim'],
  ])('behaviour: the row %s with %f is: %s', (what, value, standing) => {
    expect(verdict(goal(what), spread(value)).standing).toBe(standing);
  });

  test('behaviour: the scale of a row is 1 at what must be, whichever way is better', () => {
    expect(verdict(goal('free GET, share of nginx'), spread(0.56))).toMatchObject({
      score: 2,
      aimScore: 0.45 / 0.28,
    });
    expect(verdict(goal('upload of 10 MB, CPU to nginx'), spread(5))).toMatchObject({
      score: 0.5,
      aimScore: 2.5 / 1.5,
    });
  });

  test('refuses: to count a row as met that was not measured, or is not a number', () => {
    expect(verdict(goal('resident, idle'), undefined).standing).toBe('not measured');
    expect(verdict(goal('resident, idle'), spread(Number.NaN)).standing).toBe('not measured');
  });

  test('behaviour: the table says measured with its spread, must, aim and whether they are met', () => {
    const text = renderTable([
      verdict(goal('download of 10 MB, CPU to nginx'), { median: 1.2, min: 1.1, max: 1.42, rounds: 3 }),
      verdict(goal('resident, idle'), spread(101)),
      verdict(goal('paid GET a second and core'), undefined),
    ]);
    expect(text).toContain('| download of 10 MB, CPU to nginx | 1.20 (1.10-1.42)x | 1.3x | 1x | must met |');
    expect(text).toContain('| resident, idle | 101 (101-101) MB | 100 MB | 75 MB | **not met** |');
    expect(text).toContain('| paid GET a second and core | - | 1500 | 4000 | not measured |');
  });
});
