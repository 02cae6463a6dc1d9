// SQLite as a kind of store: one file, made if there is none, and its journals and its lock beside it.
import { existsSync } from 'node:fs';
import type { Holder, StoreLock, StorePlace, StoredRoute, StoreStats } from '../ports.ts';
import { damaged, isDamage, isMigrated, migrateFile, refuseServing } from './database.ts';
import { openCharges } from './charge-store.ts';
import { openCopySource } from './copy-source.ts';
import { lockStore } from './lock.ts';
import { openStore } from './store.ts';
import { DatabaseSync } from 'node:sqlite';
import { createRandom } from '../../../host/clock.ts';
import { createRouteRows } from './route-store.ts';
import { stat, statfs } from 'node:fs/promises';
import path from 'node:path';

/** A command has nothing else to do while another process writes. */
const COMMAND_BUSY_MS = 5_000;

export function sqlitePlace(file: string): StorePlace {
  return {
    isShared: false,
    exists: () => existsSync(file),
    lock: (holder) => lockServed(file, holder),
    migrate: async (onUpgrade) => migrateFile(file, onUpgrade),
    isMigrated: async () => existsSync(file) && isMigrated(file),
    grants: () => undefined,
    // A start looks at its file.
    examine: async () => [],
    readRoutes: async () => readStoredRoutes(file),
    open: async ({ as, random, onUpgrade, ...rest }) => {
      const upgrade = onUpgrade === undefined ? {} : { onUpgrade };
      const how = as === 'server' ? { writesApart: true } : { busyMs: COMMAND_BUSY_MS };
      const { routes, apiKeys, desk, audit, attention, close } = openWhole(file, { random, ...upgrade, ...how });
      const charges = openCharges(file, rest);
      return {
        ...{ isShared: false, routes, apiKeys, desk, audit, attention, charges },
        stats: () => readStoreStats(file),
        close: async () => {
          await charges.close();
          close();
        },
      };
    },
    openCharges: (options) => openCharges(file, options),
    openSource: (holder) => openCopySource(file, holder),
    stats: () => readStoreStats(file),
  };
}

/** Opens a store whole. What is read of it at once may be damaged though its first pages are not. */
function openWhole(...[file, options]: Parameters<typeof openStore>): ReturnType<typeof openStore> {
  try {
    return openStore(file, options);
  } catch (error) {
    throw isDamage(error) ? damaged(file, error) : error;
  }
}

function lockServed(file: string, holder: Holder): StoreLock {
  const lock = lockStore(file, holder);
  try {
    refuseServing(file);
    return lock;
  } catch (error) {
    lock.release();
    throw error;
  }
}

/**
 * Reads routes for commands that only explain: without making, migrating or writing the file. Throws if it cannot be
 * read, or was written by an older version.
 */
function readStoredRoutes(file: string): readonly StoredRoute[] {
  const db = new DatabaseSync(file, { readOnly: true });
  try {
    return createRouteRows(db, createRandom(), { addAudit: () => undefined }).load().routes;
  } catch (error) {
    throw isDamage(error) ? damaged(file, error) : error;
  } finally {
    db.close();
  }
}

const SUFFIXES = ['', '-wal', '-shm'];

/** The sizes of its files and the free space of their volume; undefined if the volume cannot be asked. */
async function readStoreStats(file: string): Promise<StoreStats | undefined> {
  const sizes = await Promise.all(
    SUFFIXES.map(async (suffix): Promise<readonly [string, number] | undefined> => {
      const found = await stat(file + suffix).catch(() => undefined);
      return found && [path.basename(file) + suffix, found.size];
    }),
  );
  const volume = await statfs(path.dirname(file)).catch(() => undefined);
  if (volume === undefined) return undefined;
  return {
    files: Object.fromEntries(sizes.filter((each) => each !== undefined)),
    freeBytes: volume.bavail * volume.bsize,
    volumeBytes: volume.blocks * volume.bsize,
  };
}
