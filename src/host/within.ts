// A limit on how long somebody waits for something that goes on by itself.
import type { Schedule } from './clock.ts';

/** Resolves with true once `promise` is settled, with false if it is not within `ms`. Never rejects, and cancels nothing. */
export function settlesWithin(promise: Promise<unknown>, ms: number, schedule: Schedule): Promise<boolean> {
  return new Promise((resolve) => {
    const cancel = schedule(ms, () => resolve(false));
    const end = (): void => {
      cancel();
      resolve(true);
    };
    promise.then(end, end);
  });
}
