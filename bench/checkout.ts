// Another revision of Tollgate to measure beside the working tree: a git worktree in a temporary folder, taken away again
// at the end. It runs with the dependencies of the working tree.
import { execFileSync } from 'node:child_process';
import { existsSync, rmSync, symlinkSync } from 'node:fs';
import path from 'node:path';

export type Revision = { readonly root: string; readonly name: string; readonly remove: () => void };

const ROOT = path.resolve(import.meta.dirname, '..');

/** Checks `revision` out below `folder`. Throws a sentence where git does not know it. */
export function checkOut(revision: string, folder: string): Revision {
  const root = path.join(folder, 'against');
  const name = git(['rev-parse', '--short', '--verify', `${revision}^{commit}`]);
  git(['worktree', 'add', '--detach', root, name]);
  if (!existsSync(path.join(root, 'node_modules')))
    symlinkSync(path.join(ROOT, 'node_modules'), path.join(root, 'node_modules'));
  return {
    root,
    name,
    remove: () => {
      // Never through the link.
      rmSync(path.join(root, 'node_modules'), { force: true });
      git(['worktree', 'remove', '--force', root]);
    },
  };
}

/** The working tree's revision, and whether it has changes of its own. */
export function describeWorkingTree(): string {
  try {
    const changed = git(['status', '--porcelain', '--untracked-files=no']) !== '';
    return `${git(['rev-parse', '--short', 'HEAD'])}${changed ? ' with changes' : ''}`;
  } catch {
    return 'of no git checkout';
  }
}

function git(args: readonly string[]): string {
  try {
    return execFileSync('git', ['-C', ROOT, ...args], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] }).trim();
  } catch (error) {
    const stderr = error instanceof Error && 'stderr' in error ? String(error.stderr).trim() : '';
    throw new Error(`git ${args[0]} failed: ${stderr || 'git is not there'}`, { cause: error });
  }
}
