// Configuration -> running parts. Which sections are there decides what is started and what is joined to what; compose/
// holds a file a part, and no part knows another. In one process the registry hands its routes and its ledger to the
// gateway by calls; apart they come over HTTP. Nothing here decides about a request.
import { owedBecauseOf } from './domain/payment/claim-policy.ts';
import { INTERNAL, type Part } from './compose/part.ts';
import { warnOfUpstream } from './compose/reach.ts';
import { countCharges, startPayments } from './compose/payments.ts';
import { startProxy, type ProxyPart } from './compose/proxy.ts';
import { observePossible } from './compose/readiness.ts';
import { observeStore } from './compose/store-metrics.ts';
import { startRegistry, type RegistryPart } from './compose/registry.ts';
import { takeOn } from './compose/restart.ts';
import type { SidecarLedger } from './compose/sidecar-ledger.ts';
import type * as SyncPart from './compose/sync.ts';
import type { WhyParts } from './compose/why.ts';
import { formatListen } from './config/addresses.ts';
import type { Config, ProxyConfig } from './config/config.ts';
import { createQuotes } from './domain/quote.ts';
import type { Route } from './domain/route.ts';
import { createRefusals, rememberRefusals } from './gateway/refusals.ts';
import { createCurrent } from './gateway/sync/current.ts';
import { createTelemetry } from './gateway/telemetry.ts';
import { createAdmin, type Check } from './host/admin.ts';
import type { Clock, Random } from './host/clock.ts';
import type { Log } from './host/log.ts';
import { createMetrics } from './host/metrics.ts';
import { createListener, type Listener } from './host/server.ts';
import type { WhyAnswer } from './registry/why.ts';

export type TollgateDeps = {
  readonly log: Log;
  readonly clock: Clock;
  readonly random: Random;
  readonly version: string;
  /** Called once, when everything is ready, before a client can connect. */
  readonly beforeListening?: () => void;
};

/** On the socket of this process. */
const WHY = '/why/';

export type Bound = { readonly address: string; readonly port: number };

export type Tollgate = {
  /** Where each listener is bound: `proxy`, `registry`, `sync`, `admin`, those that the configuration has. */
  readonly addresses: Readonly<Record<string, Bound>>;
  /** Takes a new configuration on, whole or not at all; rejects with a sentence where it cannot. */
  readonly reload: (next: Config) => Promise<void>;
  /** A new configuration could not even be read: counted, and what runs goes on. */
  readonly reloadFailed: () => void;
  /** For commands beside this process: what stands at a path of its socket. */
  readonly answer?: (path: string) => Promise<unknown>;
  /**
   * Not ready at once; after `drain_delay`, unless no load balancer has to notice (`waiting` false), nothing new is taken and what is
   * in flight is finished up to the configured time; then everything is closed.
   */
  readonly stop: (waiting?: boolean) => Promise<void>;
};

/** Starts what `config` describes and resolves when every listener is bound. Rejects with an Error whose message says what to do. */
export async function startTollgate(config: Config, deps: TollgateDeps): Promise<Tollgate> {
  const { log, clock, random } = deps;
  const metrics = createMetrics();
  metrics.gauge('build_info', 'Version of Tollgate and of Node.', ['version', 'node'])(deps.version, process.version)(
    1,
  );
  let draining = false;
  const drainingHelp = '1 while the process finishes what is in flight and takes nothing new.';
  metrics.observed('gauge', 'draining', drainingHelp, [], (set) => set({}, draining ? 1 : 0));
  const reloads = metrics.counter('config_reloads_total', 'Configurations that were taken on or refused.', ['result']);

  let running = config;
  const inForce = (): Config => running;
  const current = createCurrent();
  const checks: Check[] = [
    { name: 'draining', run: () => ({ ok: !draining, detail: draining ? 'finishing what is in flight' : 'no' }) },
  ];
  const listeners: [string, Listener][] = [];
  const closers: Part['close'][] = [];
  const add = <P extends Part>(name: string, part: P): P => {
    if (part.listener !== undefined) listeners.push([name, part.listener]);
    closers.unshift(part.close);
    return part;
  };

  const refusals = config.proxy === undefined ? undefined : createRefusals();
  let ledgers: Pick<WhyParts, 'search' | 'findByChargeId'> = { search: undefined, findByChargeId: undefined };
  const why = async (id: string): Promise<WhyAnswer> => {
    const { explainWhy } = await import('./compose/why.ts');
    const { secrets, quoteTtlMs } = running.charges;
    const quotes = createQuotes({ secrets, ttlMs: quoteTtlMs, nonce: () => '' });
    const routeOf = (routeId: string): Route | undefined => current.get()?.matcher.get(routeId);
    return explainWhy(id, { ...ledgers, refusals, quotes, quoteTtlMs, routeOf, clock });
  };

  let registry: RegistryPart | undefined;
  let sync: Awaited<ReturnType<typeof SyncPart.startSync>> | undefined;
  let proxy: ProxyPart | undefined;
  let isPossible = (): boolean => false;
  if (config.registry !== undefined) {
    registry = add('registry', await startRegistry(inForce, config.registry, current, { ...deps, metrics, why }));
    checks.push(...registry.checks);
    ledgers = { search: registry.ledger.search, findByChargeId: undefined };
    ({ isPossible } = registry);
    const { differences } = registry;
    metrics.observed(
      'gauge',
      'declared_routes_differing',
      'Routes of the configuration that are not in the store as it says.',
      [],
      (set) => set({}, differences().length),
    );
  }
  const { proxy: proxyConfig } = config;
  if (proxyConfig !== undefined) {
    const section = (): ProxyConfig => running.proxy ?? proxyConfig;
    if (config.sync !== undefined) {
      // What only a sidecar needs is loaded in a sidecar only: an HTTP client takes memory.
      const { startSync } = await import('./compose/sync.ts');
      sync = add('sync', await startSync(config, config.sync, section, current, { ...deps, metrics }));
      checks.push(sync.check);
    }
    const counting = createTelemetry(metrics, log, current.get, current.cacheTotals, () => ({
      maxRoutes: running.metrics.maxRoutes,
      access: running.log.access,
    }));
    const telemetry = refusals === undefined ? counting : rememberRefusals(counting, refusals, deps.clock);
    const own = registry === undefined ? await loadLedger(config, deps) : undefined;
    if (own !== undefined) {
      closers.push(own.close);
      const { findByChargeId } = own.ledger;
      ledgers = {
        search: own.reports?.search,
        findByChargeId: async (id) => {
          const charge = await findByChargeId(id);
          return charge && { ...charge, owed: owedBecauseOf(charge, clock.now()) ?? null };
        },
      };
      checks.push(own.readiness.check);
      ({ isPossible } = own.readiness);
      if (own.stats !== undefined) observeStore(metrics, own.stats);
    }
    const ledger = registry?.ledger ?? own?.ledger;
    const payments =
      ledger &&
      startPayments(inForce, ledger, registry?.ledger ?? own?.reports, telemetry.label, {
        log,
        clock,
        random,
        metrics,
      });
    if (payments !== undefined) closers.unshift(payments.close);
    proxy = add(
      'proxy',
      startProxy(config, proxyConfig, { current, telemetry, payFor: payments?.payFor, log, clock, random }),
    );
  }
  // Where there is a proxy, its payments count them.
  if (registry !== undefined && proxy === undefined)
    closers.unshift(countCharges(registry.ledger, metrics, log, clock.now));
  observePossible(metrics, () => isPossible());
  const admin = createListener(
    { name: 'admin', listen: config.admin.listen, ...INTERNAL, log },
    { request: createAdmin(metrics, checks) },
  );

  const addresses: Record<string, Bound> = {};
  const serving = listeners.map(([, listener]) => listener);
  try {
    deps.beforeListening?.();
    for (const [name, listener] of [...listeners, ['admin', admin] as const]) {
      addresses[name] = await listener.start().catch((error: unknown) => {
        throw unbound(config, name, error);
      });
    }
  } catch (error) {
    await Promise.all([...serving, admin].map((listener) => listener.drain(0, 0)));
    for (const close of closers) await close();
    throw error;
  }

  if (proxyConfig !== undefined) void warnOfUpstream(proxyConfig, log);
  return {
    addresses,
    answer: (target) =>
      target.startsWith(WHY) ? why(decodeURIComponent(target.slice(WHY.length))) : Promise.resolve(undefined),
    reload: async (next) => {
      try {
        const { config: taken, restart } = takeOn(config, next);
        // First what can be refused; what follows cannot fail.
        const putInForce = taken.proxy && proxy?.prepare(taken, taken.proxy);
        await registry?.reconfigure(taken);
        running = taken;
        putInForce?.();
        registry?.recompile();
        sync?.recompile();
        reloads('success')(1);
        log.info('configuration reloaded');
        if (restart.length > 0) log.warn('changed settings wait for a restart', { settings: restart });
      } catch (error) {
        reloads('failure')(1);
        throw error;
      }
    },
    reloadFailed: () => reloads('failure')(1),
    stop: async (waiting = true) => {
      draining = true;
      const { drainDelayMs: delayMs, drainMs } = running.proxy?.timeouts ?? { drainDelayMs: 0, drainMs: 5_000 };
      const drainDelayMs = waiting ? delayMs : 0;
      log.info('draining', { delay_ms: drainDelayMs, up_to_ms: drainMs });
      // They would go on for ever; their readers reconnect elsewhere.
      sync?.endStreams();
      // The admin listener answers until the end: an orchestrator has to see that we are not ready.
      await Promise.all(serving.map((listener) => listener.drain(drainDelayMs, drainMs)));
      for (const close of closers) await close();
      await admin.drain(0, 0);
    },
  };
}

/** Names the key to change. */
function unbound({ proxy, registry, sync, admin }: Config, name: string, error: unknown): Error {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  const why: Readonly<Record<string, string>> = {
    EADDRINUSE: 'is taken by another program; end that one, or write another address',
    EACCES: 'may not be bound by this user; write a port from 1024 up',
    EADDRNOTAVAIL: 'is no address of this machine; write one that is, or 0.0.0.0 for all',
    ENOTFOUND: 'is a name without an address; write an address of this machine, or 0.0.0.0 for all',
  };
  const listen = new Map(Object.entries({ proxy, registry, sync, admin })).get(name)?.listen;
  const place = listen === undefined ? 'it' : formatListen(listen);
  return new Error(`${name}.listen: ${place} ${why[code] ?? `cannot be bound (${code})`}`, { cause: error });
}

async function loadLedger(config: Config, deps: TollgateDeps): Promise<SidecarLedger | undefined> {
  const { ledgerOfSidecar } = await import('./compose/sidecar-ledger.ts');
  return ledgerOfSidecar(config, deps);
}
