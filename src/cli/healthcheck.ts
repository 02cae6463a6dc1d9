// `tollgate healthcheck`: asks a running Tollgate whether it is ready. It serves containers without curl.
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { formatListen, isWildcard, parseListen, type Listen } from '../config/addresses.ts';
import { ADMIN_LISTEN_VARIABLE } from '../config/admin-listen.ts';
import { parseUrl } from '../config/fields.ts';
import { findConfigFile } from '../config/load.ts';
import type { Args } from './args.ts';
import { EXIT, type Command, type ExitCode, type Io } from './command.ts';
import { CONFIG_FLAG, loadFor } from './configuration.ts';

const TIMEOUT_MS = 3000;

export const healthcheck: Command = {
  name: 'healthcheck',
  summary: 'exit 0 if the running Tollgate is ready, else 1',
  usage: [
    'tollgate healthcheck [--config FILE | --url URL]',
    '',
    'Asks /readyz of the configured admin listener, or exactly URL, and says where it asked.',
  ],
  examples: ['tollgate healthcheck', 'tollgate healthcheck --url http://127.0.0.1:9402/readyz'],
  flags: { ...CONFIG_FLAG, url: { value: 'URL', help: 'ask this instead, such as http://127.0.0.1:9402/readyz' } },
  words: { min: 0, max: 0 },
  run: runHealthcheck,
};

async function runHealthcheck(args: Args, io: Io): Promise<ExitCode> {
  const url = args.text('url') ?? (await configuredUrl(args, io));
  if (typeof url !== 'string') return url;
  if (parseUrl(url) === undefined) {
    io.err('--url: is not an http or https URL');
    return EXIT.usage;
  }
  const { origin, pathname } = new URL(url);
  const asked = origin + pathname;
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(TIMEOUT_MS), redirect: 'manual' });
    if (response.status === 200) {
      await response.body?.cancel();
      io.out(`ready: ${asked}`);
      return EXIT.fine;
    }
    io.err(`not ready: ${asked} answered ${response.status}${firstLine(await response.text())}`);
  } catch (error) {
    io.err(`not ready: nothing answers at ${asked} (${connectFailure(error)})`);
  }
  return EXIT.no;
}

async function configuredUrl(args: Args, io: Io): Promise<string | ExitCode> {
  const listen = listenWithoutFile(args, io) ?? (await configuredListen(args, io));
  if (typeof listen === 'number') return listen;
  if (listen.port === 0) {
    io.err('admin.listen has port 0, so only the running process knows where it is; use --url');
    return EXIT.usage;
  }
  return `http://${formatListen(reachable(listen))}/readyz`;
}

async function configuredListen(args: Args, io: Io): Promise<Listen | ExitCode> {
  const loaded = await loadFor(args, io);
  return loaded.ok ? loaded.config.admin.listen : loaded.code;
}

/** A container that was started with flags alone has no file to ask, but its image says where the admin listener is. */
function listenWithoutFile(args: Args, io: Io): Listen | undefined {
  if (args.has('config')) return undefined;
  const file = findConfigFile(undefined, io.env, io.folder);
  if (file !== undefined && existsSync(resolve(io.folder, file))) return undefined;
  return parseListen(io.env[ADMIN_LISTEN_VARIABLE] ?? '');
}

/** An address that binds everything is asked at loopback. */
function reachable({ host, port }: Listen): Listen {
  if (!isWildcard(host)) return { host, port };
  return { host: host.includes(':') ? '::1' : '127.0.0.1', port };
}

/** The checks that fail, by what /readyz says. */
function firstLine(body: string): string {
  const [line = ''] = body.slice(0, 200).split('\n', 1);
  return line === '' || /[^\x20-\x7e]/.test(line) ? '' : `: ${line.replace(/^not ready: /, '')}`;
}

function connectFailure(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown reason';
  if (error.name === 'TimeoutError') return `no answer within ${TIMEOUT_MS / 1000} s`;
  return error.cause instanceof Error && 'code' in error.cause ? String(error.cause.code) : error.message;
}
