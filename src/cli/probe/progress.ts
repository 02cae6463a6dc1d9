// Says now and then how far a probe is, where it takes longer than anybody would wait in silence. A quick probe says
// nothing.
import type { Clock } from '../../host/clock.ts';

const EVERY_MS = 2000;

/** `say` gets a line at most every two seconds, and none within the first two. */
export function createProgress(
  path: string,
  clock: Pick<Clock, 'monotonic'>,
  say: (line: string) => void,
): (done: number, of: number) => void {
  let last = clock.monotonic();
  return (done, of) => {
    const now = clock.monotonic();
    if (now - last < EVERY_MS) return;
    last = now;
    say(`${path}: ${done} of ${of} spellings asked`);
  };
}
