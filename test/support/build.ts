// The program as it is shipped, for tests that start it: bundled once for each state of the sources, because a bundle starts in
// less than half of the CPU that the sources take, and tests start hundreds of processes. Whoever asks first makes it.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs';
import path from 'node:path';

const ROOT = path.resolve(import.meta.dirname, '../..');
const BUILDS = path.join(ROOT, 'node_modules/.cache/builds');
/** With a crash point: TOLLGATE_TEST_STOP_AT. */
const CRASHING = path.join(ROOT, 'test/support/crash-program.ts');
/** Builds of other states of the sources are kept for so long: another run may still start processes of them. */
const KEPT_MS = 24 * 3_600_000;

export type Build = { readonly main: string; readonly crashing: string };

let known: Build | undefined;

/** The build of the sources as they stood when this process first asked. */
export function programBuild(): Build {
  return (known ??= findBuild());
}

function findBuild(): Build {
  const folder = path.join(BUILDS, stateOfSources());
  if (!existsSync(folder)) make(folder);
  return { main: path.join(folder, 'dist/main.js'), crashing: path.join(folder, 'dist/crash-program.js') };
}

/** Changes with any file that a build is made of. */
function stateOfSources(): string {
  const state = createHash('sha256');
  const sources = readdirSync(path.join(ROOT, 'src'), { recursive: true, encoding: 'utf8' }).toSorted();
  const files = [...sources.map((name) => path.join('src', name)), 'package.json', 'package-lock.json'].concat(
    ['crash-program.ts', 'crash-point.ts', 'build.ts'].map((name) => path.join('test/support', name)),
  );
  for (const file of files) {
    const { mtimeNs, size } = statSync(path.join(ROOT, file), { bigint: true });
    state.update(`${file} ${mtimeNs} ${size}\n`);
  }
  return state.digest('hex').slice(0, 16);
}

function make(folder: string): void {
  mkdirSync(BUILDS, { recursive: true });
  for (const name of readdirSync(BUILDS)) {
    const old = path.join(BUILDS, name);
    const { mtimeMs = Infinity } = statSync(old, { throwIfNoEntry: false }) ?? {};
    if (mtimeMs < Date.now() - KEPT_MS) rmSync(old, { recursive: true, force: true });
  }
  const own = mkdtempSync(path.join(BUILDS, 'new-'));
  copyFileSync(path.join(ROOT, 'package.json'), path.join(own, 'package.json'));
  const script = [path.join(ROOT, 'src/bundle.ts'), path.join(own, 'dist'), CRASHING];
  const { status, stdout, stderr } = spawnSync(path.join(ROOT, 'node_modules/.bin/node'), script, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`the sources cannot be built: ${stdout}${stderr}`);
  try {
    renameSync(own, folder);
  } catch (error) {
    // Another process was faster.
    rmSync(own, { recursive: true, force: true });
    if (!existsSync(folder)) throw error;
  }
}
