// What a command may touch of this process.
import { isParserLenient } from '../host/parser-probe.ts';
import type { Io } from './command.ts';

export type ProcessIoDeps = {
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

/** How this program was started, so that what it advises can be typed as it stands. */
function programOf(env: NodeJS.ProcessEnv): string {
  if (env['npm_command'] === 'exec') return 'npx tollgate';
  const own = env['npm_package_name'] === 'tollgate';
  return own && ['start', 'demo'].includes(env['npm_lifecycle_event'] ?? '') ? 'npm start --' : 'tollgate';
}
