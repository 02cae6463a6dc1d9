// What the database gave up because it waited for another transaction, in a circle or for too long: nothing of it is written,
// so it is done again.
import { codeOf } from './connection.ts';

const CONTENDED: ReadonlySet<string> = new Set(['40P01', '55P03', '40001']);
/** Times that work is begun which others stand in the way of. */
export const TRIES = 5;

export function isContended(error: unknown): boolean {
  return CONTENDED.has(codeOf(error) ?? '');
}

/** Does `work` until nobody stands in its way, five times at most and none after `deadline`, a time of `performance.now()`. */
export async function insist<T>(deadline: number, work: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await work();
    } catch (error) {
      if (tries === TRIES || performance.now() > deadline || !isContended(error)) throw error;
    }
  }
}
