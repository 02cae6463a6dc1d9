// The flags of `tollgate serve` that stand in for a configuration file: an upstream, prices and an address to pay to are
// enough to start.
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { ADMIN_LISTEN_VARIABLE } from '../config/admin-listen.ts';
import type { LoadedConfig } from '../config/config.ts';
import { findConfigFile } from '../config/load.ts';
import { quickConfig } from '../config/quick.ts';
import { PROFILE_NAMES } from '../domain/routing/profile.ts';
import { NETWORKS } from '../gateway/rails/rails.ts';
import type { Args, Flags } from './args.ts';
import { EXIT, type Io } from './command.ts';
import { loadNamed, reportProblems, type ConfigurationResult } from './configuration.ts';

/** Names that `--network` takes, for a shell to complete. */
export const NETWORK_NAMES: readonly string[] = [...new Set(NETWORKS.known.map(({ name }) => name))];

export const QUICK_FLAGS = {
  upstream: { value: 'URL', help: 'without a file: the API to put behind the paywall' },
  'public-url': {
    value: 'URL',
    help: 'without a file: where clients reach this API, such as https://api.example.com; redirects within it are free',
  },
  profile: {
    value: 'NAME',
    choices: PROFILE_NAMES,
    help: 'without a file: what the API runs on, such as express; `tollgate probe` finds out which is safe',
  },
  route: {
    value: "'GET /reports/* 0.10 USD'",
    multiple: true,
    help: 'without a file: what costs how much; may be repeated',
  },
  'pay-to': { value: '0x...', help: 'without a file: the address that receives the payments' },
  network: {
    value: 'NAME',
    choices: NETWORK_NAMES,
    help: 'without a file: one of `tollgate networks` (base-sepolia if left out)',
  },
  facilitator: {
    value: 'URL',
    multiple: true,
    help: 'without a file: who verifies and settles: a URL, cdp or payai; needed outside base-sepolia',
  },
  listen: { value: '127.0.0.1:8402', help: 'without a file: where clients connect' },
  'registry-listen': { value: '127.0.0.1:8403', help: 'without a file: where the registry answers' },
  'admin-listen': { value: '127.0.0.1:9402', help: 'without a file: where metrics and health are' },
  data: { value: 'DIR', help: 'without a file: the folder of the store (./data if left out)' },
} as const satisfies Flags;

/** Whether flags say everything, so that no file is read. */
export function isQuick(args: Args): boolean {
  return Object.keys(QUICK_FLAGS).some((flag) => args.has(flag));
}

/** Loads the configuration file that is named, or the default one. */
export function loadServed(args: Args, io: Io): ConfigurationResult<LoadedConfig> {
  const clashing = Object.keys(QUICK_FLAGS).filter((flag) => args.has(flag));
  if (clashing.length === 0) return loadNamed(args, io);
  for (const flag of clashing)
    io.err(`--${flag}: cannot stand beside --config; write it into the file, or leave --config out`);
  return { ok: false, code: EXIT.usage };
}

/** Makes a configuration of what the flags say. */
export function loadQuick(args: Args, io: Io): ConfigurationResult<LoadedConfig> {
  const result = quickConfig(
    {
      upstream: args.text('upstream'),
      publicUrl: args.text('public-url'),
      profile: args.text('profile'),
      routes: args.all('route'),
      payTo: args.text('pay-to'),
      network: args.text('network'),
      facilitators: args.all('facilitator'),
      listen: args.text('listen'),
      registryListen: args.text('registry-listen'),
      adminListen: args.text('admin-listen') ?? (io.env[ADMIN_LISTEN_VARIABLE] || undefined),
      data: args.text('data'),
    },
    io.folder,
    io.env,
    NETWORKS,
  );
  if (!result.ok) {
    reportProblems(result.problems, io.err);
    return { ok: false, code: EXIT.usage };
  }
  const ignored = findConfigFile(undefined, io.env, io.folder);
  if (ignored !== undefined && existsSync(resolve(io.folder, ignored)))
    io.err(`The flags say everything; ${ignored} is not read.`);
  if (result.testnet)
    io.err(`TESTNET: payments are made on ${result.network} with test money. For real money use --network base.`);
  else io.err(`REAL MONEY: payments are made on ${result.network}, to ${args.text('pay-to')}.`);
  return result;
}
