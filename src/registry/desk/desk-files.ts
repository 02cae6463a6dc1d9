// Files of the desk, the owners' page, which src/pack-desk.ts makes from src/desk in a process of its own. The build puts
// packed-desk-files.ts in the place of this file. Rejects with a sentence if they cannot be made.
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { readWebFiles, type WebFiles } from '../../host/web-files.ts';

const SOURCES = path.resolve(import.meta.dirname, '../..');
/** Far above what they have. */
const MOST_BYTES = 64 * 1024 * 1024;

export async function readDeskFiles(): Promise<WebFiles> {
  if (!existsSync(path.resolve(SOURCES, '../node_modules/rolldown')))
    throw new Error('The desk cannot be built here: this checkout has no rolldown; run npm ci, or use the package.');
  const bundler = path.join(SOURCES, 'pack-desk.ts');
  const { stdout } = await promisify(execFile)(process.execPath, [bundler], { maxBuffer: MOST_BYTES });
  return readWebFiles(stdout);
}
