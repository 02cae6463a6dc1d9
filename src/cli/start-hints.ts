// The hints that a started server leaves for the terminal next to it: what to type there, and where commands find it.
import { existsSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { formatListen } from '../config/addresses.ts';
import type { LoadedConfig } from '../config/config.ts';
import { dataFolderOf, RUNNING_FILE } from '../config/data-folder.ts';
import { findConfigFile } from '../config/load.ts';
import type { QuickData } from '../config/quick.ts';
import { storeFile } from '../domain/store-settings.ts';
import type { ControlLookup, Control } from '../host/control.ts';
import { systemClock } from '../host/clock.ts';
import type { Args } from './args.ts';
import type { Io } from './command.ts';
import { runningDemos } from './demo-directory.ts';
import { nextSteps } from './next-steps.ts';
import { announce } from './runtime-files.ts';

type Addresses = Readonly<Record<string, { readonly address: string; readonly port: number }>>;

/** Configuration and its origin. `data` is what flags said, as a file would hold it. */
type Source = { readonly config: LoadedConfig; readonly data?: QuickData };

type HintOptions = { readonly loaded: Source; readonly configFlag: string; readonly io: Io };

/** Rejects with a sentence if the data folder takes no socket. */
export function tellStarted(
  { addresses, answer }: { readonly addresses: Addresses; readonly answer?: ControlLookup },
  { loaded: { config, data }, configFlag, io }: HintOptions,
): Promise<Control> {
  const { program, env } = io;
  if (data !== undefined)
    for (const line of nextSteps({ config, addresses, program, configFlag, demos: runningDemos() })) io.err(line);
  return announce({
    config,
    source: data === undefined ? { file: config.file ?? '' } : { data: placed(data, config, addresses) },
    env,
    startedAt: new Date(systemClock.now()).toISOString(),
    answer: answer ?? (() => Promise.resolve(undefined)),
  });
}

/** Returns the flag with which commands in this folder find this start's configuration: nothing, or ` --config FILE`. */
export function configFlagOf({ config, data }: Source, args: Args, io: Io): string {
  const named = args.text('config') ?? (io.env['TOLLGATE_CONFIG'] || undefined);
  if (data === undefined) return named === undefined ? '' : ` --config ${named}`;
  const folder = dataFolderOf(config);
  const other = findConfigFile(undefined, io.env, io.folder);
  const hidden = other !== undefined && existsSync(resolve(io.folder, other));
  const isFound = !hidden && [folder, dirname(folder)].includes(resolve(io.folder));
  if (isFound) return '';
  const file = join(folder, RUNNING_FILE);
  const near = relative(io.folder, file);
  return ` --config ${near.startsWith('..') ? file : near}`;
}

/** The flags' configuration as a file in the data folder says it: whole paths, and the ports that were bound. */
export function placed(data: QuickData, { registry }: LoadedConfig, addresses: Addresses): QuickData {
  const listen = (name: string): { listen?: string } => {
    const bound = addresses[name];
    return bound === undefined ? {} : { listen: formatListen({ host: bound.address, port: bound.port }) };
  };
  return {
    ...data,
    proxy: { ...data.proxy, ...listen('proxy') },
    registry: {
      ...data.registry,
      ...listen('registry'),
      store: `sqlite:${(registry && storeFile(registry.store)) ?? ''}`,
    },
    admin: { ...data.admin, ...listen('admin') },
  };
}
