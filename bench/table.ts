// Whether Tollgate is what it is held to: for every goal what was measured, and the table of them. Pure. What was not
// measured is never met.
import { GOALS, type Goal } from './goals.ts';
import { formatSpread, table, type Section, type Spread } from './report.ts';

export type Standing = 'aim' | 'must' | 'missed' | 'not measured';
export type Verdict = {
  readonly goal: Goal;
  readonly value: Spread | undefined;
  readonly standing: Standing;
  /** How far: 1 is what must be, whichever way is better. */
  readonly score: number | undefined;
  readonly aimScore: number;
};

/** What was found for every goal whose scenario ran. */
export function judge(sections: readonly Section[], goals = GOALS): Verdict[] {
  return goals.flatMap((goal) => {
    const section = sections.find(({ name }) => name === goal.section);
    if (section === undefined) return [];
    return [
      verdict(
        goal,
        goal.read((name) => section.rows.find((row) => row.name === name)),
      ),
    ];
  });
}

export function verdict(goal: Goal, value: Spread | undefined): Verdict {
  const { better, must, aim } = goal;
  const aimScore = better === 'more' ? aim / must : must / aim;
  if (value === undefined || Number.isNaN(value.median))
    return { goal, value: undefined, standing: 'not measured', score: undefined, aimScore };
  const reaches = (bound: number): boolean => (better === 'more' ? value.median >= bound : value.median <= bound);
  const standing = reaches(aim) ? 'aim' : reaches(must) ? 'must' : 'missed';
  // Less than nothing was added: as good as can be shown.
  const score = better === 'more' ? value.median / must : value.median > 0 ? must / value.median : Infinity;
  return { goal, value, standing, score, aimScore };
}

export function renderTable(verdicts: readonly Verdict[]): string {
  const rows = verdicts.map(({ goal, value, standing }) => [
    goal.what,
    value === undefined ? '-' : `${formatSpread(value, goal.digits)}${spaced(goal.unit)}`,
    bound(goal, goal.must),
    bound(goal, goal.aim),
    STANDINGS[standing],
  ]);
  return table(['what', 'measured', 'must', 'aim', ''], rows);
}

export const STANDINGS: Readonly<Record<Standing, string>> = {
  aim: 'aim met',
  must: 'must met',
  missed: '**not met**',
  'not measured': 'not measured',
};

/** `0.28`, `3x`, `50 ms`. */
export function bound({ unit }: Goal, value: number): string {
  return `${value}${spaced(unit)}`;
}

export function spaced(unit: string): string {
  return unit === '' || unit === 'x' ? unit : ` ${unit}`;
}
