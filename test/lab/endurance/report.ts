// What the endurance run found: one row a measurement, with its bound where it has one. Times say something about Tollgate
// only where it had its core: where others kept it waiting they are reported and not judged. Pure.
import { table } from '../../../bench/report.ts';

export type Finding = {
  readonly scenario: string;
  readonly what: string;
  readonly value: string;
  /** Empty: reported, not judged. */
  readonly bound: string;
  readonly verdict: 'reported' | 'held' | 'broken' | 'not judged';
};

/** Findings of one scenario. */
export type Notes = {
  readonly report: (what: string, value: string | number) => void;
  /** `value` at most `most`. */
  readonly atMost: (what: string, value: number, most: number, unit?: string) => void;
  readonly equal: (what: string, value: unknown, expected: unknown) => void;
  /** Both as above, for what takes longer on a busy machine: judged where `busy`, a share of the time, is small. */
  readonly soon: (busy: number) => Pick<Notes, 'atMost' | 'equal'>;
  readonly findings: readonly Finding[];
};

/** A server that waited longer for its core than this share of the time was measured among others. */
export const QUIET = 0.05;

export function createNotes(scenario: string, say: (line: string) => void): Notes {
  const findings: Finding[] = [];
  const add = (what: string, value: string, bound: string, verdict: Finding['verdict']): void => {
    findings.push({ scenario, what, value, bound, verdict });
    const mark = verdict === 'broken' ? '! ' : verdict === 'not judged' ? '? ' : '  ';
    say(`  ${mark}${what}: ${value}${bound === '' ? '' : ` (${bound})`}`);
  };
  const judges = (judged: boolean): Pick<Notes, 'atMost' | 'equal'> => {
    const verdictOf = (holds: boolean): Finding['verdict'] => (holds ? 'held' : judged ? 'broken' : 'not judged');
    return {
      atMost: (what, value, most, unit = '') =>
        add(what, write(value) + unit, `at most ${write(most)}${unit}`, verdictOf(value <= most)),
      equal: (what, value, expected) => {
        const [is, should] = [JSON.stringify(value), JSON.stringify(expected)];
        add(what, is, is === should ? 'as expected' : `expected ${should}`, verdictOf(is === should));
      },
    };
  };
  return {
    findings,
    ...judges(true),
    report: (what, value) => add(what, String(value), '', 'reported'),
    soon: (busy) => {
      add('of the time the server waited for its core, %', (busy * 100).toFixed(0), '', 'reported');
      return judges(busy <= QUIET);
    },
  };
}

function write(value: number): string {
  return Number.isInteger(value) ? String(value) : value.toFixed(value < 10 ? 2 : 0);
}

export function renderFindings(findings: readonly Finding[]): string {
  const words = { reported: '', held: 'held', broken: 'BROKEN', 'not judged': 'not judged: busy' };
  const rows = findings.map(({ scenario, what, value, bound, verdict }) => [
    scenario,
    what,
    value,
    bound,
    words[verdict],
  ]);
  return table(['', 'what', 'measured', 'bound', ''], rows);
}
