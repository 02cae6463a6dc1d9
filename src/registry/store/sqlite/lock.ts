// Locks a store for its one serving process. It holds a lock beside the file, `FILE.lock`, for as long as it lives, and
// the kernel frees it however the process dies. The lock is that of a small SQLite database in exclusive mode, because
// Node has no other file lock. Its holder is read from the bytes of that file: SQLite shows nothing of it while the
// lock is held.
import { chmodSync, closeSync, openSync, readFileSync, realpathSync } from 'node:fs';
import { hostname } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { z } from 'zod';
import { makePrivateFolder } from '../../../host/private-folder.ts';
import type { Holder, StoreLock } from '../ports.ts';
import { isBusy, isDamage } from './database.ts';

/** A process that is ending, as in a quick restart, is waited for; a second one is told soon. */
const WAIT_MS = 300;
/** Text of a holder; `started` is an RFC 3339 time. */
const HELD = /tollgate-lock(\{[^{}]{1,500}\})/;
const holderSchema = z.object({ pid: z.int(), host: z.string(), started: z.string() });

/** Throws a sentence that names who holds the lock of the store in `file`. */
export function lockStore(file: string, holder: Holder, waitMs = WAIT_MS): StoreLock {
  let db: DatabaseSync | undefined;
  let lock = `${file}.lock`;
  try {
    makePrivateFolder(dirname(file));
    lock = `${realName(file)}.lock`;
    makePrivateFile(lock);
    // The file is opened once and never by other means: closing any descriptor of it drops every lock that its process
    // has on it.
    const held = (db = new DatabaseSync(lock, { timeout: waitMs }));
    held.exec('PRAGMA locking_mode = EXCLUSIVE; PRAGMA secure_delete = ON; BEGIN EXCLUSIVE');
    held.exec('DROP TABLE IF EXISTS holder; CREATE TABLE holder (told TEXT NOT NULL)');
    held.prepare('INSERT INTO holder VALUES (?)').run(`tollgate-lock${JSON.stringify(holder)}`);
    // The lock outlives the commit in this mode.
    held.exec('COMMIT; BEGIN EXCLUSIVE');
    return { release: () => held.isOpen && held.close() };
  } catch (error) {
    db?.close();
    if (isBusy(error)) throw new Error(heldBy(file, lock, readHolder(lock)), { cause: error });
    if (isDamage(error))
      throw new Error(
        `The lock ${lock} is damaged: delete it. It holds nothing but the name of the process that serves the store.`,
        { cause: error },
      );
    const reason = error instanceof Error ? error.message : 'unknown reason';
    throw new Error(`The lock ${lock} cannot be taken: ${reason}. Put the store on a disk that this user can write.`, {
      cause: error,
    });
  }
}

/** Makes the lock private: any user who may read it can hold it, be it made here or there already. */
function makePrivateFile(lock: string): void {
  try {
    closeSync(openSync(lock, 'ax', 0o600));
  } catch (error) {
    if (!isNamed(error, 'EEXIST')) throw error;
    try {
      chmodSync(lock, 0o600);
    } catch (refused) {
      // The owner of the file is another user, who let this one in.
      if (!isNamed(refused, 'EPERM')) throw refused;
    }
  }
}

function heldBy(file: string, lock: string, holder: Holder | undefined): string {
  if (holder !== undefined && holder.host === hostname() && !isAlive(holder.pid))
    return `The lock ${lock} is held by another program or from another container; the process that took it last has ended. \`lsof ${lock}\` names who holds it: end that program, or name another file.`;
  const who = holder
    ? `process ${holder.pid} on ${holder.host}, started at ${holder.started}`
    : 'another process, which is just starting';
  return `The store ${file} is served by ${who}: one process serves a store, so stop that one or name another file.`;
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // A process of another user may not be asked, and is there.
    return isNamed(error, 'EPERM');
  }
}

function isNamed(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}

function readHolder(lock: string): Holder | undefined {
  try {
    const [, told = ''] = HELD.exec(readFileSync(lock, 'utf8')) ?? [];
    return holderSchema.parse(JSON.parse(told));
  } catch {
    return undefined;
  }
}

/** Finds the real name of a file: it has one lock, whatever names lead to it. */
function realName(file: string): string {
  try {
    return realpathSync(file);
  } catch {
    return join(realpathSync(dirname(file)), basename(file));
  }
}
