// Standard output as requests write to it: what is written within one turn of the event loop leaves together at its
// end. A write of its own for every line costs about as much as a third of the request that the line is about. Other
// processes may write to the same pipe. So each write holds whole lines, and is no longer than a pipe takes at once.
import { WHOLE_BYTES } from './standard-output.ts';

type GatheredLines = {
  /**
   * Writes a line. `atOnce` is for what a process that stops in the next moment would have wanted to say; whatever
   * waits goes first.
   */
  readonly write: (text: string, atOnce?: boolean) => void;
  /** Writes now what waits: for the end of the process. */
  readonly flush: () => void;
};

/** Gathers lines. `atEnd` runs what it is given at the end of the turn. */
export function gatherLines(
  write: (text: string) => void,
  atEnd: (run: () => void) => void = setImmediate,
): GatheredLines {
  let waiting = '';
  let bytes = 0;
  let scheduled = false;

  const flush = (): void => {
    const text = waiting;
    waiting = '';
    bytes = 0;
    if (text !== '') write(text);
  };

  return {
    flush,
    write: (text, atOnce = false) => {
      const more = Buffer.byteLength(text);
      if (bytes + more > WHOLE_BYTES) flush();
      waiting += text;
      bytes += more;
      if (atOnce || bytes >= WHOLE_BYTES) return flush();
      if (scheduled) return;
      scheduled = true;
      atEnd(() => {
        scheduled = false;
        flush();
      });
    },
  };
}
