// Runs schedules one after another until one breaks a rule, and tells about that one so that a person can follow it.
import { AsyncLocalStorage } from 'node:async_hooks';
import type { Run } from './schedule.ts';

export type Violation = Run & { readonly seed: number; readonly schedules: number };

/** The first of `schedules` seeds from `first` on whose schedule breaks a rule, with its trace. */
export async function findViolation(
  first: number,
  schedules: number,
  run: (seed: number, traced: boolean) => Promise<Run>,
): Promise<Violation | undefined> {
  // What a schedule's processes leave in the context of its caller would be copied by each request of those that follow.
  const apart = AsyncLocalStorage.snapshot();
  for (let seed = first; seed < first + schedules; seed++) {
    const { violations } = await apart(run, seed, false);
    if (violations.length > 0) return { ...(await apart(run, seed, true)), seed, schedules: seed - first + 1 };
  }
  return undefined;
}

/** `flags`: further ones of the command. */
export function explain({ seed, schedules, violations, trace }: Violation, bugName?: string, flags = ''): string {
  const planted = bugName === undefined ? '' : ` --bug '${bugName}'`;
  const again = `npm run simulate -- --schedules 1 --seed ${seed}${planted}${flags === '' ? '' : ` ${flags}`}`;
  return [
    ...trace,
    '',
    `Schedule ${schedules} broke a rule:`,
    ...violations.map((what) => `  ${what}`),
    `Run it again: ${again}`,
  ].join('\n');
}
