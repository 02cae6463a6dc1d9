// The folder in which a process keeps what it writes: that of its SQLite store, of its snapshot file, or `data` beside its
// configuration.
import path from 'node:path';
import { storeFile } from '../domain/store-settings.ts';
import type { LoadedConfig } from './config.ts';

/** A server that was started from flags writes here what a file would hold. */
export const RUNNING_FILE = 'running.json';

export function dataFolderOf({
  registry,
  charges,
  sync,
  folder,
}: Pick<LoadedConfig, 'registry' | 'charges' | 'sync' | 'folder'>): string {
  const store = registry?.store ?? charges.store;
  const file = store && storeFile(store);
  if (file !== undefined) return path.dirname(file);
  return sync === undefined ? path.join(folder, 'data') : path.dirname(sync.snapshotFile);
}
