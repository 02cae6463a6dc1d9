// The registry part: its store, its ledger and its listener. It hands routes to the gateway of the same process by a
// call, before the dashboard that changed them has its answer.
import { setTimeout as wait } from 'node:timers/promises';
import type { Config, RegistryConfig } from '../config/config.ts';
import { deskOf } from '../config/desk.ts';
import type { Snapshot } from '../domain/routing/snapshot.ts';
import { servicesInForce } from '../domain/payment/offer.ts';
import { NETWORKS, SPELLING } from '../gateway/rails/rails.ts';
import { createCompiler } from '../gateway/routes/snapshot-compiler.ts';
import type { CurrentSnapshot } from '../gateway/routes/current-snapshot.ts';
import type { Check } from '../host/admin.ts';
import { systemSchedule, type Clock, type Random } from '../host/clock.ts';
import type { Log } from '../host/log.ts';
import type { Metrics } from '../host/metrics.ts';
import { createListener } from '../host/server.ts';
import type { WhyReport } from '../registry/charges/charge-schemas.ts';
import { createRegistry, type RegistrySettings } from '../registry/registry.ts';
import { storeAt } from '../registry/store/store-kinds.ts';
import { ledgerOf, type StoredLedger } from '../registry/store/stored-ledger.ts';
import type { ReceiverServices } from '../registry/receivers/receiver-services.ts';
import type { Trial } from '../registry/trying/trial.ts';
import { createTotalsBook, type TotalsBook } from '../registry/totals/totals-book.ts';
import { StoreUnavailable, UPGRADING } from '../registry/store/ports.ts';
import type { Settings } from './settings.ts';
import type { WhyLedgers } from './why.ts';
import type { Attention } from './attention.ts';
import { publishKeys } from './assertion-signing.ts';
import { startAudit, type ConfigAudit } from './audit.ts';
import { createSharedSettings } from './common-settings.ts';
import { differencesCheck, followConfiguration, observeDifferences } from './declared-routes.ts';
import { countLeases } from './charge-metrics.ts';
import { watchRegistry } from './registry-attention.ts';
import { keepCharges } from './retention.ts';
import { INTERNAL, matchRules, pathOptions, receiversById, type Part } from './part.ts';
import { countLostTotals, keepTotals } from './totals-retention.ts';
import { proveRefunds } from './refunds.ts';
import { startWebhooks } from './webhook-part.ts';
import { storeReadiness, type Readiness } from './readiness.ts';
import {
  observeCalls,
  observeConnections,
  observeSessions,
  observeRegistry,
  observeSharedStore,
  observeStore,
  observeStoreUp,
} from './store-metrics.ts';

export type RegistryPart = Part & {
  readonly ledger: StoredLedger;
  readonly totals: TotalsBook;
  /** Whether the store takes payments, as far as is known. */
  readonly isPossible: () => boolean;
  readonly ledgers: WhyLedgers;
  /** Applies a new configuration; rejects, and leaves the old one in force, if a key or the store cannot be used. */
  readonly reconfigure: (next: Config) => Promise<void>;
  /** Notes which configurations were taken on or refused. */
  readonly configAudit: Pick<ConfigAudit, 'taken' | 'refused'>;
  /** Compiles the routes anew, because paths are read in another way now. */
  readonly recompile: () => void;
};

type RegistryPartDeps = {
  readonly log: Log;
  readonly clock: Clock;
  readonly random: Random;
  readonly version: string;
  readonly metrics: Metrics;
  readonly settings: Settings;
  readonly current: CurrentSnapshot;
  /** Adds a check before this part waits for its store. */
  readonly addCheck: (check: Check) => void;
  readonly why: (id: string) => Promise<WhyReport>;
  /** What the proxy of this process would answer; undefined if it has none. */
  readonly trial: () => Trial | undefined;
  /** The moment up to which the proxy of this process has handed its counts over; undefined if it has none. */
  readonly countedUntil: () => number | undefined;
  readonly receiverServices: ReceiverServices;
  readonly attention: Attention;
};

export async function startRegistry(section: RegistryConfig, deps: RegistryPartDeps): Promise<RegistryPart> {
  const { log, clock, random, version, metrics, settings, current, addCheck, countedUntil, attention } = deps;
  const config = (): Config => settings.config;
  const { limits } = section;
  const place = await storeAt(section.store);
  let readiness: Readiness | undefined;
  let reason = 'it did not answer yet';
  const waits = (because: string): void => void (reason = because);
  const storeCheck: Check = {
    name: 'store',
    run: () => readiness?.check.run() ?? { ok: false, detail: `the store cannot be used yet: ${reason}` },
  };
  addCheck({ name: 'routes', run: () => routesCheck(current.snapshot) });
  addCheck(storeCheck);
  if (place.isShared) observeStoreUp(metrics, storeCheck);
  const store = await place.open({
    ...{ random, now: clock.now, log, alone: true, as: 'server', observe: observeCalls(metrics, place), waits },
    onUpgrade: (upgrade) => log.info(UPGRADING, upgrade),
  });
  const ledger = ledgerOf(store.charges, SPELLING, countLeases(metrics));
  const { totals: keptTotals } = section;
  const totalsKept = (): typeof keptTotals => config().registry?.totals ?? keptTotals;
  const totals = createTotalsBook(store.charges.totals, {
    ...{ log, clock, countedUntil, lost: countLostTotals(metrics), hoursKeptMs: () => totalsKept().hoursMs },
  });
  const stopPruning = keepTotals(totals, { clock, log, schedule: systemSchedule, kept: totalsKept });
  const stopKeeping = keepCharges(store.charges, {
    ...{ clock, log, schedule: systemSchedule },
    retentionMs: () => config().charges.retentionMs,
  });
  const { webhooks, close: closeWebhooks } = await startWebhooks({
    ...{ store: store.charges.webhooks, isShared: store.isShared, run: store.charges.run, config, metrics },
    ...{ registryId: () => store.routes.registryId, log, clock, random, version },
  });
  const compiler = createCompiler(current, () => pathOptions(config()), log);
  const patiently = createPatience(store.isShared, waits, log);
  const options = {
    store,
    ledger,
    ...{ networks: NETWORKS, prover: proveRefunds(servicesInForce(settings), clock) },
    ...{ totals, webhooks },
    ...{ why: deps.why, trial: deps.trial, receiverServices: deps.receiverServices, attention: attention.ask },
    settings: settingsOf(config(), section),
    limits: {
      body: limits.bodyBytes,
      routes: limits.routes,
      registrationsPerMinute: limits.registrationsPerMinute,
      streams: limits.eventStreams,
      streamsPerKey: limits.eventStreamsPerKey,
    },
    snapshot: () => {
      const snapshot = current.snapshot;
      if (snapshot === undefined) throw new Error('the routes are not compiled yet');
      return snapshot;
    },
    ...{ log, clock, random, version, observer: observeRegistry(metrics) },
  };
  const registry = await patiently(() => createRegistry(options));
  observeConnections(metrics, registry.connections);
  observeSessions(metrics, registry.deskSessions);
  observeStore(metrics, store.stats);
  const shared = createSharedSettings(store, log);
  await shared.share(config(), section);
  await patiently(() => followConfiguration(config(), registry, 'start', log));
  compiler.load(registry.routeSet());
  await compiler.settled();
  registry.subscribe((change) => void compiler.change(change, registry.routeSet));
  const configAudit = startAudit(store.audit, config, { version, clock, schedule: systemSchedule, log });
  const { handle } = registry;
  const hasProxy = config().front !== undefined;
  const { isPossible } = (readiness = storeReadiness(
    ledger.check,
    { clock, log },
    { isShared: store.isShared, hasProxy },
  ));
  watchRegistry(attention, { store, ledger, readiness, registry, ...shared, clock, random });
  const { load } = store.charges;
  if (load !== undefined) observeSharedStore(metrics, load, () => current.snapshot?.revision);
  addCheck(differencesCheck(registry.differences));
  const listener = createListener(
    {
      ...{ name: 'registry', listen: section.listen, log },
      limits: { ...INTERNAL.limits, connections: limits.connections },
      timeouts: INTERNAL.timeouts,
      refusals: INTERNAL.refusals,
    },
    { request: publishKeys('registry', config, handle) },
  );
  observeDifferences(metrics, registry.differences);
  return {
    listener,
    ledger,
    totals,
    isPossible,
    configAudit,
    ledgers: { search: ledger.search, findByChargeId: ledger.get },
    reconfigure: async (next) => {
      if (next.registry === undefined) return;
      const before = config();
      registry.reconfigure(settingsOf(next, next.registry));
      try {
        await followConfiguration(next, registry, 'reload', log);
        await shared.share(next, next.registry);
      } catch (error) {
        registry.reconfigure(settingsOf(before, before.registry ?? section));
        throw error;
      }
    },
    // The set comes from the store's own: a newer one than that in force may just be being compiled.
    recompile: () => void compiler.load(registry.routeSet()),
    close: async () => {
      await registry.close();
      configAudit.close();
      stopKeeping();
      stopPruning();
      await closeWebhooks();
      await store.close();
    },
  };
}

/** A start waits for a shared store, also for one that goes away again in the middle of it. */
function createPatience(
  isShared: boolean,
  waits: (because: string) => void,
  log: Log,
): <T>(work: () => Promise<T>) => Promise<T> {
  return async (work) => {
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, LAST_PAUSE_MS)) {
      try {
        return await work();
      } catch (error) {
        if (!isShared || !(error instanceof StoreUnavailable)) throw error;
        waits(error.message);
        log.warn('the store went away during the start', { error: error.message });
        await wait(pauseMs);
      }
    }
  };
}

const FIRST_PAUSE_MS = 50;
const LAST_PAUSE_MS = 5_000;

function settingsOf(config: Config, section: RegistryConfig): RegistrySettings {
  const { jwt, apiKeys, corsOrigins } = section;
  const unknownReceiver = config.front === undefined ? 'store' : 'refuse';
  const receivers = receiversById(config);
  const desk = deskOf(section);
  const testnet = config.receivers.flatMap(({ ways }) => ways).some((way) => way.testnet === true);
  return {
    ...{ jwt, apiKeys, corsOrigins, receivers, unknownReceiver, ...matchRules(config) },
    customers: config.selling.customers,
    desk: desk && { ...desk, testnet },
  };
}

function routesCheck(snapshot: Snapshot | undefined): { ok: boolean; detail: string } {
  if (snapshot === undefined) return { ok: false, detail: 'no routes were loaded yet' };
  return { ok: true, detail: `${snapshot.routes.length} routes at revision ${snapshot.revision}` };
}
