// Standard output, written in order and without waiting for its reader. Node's own stream joins what waits for a full pipe
// into one long write, of which the pipe takes a part; what another process writes then stands in the middle of a line.
import { writeSync } from 'node:fs';

export type StandardOutput = {
  readonly write: (text: string) => void;
  /** Writes what waits, for the end of the process: for so long as a reader that reads at all may take. */
  readonly end: () => void;
};

export type StandardOutputDeps = {
  /** How many of `bytes` were taken; throws EAGAIN if none is for now. */
  readonly writeBytes: (bytes: Uint8Array) => number;
  readonly later: (run: () => void) => void;
  readonly sleep: () => void;
};

const RETRY_MS = 5;
/** Without a reader that takes anything. */
const MOST_SLEEPS = 200;

const SYSTEM: StandardOutputDeps = {
  writeBytes: (bytes) => writeSync(1, bytes),
  later: (run) => void setTimeout(run, RETRY_MS),
  sleep: () => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, RETRY_MS),
};

export function openStandardOutput({ writeBytes, later, sleep }: StandardOutputDeps = SYSTEM): StandardOutput {
  const waiting: Uint8Array[] = [];
  let timed = false;

  /** How many were taken; all of what can never be written, because the reader is gone or a disk full. */
  const attempt = (bytes: Uint8Array): number => {
    try {
      return writeBytes(bytes);
    } catch (error) {
      return error instanceof Error && 'code' in error && error.code === 'EAGAIN' ? 0 : bytes.length;
    }
  };
  /** Whether something was taken. */
  const step = (): boolean => {
    const [next] = waiting;
    if (next === undefined) return false;
    const taken = attempt(next);
    if (taken === next.length) waiting.shift();
    else waiting[0] = next.subarray(taken);
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
      waiting.push(Buffer.from(text));
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
