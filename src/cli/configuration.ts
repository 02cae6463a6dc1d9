// How every command comes to its configuration: the file that is meant, loaded, or everything that is wrong with it on
// standard error and exit code 64.
import type { Config, LoadedConfig, RegistryConfig } from '../config/config.ts';
import { findConfigFile, loadConfig } from '../config/load.ts';
import { formatProblem, type ConfigProblem } from '../config/problems.ts';
import { resolveSecrets } from '../config/first-start.ts';
import { createRandom } from '../host/clock.ts';
import { createLog, type Log } from '../host/log.ts';
import type { Args, Flags } from './args.ts';
import { EXIT, type ExitCode, type Io } from './command.ts';

export const CONFIG_FLAG = {
  config: {
    value: 'FILE',
    short: 'c',
    help: 'the configuration; else TOLLGATE_CONFIG, else tollgate.yaml in this folder',
  },
} as const satisfies Flags;

export const NO_CONFIG = [
  'No configuration. Two ways to start:',
  '',
  '  1. with a file: copy config/all-in-one.yaml to tollgate.yaml, edit it, then',
  '       tollgate serve            (or tollgate serve --config FILE)',
  '  2. without one, on a test network:',
  "       tollgate serve --upstream http://127.0.0.1:3000 --route 'GET /reports/* 0.10 USD' --pay-to 0x...",
];

/** `secretFiles`: what the file named with `..._file`, absolute. */
export type Loaded<C> =
  | { readonly ok: true; readonly config: C; readonly secretFiles?: readonly string[] }
  | { readonly ok: false; readonly code: ExitCode };

/** The configuration that `args` and the environment mean. Complaints were written when it is not ok. */
export function loadFor(args: Args, io: Io): Loaded<LoadedConfig> {
  const file = findConfigFile(args.text('config'), io.env, io.folder);
  if (file === undefined) {
    for (const line of NO_CONFIG) io.err(line);
    return { ok: false, code: EXIT.usage };
  }
  const result = loadConfig(file, io.env, io.folder);
  if (result.ok) return result;
  reportProblems(result.problems, io.err);
  return { ok: false, code: EXIT.usage };
}

/** The same with every secret in place: a first start makes what is missing. */
export function loadWithSecrets(args: Args, io: Io): Loaded<Config> {
  const loaded = loadFor(args, io);
  if (!loaded.ok) return loaded;
  const resolved = resolveSecrets(loaded.config, { random: createRandom(), log: talk(io) });
  if (resolved.ok) return resolved;
  io.err(resolved.problem);
  return { ok: false, code: EXIT.usage };
}

/** The registry of a configuration; a sidecar has none. */
export function registryOf<R extends Pick<RegistryConfig, 'store'>>(
  config: { readonly registry: R | undefined },
  io: Io,
): R | undefined {
  if (config.registry === undefined)
    io.err('This configuration has no `registry`; run the command with the configuration of the registry.');
  return config.registry;
}

export function reportProblems(problems: readonly ConfigProblem[], write: (line: string) => void): void {
  for (const problem of problems) write(formatProblem(problem));
}

/** A log for commands whose standard output is their answer. */
export function talk(io: Io): Log {
  return createLog('info', (line) => io.err(line.trimEnd()), Date.now);
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
