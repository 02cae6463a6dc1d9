// Standard output as requests write to it: what is written within one turn of the event loop leaves in one write at its
// end. A write of its own for every line costs about as much as a third of the request that the line is about.

export type GatheredLines = {
  /** `atOnce`: what a process that stops in the next moment would have wanted to say; whatever waits goes first. */
  readonly write: (text: string, atOnce?: boolean) => void;
  /** Writes now what waits: for the end of the process. */
  readonly flush: () => void;
};

/** Characters that wait at most. */
const LIMIT = 64 * 1024;

/** `atEnd` runs what it is given at the end of the turn. */
export function gatherLines(
  write: (text: string) => void,
  atEnd: (run: () => void) => void = setImmediate,
): GatheredLines {
  let waiting = '';
  let scheduled = false;

  const flush = (): void => {
    const text = waiting;
    waiting = '';
    if (text !== '') write(text);
  };

  return {
    flush,
    write: (text, atOnce = false) => {
      waiting += text;
      if (atOnce || waiting.length >= LIMIT) return flush();
      if (scheduled) return;
      scheduled = true;
      atEnd(() => {
        scheduled = false;
        flush();
      });
    },
  };
}
