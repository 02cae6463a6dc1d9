// The files of customers' keys that this process uses: each is read once, whatever configurations come and go, and again
// within a second of a change. A file that cannot be read, or that is wrong, changes nothing: the keys of before stay.
import { readFileSync, statSync } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import type { Schedule } from '../../../host/clock.ts';
import { messageOf } from '../../../host/error-message.ts';
import type { Log } from '../../../host/log.ts';
import {
  MOST_KEY_FILE_BYTES,
  readKeyTable,
  readKeyTableAtOnce,
  type KeyTable,
} from '../../../domain/selling/key-table.ts';

/** The keys of a file in force; undefined: it could never be read. */
export type KeysInForce = { readonly table: KeyTable | undefined };

export type KeyFiles = {
  /** The keys of `file`, which is read before this returns if it was not used before. */
  readonly open: (file: string) => KeysInForce;
  readonly close: () => void;
};

const LOOK_EVERY_MS = 500;

type OpenFile = { table: KeyTable | undefined; seen: string; failing: boolean };

export function createKeyFiles(schedule: Schedule, log: Log): KeyFiles {
  const files = new Map<string, OpenFile>();
  let cancel: (() => void) | undefined;
  let closed = false;

  const failed = (file: string, state: OpenFile, error: unknown): void => {
    if (!state.failing)
      log.error("a file of customers' keys cannot be used, the keys of before stay", { file, error: messageOf(error) });
    state.failing = true;
  };
  const look = async (file: string, state: OpenFile): Promise<void> => {
    try {
      const seen = signOf(await stat(file));
      if (seen === state.seen) return;
      const reading = readKeyTable(await readFile(file));
      state.seen = seen;
      let step = reading.next();
      while (step.done !== true) {
        await breathe();
        step = reading.next();
      }
      state.table = step.value;
      state.failing = false;
      log.info("customers' keys were read again", { file, keys: step.value.size });
    } catch (error) {
      failed(file, state, error);
    }
  };
  const lookAgain = (): void => {
    if (closed) return;
    cancel = schedule(LOOK_EVERY_MS, () => {
      void Promise.all([...files].map(([file, state]) => look(file, state))).then(lookAgain);
    });
  };

  return {
    open: (file) => {
      const known = files.get(file);
      if (known !== undefined) return known;
      const state: OpenFile = { table: undefined, seen: '', failing: false };
      try {
        state.seen = signOf(statSync(file));
        state.table = readKeyTableAtOnce(readFileSync(file));
      } catch (error) {
        failed(file, state, error);
      }
      files.set(file, state);
      if (cancel === undefined) lookAgain();
      return state;
    },
    close: () => {
      closed = true;
      cancel?.();
    },
  };
}

type FileSign = { readonly mtimeMs: number; readonly size: number; readonly ino: number };

function signOf({ mtimeMs, size, ino }: FileSign): string {
  if (size > MOST_KEY_FILE_BYTES)
    throw new Error(`it is larger than ${MOST_KEY_FILE_BYTES} bytes; that is no list of keys`);
  return `${mtimeMs} ${size} ${ino}`;
}

function breathe(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
