// Applies a changed configuration while Tollgate runs: on SIGHUP, and when the file or one that it names has changed. One reload
// at a time, the newest file last. A file is read when it has not changed for a second: half written, it can be a valid
// configuration without its routes. A bad file is logged problem by problem and changes nothing.
import { stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import type { Config, LoadedConfig } from '../config/config.ts';
import { resolveSecrets } from '../config/first-start.ts';
import { loadConfig } from '../config/load.ts';
import { formatProblem } from '../config/problems.ts';
import { watchFiles } from '../config/watch.ts';
import { createRandom, systemSchedule } from '../host/clock.ts';
import type { Log } from '../host/log.ts';
import { NETWORKS } from '../gateway/rails/rails.ts';
import type { Io } from './command.ts';
import { messageOf } from '../host/error-message.ts';

export type ReloadTarget = {
  /** Applies a new configuration; undefined if this version cannot. */
  readonly reload?: (config: Config) => void | Promise<void>;
  /** A new configuration could not even be read: counted and noted. `reason` is a sentence without a value of it. */
  readonly reloadFailed?: (reason: string) => void;
};

export type Reloads = {
  readonly request: (cause: 'SIGHUP' | 'file') => void;
  /** Attaches what runs from now on; reloads that were asked for before wait for it. */
  readonly attach: (running: ReloadTarget) => void;
  /** Starts no further reload; resolves when the last one is over. */
  readonly close: () => Promise<void>;
};

type ReloadSource = {
  /** Name of the file in messages; undefined if flags are the configuration. */
  readonly file: string | undefined;
  /** Absolute: the files that it named and that are read with it. */
  readonly filesBeside: readonly string[];
  readonly io: Io;
  readonly log: Log;
  /** Called after each reload that was applied. */
  readonly onTaken: (config: LoadedConfig) => void;
};

/** Milliseconds that a file must rest unchanged before it is read. */
const REST_MS = 1000;

const FAILED = 'the configuration was not reloaded';

export function createReloads({ file, filesBeside, io, log, onTaken }: ReloadSource): Reloads {
  let running: ReloadTarget | undefined;
  let wanted = false;
  let working: Promise<void> | undefined;
  const closed = new AbortController();
  const watch =
    file === undefined
      ? undefined
      : watchFiles([resolve(io.folder, file), ...filesBeside], () => request('file'), systemSchedule);

  function request(cause: 'SIGHUP' | 'file'): void {
    if (file === undefined || (running !== undefined && running.reload === undefined)) {
      if (cause === 'SIGHUP') log.warn('nothing to reload; restart to take changes on');
      return;
    }
    log.info('reloading the configuration', { cause });
    wanted = true;
    work();
  }

  /** Reloads that are asked for while one runs become one more after it. */
  function work(): void {
    if (running === undefined || closed.signal.aborted || !wanted || working !== undefined) return;
    wanted = false;
    working = reload(running).finally(() => {
      working = undefined;
      work();
    });
  }

  async function reload(target: ReloadTarget): Promise<void> {
    if (file !== undefined) await rested(resolve(io.folder, file), closed.signal);
    if (closed.signal.aborted) return;
    // Reloads that were asked for meanwhile mean this file.
    wanted = false;
    const read = readNext();
    if (typeof read === 'string') {
      target.reloadFailed?.(read);
      return;
    }
    try {
      await target.reload?.(read.config);
      onTaken(read.loaded);
    } catch (error) {
      log.error(FAILED, { problem: messageOf(error) });
    }
  }

  /** Reads the next configuration; a sentence if it cannot be used, after every problem was logged. */
  function readNext(): { config: Config; loaded: LoadedConfig } | string {
    if (file === undefined) return 'there is no file';
    watch?.accept();
    try {
      const loaded = loadConfig(file, io.env, io.folder, NETWORKS);
      if (!loaded.ok) {
        const problems = loaded.problems.map(formatProblem);
        for (const problem of problems) log.error(FAILED, { problem });
        const [first = ''] = problems;
        return problems.length > 1 ? `${first} (and ${problems.length - 1} more)` : first;
      }
      watch?.follow([resolve(io.folder, file), ...loaded.filesBeside]);
      const resolved = resolveSecrets(loaded.config, { random: createRandom(), log });
      if (resolved.ok) return { config: resolved.config, loaded: loaded.config };
      log.error(FAILED, { problem: resolved.problem });
      return resolved.problem;
    } catch (error) {
      log.error(FAILED, { problem: messageOf(error) });
      return messageOf(error);
    }
  }

  return {
    request,
    attach: (next) => {
      running = next;
      work();
    },
    close: async () => {
      closed.abort();
      watch?.close();
      await working;
    },
  };
}

/** Resolves when `file` has not changed for a while, is gone, or the wait was ended. */
async function rested(file: string, signal: AbortSignal): Promise<void> {
  try {
    for (let before = await stat(file); ;) {
      // The time of its last change, by the clock of its file system; if that is ahead of ours, watching has to do.
      const age = Date.now() - before.ctimeMs;
      if (age >= REST_MS) return;
      await setTimeout(Math.min(REST_MS, Math.ceil(REST_MS - age)), undefined, { signal });
      const now = await stat(file);
      if (age < 0 && now.ctimeMs === before.ctimeMs && now.ino === before.ino && now.size === before.size) return;
      before = now;
    }
  } catch {
    // The reader of a file tells that it is gone.
  }
}
