// The time that a question about sums is about: the last 24 hours unless it says otherwise.
import { problem, type Problem } from '../../domain/problem.ts';
import { ceilTo, STEP_MS, type TimeRange } from '../../domain/totals/steps.ts';

/** The longest time, in days, that sums of days are kept. */
const MOST_DAYS = 3660;

export function askedRange(
  { from, to }: { readonly from?: number | undefined; readonly to?: number | undefined },
  now: number,
): TimeRange | Problem {
  // The minute that goes on is part of it; so are the day before it and the day before that one, of which minutes are kept.
  const toMs = to ?? ceilTo(now + 1, 'minute');
  const fromMs = from ?? toMs - STEP_MS.day;
  if (fromMs >= (to ?? now)) return problem('malformed', "The query's from is not before its to.");
  if (toMs - fromMs > MOST_DAYS * STEP_MS.day)
    return problem('malformed', `From and to are more than ${MOST_DAYS} days apart; ask for a shorter time.`);
  return { fromMs, toMs };
}

export function iso(ms: number): string {
  return new Date(ms).toISOString();
}
