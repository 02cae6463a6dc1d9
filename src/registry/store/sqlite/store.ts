// The registry's store: one SQLite file with routes, their change log and API keys. Nothing outside this folder writes
// or reads SQL. One process owns the routes; others, such as `tollgate keys`, may have the file open beside it.
import type { DatabaseSync } from 'node:sqlite';
import type { Random } from '../../../host/clock.ts';
import { makeUuid } from '../../../host/uuid.ts';
import type { OnUpgrade, Store } from '../ports.ts';
import { createApiKeyStore } from './api-keys.ts';
import { createDeclaredStore } from './declared.ts';
import { writeApart, type SyncFile } from './disk.ts';
import { text } from './rows.ts';
import { createRouteStore } from './routes.ts';
import { inTransaction, openDatabase } from './database.ts';

export type StoreOptions = {
  readonly random: Random;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /**
   * How long a write may block while another process holds the lock. A server keeps the default, which stalls no request,
   * and the router tries again; a command that has nothing else to do gives seconds.
   */
  readonly busyMs?: number;
  /** Changes kept for feeds that resume. */
  readonly changesKept?: number;
  readonly onUpgrade?: OnUpgrade;
  /** Commits do not wait for the disk, `onDisk` does: for a server, whose requests would wait with them. */
  readonly writesApart?: boolean;
  /** For tests: in place of the disk. */
  readonly syncFile?: SyncFile;
};

const DEFAULT_BUSY_MS = 5;

/** Opens and migrates the store in `file`. Throws an Error whose message says what to do. */
export function openStore(file: string, options: StoreOptions): Store {
  const { busyMs = DEFAULT_BUSY_MS } = options;
  const db = openDatabase(file, busyMs, options.onUpgrade);
  try {
    const registryId = registryIdOf(db, options.random);
    const onDisk = options.writesApart ? writeApart(db, file, busyMs, options.syncFile) : async () => undefined;
    return {
      registryId,
      routes: createRouteStore(db, options.random, options.changesKept),
      declared: createDeclaredStore(db),
      apiKeys: createApiKeyStore(db, options.random, options.now),
      onDisk,
      close: () => {
        if (db.isOpen) db.close();
      },
    };
  } catch (error) {
    db.close();
    throw error;
  }
}

function registryIdOf(db: DatabaseSync, random: Random): string {
  const select = db.prepare('SELECT registry_id FROM meta');
  const row =
    select.get() ??
    inTransaction(db, () => {
      db.prepare(
        "INSERT INTO meta (one, registry_id, revision, stamp) VALUES (1, ?, 0, '') ON CONFLICT DO NOTHING",
      ).run(makeUuid(random));
      return select.get();
    });
  if (!row) throw new Error('the store did not take its meta row');
  return text(row, 'registry_id');
}
