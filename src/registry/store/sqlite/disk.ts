// Waits for the disk, but not in the thread that serves requests. Commits go to the write-ahead log without waiting
// (SQLite's synchronous NORMAL). One fsync of that file, in a thread of libuv, is for all that were committed before it
// began. A disk that now and then takes hundreds of milliseconds delays the writer alone. After a failed sync a later
// one may succeed without what the first one lost. So the log is written into the file first.
import { open } from 'node:fs/promises';
import type { DatabaseSync } from 'node:sqlite';
import { integer } from '../rows.ts';
import { CHECKPOINT_PAGES, OPEN_BUSY_MS, StoreFailure } from './database.ts';

/** Writes a file's bytes down. */
export type SyncFile = (file: string) => Promise<void>;

/**
 * Pages in the log before this connection writes them into the file, for which it waits: so many that the ledger's thread,
 * if there is one, comes first.
 */
const LATE_CHECKPOINT_PAGES = 4 * CHECKPOINT_PAGES;

/**
 * Writes apart: commits of `db` do not wait from here on; `file` is what it has open, `busyMs` its busy timeout.
 * Returns a function that resolves once all commits of `db` are on the disk, and rejects with StoreFailure if they may
 * not be.
 */
export function writeApart(
  db: DatabaseSync,
  file: string,
  busyMs: number,
  syncFile: SyncFile = syncBytes,
): () => Promise<void> {
  // The last commit that waits writes down that there is a log at all.
  db.exec(`PRAGMA busy_timeout = ${OPEN_BUSY_MS}; UPDATE meta SET revision = revision`);
  db.exec(
    `PRAGMA busy_timeout = ${busyMs}; PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = ${LATE_CHECKPOINT_PAGES}`,
  );
  const changes = db.prepare('SELECT total_changes() AS changes');
  const changed = (): number => integer(changes.get() ?? {}, 'changes');
  const checkpoint = db.prepare('PRAGMA wal_checkpoint(TRUNCATE)');
  let safe = changed();
  let syncing: Promise<void> | undefined;
  /** A sync failed: the log may have a hole, and what stands behind a hole is not read after a power failure. */
  let holed = false;

  const sync = async (): Promise<void> => {
    const upTo = changed();
    try {
      if (holed && checkpoint.get()?.['busy'] !== 0) throw new Error('the log could not be emptied');
      holed = false;
      await syncFile(`${file}-wal`);
    } catch (error) {
      holed = true;
      throw new StoreFailure('What was written may not be on the disk.', { cause: error });
    }
    safe = upTo;
  };

  const writtenUpTo = async (wanted: number): Promise<void> => {
    if (safe >= wanted) return;
    // A sync that began before may have missed it; those that wait share the next.
    if (syncing !== undefined) await syncing.catch(() => undefined);
    else await (syncing = sync().finally(() => (syncing = undefined)));
    return writtenUpTo(wanted);
  };

  return () => writtenUpTo(changed());
}

/** The log carries no locks of SQLite, which closing a descriptor of the file itself would drop. */
async function syncBytes(file: string): Promise<void> {
  const handle = await open(file, 'r+');
  try {
    await handle.datasync();
  } finally {
    await handle.close();
  }
}
