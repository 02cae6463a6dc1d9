// Configuration -> running parts. Which sections are there decides what is started and what is joined to what; compose/
// holds a file a part, and no part knows another. In one process the registry hands its routes and its ledger to the
// gateway by calls; apart they come over HTTP. Nothing here decides about a request.
import { addPart, answerWhy, createAssembly, type Assembly, type TollgateDeps } from './compose/assembly.ts';
import { startGateway, type Gateway } from './compose/gateway.ts';
import { INTERNAL, type BoundListener } from './compose/part.ts';
import { countCharges } from './compose/payments.ts';
import { observePossible } from './compose/readiness.ts';
import { startRegistry, type RegistryPart } from './compose/registry.ts';
import { applyConfig } from './compose/restart-settings.ts';
import { checkServices, type ServicesCheck } from './compose/services-check.ts';
import type { Config, RegistryConfig } from './config/config.ts';
import { createAuthorize } from './gateway/rails/x402/auth.ts';
import { createAdmin, type Check } from './host/admin.ts';
import { systemSchedule } from './host/clock.ts';
import { createListener } from './host/server.ts';
import { formatListen } from './config/addresses.ts';

/** On the socket of this process. */
const WHY = '/why/';

export type Tollgate = {
  /** Where each listener is bound: `proxy`, `registry`, `sync`, `admin`, those that the configuration has. */
  readonly addresses: Addresses;
  /** Applies a new configuration, whole or not at all; rejects with a sentence if it cannot. */
  readonly reload: (next: Config) => Promise<void>;
  /** A new configuration could not even be read: counted, and what runs goes on. */
  readonly reloadFailed: () => void;
  /** For commands beside this process: what stands at a path of its socket. */
  readonly answer?: (path: string) => Promise<unknown>;
  /**
   * Not ready at once. After `drain_delay` (at once if `waiting` is false) nothing new is taken. What is in flight is
   * finished up to the configured time; then everything is closed.
   */
  readonly stop: (waiting?: boolean) => Promise<void>;
};

/**
 * Starts what `config` describes and resolves when every listener is bound. A start may wait for its store: the admin listener
 * is there before. Rejects with an Error whose message says what to do.
 */
export async function startTollgate(config: Config, deps: TollgateDeps): Promise<Tollgate> {
  const { log } = deps;
  const assembly = createAssembly(config, deps);
  const { metrics, checks, listeners } = assembly;
  const reloads = metrics.counter('config_reloads_total', 'Configurations that were taken on or refused.', ['result']);
  observePossible(metrics, () => assembly.isPossible());
  const admin = createListener(
    { name: 'admin', listen: config.admin.listen, ...INTERNAL, log },
    { request: createAdmin({ contentType: metrics.contentType, text: () => assembly.metricsText() }, checks) },
  );
  const { registry, gateway, addresses } = await start(assembly, admin);

  const services = config.proxy === undefined ? undefined : startAskingServices(assembly);
  return {
    addresses,
    answer: (target) =>
      target.startsWith(WHY)
        ? answerWhy(assembly, decodeURIComponent(target.slice(WHY.length)))
        : Promise.resolve(undefined),
    reload: async (next) => {
      try {
        await reload(assembly, config, next, registry, gateway);
        void services?.ask();
        reloads('success')(1);
      } catch (error) {
        reloads('failure')(1);
        throw error;
      }
    },
    reloadFailed: () => reloads('failure')(1),
    stop: async (waiting = true) => {
      assembly.draining = true;
      const { drainDelayMs: delayMs, drainMs } = assembly.config.proxy?.timeouts ?? { drainDelayMs: 0, drainMs: 5_000 };
      const drainDelayMs = waiting ? delayMs : 0;
      log.info('draining', { delay_ms: drainDelayMs, up_to_ms: drainMs });
      // They would go on for ever; their readers reconnect elsewhere.
      gateway?.sync?.endStreams();
      // The admin listener answers until the end: an orchestrator has to see that we are not ready.
      await Promise.all(listeners.map(([, listener]) => listener.drain(drainDelayMs, drainMs)));
      await closeAll(assembly);
      await admin.drain(0, 0);
    },
  };
}

function startAskingServices(assembly: Assembly): ServicesCheck {
  const { log, clock, random } = assembly.deps;
  const authorize = createAuthorize(clock, random);
  const services = checkServices(() => assembly.config, { log, clock, authorize, schedule: systemSchedule });
  assembly.checks.push(services.check);
  assembly.closers.unshift(services.close);
  void services.ask();
  return services;
}

async function startOwnRegistry(assembly: Assembly, section: RegistryConfig): Promise<RegistryPart> {
  const { current, metrics, checks, deps } = assembly;
  const why = (id: string): ReturnType<typeof answerWhy> => answerWhy(assembly, id);
  const registry = await startRegistry(() => assembly.config, section, current, { ...deps, metrics, checks, why });
  addPart(assembly, 'registry', registry);
  assembly.ledgers = { search: registry.ledger.search, findByChargeId: registry.ledger.get };
  assembly.isPossible = registry.isPossible;
  const help = 'Routes of the configuration that are not in the store as it says.';
  metrics.observed('gauge', 'declared_routes_differing', help, [], (set) => set({}, registry.differences().length));
  return registry;
}

type Started = {
  readonly registry: RegistryPart | undefined;
  readonly gateway: Gateway | undefined;
  readonly addresses: Addresses;
};

/** All parts and listeners, or none and nothing goes on. */
async function start(assembly: Assembly, admin: BoundListener): Promise<Started> {
  const { config, deps, metrics, checks, closers } = assembly;
  const starting: Check = { name: 'start', run: () => ({ ok: false, detail: 'it is not over' }) };
  checks.push(starting);
  try {
    const asked = await bindAll(config, [['admin', admin]]);
    const registry = config.registry === undefined ? undefined : await startOwnRegistry(assembly, config.registry);
    const gateway = config.proxy === undefined ? undefined : await startGateway(assembly, config.proxy, registry);
    // The payments of a proxy count them otherwise.
    if (registry !== undefined && gateway === undefined)
      closers.unshift(countCharges(registry.ledger, metrics, deps.log, deps.clock.now));
    deps.beforeListening?.();
    const addresses = { ...(await bindAll(config, assembly.listeners)), ...asked };
    await assembly.allStarted();
    checks.splice(checks.indexOf(starting), 1);
    return { registry, gateway, addresses };
  } catch (error) {
    await Promise.all([admin, ...assembly.listeners.map(([, listener]) => listener)].map((each) => each.drain(0, 0)));
    await closeAll(assembly);
    throw error;
  }
}

/** Puts `next` in force whole or not at all. `started`: the configuration of the start. */
async function reload(
  assembly: Assembly,
  started: Config,
  next: Config,
  registry: RegistryPart | undefined,
  gateway: Gateway | undefined,
): Promise<void> {
  const { log } = assembly.deps;
  const { config: taken, restart } = applyConfig(started, next);
  // First what can be refused; what follows cannot fail.
  const putInForce = taken.proxy && (await gateway?.proxy.prepare(taken, taken.proxy, gateway.discovery.of(taken)));
  await registry?.reconfigure(taken);
  assembly.config = taken;
  putInForce?.();
  gateway?.discovery.begin(taken);
  registry?.recompile();
  gateway?.sync?.recompile();
  if (assembly.current.snapshot !== undefined) gateway?.tell(assembly.current.snapshot.routes);
  log.info('configuration reloaded');
  if (restart.length > 0) log.warn('changed settings wait for a restart', { settings: restart });
}

async function closeAll({ closers }: Assembly): Promise<void> {
  for (const close of closers) await close();
}

/** Where each listener is bound: `proxy`, `registry`, `sync`, `admin`, those that the configuration has. */
export type Addresses = Readonly<Record<string, { readonly address: string; readonly port: number }>>;

/** Rejects with the key to change if one cannot be bound. */
async function bindAll(
  config: Config,
  listeners: readonly (readonly [name: string, listener: BoundListener])[],
): Promise<Addresses> {
  const addresses: Record<string, Addresses[string]> = {};
  for (const [name, listener] of listeners) {
    addresses[name] = await listener.start().catch((error: unknown) => {
      throw unbound(config, name, error);
    });
  }
  return addresses;
}

function unbound({ proxy, registry, sync, admin }: Config, name: string, error: unknown): Error {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  // No refusal of the system: it says itself what is wrong.
  if (error instanceof Error && code === '') return error;
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
