// Runs schedules one after another until one breaks a rule, and tells about that one so that a person can follow it.
import type { Bug } from './process.ts';
import { runSchedule, type Run } from './schedule.ts';

export type Violation = Run & { readonly seed: number; readonly schedules: number };

/** The first of `schedules` seeds from `first` on whose schedule breaks a rule, with its trace. */
export async function findViolation(first: number, schedules: number, bug?: Bug): Promise<Violation | undefined> {
  for (let seed = first; seed < first + schedules; seed++) {
    const { violations } = await runSchedule(seed, bug);
    if (violations.length > 0) return { ...(await runSchedule(seed, bug, true)), seed, schedules: seed - first + 1 };
  }
  return undefined;
}

export function explain({ seed, schedules, violations, trace }: Violation, bugName?: string): string {
  const again = `npm run simulate -- --schedules 1 --seed ${seed}${bugName === undefined ? '' : ` --bug '${bugName}'`}`;
  return [
    ...trace,
    '',
    `Schedule ${schedules} broke a rule:`,
    ...violations.map((what) => `  ${what}`),
    `Run it again: ${again}`,
  ].join('\n');
}
