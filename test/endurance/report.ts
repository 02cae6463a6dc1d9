// What the endurance run found: one row a measurement, with its bound where it has one. Pure.
import { table } from '../../bench/report.ts';

export type Finding = {
  readonly scenario: string;
  readonly what: string;
  readonly value: string;
  /** Empty: reported, not judged. */
  readonly bound: string;
  readonly holds: boolean;
};

/** Findings of one scenario. */
export type Notes = {
  readonly report: (what: string, value: string | number) => void;
  /** `value` at most `most`. */
  readonly atMost: (what: string, value: number, most: number, unit?: string) => void;
  readonly equal: (what: string, value: unknown, expected: unknown) => void;
  readonly findings: readonly Finding[];
};

export function createNotes(scenario: string, say: (line: string) => void): Notes {
  const findings: Finding[] = [];
  const add = (what: string, value: string, bound: string, holds: boolean): void => {
    findings.push({ scenario, what, value, bound, holds });
    say(`  ${holds ? '  ' : '! '}${what}: ${value}${bound === '' ? '' : ` (${bound})`}`);
  };
  return {
    findings,
    report: (what, value) => add(what, String(value), '', true),
    atMost: (what, value, most, unit = '') =>
      add(what, write(value) + unit, `at most ${write(most)}${unit}`, value <= most),
    equal: (what, value, expected) => {
      const [is, should] = [JSON.stringify(value), JSON.stringify(expected)];
      add(what, is, is === should ? 'as expected' : `expected ${should}`, is === should);
    },
  };
}

function write(value: number): string {
  return Number.isInteger(value) ? String(value) : value.toFixed(value < 10 ? 2 : 0);
}

export function renderFindings(findings: readonly Finding[]): string {
  const rows = findings.map(({ scenario, what, value, bound, holds }) => [
    scenario,
    what,
    value,
    bound,
    holds ? (bound === '' ? '' : 'held') : 'BROKEN',
  ]);
  return table(['', 'what', 'measured', 'bound', ''], rows);
}
