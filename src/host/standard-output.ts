// Standard output, written in order and without waiting for its reader. Node's own stream joins all that waits for a
// full pipe into one long write. The pipe takes a part of it, and what another process writes then stands in the middle
// of a line.
import { writeSync } from 'node:fs';

type StandardOutput = {
  readonly write: (text: string) => void;
  /** Writes what waits, for the end of the process: for so long as a reader that reads at all may take. */
  readonly end: () => void;
};

type StandardOutputDeps = {
  /** Writes some of `bytes` and returns how many; throws EAGAIN if none can be taken for now. */
  readonly writeBytes: (bytes: Uint8Array) => number;
  readonly later: (run: () => void) => void;
  readonly sleep: () => void;
};

/** Size that a pipe takes as a whole or not at all: PIPE_BUF of Linux. */
export const WHOLE_BYTES = 4096;
const RETRY_MS = 5;
/** Longest time without a reader that takes anything. */
const MOST_SLEEPS = 200;

const SYSTEM: StandardOutputDeps = {
  writeBytes: (bytes) => writeSync(1, bytes),
  later: (run) => void setTimeout(run, RETRY_MS),
  sleep: () => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, RETRY_MS),
};

export function openStandardOutput({ writeBytes, later, sleep }: StandardOutputDeps = SYSTEM): StandardOutput {
  let waiting: Uint8Array[] = [];
  /** Index of the first of them that is not written as a whole. */
  let first = 0;
  let timed = false;

  /**
   * Tries to write and returns how many bytes were taken; all of them if they can never be written, because the reader
   * is gone or a disk full.
   */
  const attempt = (bytes: Uint8Array): number => {
    try {
      return writeBytes(bytes);
    } catch (error) {
      return error instanceof Error && 'code' in error && error.code === 'EAGAIN' ? 0 : bytes.length;
    }
  };
  /** Whether something was taken. */
  const step = (): boolean => {
    const next = waiting[first];
    if (next === undefined) return false;
    const taken = attempt(next);
    if (taken < next.length) waiting[first] = next.subarray(taken);
    else first++;
    if (first === waiting.length) {
      waiting = [];
      first = 0;
    }
    return taken > 0;
  };
  const run = (): void => {
    while (step());
    if (waiting.length === 0 || timed) return;
    timed = true;
    later(() => {
      timed = false;
      run();
    });
  };
  return {
    write: (text) => {
      if (text === '') return;
      const bytes = Buffer.from(text);
      const last = waiting.at(-1);
      // The bytes join those that wait: fewer and longer writes for a reader that is slow.
      if (last !== undefined && waiting.length - first > 1 && last.length + bytes.length <= WHOLE_BYTES)
        waiting[waiting.length - 1] = Buffer.concat([last, bytes]);
      else waiting.push(bytes);
      if (!timed) run();
    },
    end: () => {
      for (let sleeps = 0; waiting.length > 0 && sleeps < MOST_SLEEPS; sleeps++) {
        while (step()) sleeps = 0;
        if (waiting.length > 0) sleep();
      }
    },
  };
}
