// The program whose words `main.ts` hands over: a command, what it may touch of this process, its exit code, and output
// that leaves whatever happens.
import { z } from 'zod';
import { gatherLines } from '../host/lines.ts';
import { openStandardOutput } from '../host/standard-output.ts';
import type { Command, Io } from './command.ts';
import { COMMANDS } from './commands.ts';
import { runCommandLine } from './dispatch.ts';
import { isParserLenient } from './parser-refusal.ts';

/** A defect of ours (EX_SOFTWARE): never taken for an answer, which 1 is. */
const DEFECT = 70;

type ProgramDeps = {
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
  const standardOutput = openStandardOutput();
  const output = gatherLines(standardOutput.write);
  // The exit event also comes after an exception that was not caught.
  process.on('exit', () => {
    output.flush();
    standardOutput.end();
  });
  try {
    return await runCommandLine(argv, commands, processIo({ version, write: output.write, exitNow }));
  } catch (error) {
    process.stderr.write(
      `tollgate: internal error: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`,
    );
    return DEFECT;
  }
}

type ProcessIoDeps = {
  readonly version: string;
  /** Standard output. */
  readonly write: Io['write'];
  readonly exitNow: Io['exitNow'];
};

export function processIo({ version, write, exitNow }: ProcessIoDeps): Io {
  return {
    out: (line) => write(`${line}\n`),
    write,
    err: (line) => void process.stderr.write(`${line}\n`),
    env: process.env,
    folder: process.cwd(),
    execArgv: process.execArgv,
    lenientParser: isParserLenient,
    terminal: { attended: process.stdin.isTTY || process.stdout.isTTY, shown: process.stdout.isTTY },
    uid: process.getuid?.(),
    version,
    program: programOf(process.env),
    onSignal: (signal, handler) => void process.on(signal, handler),
    exitNow,
  };
}

/** Returns the words that started this program, so that users can type its advice as it stands. */
function programOf(env: NodeJS.ProcessEnv): string {
  if (env['npm_command'] === 'exec') return 'npx tollgate';
  const own = env['npm_package_name'] === 'tollgate';
  return own && ['start', 'demo'].includes(env['npm_lifecycle_event'] ?? '') ? 'npm start --' : 'tollgate';
}
