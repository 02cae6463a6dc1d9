// Turns of the event loop of the process of a test, whose sockets are both ends of a connection.
import { setImmediate } from 'node:timers/promises';

/** Resolves when this process has read what had come to its sockets, resets and ends among it. */
export async function readWhatCame(): Promise<void> {
  // What came while the first turn reads is read in the second.
  await setImmediate();
  await setImmediate();
}
