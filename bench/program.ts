// The program that is measured: built, as the package and the image have it. Running the sources instead would measure
// the stripping of their types, which alone takes 50 MB.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';

/** Builds the checkout in `root`; before anything of it is measured. */
export function build(root: string): void {
  execFileSync('npm', ['run', '--silent', 'build'], { cwd: root, stdio: ['ignore', 'ignore', 'inherit'] });
}

/** What `tollgate` runs in that checkout, for node: the flags that the program's first line names, and the program. */
export function programOf(root: string): string[] {
  const program = path.join(root, 'dist/main.js');
  const [first = ''] = readFileSync(program, 'utf8').split('\n', 1);
  return [...(first.match(/ --\S+/g) ?? []).map((flag) => flag.trim()), program];
}
