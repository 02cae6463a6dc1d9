// Joins the gateway of a process: where its routes come from, what writes its charges down, what takes payments, and
// the proxy that uses all of them.
import type { Config, ProxyConfig } from '../config/config.ts';
import type { Discovery } from '../domain/discovery/listing.ts';
import type { ChargeReports } from '../domain/payment/reports.ts';
import { standingOf } from '../domain/payment/whereabouts.ts';
import type { Ledger } from '../domain/payment/ledger.ts';
import type { Route } from '../domain/routing/route.ts';
import type { WorkerPlan } from '../host/worker-count.ts';
import { rememberRefusals } from '../gateway/refusals.ts';
import { createTelemetry, type Telemetry } from '../gateway/telemetry.ts';
import { createDiscoverySource, type DiscoverySource } from './discovery/discovery.ts';
import { addPart, type Assembly } from './assembly.ts';
import type { Published } from '../gateway/public-documents.ts';
import type { Rails } from '../gateway/rails/rails.ts';
import { systemSchedule } from '../host/clock.ts';
import { startPayments, startRails, type Payments } from './payments.ts';
import { startProxy, type OwnProxyPart, type ProxyPart } from './proxy.ts';
import { startPublisher, type OwnerInForce, type Publisher } from './discovery/publisher.ts';
import type { StoredLedger } from '../registry/store/open.ts';
import type { RegistryPart } from './registry.ts';
import type { SidecarLedger } from './sidecar-ledger.ts';
import { notShownWarnings } from './way-warnings.ts';
import { observeLoad, observeStore, observeStoreUp } from './store-metrics.ts';
import type * as SyncPart from './sync.ts';

export type Gateway = {
  readonly proxy: ProxyPart;
  readonly discovery: DiscoverySource;
  /** Says in the log what the configuration in force means for `routes`. */
  readonly tell: (routes: readonly Route[]) => void;
  /** Undefined in the process of the registry. */
  readonly sync: Awaited<ReturnType<typeof SyncPart.startSync>> | undefined;
};

/** `registry`: of this process. */
export async function startGateway(
  assembly: Assembly,
  section: ProxyConfig,
  registry: RegistryPart | undefined,
): Promise<Gateway> {
  const { config, current, deps } = assembly;
  const { log } = deps;
  const sync = config.sync === undefined ? undefined : await startOwnSync(assembly, config.sync, section);
  const own = registry === undefined ? await openSidecarLedger(assembly) : undefined;
  const ledger = registry?.ledger ?? own?.ledger;
  const discovery = createDiscoverySource(log);
  assembly.closers.push(async () => discovery.close());
  const publisher = startOwnPublisher(assembly, discovery);
  const { workers } = deps;
  const proxy =
    workers !== undefined && workers.count > 1
      ? await startWithWorkers(assembly, workers, { discovery, publisher }, registry?.ledger ?? own)
      : takeRequests(
          assembly,
          section,
          { ledger, reports: registry?.ledger ?? own?.reports },
          { listed: discovery.of(config), published: publisher },
        );
  const tell = (routes: readonly Route[]): void => {
    void discovery.tell(routes);
    publisher.refresh();
    for (const warning of notShownWarnings(assembly.config, () => routes)) log.warn(warning);
  };
  discovery.begin(config);
  void current.first.then(({ routes }) => tell(routes));
  return { proxy: addPart(assembly, 'proxy', proxy), discovery, tell, sync };
}

/** Where charges are written. `reports` if that is in this process; `takesOnly`: another one looks after them. */
type Charged = {
  readonly ledger: Ledger | undefined;
  readonly reports: ChargeReports | undefined;
  readonly takesOnly?: boolean;
};

/** What is told of paid routes: in each 402 and to facilitators, and at the origin. */
type Told = { readonly listed: Discovery | undefined; readonly published: Published };

/** The proxy of this process, and what takes its payments. */
export function takeRequests(
  assembly: Assembly,
  section: ProxyConfig,
  { ledger, reports, takesOnly = false }: Charged,
  { listed, published }: Told,
): OwnProxyPart {
  const { config, current, metrics, deps } = assembly;
  const { log, clock, random, aroundPage } = deps;
  const telemetry = startTelemetry(assembly);
  const rails = startRails(assembly, { ...deps, metrics });
  // Undefined if nothing could write a charge down.
  const payments =
    ledger && startPayments(assembly, ledger, reports, telemetry.label, rails, { ...deps, metrics, takesOnly });
  if (payments !== undefined) addPayments(assembly, payments);
  assembly.closers.unshift(watchWays(assembly, rails));
  const own = { current, telemetry, payFor: payments?.payFor, rails, published, log, clock, random, aroundPage };
  return startProxy(config, section, listed, own);
}

/** The proxy in processes of its own; here stays what there is one of. */
async function startWithWorkers(
  assembly: Assembly,
  plan: WorkerPlan,
  told: { readonly discovery: DiscoverySource; readonly publisher: Publisher },
  own: StoredLedger | SidecarLedger | undefined,
): Promise<ProxyPart> {
  const { metrics, deps } = assembly;
  const kept = own === undefined || !('readiness' in own) ? own : own.reports;
  const ledger = own !== undefined && 'readiness' in own ? own.ledger : own;
  const telemetry = startTelemetry(assembly);
  const rails = startRails(assembly, { ...deps, metrics });
  const payments = ledger && startPayments(assembly, ledger, kept, telemetry.label, rails, { ...deps, metrics });
  if (payments !== undefined) assembly.closers.unshift(payments.close);
  // Loaded only in a process that needs it.
  const { startWorkers } = await import('./workers/workers.ts');
  return startWorkers(assembly, plan, told, kept, telemetry.label);
}

function startOwnPublisher(assembly: Assembly, discovery: DiscoverySource): Publisher {
  const { current, deps, closers } = assembly;
  const { log, clock } = deps;
  const owner = (): OwnerInForce => {
    const description = discovery.inForce();
    if (assembly.config.discovery?.openapi === undefined) return undefined;
    return typeof description === 'object' ? { json: description.owner } : description;
  };
  const publisher = startPublisher({ settings: assembly, current, owner, schedule: systemSchedule, clock, log });
  discovery.onRead(publisher.wake);
  closers.unshift(async () => publisher.close());
  return publisher;
}

function watchWays(assembly: Assembly, { watch }: Rails): () => Promise<void> {
  const stop = watch(() => assembly.config.receivers.flatMap(({ ways }) => ways.map(({ way }) => way)));
  return async () => stop();
}

async function startOwnSync(
  assembly: Assembly,
  section: NonNullable<Config['sync']>,
  proxy: ProxyConfig,
): Promise<NonNullable<Gateway['sync']>> {
  const { config, current, metrics, deps } = assembly;
  // Loaded in a sidecar only: an HTTP client takes memory.
  const { startSync } = await import('./sync.ts');
  const inForce = (): ProxyConfig => assembly.config.proxy ?? proxy;
  const sync = addPart(assembly, 'sync', await startSync(config, section, inForce, current, { ...deps, metrics }));
  assembly.checks.push(sync.check);
  return sync;
}

function startTelemetry(assembly: Assembly): Telemetry {
  const { metrics, current, refusals, deps } = assembly;
  const refused = refusals === undefined ? undefined : rememberRefusals(refusals, deps.clock);
  return createTelemetry(metrics, deps.log, current, assembly, refused);
}

function addPayments(assembly: Assembly, { close, facilitators }: Payments): void {
  assembly.closers.unshift(close);
  assembly.checks.push(facilitators.check);
  const { isPossible } = assembly;
  assembly.isPossible = () => isPossible() && facilitators.isCallable();
}

async function openSidecarLedger(assembly: Assembly): Promise<SidecarLedger | undefined> {
  const { config, deps, metrics, checks, closers } = assembly;
  const { ledgerOfSidecar } = await import('./sidecar-ledger.ts');
  const own = await ledgerOfSidecar(config, { ...deps, metrics });
  if (own === undefined) return undefined;
  closers.push(own.close);
  const { findByChargeId } = own.ledger;
  assembly.ledgers = {
    search: own.reports?.search,
    findByChargeId: async (id) => {
      const charge = await findByChargeId(id);
      return charge && { ...charge, ...standingOf(charge, own.ledger.now()) };
    },
  };
  checks.push(own.readiness.check);
  assembly.isPossible = own.readiness.isPossible;
  if (own.stats !== undefined) observeStore(metrics, own.stats);
  if (own.load !== undefined) {
    observeStoreUp(metrics, own.readiness.check);
    observeLoad(metrics, own.load);
  }
  return own;
}
