// Loads the configuration of a command: the file that is meant, loaded, or everything that is wrong with it on standard
// error and exit code 64.
import { existsSync } from 'node:fs';
import path, { resolve } from 'node:path';
import type { Config, LoadedConfig, RegistryConfig } from '../config/config.ts';
import type { QuickData } from '../config/quick.ts';
import { findConfigFile, loadConfig } from '../config/load.ts';
import { formatProblem, type ConfigProblem } from '../config/problems.ts';
import { resolveSecrets } from '../config/first-start.ts';
import { createRandom } from '../host/clock.ts';
import { createLog, type Log } from '../host/log.ts';
import { markedVariable, markOf } from '../config/environment.ts';
import { NETWORKS } from '../gateway/rails/rails.ts';
import type { Args, Flags } from './args.ts';
import { findRunning, type RunningServer } from './runtime-files.ts';
import { createTextLog } from './text-log.ts';
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
  '  1. with a file that you edit (or tollgate serve --config FILE):',
  '       tollgate init',
  '       tollgate serve',
  '  2. without one, on a test network:',
  "       tollgate serve --upstream http://127.0.0.1:3000 --route 'GET /reports/* 0.10 USD' --pay-to 0x...",
];

/**
 * Result of reading the configuration. `filesBeside` are the files that it named and that a reload reads too, absolute;
 * `data` is what flags said, as a file would hold it.
 */
export type ConfigurationResult<C> =
  | { readonly ok: true; readonly config: C; readonly filesBeside?: readonly string[]; readonly data?: QuickData }
  | { readonly ok: false; readonly code: ExitCode };

/** The configuration that `args` and the environment mean, for a start. Complaints were written when it is not ok. */
export function loadNamed(args: Args, io: Io): ConfigurationResult<LoadedConfig> {
  const file = findConfigFile(args.text('config'), io.env, io.folder);
  if (file === undefined) {
    for (const line of NO_CONFIG) io.err(line);
    return { ok: false, code: EXIT.usage };
  }
  const result = loadConfig(file, io.env, io.folder, NETWORKS);
  if (result.ok) return result;
  reportProblems(result.problems, io.err);
  return { ok: false, code: EXIT.usage };
}

/**
 * Loads the configuration for a command beside a server: the one that `args` and the environment name, else that of the
 * one server that runs in this folder. If the result is not ok, the complaints were written already.
 */
export async function loadFor(args: Args, io: Io): Promise<ConfigurationResult<LoadedConfig>> {
  const named = findConfigFile(args.text('config'), io.env, io.folder);
  // An image names a file that need not be there.
  if (named === undefined || (!args.has('config') && !existsSync(resolve(io.folder, named)))) {
    const servers = await findRunning(io.folder);
    return servers.length === 0 ? loadNamed(args, io) : loadRunning(servers, io);
  }
  const result = loadConfig(named, io.env, io.folder, NETWORKS);
  if (result.ok) return result;
  const file = resolve(io.folder, named);
  // A server that was started in this folder may have its data folder elsewhere.
  const servers = await Promise.all([findRunning(io.folder), findRunning(path.dirname(file))]);
  const server = servers.flat().find(({ config }) => config === file);
  const helped = server && loadBeside(server, named, io);
  if (helped?.ok) return helped;
  reportProblems(result.problems, io.err);
  return { ok: false, code: EXIT.usage };
}

/** The configuration of the one server that runs in this folder, and says so. */
export async function findRunningConfig(io: Io): Promise<string | undefined> {
  const [server, ...others] = await findRunning(io.folder);
  return server === undefined || others.length > 0 ? undefined : sayWhose(server, io);
}

function sayWhose({ config, pid }: RunningServer, io: Io): string {
  const file = path.relative(io.folder, config);
  io.err(`Using the configuration of the Tollgate that runs in this folder (process ${pid}): ${file}`);
  return file;
}

function loadRunning(servers: readonly RunningServer[], io: Io): ConfigurationResult<LoadedConfig> {
  const [server, ...others] = servers;
  if (server !== undefined && others.length === 0) {
    const file = sayWhose(server, io);
    const loaded = loadBeside(server, file, io);
    if (!loaded.ok) reportProblems(loaded.problems, io.err);
    return loaded.ok ? loaded : { ok: false, code: EXIT.usage };
  }
  io.err('Several run in this folder; name the one that you mean:');
  for (const { config, pid } of servers) io.err(`  --config ${path.relative(io.folder, config)}   (process ${pid})`);
  return { ok: false, code: EXIT.usage };
}

/** Loads with the variables that the server has; secrets among them are marked, not known. */
function loadBeside({ variables }: RunningServer, file: string, io: Io): ReturnType<typeof loadConfig> {
  const told = [...variables].map(([name, value]) => [name, value ?? markOf(name)]);
  return loadConfig(file, { ...Object.fromEntries(told), ...io.env }, io.folder, NETWORKS);
}

/** Whether `secret` is known here; it was said which variable to set if the server alone has it. */
export function isKnownHere(secret: string, io: Io): boolean {
  const variable = markedVariable(secret);
  if (variable !== undefined) io.err(`The server has this secret from its environment; set ${variable} here too.`);
  return variable === undefined;
}

/** Loads the configuration with every secret in place: a first start makes what is missing. */
export async function loadWithSecrets(args: Args, io: Io): Promise<ConfigurationResult<Config>> {
  const loaded = await loadFor(args, io);
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

const TALK = createTextLog(false);

/** A log for commands whose standard output is their answer. */
export function talk(io: Io): Log {
  return createLog(
    'info',
    (line) => io.err(line.trimEnd()),
    Date.now,
    () => TALK,
  );
}
