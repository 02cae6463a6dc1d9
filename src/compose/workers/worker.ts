// A worker: the proxy alone, composed from what its primary handed over. Routes come from the primary as to a sidecar from its
// registry, charges go to the primary, to the shared store, or to the registry that keeps them.
import type { Config, ProxyConfig } from '../../config/config.ts';
import { createLedger, type Ledger } from '../../domain/payment/ledger.ts';
import { SPELLING } from '../../gateway/rails/rails.ts';
import { createRemoteCharges } from '../../gateway/ledger/remote-ledger.ts';
import { systemSchedule, type Clock, type Random } from '../../host/clock.ts';
import type { Log } from '../../host/log.ts';
import { createMetrics } from '../../host/metrics.ts';
import { storeAt } from '../../registry/store/open.ts';
import type { Served } from '../../workers/worker-channel.ts';
import { countLeases } from '../charge-metrics.ts';
import { createAssembly, type Assembly } from '../assembly.ts';
import { followDescription } from '../discovery/discovery.ts';
import { takeRequests } from '../gateway.ts';
import { readConfigured, readNoticed, type Given } from './worker-bootstrap.ts';
import { observeCalls, observeLoad } from '../store-metrics.ts';
import { reportMetrics } from './worker-metrics.ts';
import type { Current } from '../../gateway/routes/current-snapshot.ts';
import { followPrimary, PRIMARY_URL } from '../sync.ts';

type WorkerDeps = {
  readonly log: Log;
  readonly clock: Clock;
  readonly random: Random;
  /** After each configuration that was put in force. */
  readonly onTaken: (config: Config) => void;
};

/** Its primary has them when it starts: a busy machine needs a part of this. */
const ROUTES_MS = 60_000;

/** `run` names this life of the worker. */
export async function startWorker(given: Given, run: string, deps: WorkerDeps): Promise<Served> {
  const { log, onTaken } = deps;
  const { config, socketPath, key, version, hasRoutes } = given;
  const published = { publication: given.publication };
  const assembly = createAssembly(config, { ...deps, version });
  const { current, closers } = assembly;
  const proxyOf = (next: Config): ProxyConfig => {
    if (next.proxy === undefined) throw new Error('workers serve a proxy');
    return next.proxy;
  };
  const inForce = (): ProxyConfig => proxyOf(assembly.config);
  // The registry's metrics are the primary's.
  const routes = await followPrimary(
    inForce,
    current,
    { socketPath, key },
    { ...deps, version, metrics: createMetrics() },
  );
  closers.unshift(routes.close);
  const ledger = await openLedger(assembly, given, run);
  let { description } = given;
  const listed = ({ discovery }: Config): ReturnType<typeof followDescription> | undefined =>
    discovery && followDescription(discovery, () => description);
  const proxy = takeRequests(
    assembly,
    proxyOf(config),
    { ledger, reports: undefined, takesOnly: true },
    { listed: listed(config), published },
  );
  closers.unshift(async () => proxy.close());
  const { listener } = proxy;
  const report = reportMetrics(assembly.metrics);
  listener.open();
  onTaken(config);
  if (hasRoutes) await firstRoutes(current, socketPath);
  return {
    take: listener.take,
    open: listener.connections,
    says: () => JSON.stringify({ possible: assembly.isPossible() }),
    prepare: async (text) => {
      const next = readConfigured(text);
      const putInForce = await proxy.prepare(next.config, proxyOf(next.config), listed(next.config));
      return () => {
        assembly.config = next.config;
        putInForce();
        routes.recompile();
        onTaken(next.config);
      };
    },
    notice: (text) => {
      const noticed = readNoticed(text);
      if ('description' in noticed) ({ description } = noticed);
      else published.publication = noticed.publication;
    },
    answer: async (id) => JSON.stringify((await assembly.findRefusals?.(id)) ?? []),
    report: async () => JSON.stringify(await report()),
    drain: () => {
      assembly.draining = true;
      listener.announceEnd();
    },
    close: async (withinMs) => {
      await listener.drain(0, withinMs);
      for (const close of closers) await close();
      log.debug('the worker ends');
    },
  };
}

async function firstRoutes({ first }: Pick<Current, 'first'>, socketPath: string): Promise<void> {
  const late = Promise.withResolvers<never>();
  const cancel = systemSchedule(ROUTES_MS, () =>
    late.reject(
      new Error(`the process that started it gave it no routes on ${socketPath} within ${ROUTES_MS / 1000} s`),
    ),
  );
  await Promise.race([first, late.promise]);
  cancel();
}

async function openLedger(assembly: Assembly, given: Given, run: string): Promise<Ledger | undefined> {
  const { metrics, closers, config, deps } = assembly;
  const { log, clock, random, version } = deps;
  const { ledger: whose, store, socketPath, key } = given;
  // What is known of it is the primary's to say.
  assembly.isPossible = () => true;
  if (whose === 'own' && store !== undefined) {
    const place = await storeAt(store);
    const charges = place.openCharges({ now: clock.now, log, run, observe: observeCalls(metrics, place) });
    closers.push(charges.close);
    if (charges.load !== undefined) observeLoad(metrics, charges.load);
    return createLedger(charges, SPELLING, undefined, countLeases(metrics));
  }
  const common = { version, schedule: systemSchedule, clock, random, run };
  const charges =
    whose === 'primary'
      ? createRemoteCharges({ ...common, registryUrl: PRIMARY_URL, apiKey: key, socketPath })
      : whose === 'registry' && config.sync !== undefined
        ? createRemoteCharges({ ...common, registryUrl: config.sync.registryUrl, apiKey: config.sync.apiKey })
        : undefined;
  if (charges === undefined) return undefined;
  closers.push(charges.close);
  return createLedger(charges, SPELLING);
}
