// The locks of the stores that a configuration serves from. They are taken before anything else is loaded, opened or
// bound: a second process on a store would serve prices that the first one has changed since.
import { hostname } from 'node:os';
import type { Config } from '../config/config.ts';
import type { Clock } from '../host/clock.ts';
import { storeAt } from '../registry/store/store-kinds.ts';
import type { StoreLock } from '../registry/store/ports.ts';

/** Resolves with how to give the locks back. Rejects with a sentence if another process holds one. */
export async function lockStores({ registry, charges }: Config, clock: Clock): Promise<() => void> {
  const holder = { pid: process.pid, host: hostname(), started: new Date(clock.now()).toISOString() };
  const locks: StoreLock[] = [];
  const release = (): void => {
    for (const lock of locks) lock.release();
  };
  try {
    for (const store of [registry?.store, charges.store]) if (store) locks.push((await storeAt(store)).lock(holder));
    return release;
  } catch (error) {
    release();
    throw error;
  }
}
