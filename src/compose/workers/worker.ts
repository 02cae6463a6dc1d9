// A worker: the proxy alone, composed from what its primary handed over. Routes come from the primary as to a sidecar from its
// registry, charges go to the primary, to the shared store, or to the registry that keeps them.
import type { Config } from '../../config/config.ts';
import type { CounterChanger } from '../../domain/selling/counter.ts';
import type { PassLedger } from '../../domain/selling/pass-store.ts';
import { createLedger, type Ledger } from '../../domain/payment/ledger.ts';
import { SPELLING } from '../../gateway/rails/rails.ts';
import { createRemoteCharges } from '../../gateway/ledger/remote-ledger.ts';
import { systemSchedule, type Clock, type Random } from '../../host/clock.ts';
import type { Log } from '../../host/log.ts';
import { createMetrics, type Metrics } from '../../host/metrics.ts';
import { storeAt } from '../../registry/store/store-kinds.ts';
import type { Tracing } from '../../gateway/tracing/tracing.ts';
import type { StartedWorker } from '../../workers/worker-channel.ts';
import { countLeases } from '../charge-metrics.ts';
import { createClosers } from '../closers.ts';
import { createDraining } from '../draining.ts';
import { createProcessMetrics } from '../process-metrics.ts';
import { serveFront } from '../served-proxy.ts';
import { createSettings } from '../settings.ts';
import { followDescription } from '../discovery/discovery.ts';
import { readConfigured, readNoticed, type WorkerBootstrap } from './worker-bootstrap.ts';
import { observeCalls, observeLoad } from '../store-metrics.ts';
import { reportMetrics } from './worker-metrics.ts';
import { startTracing } from '../tracing.ts';
import { createTally } from '../../gateway/totals/tally.ts';
import { answerPrimary } from './worker-answers.ts';
import type { WorkerReport } from './worker-report.ts';
import { createCurrent, type CurrentSnapshot } from '../../gateway/routes/current-snapshot.ts';
import { followPrimary, PRIMARY_URL } from '../sync.ts';

type WorkerDeps = {
  readonly log: Log;
  readonly clock: Clock;
  readonly random: Random;
  /** Called after each configuration that was put in force. */
  readonly onTaken: (config: Config) => void;
};

/** Longest wait for the routes, which the primary has already: a busy machine needs a part of this. */
const ROUTES_MS = 60_000;

/** Starts a worker. `run` names this life of it. */
export async function startWorker(given: WorkerBootstrap, run: string, deps: WorkerDeps): Promise<StartedWorker> {
  const { log, onTaken } = deps;
  const { config, socketPath, key, version, hasRoutes } = given;
  const published = { publication: given.publication };
  const settings = createSettings(config);
  const metrics = createProcessMetrics(version);
  const draining = createDraining(metrics);
  const current = createCurrent();
  const closers = createClosers();
  const tally = createTally(deps.clock.now);
  // The registry's metrics are the primary's.
  const routes = await followPrimary(
    () => settings.config,
    current,
    { socketPath, key },
    { ...deps, version, metrics: createMetrics() },
  );
  closers.addFirst(routes.close);
  const tracing = await startTracing(config, { ...deps, version, current, metrics, closers });
  const charges = await openCharges(given, run, { ...deps, metrics, tracing });
  if (charges !== undefined) closers.addLast(charges.close);
  let { description } = given;
  const listed = ({ discovery }: Config): ReturnType<typeof followDescription> | undefined =>
    discovery && followDescription(discovery, () => description);
  const { front, isCallable, findings, findRefusals, healths } = await serveFront(
    {
      ledger: charges?.ledger,
      reports: undefined,
      counters: charges?.counters,
      passes: charges?.passes,
      takesOnly: true,
    },
    { listed: listed(config), published },
    { ...deps, settings, current, metrics, closers, tally, tracing },
  );
  closers.addFirst(async () => front.close());
  const listeners = new Map(front.listeners);
  const report = reportMetrics(metrics);
  for (const listener of listeners.values()) listener.open();
  onTaken(config);
  if (hasRoutes) await firstRoutes(current, socketPath);
  return {
    take: (socket, name) => {
      const listener = listeners.get(name);
      if (listener === undefined) socket.destroy();
      else listener.take(socket);
    },
    complete: current.first.then(() => undefined),
    open: () => [...listeners.values()].reduce((sum, listener) => sum + listener.connections(), 0),
    // The state of the ledger is the primary's to say.
    says: () => JSON.stringify({ possible: isCallable(), findings: findings() }),
    prepare: async (text) => {
      const next = readConfigured(text);
      const putInForce = await front.prepare(next.config, listed(next.config));
      return () => {
        settings.replace(next.config);
        putInForce();
        routes.recompile();
        onTaken(next.config);
      };
    },
    notice: (text) => {
      const noticed = readNoticed(text);
      if ('description' in noticed) ({ description } = noticed);
      else if ('routes' in noticed) routes.nudge();
      else published.publication = noticed.publication;
    },
    answer: (question) =>
      answerPrimary(question, {
        ...{ findRefusals, healths, trial: front.trial, current, clock: deps.clock },
        config: () => settings.config,
      }),
    report: async () => {
      const families = await report();
      tally.close();
      return JSON.stringify({ families, counted: tally.take(Infinity) } satisfies WorkerReport);
    },
    drain: () => {
      draining.begin();
      for (const listener of listeners.values()) listener.announceEnd();
    },
    close: async (withinMs) => {
      await Promise.all([...listeners.values()].map((listener) => listener.drain(0, withinMs)));
      await closers.closeAll();
      log.debug('the worker ends');
    },
  };
}

async function firstRoutes({ first }: Pick<CurrentSnapshot, 'first'>, socketPath: string): Promise<void> {
  const late = Promise.withResolvers<never>();
  const cancel = systemSchedule(ROUTES_MS, () =>
    late.reject(
      new Error(`the process that started it gave it no routes on ${socketPath} within ${ROUTES_MS / 1000} s`),
    ),
  );
  await Promise.race([first, late.promise]);
  cancel();
}

type OpenCharges = {
  readonly ledger: Ledger;
  readonly counters: CounterChanger;
  readonly passes: PassLedger;
  readonly close: () => Promise<void>;
};

type OpenChargesDeps = Pick<WorkerDeps, 'log' | 'clock' | 'random'> & {
  readonly metrics: Metrics;
  readonly tracing: Tracing | undefined;
};

/** Opens the ledger that the worker writes its charges into. */
async function openCharges(
  { config, version, ledger: whose, store, socketPath, key }: WorkerBootstrap,
  run: string,
  { metrics, log, clock, random, tracing }: OpenChargesDeps,
): Promise<OpenCharges | undefined> {
  if (whose === 'own' && store !== undefined) {
    const place = await storeAt(store);
    const charges = place.openCharges({ now: clock.now, log, run, observe: observeCalls(metrics, place) });
    if (charges.load !== undefined) observeLoad(metrics, charges.load);
    const ledger = createLedger(charges, SPELLING, undefined, countLeases(metrics));
    return { ledger, counters: charges.counters, passes: charges.passes, close: charges.close };
  }
  const common = { version, schedule: systemSchedule, clock, random, run };
  const charges =
    whose === 'primary'
      ? createRemoteCharges({ ...common, registryUrl: PRIMARY_URL, apiKey: key, socketPath })
      : whose === 'registry' && config.sync !== undefined
        ? createRemoteCharges({
            ...{ ...common, registryUrl: config.sync.registryUrl, apiKey: config.sync.apiKey },
            aroundCalls: tracing?.ledgerCalls,
          })
        : undefined;
  const ledger = charges && createLedger(charges, SPELLING);
  return ledger && { ledger, counters: charges.counters, passes: charges.passes, close: charges.close };
}
