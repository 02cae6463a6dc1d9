// The program whose words `main.ts` hands over: a command, its exit code, and output that leaves whatever happens.
import { z } from 'zod';
import { gatherLines } from '../host/lines.ts';
import type { Command } from './command.ts';
import { COMMANDS } from './commands.ts';
import { processIo } from './process-io.ts';
import { runCommandLine } from './run.ts';

/** A defect of ours (EX_SOFTWARE): never taken for an answer, which 1 is. */
const DEFECT = 70;

export type ProgramDeps = {
  readonly argv: readonly string[];
  /** The text of package.json. */
  readonly packageFile: string;
  /** Ends the process at once. */
  readonly exitNow: (code: number) => void;
  readonly commands?: readonly Command[];
};

export async function runProgram({ argv, packageFile, exitNow, commands = COMMANDS }: ProgramDeps): Promise<number> {
  const { version } = z.object({ version: z.string() }).parse(JSON.parse(packageFile));
  // The reader of our output may end first, as in `tollgate keys list | head`: that is no reason to die with a stack.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);
  const output = gatherLines((text) => void process.stdout.write(text));
  // Also after an exception that was not caught.
  process.on('exit', output.flush);
  try {
    return await runCommandLine(argv, commands, processIo({ version, write: output.write, exitNow }));
  } catch (error) {
    process.stderr.write(
      `tollgate: internal error: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`,
    );
    return DEFECT;
  }
}
