// Configuration -> running parts. The only file that knows all shapes: which sections are there decides what is started
// and what is joined to what. In one process the registry hands its routes to the gateway by a call, before the dashboard
// that changed them has its answer; apart they would come over HTTP. Nothing here decides about a request.
import { createRegistry, type Registry, type RegistrySettings } from './registry/registry.ts';
import { openStore } from './registry/store/store.ts';
import type { Config, ProxyConfig, RegistryConfig } from './config/config.ts';
import type { UndeclaredMethods } from './domain/explain.ts';
import { createOffers } from './domain/offer.ts';
import { createPaymentRequired } from './domain/payment-required.ts';
import { FULL_FOLDING, profileFolding } from './domain/profile.ts';
import { createQuotes } from './domain/quote.ts';
import type { Receiver } from './domain/receiver.ts';
import type { PathOptions, Snapshot } from './domain/snapshot.ts';
import { allowedMethods } from './domain/target.ts';
import { createCollector } from './gateway/collect.ts';
import { createExchanges } from './gateway/exchange.ts';
import { createForwarder } from './gateway/forward.ts';
import { createHandler, type Handler } from './gateway/handler.ts';
import { createCompiler } from './gateway/sync/compile.ts';
import { createCurrent, type Current } from './gateway/sync/current.ts';
import { createTrust } from './gateway/peer.ts';
import { createTelemetry } from './gateway/telemetry.ts';
import { createUpgrader } from './gateway/upgrade.ts';
import { createAdmin, type Check } from './host/admin.ts';
import type { Clock, Random } from './host/clock.ts';
import type { Log } from './host/log.ts';
import { createMetrics, type Metrics } from './host/metrics.ts';
import { createListener, type Listener } from './host/server.ts';

export type TollgateDeps = {
  readonly log: Log;
  readonly clock: Clock;
  readonly random: Random;
  readonly version: string;
};

export type Bound = { readonly address: string; readonly port: number };

export type Tollgate = {
  /** Where each listener is bound: `proxy`, `registry`, `admin`, those that the configuration has. */
  readonly addresses: Readonly<Record<string, Bound>>;
  /** Not ready at once; what is in flight is finished up to the configured time; then everything is closed. */
  readonly stop: () => Promise<void>;
};

/** Starts what `config` describes and resolves when every listener is bound. Rejects with an Error whose message says what to do. */
export async function startTollgate(config: Config, deps: TollgateDeps): Promise<Tollgate> {
  const metrics = createMetrics();
  metrics.gauge('build_info', 'Version of Tollgate and of Node.', ['version', 'node'])(deps.version, process.version)(
    1,
  );
  let draining = false;
  metrics.observed(
    'gauge',
    'draining',
    '1 while the process finishes what is in flight and takes nothing new.',
    [],
    (set) => set({}, draining ? 1 : 0),
  );
  const current = createCurrent();
  const checks: Check[] = [
    { name: 'draining', run: () => ({ ok: !draining, detail: draining ? 'finishing what is in flight' : 'no' }) },
    { name: 'routes', run: () => routesCheck(current.get()) },
  ];
  const listeners: [string, Listener][] = [];
  const closers: (() => void)[] = [];

  if (config.registry !== undefined) {
    const part = await startRegistry(config, config.registry, current, deps);
    checks.push(part.check);
    listeners.push(['registry', part.listener]);
    closers.push(part.close);
  }
  if (config.proxy !== undefined) {
    const part = startProxy(config, config.proxy, current, metrics, deps);
    listeners.push(['proxy', part.listener]);
    closers.push(part.close);
  }
  const admin = createListener(
    { name: 'admin', listen: config.admin.listen, ...INTERNAL, log: deps.log },
    { request: createAdmin(metrics, checks) },
  );
  listeners.push(['admin', admin]);

  const addresses: Record<string, Bound> = {};
  try {
    for (const [name, listener] of listeners) {
      addresses[name] = await listener.start();
    }
  } catch (error) {
    await Promise.all(listeners.map(([, listener]) => listener.drain(0, 0)));
    for (const close of closers) close();
    throw error;
  }

  const { drainDelayMs, drainMs } = config.proxy?.timeouts ?? { drainDelayMs: 0, drainMs: 5_000 };
  return {
    addresses,
    stop: async () => {
      draining = true;
      deps.log.info('draining', { delay_ms: drainDelayMs, up_to_ms: drainMs });
      // The admin listener answers until the end: an orchestrator has to see that we are not ready.
      const serving = listeners.filter(([name]) => name !== 'admin');
      await Promise.all(serving.map(([, listener]) => listener.drain(drainDelayMs, drainMs)));
      for (const close of closers) close();
      await admin.drain(0, 0);
    },
  };
}

/** Listeners that serve operators and SDKs: plenty for them, and no way to exhaust the process. */
const INTERNAL = {
  limits: { headers: 16 * 1024, connections: 2_000 },
  timeouts: { headersMs: 30_000, idleMs: 60_000 },
} as const;

type Part = { readonly listener: Listener; readonly close: () => void };

async function startRegistry(
  config: Config,
  section: RegistryConfig,
  current: Current,
  deps: TollgateDeps,
): Promise<Part & { check: Check }> {
  const { log, clock, random, version } = deps;
  const store = openStore(section.store.file, { random, now: clock.now });
  const compiler = createCompiler(current, pathOptions(config.proxy), log);
  const registry: Registry = createRegistry({
    store,
    settings: registrySettings(config, section),
    snapshot: () => {
      const snapshot = current.get();
      if (snapshot === undefined) throw new Error('the routes are not compiled yet');
      return snapshot;
    },
    log,
    clock,
    random,
    version,
  });
  await registerConfigured(config, registry, log);
  compiler.load(registry.routeSet());
  await compiler.settled();
  registry.subscribe(() => void compiler.load(registry.routeSet()));
  const listener = createListener(
    { name: 'registry', listen: section.listen, ...INTERNAL, log },
    { request: registry.handle },
  );
  return {
    listener,
    check: { name: 'store', run: () => ({ ok: store.writable(), detail: 'the registry writes to its store' }) },
    close: () => {
      registry.close();
      store.close();
    },
  };
}

function registrySettings(config: Config, section: RegistryConfig): RegistrySettings {
  const undeclaredMethods: UndeclaredMethods = config.proxy?.undeclaredMethods ?? 'forward';
  const { jwt, apiKeys, corsOrigins } = section;
  return { jwt, apiKeys, corsOrigins, receivers: receiversById(config), undeclaredMethods };
}

/** The routes of the configuration are registered as an SDK would at its start: what is stored wins. */
async function registerConfigured(config: Config, registry: Registry, log: Log): Promise<void> {
  if (config.routes.length === 0) return;
  const outcomes = await registry.register(config.routes, 'config');
  for (const [index, outcome] of outcomes.entries()) {
    const configured = config.routes[index];
    const named = { method: configured?.method, route_pattern: configured?.route_pattern };
    if (outcome.kind === 'refused') log.error('a configured route was refused', { ...named, reason: outcome.reason });
    if (outcome.kind === 'exists' && outcome.differences.length > 0) {
      log.warn('a configured route differs from the stored one, which wins', {
        ...named,
        differences: outcome.differences,
      });
    }
  }
}

function startProxy(config: Config, proxy: ProxyConfig, current: Current, metrics: Metrics, deps: TollgateDeps): Part {
  const { log, clock, random } = deps;
  const upstream = new URL(proxy.upstream.origin);
  const telemetry = createTelemetry(metrics, log, current.get, current.cacheTotals, () => ({
    maxRoutes: config.metrics.maxRoutes,
    access: config.log.access,
  }));
  const methods = allowedMethods(proxy.methods);
  const collector = createCollector({
    quotes: createQuotes({ secrets: config.charges.secrets, ttlMs: config.charges.quoteTtlMs, random }),
    paymentRequired: createPaymentRequired({ v1: config.x402.v1 }),
    corsOrigins: proxy.corsOrigins,
    methods,
  });
  const forwarder = createForwarder({ upstream, timeouts: proxy.timeouts, clock, log });
  const { transport } = forwarder;
  const upgrader = createUpgrader({ transport, upstream, idleMs: proxy.timeouts.idleMs, clock, log });
  const handler: Handler = createHandler({
    options: {
      target: { limit: proxy.limits.targetBytes, methods, ...pathOptions(proxy) },
      policy: { undeclaredMethods: proxy.undeclaredMethods, preflight: proxy.preflight, v1: config.x402.v1 },
      publicUrl: proxy.publicUrl,
      upstream,
      hostHeader: proxy.hostHeader,
      customerHeader: proxy.customerHeader.toLowerCase(),
      passPaymentHeaders: proxy.passPaymentHeaders,
      maxInFlight: proxy.limits.inFlight,
    },
    snapshot: current.get,
    offer: createOffers(receiversById(config)),
    collector,
    exchanges: createExchanges({ telemetry, clock, log, refuse: collector.refuse }),
    forward: ({ req, client }, order) => {
      if (client.kind === 'response') forwarder.forward(req, client.res, order);
      else upgrader.forwardUpgrade(req, client.socket, client.head, order);
    },
    trusts: createTrust(proxy.trustedProxies),
    telemetry,
    clock,
    random,
    log,
  });
  const listener = createListener(
    {
      name: 'proxy',
      listen: proxy.listen,
      limits: { headers: proxy.limits.headerBytes, connections: proxy.limits.connections },
      timeouts: proxy.timeouts,
      log,
    },
    handler,
  );
  return { listener, close: forwarder.close };
}

/** A registry without a proxy cannot know what stands behind the sidecars: it matches the coarsest way. */
function pathOptions(proxy: ProxyConfig | undefined): PathOptions {
  if (proxy === undefined) return { encodedSlashes: 'refuse', doubleSlashes: 'merge', folding: FULL_FOLDING };
  const { encodedSlashes, doubleSlashes, upstreamProfile } = proxy;
  return { encodedSlashes, doubleSlashes, folding: profileFolding(upstreamProfile) };
}

function receiversById(config: Config): ReadonlyMap<string, Receiver> {
  return new Map(config.receivers.map((receiver) => [receiver.id, receiver]));
}

function routesCheck(snapshot: Snapshot | undefined): { ok: boolean; detail: string } {
  if (snapshot === undefined) return { ok: false, detail: 'no routes were loaded yet' };
  return { ok: true, detail: `${snapshot.routes.length} routes at revision ${snapshot.revision}` };
}
