// Joins the gateway of a process: where its routes come from, what writes its charges down, what takes payments, and
// the proxy that uses all of them.
import { hostname } from 'node:os';
import type { SyncConfig } from '../config/config.ts';
import type { AttentionFinding } from '../domain/attention/attention.ts';
import { judgeClock, judgeStore, judgeSync } from '../domain/attention/judgements.ts';
import type { FacilitatorHealths } from '../domain/payment/service-health.ts';
import { standingOf } from '../domain/payment/whereabouts.ts';
import type { Route } from '../domain/routing/route.ts';
import type { CounterChanger } from '../domain/selling/counter.ts';
import type { PassLedger } from '../domain/selling/pass-store.ts';
import { createTelemetry } from '../gateway/telemetry.ts';
import type { CountDelivery } from '../gateway/totals/delivery.ts';
import { createSaleMetrics } from '../gateway/selling/sale-metrics.ts';
import { createTally } from '../gateway/totals/tally.ts';
import type { Check } from '../host/admin.ts';
import { systemSchedule } from '../host/clock.ts';
import type { Metrics } from '../host/metrics.ts';
import type { WorkerPlan } from '../host/worker-count.ts';
import type { StoredLedger } from '../registry/store/stored-ledger.ts';
import { tellAssertion } from './assertion-signing.ts';
import type { Attention } from './attention.ts';
import type { Closers } from './closers.ts';
import { observeCounters } from './counter-metrics.ts';
import { countForRegistry } from './counting.ts';
import { createDiscoverySource, type DiscoverySource } from './discovery/discovery.ts';
import { startPublisher, type OwnerInForce, type Publisher } from './discovery/publisher.ts';
import { watchObservations } from './observations.ts';
import type { NamedListener } from './part.ts';
import { observePasses } from './pass-metrics.ts';
import { startPayments, startRails } from './payments.ts';
import type { FrontPart } from './front.ts';
import type { RegistryPart } from './registry.ts';
import { ledgerFindings, unknownFindings } from './ledger-findings.ts';
import { serveFront, type ServedProxyDeps } from './served-proxy.ts';
import type { SidecarLedger } from './sidecar-ledger.ts';
import { observeLoad, observeStore, observeStoreUp } from './store-metrics.ts';
import type * as SyncPart from './sync.ts';
import { notShownWarnings } from './way-warnings.ts';
import type { RefusalFinder, WhyLedgers } from './why.ts';

type RunningSync = Awaited<ReturnType<typeof SyncPart.startSync>>;

export type Gateway = {
  readonly front: FrontPart;
  readonly discovery: DiscoverySource;
  /** Says in the log what the plans of the configuration in force observe, and until when, and what the upstream is told. */
  readonly observe: () => void;
  /** Says in the log what the configuration in force means for `routes`. */
  readonly tell: (routes: readonly Route[]) => void;
  /** Sync; undefined in the process of the registry. */
  readonly sync: RunningSync | undefined;
  readonly listeners: readonly NamedListener[];
  readonly checks: readonly Check[];
  /** Whether payments can be taken, as far as is known. */
  readonly isPossible: () => boolean;
  /** Ledgers for `why`; undefined in the process of the registry, and if nothing writes charges down. */
  readonly ledgers: WhyLedgers | undefined;
  /** Finds refusals in all processes of the proxy. */
  readonly findRefusals: RefusalFinder;
  /** Health of the facilitators by the calls of all processes of the proxy. */
  readonly healths: () => Promise<FacilitatorHealths>;
  /** The text of a scrape, of all processes of the proxy. */
  readonly metricsText: Metrics['text'];
  /** Resolves when all processes that begin with the listeners have started; rejects with a sentence. */
  readonly allStarted: () => Promise<void>;
  /** The moment up to which requests of this process stand in the sums. */
  readonly countedUntil: () => number;
};

type GatewayDeps = Omit<ServedProxyDeps, 'tally'> & {
  readonly version: string;
  readonly attention: Attention;
  /** Processes that serve the proxy; left out, this one does. */
  readonly workers?: WorkerPlan;
};

type OwnDeps = GatewayDeps & Pick<ServedProxyDeps, 'tally'>;

/** The proxy of this process or of its workers, and what it adds to the process. */
type Front = Pick<Gateway, 'front' | 'checks' | 'findRefusals' | 'healths' | 'metricsText' | 'allStarted'> & {
  /** What needs somebody. */
  readonly findings: () => readonly AttentionFinding[];
  /** Whether it can take payments, if the ledger can. */
  readonly isCallable: () => boolean;
};

/** Starts the gateway. `registry` runs in this process. */
export async function startGateway(registry: RegistryPart | undefined, given: GatewayDeps): Promise<Gateway> {
  const tally = createTally(given.clock.now);
  const deps = { ...given, tally };
  const { settings, current, closers, log, workers } = deps;
  const { config } = settings;
  const sync = config.sync === undefined ? undefined : await startOwnSync(config.sync, deps);
  const registryId = (): string | null => sync?.status().registryId ?? null;
  const own = registry === undefined ? await openSidecarLedger({ ...deps, registryId }) : undefined;
  const counting = await startCounting(registry, sync, deps);
  // After the proxy, whose last requests count too, and before what takes the counts.
  closers.addFirst(counting.close);
  const discovery = createDiscoverySource(log);
  closers.addLast(async () => discovery.close());
  const publisher = startOwnPublisher(discovery, deps);
  const served =
    workers !== undefined && workers.count > 1
      ? await startWithWorkers(workers, { discovery, publisher }, registry?.ledger ?? own, deps)
      : await serveHere({ discovery, publisher }, registry?.ledger ?? own, deps);
  closers.addFirst(async () => served.front.close());
  const observations = watchObservations({
    ...{ config: () => settings.config, now: deps.clock.now, schedule: systemSchedule, metrics: deps.metrics, log },
  });
  closers.addFirst(async () => observations.close());
  const observe = (): void => {
    observations.begin();
    tellAssertion(settings.config, log);
  };
  observe();
  const tell = (routes: readonly Route[]): void => {
    void discovery.tell(routes);
    publisher.refresh();
    for (const warning of notShownWarnings(settings.config, () => routes)) log.warn(warning);
  };
  discovery.begin(config);
  void current.first.then(({ routes }) => tell(routes));
  watchGateway(deps.attention, { front: served, sync, own, clock: deps.clock });
  const takesCharges = registry?.isPossible ?? own?.readiness.isPossible ?? (() => false);
  return {
    ...{ front: served.front, discovery, observe, tell, sync },
    listeners: [...namedListener('sync', sync), ...served.front.listeners],
    checks: [
      ...(sync === undefined ? [] : [sync.check]),
      ...(own === undefined ? [] : [own.readiness.check]),
      ...served.checks,
      observations.check,
    ],
    isPossible: () => takesCharges() && served.isCallable(),
    ledgers: own && searchedLedgers(own),
    ...{ findRefusals: served.findRefusals, healths: served.healths },
    metricsText: served.metricsText,
    allStarted: served.allStarted,
    countedUntil: counting.completeUntil,
  };
}

async function startCounting(
  registry: RegistryPart | undefined,
  sync: RunningSync | undefined,
  { settings, workers, random, tally, clock, log, version, attention }: OwnDeps,
): Promise<CountDelivery> {
  const source = sync?.instance ?? `local-${random(12).toString('base64url')}`;
  const deps = { ...{ tally, source, clock, log }, hasWorkers: workers !== undefined && workers.count > 1 };
  if (registry !== undefined) return countForRegistry(registry.totals, deps);
  const { sync: section } = settings.config;
  if (sync === undefined || section === undefined) return { completeUntil: clock.now, close: () => Promise.resolve() };
  const { countForSidecar } = await import('./counting-remotely.ts');
  return countForSidecar({ section, version, attention, ...sync }, deps);
}

type GatewayFacts = {
  readonly front: Front;
  readonly sync: RunningSync | undefined;
  readonly own: SidecarLedger | undefined;
  readonly clock: GatewayDeps['clock'];
};

/** Says what the proxy's facilitators, a sidecar's routes, its ledger and its clock need. */
function watchGateway(attention: Attention, { front, sync, own, clock }: GatewayFacts): void {
  attention.add(front.findings);
  if (sync !== undefined)
    attention.add(() => {
      const { ageMs, held } = sync.status();
      return judgeSync(ageMs, held, hostname());
    });
  if (own === undefined) return;
  attention.add((isAsked) => ledgerFindings(own.readiness, isAsked));
  const { reports, stats } = own;
  if (reports !== undefined) attention.add(() => unknownFindings(reports));
  if (stats !== undefined) attention.add(async () => judgeStore(await stats()));
  attention.add(() =>
    judgeClock(clock.now() - own.ledger.now(), own.reports === undefined ? 'the registry' : 'the database'),
  );
}

function namedListener(name: string, part: RunningSync | undefined): NamedListener[] {
  return part?.listener === undefined ? [] : [[name, part.listener]];
}

type PublishingParts = { readonly discovery: DiscoverySource; readonly publisher: Publisher };

/** The ledger of this process and what counts its charges, whichever kind it is. */
function booksOf(own: StoredLedger | SidecarLedger | undefined): Pick<SidecarLedger, 'reports'> & {
  readonly counters: CounterChanger | undefined;
  readonly passes: PassLedger | undefined;
  readonly ledger: SidecarLedger['ledger'] | undefined;
} {
  if (own === undefined) return { ledger: undefined, reports: undefined, counters: undefined, passes: undefined };
  return 'readiness' in own ? own : { ledger: own, reports: own, counters: own.counters, passes: own.passes };
}

/** The proxy in this process. */
async function serveHere(
  { discovery, publisher }: PublishingParts,
  own: StoredLedger | SidecarLedger | undefined,
  deps: OwnDeps,
): Promise<Front> {
  const listed = discovery.of(deps.settings.config);
  const served = await serveFront(booksOf(own), { listed, published: publisher }, deps);
  const healths = (): Promise<FacilitatorHealths> => Promise.resolve(served.healths());
  return { ...served, healths, metricsText: deps.metrics.text, allStarted: () => Promise.resolve() };
}

/** The proxy in processes of its own; what there is one of stays here. */
async function startWithWorkers(
  plan: WorkerPlan,
  publishing: PublishingParts,
  own: StoredLedger | SidecarLedger | undefined,
  deps: OwnDeps,
): Promise<Front> {
  const { settings, current, metrics, closers, log } = deps;
  const { ledger, reports } = booksOf(own);
  const { label: routeLabel } = createTelemetry(metrics, log, current, settings);
  // The workers sell; their sums appear here even before the first.
  createSaleMetrics(metrics, routeLabel);
  const rails = startRails(deps);
  const payments = ledger && startPayments({ ...deps, ledger, reports, rails, routeLabel });
  if (payments !== undefined) closers.addFirst(payments.close);
  // The module is loaded only in a process that needs it.
  const { startWorkers } = await import('./workers/workers.ts');
  return startWorkers(plan, { ...deps, ...publishing, kept: reports, routeLabel });
}

function startOwnPublisher(
  discovery: DiscoverySource,
  { settings, current, closers, log, clock }: Pick<GatewayDeps, 'settings' | 'current' | 'closers' | 'log' | 'clock'>,
): Publisher {
  const owner = (): OwnerInForce => {
    const description = discovery.inForce();
    if (settings.config.discovery?.openapi === undefined) return undefined;
    return typeof description === 'object' ? { json: description.owner } : description;
  };
  const publisher = startPublisher({ settings, current, owner, schedule: systemSchedule, clock, log });
  discovery.onRead(publisher.wake);
  closers.addFirst(async () => publisher.close());
  return publisher;
}

async function startOwnSync(section: SyncConfig, deps: GatewayDeps): Promise<RunningSync> {
  const { settings, current, closers } = deps;
  // The module is loaded in a sidecar only: an HTTP client takes memory.
  const { startSync } = await import('./sync.ts');
  const sync = await startSync(settings.config, section, () => settings.config, current, deps);
  closers.addFirst(sync.close);
  return sync;
}

async function openSidecarLedger(
  deps: {
    readonly closers: Closers;
    readonly registryId: () => string | null;
  } & Pick<GatewayDeps, 'settings' | 'metrics' | 'log' | 'clock' | 'random' | 'version' | 'tracing'>,
): Promise<SidecarLedger | undefined> {
  const { settings, metrics, closers } = deps;
  const { ledgerOfSidecar } = await import('./sidecar-ledger.ts');
  const own = await ledgerOfSidecar(settings.config, deps);
  if (own === undefined) return undefined;
  closers.addLast(own.close);
  if (own.stats !== undefined) observeStore(metrics, own.stats);
  if (own.reports !== undefined) {
    observeCounters(metrics, own.reports.counters, () => settings.config);
    observePasses(metrics, own.reports.passes);
  }
  if (own.load !== undefined) {
    observeStoreUp(metrics, own.readiness.check);
    observeLoad(metrics, own.load);
  }
  return own;
}

function searchedLedgers({ ledger, reports }: Pick<SidecarLedger, 'ledger' | 'reports'>): WhyLedgers {
  return {
    search: reports?.search,
    findByChargeId: async (id) => {
      const charge = await ledger.findByChargeId(id);
      return charge && { ...charge, ...standingOf(charge, ledger.now()) };
    },
  };
}
