// The registry of one organization: what is charged for, kept in its store and served to dashboards, SDKs and sidecars.
// The proxy in the same process reads it through `routeSet` and `subscribe`; it never touches SQL. Holds no socket of its
// own: the listener hands requests to `handle`.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { MatchRules } from '../domain/explanation.ts';
import type { ChargeReports } from '../domain/payment/reports.ts';
import type { Ledger } from '../domain/payment/ledger.ts';
import type { CustomerEntries } from '../domain/selling/customer.ts';
import type { CounterChanger } from '../domain/selling/counter.ts';
import type { PassStore } from '../domain/selling/pass-store.ts';
import type { Receiver } from '../domain/payment/offer.ts';
import type { RefundProver } from '../domain/payment/refund-proof.ts';
import type { RouteSet, Snapshot } from '../domain/routing/snapshot.ts';
import { systemSchedule, type Clock, type Random } from '../host/clock.ts';
import { loadOnce } from '../host/load-once.ts';
import type { Log } from '../host/log.ts';
import { createKeyCheck, type ConfiguredKey } from './auth/api-keys.ts';
import { createJwtVerifier, type JwtOptions, type JwtVerifier } from './auth/dashboard-tokens.ts';
import { createDeclaredRoutes } from './routes/declared-routes.ts';
import type { DeclaredRoute, DeclaredPlan, Difference } from './routes/three-way-merge.ts';
import { createAuthenticator, type Authenticator } from './auth/credentials.ts';
import { createChargeStreams, type ChargeStreamLimits } from './charges/charge-stream.ts';
import { createExportPlaces } from './charges/export-places.ts';
import type { NamedNetworks } from './charges/charge-view.ts';
import { createRefusedSignIns } from './audit/refused-sign-ins.ts';
import { createKeyUses } from './auth/key-uses.ts';
import { createFeed } from './stream/feed.ts';
import type { FetchKeys } from '../host/jwt/key-set.ts';
import { findLowered } from './routes/price-guard.ts';
import { createRegistrations } from './routes/registrations.ts';
import type { RouteEvent } from './routes/route-index.ts';
import { createLaterRouter } from './http/later-router.ts';
import type { RouterOptions } from './http/router.ts';
import { createDeskDoor, type DeskDoor } from './desk/desk-door.ts';
import { createDeskGate, sessionCheck, type DeskGate } from './desk/desk-gate.ts';
import { readDeskFiles } from './desk/desk-files.ts';
import { createDeskPage, isForDesk, type DeskPage } from './desk/desk-page.ts';
import type { DeskSettings } from './desk/desk-settings.ts';
import type { WebFiles } from '../host/web-files.ts';
import { openRoutes } from './routes/registry-routes.ts';
import type { Services } from './http/services.ts';
import type { Store } from './store/ports.ts';
import type { RegistryObserver } from './http/services.ts';
import { createSidecars, type Sidecars } from './stream/sidecars.ts';
import { createStreams, type StreamLimits } from './stream/open-streams.ts';
import { createWholeSets } from './stream/feed-queue.ts';
import { createReceiverChecks } from './receivers/receiver-checks.ts';
import { KNOWS_NO_SERVICES, type ReceiverServices } from './receivers/receiver-services.ts';
import type { Trial } from './trying/trial.ts';
import type { Webhooks } from './webhooks/webhook-standings.ts';
import type { TotalsBook } from './totals/totals-book.ts';

/** What a reload may change while the registry runs. `methods`: also those that a route may name. */
export type RegistrySettings = MatchRules & {
  /** Keys for dashboard tokens; undefined: no token is taken. */
  readonly jwt: JwtOptions | undefined;
  readonly apiKeys: readonly ConfiguredKey[];
  readonly receivers: ReadonlyMap<string, Receiver>;
  /** Who need not pay; none if left out. */
  readonly customers?: CustomerEntries;
  /**
   * Fate of a route with an unknown receiver. `refuse` if the proxy of these routes is in this process, and its
   * receivers are all there are.
   */
  readonly unknownReceiver: 'refuse' | 'store';
  readonly corsOrigins: readonly string[];
  /** Undefined: nothing is served under /desk/. */
  readonly desk?: DeskSettings | undefined;
};

type RegistryLimits = StreamLimits & {
  /** Limit of a request body, in bytes. */
  readonly body: number;
  readonly routes: number;
  /** Routes that one API key may add in a minute; 0: no limit. */
  readonly registrationsPerMinute: number;
};

export const REGISTRY_LIMITS: RegistryLimits = {
  body: 64 * 1024,
  routes: 100_000,
  registrationsPerMinute: 6_000,
  streams: 1_000,
  streamsPerKey: 500,
  streamBuffer: 1024 * 1024,
  heartbeatMs: 15_000,
  keysMs: 250,
};

export type RegistryDeps = {
  readonly store: Pick<Store, 'routes' | 'apiKeys'> & Partial<Pick<Store, 'isShared' | 'desk' | 'audit'>>;
  /** Charges of this registry's proxies; without one the endpoints about charges are 503. Its opener closes it. */
  readonly ledger?: Ledger & ChargeReports & { readonly counters?: CounterChanger; readonly passes?: PassStore };
  /** Networks that are known by name; none if left out. */
  readonly networks?: NamedNetworks;
  /** Reads of a chain what it says of refunds; left out, none can be read. */
  readonly prover?: RefundProver;
  /** Sums beside the charges; without them the endpoints about sums are 503. */
  readonly totals?: TotalsBook;
  /** Endpoints that events are sent to; none if left out. */
  readonly webhooks?: Webhooks;
  /** Left out, nothing is known of any id. */
  readonly why?: Services['why'];
  /** Left out, nothing needs somebody. */
  readonly attention?: Services['attention'];
  /** What the proxy of this process would answer; left out, it has none. */
  readonly trial?: () => Trial | undefined;
  /** What is known of the services behind the receivers; left out, nothing is. */
  readonly receiverServices?: ReceiverServices;
  readonly settings: RegistrySettings;
  /** The routes compiled for matching; `match` is answered from it. */
  readonly snapshot: () => Snapshot;
  readonly log: Log;
  readonly clock: Clock;
  readonly random: Random;
  readonly version: string;
  readonly limits?: Partial<RegistryLimits>;
  readonly chargeStreamLimits?: Partial<ChargeStreamLimits>;
  readonly observer?: RegistryObserver;
  /** Fetch for key sets and an OpenID provider; global `fetch` if left out. */
  readonly fetch?: FetchKeys;
  /** Milliseconds that one call to an OpenID provider may take; 5 seconds if left out. */
  readonly providerCallMs?: number;
  /** Files of the desk; those of the package or the checkout if left out. */
  readonly readDeskFiles?: () => Promise<WebFiles>;
};

export type Registry = {
  readonly handle: (req: IncomingMessage, res: ServerResponse) => void;
  /** Sessions of the desk that are open; rejects if the store cannot say it. */
  readonly deskSessions: () => Promise<number>;
  /** The sidecars that are connected now. */
  readonly connections: () => { readonly streams: number; readonly sidecars: number };
  readonly contacts: Sidecars['contacts'];
  /** Calls `listener` for every change, before the request that made it is answered. Returns how to stop. */
  readonly subscribe: (listener: (change: RouteEvent) => void) => () => void;
  readonly routeSet: () => RouteSet;
  /** Makes the store follow what the configuration declares. Rejects if the store fails, and with a sentence if a reload
   * may not. */
  readonly declare: (routes: readonly DeclaredRoute[], at: 'start' | 'reload') => Promise<DeclaredPlan>;
  /** Lists what store and configuration differ in at this moment. */
  readonly differences: () => readonly Difference[];
  /** Takes new settings on from the next request. Throws a sentence, and changes nothing, if a key cannot be used. */
  readonly reconfigure: (settings: RegistrySettings) => void;
  /** Ends the event streams. The store is closed by its opener. */
  readonly close: () => Promise<void>;
};

/** Loads the routes; rejects if the store cannot say them. */
export async function createRegistry(deps: RegistryDeps): Promise<Registry> {
  const { store, log, clock, random, version } = deps;
  const limits = { ...REGISTRY_LIMITS, ...deps.limits };
  let { settings } = deps;
  const verifierFor = keepVerifier((jwt) => createJwtVerifier(jwt, clock, deps.fetch));
  const authenticatorFor = ({ jwt, apiKeys }: RegistrySettings): Authenticator =>
    createAuthenticator(
      jwt && verifierFor(jwt),
      createKeyCheck(apiKeys, store.apiKeys),
      clock.now,
      door && sessionCheck(door),
    );
  const refusedSignIns =
    store.audit && createRefusedSignIns({ audit: store.audit, now: clock.now, schedule: systemSchedule, log });
  const verifyJwt = (): JwtVerifier | undefined => settings.jwt && verifierFor(settings.jwt);
  const door = openDoor(deps, { settings: () => settings.desk, verifyJwt, refused: refusedSignIns?.refused });
  let authenticator = authenticatorFor(settings);

  const routes = await openRoutes({
    store: store.routes,
    isShared: store.isShared ?? false,
    receivers: () => settings.receivers,
    unknownReceiver: () => settings.unknownReceiver,
    methods: () => settings.methods,
    plans: () => settings.plans,
    maxRoutes: limits.routes,
    clock,
    random,
    log,
  });
  const declared = createDeclaredRoutes(routes, store.isShared ?? false);
  const streams = createStreams({
    routes,
    stillAllowed: (principal) => authenticator.stillAllowed(principal),
    random,
    limits,
  });
  const { receiverServices = KNOWS_NO_SERVICES } = deps;
  const networks = deps.networks ?? { find: () => undefined };
  const chargeStreams = createChargeStreams({
    ledger: deps.ledger,
    networks,
    stillAllowed: (principal) => authenticator.stillAllowed(principal),
    ...(deps.chargeStreamLimits ? { limits: deps.chargeStreamLimits } : {}),
  });
  const sidecars = createSidecars(clock.monotonic);
  const services = {
    routes,
    isDeclared: declared.names,
    feed: createFeed(routes),
    wholeSets: createWholeSets(systemSchedule, random),
    streams,
    sidecars,
    desk: door,
    registrations: createRegistrations({
      routes,
      findLowered: (input) =>
        findLowered(input, {
          routes,
          snapshot: deps.snapshot,
          methods: () => settings.methods,
          undeclaredMethods: () => settings.undeclaredMethods,
        }),
      perMinute: limits.registrationsPerMinute,
      monotonic: clock.monotonic,
      schedule: systemSchedule,
    }),
    ...{ ledger: deps.ledger, counters: deps.ledger?.counters, passes: deps.ledger?.passes },
    ...{ networks, prover: deps.prover ?? READS_NO_CHAIN },
    exports: createExportPlaces(),
    chargeStreams,
    totals: deps.totals,
    webhooks: deps.webhooks,
    why: deps.why ?? knowsNothing,
    snapshot: deps.snapshot,
    matchRules: () => settings,
    trial: deps.trial ?? ((): undefined => undefined),
    ...{ receivers: () => settings.receivers, customers: () => settings.customers ?? NO_CUSTOMERS },
    receiverServices,
    receiverChecks: createReceiverChecks(receiverServices.check, clock.monotonic),
    ...{ apiKeys: store.apiKeys, audit: store.audit, attention: deps.attention ?? needsNobody },
    configuredKeys: () => settings.apiKeys,
    random,
    log,
    clock,
    version,
    document: writeDocument(version),
  };

  const gate = createDeskGate(door);
  const page = createDeskPage({ settings: () => settings.desk, readFiles: deps.readDeskFiles ?? readDeskFiles, log });
  const uses = createKeyUses(store.apiKeys, clock.now, log);
  const route = routeLater(services, {
    authenticate: async (auth, req) => uses.saw(gate.granted(req) ?? (await authenticator.authenticate(auth, req))),
    corsOrigins: () => settings.corsOrigins,
    bodyLimit: limits.body,
    headersFor: (req) => gate.headers(req) ?? page.headers(req),
    log,
    observer: deps.observer,
  });
  return {
    handle: serveDesk({ page, gate, route, log, observer: deps.observer }),
    subscribe: routes.subscribe,
    routeSet: routes.routeSet,
    declare: declared.apply,
    differences: declared.differences,
    reconfigure: (next) => {
      authenticator = authenticatorFor(next);
      settings = next;
    },
    deskSessions: async () => (await door?.sessions.count()) ?? 0,
    ...{ connections: () => ({ streams: streams.count(), sidecars: sidecars.count() }), contacts: sidecars.contacts },
    close: async () => {
      streams.close();
      chargeStreams.close();
      routes.close();
      await refusedSignIns?.close();
    },
  };
}

/** Routes requests to the endpoints, which the first request loads. */
function routeLater(services: Services, options: RouterOptions): Registry['handle'] {
  const load = async (): Promise<Registry['handle']> => {
    const [{ API }, { createRouter }] = await Promise.all([import('./api.ts'), import('./http/router.ts')]);
    return createRouter(API, services, options);
  };
  return createLaterRouter({ load, log: options.log, observer: options.observer });
}

/** Writes the OpenAPI document, which nothing makes before somebody asks for it. */
function writeDocument(version: string): Services['document'] {
  const documents = loadOnce(async () => {
    const [{ API }, { writeDocuments }] = await Promise.all([import('./api.ts'), import('./http/openapi-document.ts')]);
    return writeDocuments(API, version);
  });
  return async (origin) => (await documents())(origin);
}

type DeskServing = {
  readonly page: DeskPage;
  readonly gate: DeskGate;
  readonly route: Registry['handle'];
  readonly log: Log;
  readonly observer: RegistryObserver | undefined;
};

/** Serves the desk's page, its gate, and then the endpoints; requests that are not for the desk go to these at once. */
function serveDesk({ page, gate, route, log, observer }: DeskServing): Registry['handle'] {
  return (req, res) => {
    if (!isForDesk(req)) return route(req, res);
    const answered = page.answer(req, res).then(async (status) => status ?? gate.answer(req, res, page.headers(req)));
    answered.then(
      (status) => (status === undefined ? route(req, res) : observer?.request('desk', status)),
      (error: unknown) => {
        log.error('the desk could not be sent', { error });
        res.destroy();
      },
    );
  };
}

type DoorParts = Pick<Parameters<typeof createDeskDoor>[0], 'settings' | 'verifyJwt' | 'refused'>;

/** The door of the desk; undefined if the store keeps no sessions. */
function openDoor(
  { store, clock, random, log, observer, fetch, providerCallMs }: RegistryDeps,
  parts: DoorParts,
): DeskDoor | undefined {
  return (
    store.desk &&
    createDeskDoor({
      ...{ ...parts, store: store.desk, clock, random, log, observe: observer?.deskSignIn },
      ...{ fetch: fetch ?? globalThis.fetch, providerCallMs },
    })
  );
}

const NO_CUSTOMERS: CustomerEntries = new Map();

const READS_NO_CHAIN: RefundProver = {
  isTransaction: () => true,
  prove: () => Promise.resolve({ kind: 'unreadable', why: 'no chain is read here' }),
};

const needsNobody: Services['attention'] = () => Promise.resolve([]);

const knowsNothing: Services['why'] = (id) =>
  Promise.resolve({ id, charges: [], quote: null, refusals: [], refusals_elsewhere: true, ledger_elsewhere: true });

/** A reload that leaves the token settings as they are keeps the key set that was fetched: its issuer may be away. */
function keepVerifier(create: (jwt: JwtOptions) => JwtVerifier): (jwt: JwtOptions) => JwtVerifier {
  let kept: { readonly options: string; readonly verify: JwtVerifier } | undefined;
  return (jwt) => {
    const options = JSON.stringify(jwt);
    if (kept?.options !== options) kept = { options, verify: create(jwt) };
    return kept.verify;
  };
}
