// Configuration -> running parts. Which sections are there decides what is started and what is joined to what; compose/
// holds a file a part, and no part knows another. Each part returns what it adds to the process, and this file folds it.
// In one process the registry hands its routes and its ledger to the gateway by calls; apart they come over HTTP. Nothing
// here decides about a request.
import { createAttention, type Attention } from './compose/attention.ts';
import { publishKeys } from './compose/assertion-signing.ts';
import { createClosers } from './compose/closers.ts';
import { observeCounters } from './compose/counter-metrics.ts';
import { createDraining } from './compose/draining.ts';
import { startGateway, type Gateway } from './compose/gateway.ts';
import { INTERNAL, type NamedListener } from './compose/part.ts';
import { observePasses } from './compose/pass-metrics.ts';
import { countCharges } from './compose/payments.ts';
import { createProcessMetrics } from './compose/process-metrics.ts';
import { observePossible } from './compose/readiness.ts';
import { createReceiverServices } from './compose/receiver-services.ts';
import { startRegistry, type RegistryPart } from './compose/registry.ts';
import { applyConfig } from './compose/restart-settings.ts';
import { checkServices, type ServicesCheck } from './compose/services-check.ts';
import type { PartWrappers } from './compose/served-proxy.ts';
import { createSettings, type Settings } from './compose/settings.ts';
import { startTracing } from './compose/tracing.ts';
import { trialOrigin } from './compose/trial.ts';
import { answerWhy } from './compose/why-answer.ts';
import type { Config } from './config/config.ts';
import { judgeRefusedConfig } from './domain/attention/judgements.ts';
import { decisionName } from './config/front.ts';
import { createAuthorize } from './gateway/rails/x402/auth.ts';
import { createCurrent, type CurrentSnapshot } from './gateway/routes/current-snapshot.ts';
import { createAdmin, type Check } from './host/admin.ts';
import { messageOf } from './host/error-message.ts';
import { systemSchedule, type Clock, type Random } from './host/clock.ts';
import type { Log } from './host/log.ts';
import type { Metrics } from './host/metrics.ts';
import { createListener } from './host/server.ts';
import type { WorkerPlan } from './host/worker-count.ts';
import type { WhyReport } from './registry/charges/charge-schemas.ts';
import type { Trial } from './registry/trying/trial.ts';
import { formatListen } from './config/addresses.ts';

export type TollgateDeps = PartWrappers & {
  readonly log: Log;
  readonly clock: Clock;
  readonly random: Random;
  readonly version: string;
  /** Called once, when everything is ready, before a client can connect to more than the admin listener. */
  readonly beforeListening?: () => void;
  /** Processes that serve the proxy; left out, this one does. */
  readonly workers?: WorkerPlan;
};

/** Path of the process's socket behind which the id stands that is asked about. */
const WHY = '/why/';

export type Tollgate = {
  /** Addresses of the listeners: `proxy`, `decision`, `registry`, `sync`, `admin`, those that the configuration has. */
  readonly addresses: Addresses;
  /** Applies a new configuration, whole or not at all; rejects with a sentence if it cannot. */
  readonly reload: (next: Config) => Promise<void>;
  /** Counts a new configuration that could not even be read; what runs goes on. */
  readonly reloadFailed: (reason: string) => void;
  /** Answers commands beside this process: what stands at a path of its socket. */
  readonly answer?: (path: string) => Promise<unknown>;
  /**
   * Ends readiness at once. After `drain_delay` (at once if `waiting` is false) nothing new is taken. What is in flight
   * is finished up to the configured time; then everything is closed.
   */
  readonly stop: (waiting?: boolean) => Promise<void>;
};

/** The parts of this process, as far as they were started. Only this file writes it. */
type Parts = {
  registry: RegistryPart | undefined;
  gateway: Gateway | undefined;
  services: ServicesCheck | undefined;
  addresses: Addresses | undefined;
};

/**
 * Starts what `config` describes and resolves when every listener is bound. A start may wait for its store: the admin listener
 * is there before. Rejects with an Error whose message says what to do.
 */
export async function startTollgate(config: Config, deps: TollgateDeps): Promise<Tollgate> {
  const { log, clock } = deps;
  const settings = createSettings(config);
  const metrics = createProcessMetrics(deps.version);
  const draining = createDraining(metrics);
  const current = createCurrent();
  const attention = createAttention({ schedule: systemSchedule, now: clock.now, log });
  const closers = createClosers();
  const checks: Check[] = [draining.check, attention.check];
  closers.addFirst(async () => attention.close());
  let refusedConfig: string | undefined;
  attention.add(() => judgeRefusedConfig(refusedConfig));
  const parts: Parts = { registry: undefined, gateway: undefined, services: undefined, addresses: undefined };
  const reloads = metrics.counter('config_reloads_total', 'Configurations that were taken on or refused.', ['result']);
  observePossible(metrics, () => (parts.gateway ?? parts.registry)?.isPossible() ?? false);
  const scrape: Metrics['text'] = () => (parts.gateway?.metricsText ?? metrics.text)();
  const admin = createListener(
    { name: 'admin', listen: config.admin.listen, ...INTERNAL, log },
    {
      request: publishKeys(
        'admin',
        () => settings.config,
        createAdmin({ contentType: metrics.contentType, text: scrape }, checks),
      ),
    },
  );
  const why = (id: string): Promise<WhyReport> => {
    const { ledgers } = parts.registry ?? parts.gateway ?? { ledgers: undefined };
    return answerWhy(id, { settings, current, clock, ledgers, findRefusals: parts.gateway?.findRefusals });
  };

  const starting: Check = { name: 'start', run: () => ({ ok: false, detail: 'it is not over' }) };
  checks.push(starting);
  let addresses: Addresses;
  try {
    const bound = await bindAll(config, [['admin', admin]]);
    await startParts(parts, { ...deps, settings, metrics, current, closers, checks, why, attention });
    deps.beforeListening?.();
    addresses = parts.addresses = { ...(await bindAll(config, listenersOf(parts))), ...bound };
    await parts.gateway?.allStarted();
    checks.splice(checks.indexOf(starting), 1);
  } catch (error) {
    // The parts and listeners start all, or none of them and nothing goes on.
    const listeners = [admin, ...listenersOf(parts).map(([, listener]) => listener)];
    await Promise.all(listeners.map((each) => each.drain(0, 0)));
    await closers.closeAll();
    throw error;
  }

  const services = config.front === undefined ? undefined : startAskingServices(settings, deps);
  parts.services = services;
  if (services !== undefined) {
    checks.push(services.check);
    attention.add((isAsked) => {
      // What was wrong is asked again.
      if (isAsked) void services.check.run();
      return services.findings();
    });
    closers.addFirst(services.close);
  }
  return {
    addresses,
    answer: (target) =>
      target.startsWith(WHY) ? why(decodeURIComponent(target.slice(WHY.length))) : Promise.resolve(undefined),
    reload: async (next) => {
      try {
        const { config: taken, restart } = applyConfig(config, next);
        const before = settings.config;
        await putInForce(taken, parts, current, settings.replace);
        refusedConfig = undefined;
        await parts.registry?.configAudit.taken(before, taken);
        log.info('configuration reloaded');
        if (restart.length > 0) log.warn('changed settings wait for a restart', { settings: restart });
        void services?.ask();
        reloads('success')(1);
      } catch (error) {
        reloads('failure')(1);
        refusedConfig = messageOf(error);
        await parts.registry?.configAudit.refused(refusedConfig);
        throw error;
      }
    },
    reloadFailed: (reason) => {
      reloads('failure')(1);
      refusedConfig = reason;
      void parts.registry?.configAudit.refused(reason);
    },
    stop: async (waiting = true) => {
      draining.begin();
      const { drainDelayMs: delayMs, drainMs } = settings.config.front?.timeouts ?? { drainDelayMs: 0, drainMs: 5_000 };
      const drainDelayMs = waiting ? delayMs : 0;
      log.info('draining', { delay_ms: drainDelayMs, up_to_ms: drainMs });
      // The streams would go on for ever; their readers reconnect elsewhere.
      parts.gateway?.sync?.endStreams();
      // The admin listener answers until the end: an orchestrator has to see that we are not ready.
      await Promise.all(listenersOf(parts).map(([, listener]) => listener.drain(drainDelayMs, drainMs)));
      await closers.closeAll();
      await admin.drain(0, 0);
    },
  };
}

type PartsDeps = TollgateDeps & {
  readonly settings: Settings;
  readonly metrics: Metrics;
  readonly current: CurrentSnapshot;
  readonly closers: ReturnType<typeof createClosers>;
  readonly checks: Check[];
  readonly why: (id: string) => Promise<WhyReport>;
  readonly attention: Attention;
};

/** Starts the registry and the gateway, those that the configuration has, and folds what they add to the process. */
async function startParts(parts: Parts, deps: PartsDeps): Promise<void> {
  const { settings, metrics, closers, checks, log, clock } = deps;
  const { registry: registrySection, front } = settings.config;
  if (registrySection !== undefined) {
    const registry = await startRegistry(registrySection, {
      ...deps,
      addCheck: (check) => void checks.push(check),
      countedUntil: () => parts.gateway?.countedUntil(),
      trial: () => tryProxy(parts, settings),
      receiverServices: createReceiverServices({
        ...deps,
        services: () => parts.services,
        healths: () => parts.gateway?.healths(),
      }),
    });
    closers.addFirst(registry.close);
    observeCounters(metrics, registry.ledger.counters, () => settings.config);
    observePasses(metrics, registry.ledger.passes);
    parts.registry = registry;
  }
  if (front !== undefined) {
    // Workers trace the requests that they serve.
    const tracing = (deps.workers?.count ?? 1) > 1 ? undefined : await startTracing(settings.config, deps);
    const gateway = await startGateway(parts.registry, { ...deps, tracing });
    checks.push(...gateway.checks);
    parts.gateway = gateway;
  }
  // The payments of a proxy count them otherwise.
  if (parts.registry !== undefined && parts.gateway === undefined)
    closers.addFirst(countCharges(parts.registry.ledger, metrics, log, clock.now));
}

function tryProxy({ gateway, addresses }: Parts, { config: { front, proxy } }: Settings): Trial | undefined {
  const bound = addresses?.[proxy === undefined ? decisionName(0) : 'proxy'];
  return front && gateway?.front.trial(trialOrigin(front, bound?.port));
}

function listenersOf({ registry, gateway }: Parts): readonly NamedListener[] {
  const own: readonly NamedListener[] = registry?.listener === undefined ? [] : [['registry', registry.listener]];
  return [...own, ...(gateway?.listeners ?? [])];
}

function startAskingServices(
  settings: Settings,
  { log, clock, random }: Pick<TollgateDeps, 'log' | 'clock' | 'random'>,
): ServicesCheck {
  const authorize = createAuthorize(clock, random);
  const services = checkServices(() => settings.config, { log, clock, authorize, schedule: systemSchedule });
  void services.ask();
  return services;
}

/** Puts `taken` in force in all parts, whole or not at all. */
async function putInForce(
  taken: Config,
  { registry, gateway }: Parts,
  current: Pick<CurrentSnapshot, 'snapshot'>,
  replace: (next: Config) => void,
): Promise<void> {
  // First what can be refused; what follows cannot fail.
  const putFrontInForce = await gateway?.front.prepare(taken, gateway.discovery.of(taken));
  await registry?.reconfigure(taken);
  replace(taken);
  putFrontInForce?.();
  gateway?.discovery.begin(taken);
  gateway?.observe();
  registry?.recompile();
  gateway?.sync?.recompile();
  if (current.snapshot !== undefined) gateway?.tell(current.snapshot.routes);
}

/** Addresses of the listeners: `proxy`, `registry`, `sync`, `admin`, those that the configuration has. */
export type Addresses = Readonly<Record<string, { readonly address: string; readonly port: number }>>;

/** Rejects with the key to change if one cannot be bound. */
async function bindAll(config: Config, listeners: readonly NamedListener[]): Promise<Addresses> {
  const addresses: Record<string, Addresses[string]> = {};
  for (const [name, listener] of listeners) {
    addresses[name] = await listener.start().catch((error: unknown) => {
      throw unbound(config, name, error);
    });
  }
  return addresses;
}

function unbound({ proxy, registry, sync, admin, decision = [] }: Config, name: string, error: unknown): Error {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  // No refusal of the system: it says itself what is wrong.
  if (error instanceof Error && code === '') return error;
  const why: Readonly<Record<string, string>> = {
    EADDRINUSE: 'is taken by another program; end that one, or write another address',
    EACCES: 'may not be bound by this user; write a port from 1024 up',
    EADDRNOTAVAIL: 'is no address of this machine; write one that is, or 0.0.0.0 for all',
    ENOTFOUND: 'is a name without an address; write an address of this machine, or 0.0.0.0 for all',
  };
  const asked = decision.map((section, index) => [decisionName(index), section] as const);
  const sections = { proxy, registry, sync, admin, ...Object.fromEntries(asked) };
  const listen = new Map(Object.entries(sections)).get(name)?.listen;
  const place = listen === undefined ? 'it' : formatListen(listen);
  return new Error(`${name}.listen: ${place} ${why[code] ?? `cannot be bound (${code})`}`, { cause: error });
}
