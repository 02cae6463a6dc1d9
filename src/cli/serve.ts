// `tollgate serve`: from a configuration to a running Tollgate and back. Refuses to start if Node's parser was told to
// be lenient, because every rule about framing would be void then. SIGTERM and SIGINT stop it, a second one at once; a
// terminal's Ctrl-C waits for requests in flight alone.
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import type { TollgateDeps } from '../compose.ts';
import { ADMIN_LISTEN_VARIABLE } from '../config/admin-listen.ts';
import type { Config, LoadedConfig } from '../config/config.ts';
import { dataFolderOf } from '../config/data-folder.ts';
import { findConfigFile } from '../config/load.ts';
import { resolveSecrets } from '../config/first-start.ts';
import { quickConfig } from '../config/quick.ts';
import { configWarnings } from '../config/warnings.ts';
import { NETWORKS } from '../gateway/rails/rails.ts';
import { createRandom, systemClock, type Clock } from '../host/clock.ts';
import { collectGarbage } from '../host/collect-garbage.ts';
import type { Answering, Control } from '../host/control.ts';
import { createLog, type Log } from '../host/log.ts';
import { planWorkers, thisMachine, type WorkerPlan } from '../host/worker-count.ts';
import type { Args, Flags } from './args.ts';
import { EXIT, type Command, type ExitCode, type Io } from './command.ts';
import { CONFIG_FLAG, loadNamed, messageOf, reportProblems, type Loaded } from './configuration.ts';
import { refuseLenientParser } from './parser-refusal.ts';
import { configFlagOf, tellStarted } from './start-hints.ts';
import { createTextLog, takesColors } from './text-log.ts';
import { createReloads, type Reloadable, type Reloads } from './reload.ts';
import { hostname } from 'node:os';
import { storeAt } from '../registry/store/open.ts';
import type { StoreLock } from '../registry/store/ports.ts';

/** A signal leaves a start so long to become one that can be stopped. */
const START_ENDS_MS = 2_000;

export type Running = {
  /** By listener: proxy, registry, admin, sync. */
  readonly addresses: Readonly<Record<string, { readonly address: string; readonly port: number }>>;
  /** For commands beside this process: what stands at a path of its socket. */
  readonly answer?: Answering;
  /** `waiting`: for load balancers to notice that it drains. */
  readonly stop: (waiting: boolean) => Promise<void>;
} & Reloadable;
type StartDeps = Omit<TollgateDeps, 'beforeListening'>;
export type Start = (config: Config, deps: StartDeps) => Promise<Running>;

const QUICK_FLAGS = {
  upstream: { value: 'URL', help: 'without a file: the API to put behind the paywall' },
  'public-url': {
    value: 'URL',
    help: 'without a file: where clients reach this API, such as https://api.example.com; redirects within it are free',
  },
  profile: {
    value: 'NAME',
    help: 'without a file: what the API runs on, such as express; `tollgate probe` finds out which is safe',
  },
  route: {
    value: "'GET /reports/* 0.10 USD'",
    multiple: true,
    help: 'without a file: what costs how much; may be repeated',
  },
  'pay-to': { value: '0x...', help: 'without a file: the address that receives the payments' },
  network: { value: 'NAME', help: 'without a file: one of `tollgate networks` (base-sepolia if left out)' },
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

export const serve: Command = {
  name: 'serve',
  summary: 'run Tollgate (what `tollgate` alone does too)',
  usage: [
    'tollgate serve [--config FILE]',
    "tollgate serve --upstream URL --route 'GET /reports/* 0.10 USD' --pay-to 0x... [--public-url URL] [--profile NAME] [--network base --facilitator URL]",
  ],
  flags: { ...CONFIG_FLAG, ...QUICK_FLAGS },
  words: { min: 0, max: 0 },
  run: (args, io) => runServe(args, io, startUnderLock),
};

/** Starts it as the one process on its stores. */
export const startUnderLock: Start = async (config, deps) => {
  const unlock = await lockStores(config, deps.clock);
  try {
    // Loaded when it is needed: a wrong configuration is told without it, and other commands start faster.
    const { startTollgate } = await import('../compose.ts');
    const running = await startTollgate(config, { ...deps, beforeListening: collectGarbage });
    return { ...running, stop: (waiting) => running.stop(waiting).finally(unlock) };
  } catch (error) {
    unlock();
    throw error;
  }
};

export async function runServe(args: Args, io: Io, start: Start): Promise<ExitCode> {
  const refused = await refuseLenientParser(io);
  if (refused !== undefined) return refused;
  const loaded = args.has('config') || !isQuick(args) ? loadServed(args, io) : loadQuick(args, io);
  if (!loaded.ok) return loaded.code;
  const configFlag = configFlagOf(loaded, args, io);
  const workers = planWorkers(loaded.config.workers, thisMachine());
  let { level, format } = loaded.config.log;
  const forPeople = createTextLog(takesColors(io));
  const isText = (): boolean => format === 'text' || (format === 'auto' && io.terminal.shown);
  const log = createLog(
    () => level,
    io.write,
    systemClock.now,
    () => (isText() ? forPeople : undefined),
    workers.count > 1 ? 0 : undefined,
  );
  if (loaded.config.workers !== 1) log.info('workers', { count: workers.count, because: workers.because });
  const tokenCommand = `${io.program} token${configFlag}`;
  const resolved = resolveSecrets(loaded.config, { random: createRandom(), log, tokenCommand });
  if (!resolved.ok) {
    io.err(resolved.problem);
    return EXIT.usage;
  }
  warn(loaded.config, log);
  tellNodes(loaded.config, log);
  if (io.uid === 0) log.warn('running as root; run as a user of its own, who owns the data folder');
  if (io.env['NODE_TLS_REJECT_UNAUTHORIZED'] === '0')
    log.warn(
      'NODE_TLS_REJECT_UNAUTHORIZED=0: anybody on the way can answer as a facilitator, the registry or a key set; name your authority with NODE_EXTRA_CA_CERTS instead',
    );
  const reloads = createReloads({
    // Named as at the start: a default file that was taken away meanwhile is still the one that is meant.
    file: loaded.config.file === undefined ? undefined : findConfigFile(args.text('config'), io.env, io.folder),
    filesBeside: loaded.filesBeside ?? [],
    io,
    log,
    onTaken: (config) => {
      ({ level, format } = config.log);
      warn(config, log);
    },
  });
  try {
    const onStarted = (running: Running): Promise<Control> => tellStarted(running, { loaded, configFlag, io });
    return await supervise(resolved.config, { io, start, log, workers, reloads, onStarted });
  } finally {
    await reloads.close();
  }
}

/** Hosts alone: a URL may hold a key. Once for all ways of a receiver on a network that ask the same. */
function tellNodes({ proxy, receivers }: LoadedConfig, log: Log): void {
  if (proxy === undefined) return;
  const told = new Set<string>();
  for (const { way, networkName, rpcUrls, rpcPublic } of receivers.flatMap(({ ways }) => ways)) {
    const nodes = rpcUrls.map((url) => new URL(url).host);
    const about = { receiver: way.receiverId, network: networkName };
    const name = JSON.stringify([about, nodes]);
    if (told.has(name)) continue;
    told.add(name);
    if (nodes.length === 0) {
      log.info('no node is asked about settlements of unknown end', about);
      continue;
    }
    const asked = rpcPublic ? 'public nodes are asked' : 'nodes are asked';
    log.info(`${asked} about settlements of unknown end; they are shown token, payer and nonce`, { ...about, nodes });
  }
}

function warn(config: LoadedConfig, log: Log): void {
  for (const warning of configWarnings(config, NETWORKS)) log.warn(warning);
  const testnets = config.receivers.flatMap(({ ways }) => ways).filter(({ testnet }) => testnet === true);
  if (testnets.length === 0) return;
  log.warn('TESTNET: payments are test money', {
    receivers: [...new Set(testnets.map(({ way, networkName }) => `${way.receiverId} (${networkName})`))],
  });
}

type Supervised = {
  readonly io: Io;
  readonly start: Start;
  readonly log: Log;
  readonly workers: WorkerPlan;
  readonly reloads: Reloads;
  /** Opens what commands beside this process ask. */
  readonly onStarted: (running: Running) => Promise<Control>;
};

/** Runs until a signal says stop. */
async function supervise(
  config: Config,
  { io, start, log, workers, reloads, onStarted }: Supervised,
): Promise<ExitCode> {
  const stopAsked = Promise.withResolvers<{ readonly waiting: boolean }>();
  let signals = 0;
  for (const [signal, code] of [
    ['SIGTERM', 143],
    ['SIGINT', 130],
  ] as const) {
    io.onSignal(signal, () => {
      signals++;
      if (signals > 1) {
        log.warn('stopping at once', { signal });
        io.exitNow(code);
        return;
      }
      log.info('stopping', { signal });
      // After Ctrl-C no load balancer looks at readiness.
      stopAsked.resolve({ waiting: !(signal === 'SIGINT' && io.terminal.attended) });
    });
  }
  io.onSignal('SIGHUP', () => reloads.request('SIGHUP'));
  // A start may wait for its database for ever. Nothing is served before it is over.
  const tooLate = stopAsked.promise.then(() => setTimeout(START_ENDS_MS, undefined, { ref: false }));
  let running: Running | undefined;
  try {
    const deps = { log, clock: systemClock, random: createRandom(), version: io.version, workers };
    running = await Promise.race([start(config, deps), tooLate]);
  } catch (error) {
    io.err(`Tollgate could not start: ${messageOf(error)}`);
    return EXIT.away;
  }
  if (running === undefined) {
    log.warn('stopped before the start was over');
    return EXIT.fine;
  }
  reloads.attach(running);
  const control = await onStarted(running).catch((error: unknown) => {
    log.warn('commands beside this process cannot ask it', { folder: dataFolderOf(config), reason: messageOf(error) });
    return undefined;
  });
  const { waiting } = await stopAsked.promise;
  // A reload under way is short, but nothing may hold up that we are not ready any more.
  void reloads.close();
  await running.stop(waiting);
  await control?.close();
  return EXIT.fine;
}

function isQuick(args: Args): boolean {
  return Object.keys(QUICK_FLAGS).some((flag) => args.has(flag));
}

function loadServed(args: Args, io: Io): Loaded<LoadedConfig> {
  const clashing = Object.keys(QUICK_FLAGS).filter((flag) => args.has(flag));
  if (clashing.length === 0) return loadNamed(args, io);
  for (const flag of clashing)
    io.err(`--${flag}: cannot stand beside --config; write it into the file, or leave --config out`);
  return { ok: false, code: EXIT.usage };
}

function loadQuick(args: Args, io: Io): Loaded<LoadedConfig> {
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

// The locks of the stores that a configuration serves from. They are taken before anything else is loaded, opened or bound: a
// second process on a store would serve prices that the first one has changed since.

/** Resolves with how to give them back. Rejects with a sentence if another process holds one. */
async function lockStores({ registry, charges }: Config, clock: Clock): Promise<() => void> {
  const holder = { pid: process.pid, host: hostname(), started: new Date(clock.now()).toISOString() };
  const locks: StoreLock[] = [];
  const release = (): void => {
    for (const lock of locks) lock.release();
  };
  try {
    for (const store of [registry?.store, charges.store]) if (store) locks.push((await storeAt(store)).lock(holder));
    return release;
  } catch (error) {
    release();
    throw error;
  }
}
