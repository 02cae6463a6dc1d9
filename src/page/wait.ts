// Decides when a payment is sent again by itself: never earlier than the server says. If the server says nothing and
// money was taken, the pauses are those that a server keeps, so that no request is spent for nothing. If nothing was
// taken, the pauses grow.
import type { ToldProblem } from './told-problem.ts';

const CHARGED_PAUSES: readonly number[] = [2, 10, 60, 300, 1800];
const LONGEST_SECONDS = 30;
/** Times that a payment is sent again if nothing was taken for it. Each may be a claim, and a payment has ten. */
const UNCHARGED_TIMES = 8;
const TIMES = 10;

/** Seconds until a payment is sent again after `asked` times; undefined if only a click sends it. */
export function secondsUntilAsked({ charged, seconds }: ToldProblem, asked: number): number | undefined {
  const backOff = Math.min(LONGEST_SECONDS, 2 ** Math.min(asked, 5));
  switch (charged) {
    case true:
      return Math.max(1, seconds ?? CHARGED_PAUSES[asked - 1] ?? 1800);
    case 'unknown':
      return Math.max(1, seconds ?? backOff);
    case false:
      return asked > UNCHARGED_TIMES ? undefined : Math.max(backOff, seconds ?? 0);
    case undefined:
      return asked > TIMES ? undefined : Math.max(1, seconds ?? backOff);
    default:
      return charged satisfies never;
  }
}
