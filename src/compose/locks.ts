// The locks of the stores that a configuration serves from. Taken before anything else is loaded, opened or bound: a second
// process on a store would serve prices that the first one has changed since.
import { hostname } from 'node:os';
import type { Config } from '../config/config.ts';
import type { Clock } from '../host/clock.ts';
import { lockStore } from '../registry/store/lock.ts';

/** Returns how to give them back. Throws a sentence where another process holds one. */
export function lockStores({ registry, charges }: Config, clock: Clock): () => void {
  const holder = { pid: process.pid, host: hostname(), started: new Date(clock.now()).toISOString() };
  const locks = [registry?.store, charges.store].flatMap((store) => (store ? [lockStore(store.file, holder)] : []));
  return () => {
    for (const { release } of locks) release();
  };
}
