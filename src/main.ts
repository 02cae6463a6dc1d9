#!/usr/bin/env node
// The program: hands the command line to a command and exits with its code. The only file that ends the process. It loads
// the rest when it knows that this Node can: an older one would end with a stack of its own.
import { readFileSync } from 'node:fs';

/** Oldest version of Node, as package.json has it in `engines`. */
const OLDEST_NODE = 24;
/** Usage (EX_USAGE). */
const WRONG_NODE = 64;

if (Number.parseInt(process.versions.node, 10) < OLDEST_NODE) {
  process.stderr.write(
    `tollgate needs Node ${OLDEST_NODE} or newer and this is ${process.version}: install one from https://nodejs.org.\n`,
  );
  process.exit(WRONG_NODE);
}
const { runProgram } = await import('./cli/entry.ts');
const packageFile = readFileSync(new URL('../package.json', import.meta.url), 'utf8');
process.exit(await runProgram({ argv: process.argv.slice(2), packageFile, exitNow: (code) => process.exit(code) }));
