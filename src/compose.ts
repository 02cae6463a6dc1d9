// Configuration -> running parts. Which sections are there decides what is started and what is joined to what; compose/
// holds a file a part, and no part knows another. In one process the registry hands its routes and its ledger to the
// gateway by calls; apart they come over HTTP. Nothing here decides about a request.
import { INTERNAL, type Part } from './compose/part.ts';
import { startPayments } from './compose/payments.ts';
import { startProxy, type ProxyPart } from './compose/proxy.ts';
import { startRegistry, type RegistryPart } from './compose/registry.ts';
import { takeOn } from './compose/restart.ts';
import type { SidecarLedger } from './compose/sidecar-ledger.ts';
import type * as SyncPart from './compose/sync.ts';
import type { Config, ProxyConfig } from './config/config.ts';
import { createCurrent } from './gateway/sync/current.ts';
import { createTelemetry } from './gateway/telemetry.ts';
import { createAdmin, type Check } from './host/admin.ts';
import type { Clock, Random } from './host/clock.ts';
import type { Log } from './host/log.ts';
import { createMetrics } from './host/metrics.ts';
import { createListener, type Listener } from './host/server.ts';

export type TollgateDeps = {
  readonly log: Log;
  readonly clock: Clock;
  readonly random: Random;
  readonly version: string;
  /** Called once, when everything is ready and nobody can connect yet. */
  readonly beforeListening?: () => void;
};

export type Bound = { readonly address: string; readonly port: number };

export type Tollgate = {
  /** Where each listener is bound: `proxy`, `registry`, `sync`, `admin`, those that the configuration has. */
  readonly addresses: Readonly<Record<string, Bound>>;
  /** Takes a new configuration on, whole or not at all; rejects with a sentence where it cannot. */
  readonly reload: (next: Config) => Promise<void>;
  /** A new configuration could not even be read: counted, and what runs goes on. */
  readonly reloadFailed: () => void;
  /** Not ready at once; what is in flight is finished up to the configured time; then everything is closed. */
  readonly stop: () => Promise<void>;
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

  let registry: RegistryPart | undefined;
  let sync: Awaited<ReturnType<typeof SyncPart.startSync>> | undefined;
  let proxy: ProxyPart | undefined;
  if (config.registry !== undefined) {
    registry = add('registry', await startRegistry(inForce, config.registry, current, deps));
    checks.push(...registry.checks);
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
    const telemetry = createTelemetry(metrics, log, current.get, current.cacheTotals, () => ({
      maxRoutes: running.metrics.maxRoutes,
      access: running.log.access,
    }));
    const own = registry === undefined ? await loadLedger(config, deps) : undefined;
    if (own !== undefined) closers.push(own.close);
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
  const admin = createListener(
    { name: 'admin', listen: config.admin.listen, ...INTERNAL, log },
    { request: createAdmin(metrics, checks) },
  );

  const addresses: Record<string, Bound> = {};
  const serving = listeners.map(([, listener]) => listener);
  try {
    deps.beforeListening?.();
    for (const [name, listener] of [...listeners, ['admin', admin] as const]) addresses[name] = await listener.start();
  } catch (error) {
    await Promise.all([...serving, admin].map((listener) => listener.drain(0, 0)));
    for (const close of closers) await close();
    throw error;
  }

  return {
    addresses,
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
    stop: async () => {
      draining = true;
      const { drainDelayMs, drainMs } = running.proxy?.timeouts ?? { drainDelayMs: 0, drainMs: 5_000 };
      log.info('draining', { delay_ms: drainDelayMs, up_to_ms: drainMs });
      // They would go on for ever: whoever reads them comes back elsewhere.
      sync?.endStreams();
      // The admin listener answers until the end: an orchestrator has to see that we are not ready.
      await Promise.all(serving.map((listener) => listener.drain(drainDelayMs, drainMs)));
      for (const close of closers) await close();
      await admin.drain(0, 0);
    },
  };
}

async function loadLedger(config: Config, deps: TollgateDeps): Promise<SidecarLedger | undefined> {
  const { ledgerOfSidecar } = await import('./compose/sidecar-ledger.ts');
  return ledgerOfSidecar(config, deps);
}
