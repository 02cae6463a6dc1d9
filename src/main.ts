#!/usr/bin/env node
// The program: hands the command line and what it may touch of the process to a command, and exits with its code. The
// only file that ends the process.
import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { COMMANDS } from './cli/commands.ts';
import { runCommandLine } from './cli/run.ts';
import { gatherLines } from './host/lines.ts';
import { isParserLenient } from './host/parser-probe.ts';

const packageFile = new URL('../package.json', import.meta.url);
const { version } = z.object({ version: z.string() }).parse(JSON.parse(readFileSync(packageFile, 'utf8')));

// Whoever reads us may go first, as in `tollgate keys list | head`: that is no reason to die with a stack.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);

/** A defect of ours (EX_SOFTWARE): never taken for an answer, which 1 is. */
const DEFECT = 70;

const output = gatherLines((text) => void process.stdout.write(text));
// Also after an exception that nobody caught.
process.on('exit', output.flush);

const code = await runCommandLine(process.argv.slice(2), COMMANDS, {
  out: (line) => output.write(`${line}\n`),
  write: output.write,
  err: (line) => void process.stderr.write(`${line}\n`),
  env: process.env,
  folder: process.cwd(),
  execArgv: process.execArgv,
  lenientParser: isParserLenient,
  uid: process.getuid?.(),
  version,
  onSignal: (signal, handler) => void process.on(signal, handler),
  exitNow: (code) => process.exit(code),
}).catch((error: unknown) => {
  process.stderr.write(
    `tollgate: internal error: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`,
  );
  return DEFECT;
});
process.exit(code);
