// `tollgate serve`: starts a Tollgate from a configuration and stops it again. It refuses to start if Node's parser was
// told to be lenient, because every rule about framing would be void then. SIGTERM and SIGINT stop it, a second one at
// once; a terminal's Ctrl-C waits for requests in flight alone.
import { setTimeout } from 'node:timers/promises';
import type { TollgateDeps } from '../compose.ts';
import type { Config, LoadedConfig } from '../config/config.ts';
import { dataFolderOf } from '../config/data-folder.ts';
import { findConfigFile } from '../config/load.ts';
import { resolveSecrets } from '../config/first-start.ts';
import { configWarnings } from '../config/warnings.ts';
import { NETWORKS } from '../gateway/rails/rails.ts';
import { createRandom, systemClock } from '../host/clock.ts';
import { collectGarbage } from '../host/collect-garbage.ts';
import type { ControlLookup, Control } from '../host/control.ts';
import { createLog, type Log } from '../host/log.ts';
import { planWorkers, thisMachine, type WorkerPlan } from '../host/worker-count.ts';
import type { Args } from './args.ts';
import { EXIT, type Command, type ExitCode, type Io } from './command.ts';
import { CONFIG_FLAG } from './configuration.ts';
import { messageOf } from '../host/error-message.ts';
import { refuseLenientParser } from './parser-refusal.ts';
import { configFlagOf, tellStarted } from './start-hints.ts';
import { createTextLog, takesColors } from './text-log.ts';
import { createReloads, type ReloadTarget, type Reloads } from './reload.ts';
import { lockStores } from './store-locks.ts';
import { isQuick, loadQuick, loadServed, QUICK_FLAGS } from './quick-flags.ts';

/** Time that a start has, after a signal to stop, to become one that can be stopped. */
const START_ENDS_MS = 2_000;

export type RunningTollgate = {
  /** Addresses to which each listener is bound: proxy, registry, admin, sync. */
  readonly addresses: Readonly<Record<string, { readonly address: string; readonly port: number }>>;
  /** Answers commands beside this process: what stands at a path of its socket. */
  readonly answer?: ControlLookup;
  /** Drains and closes everything; `waiting` lets load balancers notice that it drains. */
  readonly stop: (waiting: boolean) => Promise<void>;
} & ReloadTarget;
type StartDeps = Omit<TollgateDeps, 'beforeListening'>;
export type Start = (config: Config, deps: StartDeps) => Promise<RunningTollgate>;

export const serve: Command = {
  name: 'serve',
  summary: 'run Tollgate (what `tollgate` alone does too)',
  usage: [
    'tollgate serve [--config FILE]',
    "tollgate serve --upstream URL --route 'GET /reports/* 0.10 USD' --pay-to 0x... [--public-url URL] [--profile NAME] [--network base --facilitator URL]",
  ],
  examples: [
    'tollgate serve --config tollgate.yaml',
    "tollgate --upstream http://localhost:3000 --route 'GET /reports/* 0.10 USD' --pay-to 0xYourAddress",
  ],
  flags: { ...CONFIG_FLAG, ...QUICK_FLAGS },
  words: { min: 0, max: 0 },
  run: (args, io) => runServe(args, io, startUnderLock),
};

/** Starts Tollgate as the one process on its stores. */
export const startUnderLock: Start = async (config, deps) => {
  const unlock = await lockStores(config, deps.clock);
  try {
    // The import is late: a wrong configuration is told without it, and other commands start faster.
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
    // The default file is looked for again, so that it is still named if it was taken away meanwhile.
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
    const onStarted = (running: RunningTollgate): Promise<Control> => tellStarted(running, { loaded, configFlag, io });
    return await supervise(resolved.config, { io, start, log, workers, reloads, onStarted });
  } finally {
    await reloads.close();
  }
}

/** Says which nodes are asked: hosts alone, because a URL may hold a key, and once for all ways of a receiver on a network. */
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

type SupervisionDeps = {
  readonly io: Io;
  readonly start: Start;
  readonly log: Log;
  readonly workers: WorkerPlan;
  readonly reloads: Reloads;
  /** Opens the socket that commands beside this process ask. */
  readonly onStarted: (running: RunningTollgate) => Promise<Control>;
};

/** Runs until a signal says stop. */
async function supervise(
  config: Config,
  { io, start, log, workers, reloads, onStarted }: SupervisionDeps,
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
      // No load balancer looks at readiness after Ctrl-C.
      stopAsked.resolve({ waiting: !(signal === 'SIGINT' && io.terminal.attended) });
    });
  }
  io.onSignal('SIGHUP', () => reloads.request('SIGHUP'));
  // A start may wait for its database for ever. Nothing is served before it is over.
  const tooLate = stopAsked.promise.then(() => setTimeout(START_ENDS_MS, undefined, { ref: false }));
  let running: RunningTollgate | undefined;
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
