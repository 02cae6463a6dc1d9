// SQLite as a kind of store: one file, made if there is none, and its journals and its lock beside it.
import { existsSync } from 'node:fs';
import type { Holder, StoreLock, StorePlace } from '../ports.ts';
import { isMigrated, migrateFile, refuseServing } from './database.ts';
import { openCharges } from './charges.ts';
import { openCopySource } from './copy-source.ts';
import { lockStore } from './lock.ts';
import { readStoredRoutes } from './read-only.ts';
import { readStoreStats } from './stats.ts';
import { openStore } from './store.ts';

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
    // Its file is looked at by a start.
    examine: async () => [],
    readRoutes: async () => readStoredRoutes(file),
    open: async ({ as, random, onUpgrade, ...rest }) => {
      const upgrade = onUpgrade === undefined ? {} : { onUpgrade };
      const how = as === 'server' ? { writesApart: true } : { busyMs: COMMAND_BUSY_MS };
      const { routes, apiKeys, close } = openStore(file, { random, ...upgrade, ...how });
      const charges = openCharges(file, rest);
      return {
        ...{ isShared: false, routes, apiKeys, charges },
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
