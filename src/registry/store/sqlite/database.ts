// Opens the registry's SQLite file and brings its schema up to date. Writes are durable when they return (WAL with
// synchronous FULL), unless disk.ts says otherwise. Another process may have the same file open, such as `tollgate keys`. A
// file that a newer version wrote, or that is not ours, is refused and never touched.
import { accessSync, closeSync, constants, existsSync, openSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout } from 'node:timers/promises';
import { makePrivateFolder } from '../../../host/private-folder.ts';
import type { CopyMark } from '../copy-ports.ts';
import { StoreDamaged } from '../store-damage.ts';
import type { UpgradeListener } from '../ports.ts';
import { readMark, refuseCopied } from './copy-mark.ts';

/** The schema, then what brings a file from each version to the next: SQL files beside this one. */
const SCHEMA: readonly string[] = [
  ...['schema.sql', 'schema-2.sql', 'schema-3.sql', 'schema-4.sql', 'schema-5.sql', 'schema-6.sql'],
  'schema-7.sql',
  'schema-8.sql',
  'schema-9.sql',
  'schema-10.sql',
  'schema-11.sql',
  'schema-12.sql',
  'schema-13.sql',
  'schema-14.sql',
  'schema-15.sql',
  'schema-16.sql',
  'schema-17.sql',
  'schema-18.sql',
  'schema-19.sql',
  'schema-20.sql',
  'schema-21.sql',
];
const APPLICATION_ID = 0x54474154;
/** Milliseconds that opening and migrating wait for another process that is doing the same. */
export const OPEN_BUSY_MS = 10_000;
/**
 * Pages in the log (16 MB) before they are written into the file: four times SQLite's own number. A page that many
 * charges share is then written once for all of them.
 */
export const CHECKPOINT_PAGES = 4000;
const BUSY = 5;
const CORRUPT = 11;
const NOT_A_DATABASE = 26;
const CONSTRAINT = 19;

/**
 * Opens `file`, made with mode 0600 if there is none, and migrates it. `busyMs`: how long a write may block the
 * thread while another process writes; a server keeps it short and tries again later (`isBusy`). `onUpgrade` is told
 * before a file of an older version is migrated, which can take a while. Throws a sentence.
 */
export function openDatabase(file: string, busyMs: number, onUpgrade?: UpgradeListener): DatabaseSync {
  const db = connect(file);
  try {
    migrate(db, file, onUpgrade, readSchema());
    db.exec(`PRAGMA busy_timeout = ${Math.trunc(busyMs)}`);
    return db;
  } catch (error) {
    db.close();
    throw isDamage(error) ? damaged(file, error) : error;
  }
}

/** Brings the schema of `file` up to date and closes it again; returns the versions applied, none if it was. */
export function migrateFile(file: string, onUpgrade?: UpgradeListener, schema = readSchema()): readonly number[] {
  const db = connect(file);
  try {
    return migrate(db, file, onUpgrade, schema);
  } finally {
    db.close();
  }
}

/** Whether the schema of `file` is up to date. Throws a sentence. */
export function isMigrated(file: string): boolean {
  const db = new DatabaseSync(file, { readOnly: true });
  try {
    refuseForeign(db, file);
    return knownVersion(db, file, SCHEMA.length) === SCHEMA.length;
  } catch (error) {
    throw isDamage(error) ? damaged(file, error) : error;
  } finally {
    db.close();
  }
}

/** Throws a sentence if `file` is there and was marked; what else is wrong with it is told by what opens it. */
export function refuseServing(file: string): void {
  if (existsSync(file)) refuseCopied(markOf(file), file);
}

function markOf(file: string): CopyMark | undefined {
  let db: DatabaseSync | undefined;
  try {
    db = new DatabaseSync(file, { readOnly: true, timeout: OPEN_BUSY_MS });
    return readMark(db);
  } catch {
    return undefined;
  } finally {
    db?.close();
  }
}

/** Runs `run` in one transaction that holds the write lock from its start; what it throws undoes everything. */
export function inTransaction<T>(db: DatabaseSync, run: () => T): T {
  if (db.isTransaction) return run();
  db.exec('BEGIN IMMEDIATE');
  try {
    const result = run();
    db.exec('COMMIT');
    return result;
  } catch (error) {
    if (db.isTransaction) db.exec('ROLLBACK');
    throw error;
  }
}

/** The store failed outside SQLite. */
export class StoreFailure extends Error {
  override readonly name = 'StoreFailure';
}

/** Whether `error` says that the store failed (disk, lock, corruption, closed), not that we have a bug. */
export function isStoreFailure(error: unknown): boolean {
  if (error instanceof StoreFailure) return true;
  if (!(error instanceof Error) || !('code' in error)) return false;
  return (
    error.code === 'ERR_SQLITE_ERROR' ||
    (error.code === 'ERR_INVALID_STATE' && /database is not open|finalized/.test(error.message))
  );
}

/** Whether another process held the lock: nothing was written, trying again soon is right. */
export function isBusy(error: unknown): boolean {
  return primaryCode(error) === BUSY;
}

/** Whether a statement broke a rule of the schema: it changed nothing, and its transaction goes on. */
export function isConstraint(error: unknown): error is Error {
  return primaryCode(error) === CONSTRAINT;
}

/** Whether the file that a statement needed is no SQLite database, or not a whole one. */
export function isDamage(error: unknown): boolean {
  const code = primaryCode(error);
  return code === CORRUPT || code === NOT_A_DATABASE;
}

/** Says what to do about the damaged `file`. */
export function damaged(file: string, error: unknown): StoreDamaged {
  const what = error instanceof Error ? error.message : 'unknown reason';
  return new StoreDamaged(
    `The store ${file} is damaged (${what}). Restore it from a backup; or move it away with ${file}-wal and ${file}-shm, and the next start makes a new one, without the routes, keys and charges of the old one.`,
    { cause: error },
  );
}

function primaryCode(error: unknown): number | undefined {
  return isStoreFailure(error) && error instanceof Error && 'errcode' in error
    ? Number(error.errcode) % 256
    : undefined;
}

const RETRIES = 80;
const RETRY_MS = 25;

/**
 * Runs `run` again while another process holds the lock, for two seconds, without blocking the thread in between. Right
 * only for what writes nothing before it throws, as every transaction here does.
 */
export async function retryWhileBusy<T>(run: () => T | Promise<T>): Promise<T> {
  for (let left = RETRIES; ; left--) {
    try {
      return await run();
    } catch (error) {
      if (left === 0 || !isBusy(error)) throw error;
      await setTimeout(RETRY_MS);
    }
  }
}

function connect(file: string): DatabaseSync {
  makePrivateFolder(dirname(file));
  makeFile(file);
  const db = new DatabaseSync(file, { timeout: OPEN_BUSY_MS, enableForeignKeyConstraints: true, defensive: true });
  try {
    refuseForeign(db, file);
    refuseCopied(readMark(db), file);
    const mode = db.prepare('PRAGMA journal_mode = WAL').get()?.['journal_mode'];
    if (mode !== 'wal') throw new Error(`The database ${file} cannot use a write-ahead log; put it on a local disk.`);
    db.exec(`PRAGMA synchronous = FULL; PRAGMA trusted_schema = OFF; PRAGMA wal_autocheckpoint = ${CHECKPOINT_PAGES}`);
    return db;
  } catch (error) {
    db.close();
    if (isDamage(error)) throw damaged(file, error);
    if (!isStoreFailure(error)) throw error;
    throw new Error(
      `The database ${file} cannot be used: ${error instanceof Error ? error.message : 'unknown reason'}.`,
      { cause: error },
    );
  }
}

/**
 * Makes the file in place of SQLite, so that no other user may read it; its journals inherit the mode. A file that is
 * there is not opened. To close a descriptor would drop every lock that this process holds on the file (POSIX). Without
 * its lock, another process that closes the file would delete the write-ahead log.
 */
function makeFile(file: string): void {
  try {
    closeSync(openSync(file, 'ax', 0o600));
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
    accessSync(file, constants.R_OK | constants.W_OK);
  }
}

function refuseForeign(db: DatabaseSync, file: string): void {
  const objects = pragmaNumber(db.prepare('SELECT count(*) AS value FROM sqlite_schema').get());
  const application = pragmaNumber(db.prepare('SELECT application_id AS value FROM pragma_application_id').get());
  if (objects > 0 && application !== APPLICATION_ID) {
    throw new Error(`The file ${file} is a database of another program; name a file of its own for Tollgate.`);
  }
}

function migrate(
  db: DatabaseSync,
  file: string,
  onUpgrade: UpgradeListener | undefined,
  schema: readonly string[],
): readonly number[] {
  const newest = schema.length;
  const applied: number[] = [];
  const from = knownVersion(db, file, newest);
  if (from > 0 && from < newest) onUpgrade?.({ from, to: newest });
  for (const [index, sql] of schema.entries()) {
    const version = index + 1;
    if (version <= from) continue;
    inTransaction(db, () => {
      // Another process may have been faster while this one waited for the lock.
      if (version <= schemaVersion(db)) return;
      db.exec(`${sql}; PRAGMA user_version = ${version}`);
      applied.push(version);
    });
  }
  return applied;
}

/** The SQL of every version, the oldest first. */
export function readSchema(): readonly string[] {
  return SCHEMA.map((name) => readFileSync(new URL(name, import.meta.url), 'utf8'));
}

/** Refuses one that is newer than `newest`. */
function knownVersion(db: DatabaseSync, file: string, newest: number): number {
  const version = schemaVersion(db);
  if (version <= newest) return version;
  throw new Error(
    `The database ${file} was written by a newer version of Tollgate (schema ${version}, this version knows ${newest}): run that version, or restore a backup from before the upgrade.`,
  );
}

function schemaVersion(db: DatabaseSync): number {
  return pragmaNumber(db.prepare('SELECT user_version AS value FROM pragma_user_version').get());
}

function pragmaNumber(row: Record<string, unknown> | undefined): number {
  return Number(row?.['value'] ?? 0);
}
