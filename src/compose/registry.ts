// The registry part: its store, its ledger, its listener, and the routes it hands to the gateway of the same process by
// a call, before the dashboard that changed them has its answer.
import type { Config, RegistryConfig } from '../config/config.ts';
import type { Snapshot } from '../domain/snapshot.ts';
import { createCompiler } from '../gateway/sync/compile.ts';
import type { Current } from '../gateway/sync/current.ts';
import type { Check } from '../host/admin.ts';
import type { Clock, Random } from '../host/clock.ts';
import type { Log } from '../host/log.ts';
import { createListener } from '../host/server.ts';
import { createRegistry, type Registry, type RegistrySettings } from '../registry/registry.ts';
import { openLedger, type SqliteLedger } from '../registry/store/ledger.ts';
import { openStore } from '../registry/store/store.ts';
import { UPGRADING } from '../registry/store/upgrade.ts';
import { INTERNAL, pathOptions, receiversById, type Part } from './part.ts';

export type RegistryPart = Part & {
  readonly checks: readonly Check[];
  readonly ledger: SqliteLedger;
  /** Takes a new configuration on; rejects, and leaves the old one in force, where a key or the store cannot be used. */
  readonly reconfigure: (next: Config) => Promise<void>;
  /** For paths that are read in another way now. */
  readonly recompile: () => void;
};

export type RegistryPartDeps = {
  readonly log: Log;
  readonly clock: Clock;
  readonly random: Random;
  readonly version: string;
};

export async function startRegistry(
  config: () => Config,
  section: RegistryConfig,
  current: Current,
  { log, clock, random, version }: RegistryPartDeps,
): Promise<RegistryPart> {
  const { limits } = section;
  const store = openStore(section.store.file, {
    random,
    now: clock.now,
    writesApart: true,
    onUpgrade: (upgrade) => log.info(UPGRADING, upgrade),
  });
  const ledger = openLedger(section.store.file, { now: clock.now, log });
  const compiler = createCompiler(current, () => pathOptions(config().proxy), log);
  const registry = createRegistry({
    store,
    ledger,
    settings: settingsOf(config(), section),
    limits: {
      body: limits.bodyBytes,
      routes: limits.routes,
      registrationsPerMinute: limits.registrationsPerMinute,
      streams: limits.eventStreams,
      streamsPerKey: limits.eventStreamsPerKey,
    },
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
  await registerConfigured(config(), registry, log);
  compiler.load(registry.routeSet());
  await compiler.settled();
  registry.subscribe((change) => void compiler.change(change, registry.routeSet));
  const { handle } = registry;
  const listener = createListener(
    {
      ...{ name: 'registry', listen: section.listen, log },
      limits: { ...INTERNAL.limits, connections: limits.connections },
      timeouts: INTERNAL.timeouts,
    },
    { request: handle },
  );
  return {
    listener,
    ledger,
    checks: [{ name: 'routes', run: () => routesCheck(current.get()) }, storeCheck(ledger)],
    reconfigure: async (next) => {
      if (next.registry === undefined) return;
      const before = config();
      registry.reconfigure(settingsOf(next, next.registry));
      try {
        await registerConfigured(next, registry, log);
      } catch (error) {
        registry.reconfigure(settingsOf(before, before.registry ?? section));
        throw error;
      }
    },
    // From the store's own set: a newer one than that in force may just be being compiled.
    recompile: () => void compiler.load(registry.routeSet()),
    close: async () => {
      registry.close();
      await ledger.close();
      store.close();
    },
  };
}

/**
 * Whether the store takes writes, as of the probe before: it is asked in the ledger's thread, because a slow disk must not
 * hold up the traffic for the sake of a probe.
 */
function storeCheck(ledger: SqliteLedger): Check {
  let ok = true;
  const ask = (): void => {
    ledger.check().then(
      () => {
        ok = true;
      },
      () => {
        ok = false;
      },
    );
  };
  ask();
  return {
    name: 'store',
    run: () => {
      ask();
      return { ok, detail: ok ? 'the store takes writes' : 'the store does not take writes' };
    },
  };
}

function settingsOf(config: Config, { jwt, apiKeys, corsOrigins }: RegistryConfig): RegistrySettings {
  const undeclaredMethods = config.proxy?.undeclaredMethods ?? 'forward';
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
      const { differences } = outcome;
      log.warn('a configured route differs from the stored one, which wins', { ...named, differences });
    }
  }
}

function routesCheck(snapshot: Snapshot | undefined): { ok: boolean; detail: string } {
  if (snapshot === undefined) return { ok: false, detail: 'no routes were loaded yet' };
  return { ok: true, detail: `${snapshot.routes.length} routes at revision ${snapshot.revision}` };
}
