// When a payment is sent again by itself. The server's word counts. Without one the pauses are those that a server keeps for
// what was charged, so that no ask is spent for nothing.
import type { ToldProblem } from './problem.ts';

const CHARGED_PAUSES: readonly number[] = [2, 10, 60, 300, 1800];
const LONGEST_SECONDS = 30;
/** Of what took nothing: each ask may be a claim, and a payment has ten. */
const ASKED_UNCHARGED = 5;
const ASKED = 10;

/** `asked`: how often it was. Undefined: only by a click. */
export function secondsUntilAsked({ charged, charge, seconds }: ToldProblem, asked: number): number | undefined {
  const most =
    charged === true || charged === 'unknown'
      ? Infinity
      : charged === false && charge !== undefined
        ? ASKED_UNCHARGED
        : ASKED;
  if (asked > most) return undefined;
  const own =
    charged === true
      ? (CHARGED_PAUSES[asked - 1] ?? CHARGED_PAUSES.at(-1) ?? 0)
      : Math.min(LONGEST_SECONDS, 2 ** Math.min(asked, 5));
  return Math.max(1, seconds ?? own);
}
