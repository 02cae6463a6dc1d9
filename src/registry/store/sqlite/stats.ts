// The size of a store and the free space of its volume. Reads the file system, not the store.
import { stat, statfs } from 'node:fs/promises';
import path from 'node:path';
import type { StoreStats } from '../ports.ts';

const SUFFIXES = ['', '-wal', '-shm'];

/** Undefined if the volume cannot be asked. */
export async function readStoreStats(file: string): Promise<StoreStats | undefined> {
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
