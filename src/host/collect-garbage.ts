// Collects the garbage of a start, once: what was read, parsed and compiled on the way. V8 keeps its pages, a third of
// all that is resident, until it has been idle for more than a minute. It stops the process for 40 to 110 ms with 10,000
// routes, so it must never be called while requests are served.
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

export function collectGarbage(): void {
  setFlagsFromString('--expose-gc');
  const collect: unknown = runInNewContext('globalThis.gc');
  setFlagsFromString('--no-expose-gc');
  // Other kinds of collection leave the young generation as large as the start made it.
  if (typeof collect === 'function') collect({ type: 'major', flavor: 'last-resort' });
}
