// The program that is measured: built, as the package and the image have it. Running the sources instead would measure
// the stripping of their types, which alone takes 50 MB.
import { execFileSync } from 'node:child_process';
import path from 'node:path';

/** Builds the checkout in `root`; before anything of it is measured. */
export function build(root: string): void {
  execFileSync('npm', ['run', '--silent', 'build'], { cwd: root, stdio: ['ignore', 'ignore', 'inherit'] });
}

/** What `tollgate` runs in that checkout. */
export function programOf(root: string): string {
  return path.join(root, 'dist/main.js');
}
