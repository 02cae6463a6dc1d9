// The files of an empty PostgreSQL: initdb makes them once for this checkout, and each test file starts on a copy, which takes
// a tenth of the time. PostgreSQL refuses to run as root, so root's servers, and their files, are those of `nobody`.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chownSync, existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

const NOBODY = 65_534;
const CLUSTERS = path.resolve(import.meta.dirname, '../../node_modules/.cache/clusters');

/** Makes the files of an empty database server in `folder`, which is there and empty; `bin` holds initdb. */
export function copyCluster(bin: string, folder: string): void {
  const made = path.join(CLUSTERS, nameOf(bin));
  if (!existsSync(made)) makeCluster(bin, made);
  execFileSync('cp', ['-R', `${made}/.`, folder]);
  if (isRoot()) execFileSync('chown', ['-R', `${NOBODY}:${NOBODY}`, folder]);
  execFileSync('chmod', ['-R', 'u=rwX,go=', folder]);
}

/** The user that a database server runs as: not root. */
export function asWhom(): { readonly uid?: number; readonly gid?: number } {
  return isRoot() ? { uid: NOBODY, gid: NOBODY } : {};
}

/** Gives `folder` to the user that a database server runs as. */
export function own(folder: string, isNew = true): void {
  if (isNew) mkdirSync(folder, { recursive: true, mode: 0o700 });
  if (isRoot()) chownSync(folder, NOBODY, NOBODY);
}

const isRoot = (): boolean => process.getuid?.() === 0;

/** Changes with the PostgreSQL that would read it. */
function nameOf(bin: string): string {
  const { mtimeNs, size } = statSync(path.join(bin, 'postgres'), { bigint: true });
  return createHash('sha256').update(`${bin} ${mtimeNs} ${size}`).digest('hex').slice(0, 16);
}

/** Complete or not there: several test files may want it at once. */
function makeCluster(bin: string, made: string): void {
  // Where `nobody` may write.
  const folder = mkdtempSync(path.join(tmpdir(), 'tollgate-initdb-'));
  own(folder, false);
  const options = ['-D', folder, '-U', 'tollgate', '-A', 'trust', '--no-sync', '--locale=C', '-E', 'UTF8'];
  execFileSync(path.join(bin, 'initdb'), options, {
    ...asWhom(),
    cwd: '/',
    env: { PATH: process.env['PATH'] ?? '', LC_ALL: 'C' },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  mkdirSync(CLUSTERS, { recursive: true });
  const copy = mkdtempSync(path.join(CLUSTERS, 'new-'));
  execFileSync('cp', ['-R', `${folder}/.`, copy]);
  rmSync(folder, { recursive: true });
  try {
    renameSync(copy, made);
  } catch (error) {
    // Another test file was faster.
    rmSync(copy, { recursive: true });
    if (!existsSync(made)) throw error;
  }
}
