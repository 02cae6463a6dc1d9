// The program that is measured: built, as the package and the image have it. Running the sources instead would measure
// the stripping of their types, which alone takes 50 MB.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';

/** Builds the checkout in `root`; before anything of it is measured. */
export function build(root: string): void {
  execFileSync('npm', ['run', '--silent', 'build'], { cwd: root, stdio: ['ignore', 'ignore', 'inherit'] });
}

/** What node is told in the image of that checkout: the flags that its program's first line gets there, and the program. */
export function programOf(root: string): string[] {
  const interpreter = /#!\S+((?: --[\w=-]+)*)\|/.exec(readFileSync(path.join(root, 'Dockerfile'), 'utf8'));
  const flags = interpreter?.[1]?.split(' ').filter((flag) => flag !== '') ?? [];
  return [...flags, path.join(root, 'dist/main.js')];
}
