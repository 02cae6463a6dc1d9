// Everything that a process has to close, in its order: what was started last may use what was started before, and so
// is closed first.
import type { Part } from './part.ts';

export type Closers = {
  /** Adds what is closed before everything that was added so far. */
  readonly addFirst: (close: Part['close']) => void;
  /** Adds what is closed after everything that was added so far. */
  readonly addLast: (close: Part['close']) => void;
  readonly closeAll: () => Promise<void>;
};

export function createClosers(): Closers {
  const closers: Part['close'][] = [];
  return {
    addFirst: (close) => void closers.unshift(close),
    addLast: (close) => void closers.push(close),
    closeAll: async () => {
      for (const close of closers) await close();
    },
  };
}
