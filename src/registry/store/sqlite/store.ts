// Routes, API keys and the desk's sessions on SQLite: one file, and a connection of this thread, because all are few and
// memory serves what is asked often. One process owns the routes; others, such as `tollgate keys`, may have the file open
// beside it. Whatever SQLite says goes out as StoreUnavailable, and a lock is waited for without blocking the thread.
import type { DatabaseSync } from 'node:sqlite';
import type { Random } from '../../../host/clock.ts';
import { makeUuid } from '../../../host/identifiers.ts';
import { StoreUnavailable, type UpgradeListener, type Store } from '../ports.ts';
import { createApiKeyRows } from './api-key-rows.ts';
import { createAddAudit } from './audit-insert.ts';
import { createAttentionRows } from './attention-rows.ts';
import { createAuditRows } from './audit-rows.ts';
import { inTransaction, isStoreFailure, openDatabase, retryWhileBusy } from './database.ts';
import { writeApart, type SyncFile } from './disk.ts';
import { createDeskRows } from './desk-rows.ts';
import { createRouteRows } from './route-store.ts';
import { text } from '../rows.ts';

export type StoreOptions = {
  readonly random: Random;
  /**
   * Milliseconds that a write may block while another process holds the lock. A server keeps the default, which stalls
   * no request, and the router tries again; a command that has nothing else to do gives seconds.
   */
  readonly busyMs?: number;
  /** Changes kept for feeds that resume. */
  readonly changesKept?: number;
  readonly onUpgrade?: UpgradeListener;
  /** Commits do not wait for the disk, `onDisk` does: for a server, whose requests would wait with them. */
  readonly writesApart?: boolean;
  /** Stands in for the disk in tests. */
  readonly syncFile?: SyncFile;
};

const DEFAULT_BUSY_MS = 5;

export type RoutesAndKeys = Pick<Store, 'routes' | 'apiKeys' | 'desk' | 'audit' | 'attention'> & {
  /** Closes the file at once. */
  readonly close: () => void;
};

/** Opens and migrates the store in `file`. Throws an Error whose message says what to do. */
export function openStore(file: string, options: StoreOptions): RoutesAndKeys {
  const { busyMs = DEFAULT_BUSY_MS } = options;
  const db = openDatabase(file, busyMs, options.onUpgrade);
  try {
    const registryId = registryIdOf(db, options.random);
    const onDisk = options.writesApart ? writeApart(db, file, busyMs, options.syncFile) : async () => undefined;
    const addAudit = createAddAudit(db);
    const routes = createRouteRows(db, options.random, { changesKept: options.changesKept, addAudit });
    const apiKeys = createApiKeyRows(db, addAudit);
    const desk = createDeskRows(db, addAudit);
    const audit = createAuditRows(db);
    const attention = createAttentionRows(db);
    const written = <T>(write: () => T): Promise<T> =>
      available(async () => {
        const result = write();
        await onDisk();
        return result;
      });
    /** A write whose sync failed stands in the file all the same: it is told once it is on the disk. */
    const told = <T>(read: () => T): Promise<T> =>
      available(async () => {
        await onDisk();
        return read();
      });
    return {
      routes: {
        registryId,
        load: () => told(routes.load),
        write: (writes, rules) => written(() => routes.write(writes, rules)),
        changesAfter: (revision, limit) => told(() => routes.changesAfter(revision, limit)),
        history: (id, before, limit) => available(() => routes.history(id, before, limit)),
        // A file has one serving process, and that knows its own writes.
        watch: () => () => undefined,
      },
      apiKeys: {
        insert: (...given) => written(() => apiKeys.insert(...given)),
        find: (digest) => available(() => apiKeys.find(digest)),
        list: () => available(apiKeys.list),
        revoke: (...given) => written(() => apiKeys.revoke(...given)),
        // Losing the hour of a use costs nobody anything: it does not wait for the disk.
        use: (holder, at) => available(() => apiKeys.use(holder, at)),
        uses: () => available(apiKeys.uses),
      },
      desk: {
        addTicket: (...given) => written(() => desk.addTicket(...given)),
        takeTicket: (...given) => written(() => desk.takeTicket(...given)),
        addSession: (...given) => written(() => desk.addSession(...given)),
        findSession: (digest) => available(() => desk.findSession(digest)),
        seeSession: (...given) => written(() => desk.seeSession(...given)),
        listSessions: (holding) => available(() => desk.listSessions(holding)),
        endSession: (...given) => written(() => desk.endSession(...given)),
        endAllSessions: (end) => written(() => desk.endAllSessions(end)),
      },
      audit: {
        add: (entry) => written(() => addAudit(entry)),
        list: (filter) => available(() => audit.list(filter)),
        // What is pruned a second time costs nobody anything: it does not wait for the disk.
        prune: (...given) => available(() => audit.prune(...given)),
      },
      attention: { publish: (...given) => written(() => attention.publish(...given)) },
      close: () => {
        if (db.isOpen) db.close();
      },
    };
  } catch (error) {
    db.close();
    throw error;
  }
}

async function available<T>(use: () => T | Promise<T>): Promise<T> {
  try {
    return await retryWhileBusy(use);
  } catch (error) {
    if (!isStoreFailure(error)) throw error;
    throw new StoreUnavailable(error instanceof Error ? error.message : String(error), { cause: error });
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
