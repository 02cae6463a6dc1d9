// Tells when files have changed and come to rest. They are looked at by name twice a second, not watched by inode. So a
// rename over the file, the symlink swap of a Kubernetes ConfigMap and a mount without events all work. A file that is
// still being written looks different each time and is waited for. Never reads a file.
import { statSync, type BigIntStats } from 'node:fs';
import { stat } from 'node:fs/promises';
import type { Schedule } from '../host/clock.ts';

export type Watch = {
  /** Follows other files from now on; what they look like now is taken as known. */
  readonly follow: (files: readonly string[]) => void;
  /** Called before the files are read for another reason: what they look like now is known and not told any more. */
  readonly accept: () => void;
  readonly close: () => void;
};

/** A change is told after two looks that saw the same: between one and two of these. */
const LOOK_MS = 500;

/** Calls `changed` each time `files` (absolute) look other than before and the same twice. One that is gone looks, too. */
export function watchFiles(files: readonly string[], changed: () => void, schedule: Schedule, lookMs = LOOK_MS): Watch {
  let followed = [...files];
  let known = new Map(followed.map((file) => [file, printNow(file)]));
  let before: string | undefined;
  let closed = false;
  let cancel = schedule(lookMs, turn);

  function turn(): void {
    void look().then(() => {
      if (!closed) cancel = schedule(lookMs, turn);
    });
  }

  async function look(): Promise<void> {
    const looked = followed;
    const prints = await Promise.all(looked.map(printOf));
    if (closed || looked !== followed) return;
    const seen = prints.join('\n');
    const rests = seen === before;
    before = seen;
    if (!rests || looked.every((file, index) => known.get(file) === prints[index])) return;
    known = new Map(looked.map((file, index) => [file, prints[index] ?? '']));
    changed();
  }

  return {
    follow: (next) => {
      followed = [...next];
      // A file that is followed already keeps its old print: it may have changed since it was read.
      known = new Map(followed.map((file) => [file, known.get(file) ?? printNow(file)]));
    },
    accept: () => {
      known = new Map(followed.map((file) => [file, printNow(file)]));
    },
    close: () => {
      closed = true;
      cancel();
    },
  };
}

async function printOf(file: string): Promise<string> {
  try {
    return format(await stat(file, { bigint: true }));
  } catch {
    return 'absent';
  }
}

function printNow(file: string): string {
  const found = statSync(file, { bigint: true, throwIfNoEntry: false });
  return found === undefined ? 'absent' : format(found);
}

function format({ dev, ino, size, mtimeNs, ctimeNs }: BigIntStats): string {
  return `${dev} ${ino} ${size} ${mtimeNs} ${ctimeNs}`;
}
