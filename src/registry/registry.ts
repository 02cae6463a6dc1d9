// The registry of one organization: what is charged for, kept in its store and served to dashboards, SDKs and sidecars.
// The proxy in the same process reads it through `routeSet` and `subscribe`; it never touches SQL. Holds no socket of its
// own: whoever listens hands requests to `handle`.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { UndeclaredMethods } from '../domain/explain.ts';
import type { Ledger, Reports } from '../domain/ledger.ts';
import type { Receiver } from '../domain/receiver.ts';
import { toWire, type Route } from '../domain/route.ts';
import type { RouteSet, Snapshot } from '../domain/snapshot.ts';
import { systemSchedule, type Clock, type Random } from '../host/clock.ts';
import type { Log } from '../host/log.ts';
import { API } from './api.ts';
import { createKeyCheck, type ConfiguredKey } from './api-keys.ts';
import { createJwtVerifier, type JwtOptions, type JwtVerifier } from './auth.ts';
import { createRouteBook, type Change, type Created } from './book.ts';
import { createAuthenticator, type Authenticator } from './credentials.ts';
import { createFeed } from './feed.ts';
import type { Fetch } from './key-set.ts';
import { describeApi } from './openapi.ts';
import { createRegistrations } from './registrations.ts';
import { refusalOf } from './route-answers.ts';
import { createRouter } from './router.ts';
import { registerBody, type RegisterBody, type RouteInput } from './schemas.ts';
import { retryWhileBusy } from './store/sqlite.ts';
import type { Store } from './store/store.ts';
import { createStreams, type StreamLimits } from './streams.ts';

/** What a reload may change while the registry runs. */
export type RegistrySettings = {
  /** Undefined: no dashboard token is taken. */
  readonly jwt: JwtOptions | undefined;
  readonly apiKeys: readonly ConfiguredKey[];
  readonly receivers: ReadonlyMap<string, Receiver>;
  readonly corsOrigins: readonly string[];
  readonly undeclaredMethods: UndeclaredMethods;
};

export type RegistryLimits = StreamLimits & {
  /** Bytes of a request body. */
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
};

export type RegistryDeps = {
  readonly store: Store;
  /** Charges of this registry's proxies; without one the endpoints about charges are 503. Whoever opened it closes it. */
  readonly ledger?: Ledger & Reports;
  readonly settings: RegistrySettings;
  /** The routes compiled for matching; `match` is answered from it. */
  readonly snapshot: () => Snapshot;
  readonly log: Log;
  readonly clock: Clock;
  readonly random: Random;
  readonly version: string;
  readonly limits?: Partial<RegistryLimits>;
  /** For key sets; global `fetch` where left out. */
  readonly fetch?: Fetch;
};

/** What became of one route of the configuration. `differences`: wire names of fields where the stored route won. */
export type Registered =
  | { readonly kind: 'created'; readonly route: Route }
  | { readonly kind: 'exists'; readonly route: Route; readonly differences: readonly string[] }
  | { readonly kind: 'refused'; readonly reason: string };

export type Registry = {
  readonly handle: (req: IncomingMessage, res: ServerResponse) => void;
  /** Calls `listener` for every change, before the request that made it is answered. Returns how to stop. */
  readonly subscribe: (listener: (change: Change) => void) => () => void;
  readonly routeSet: () => RouteSet;
  /** Registers routes as an SDK would, in one transaction; stored ones win. Rejects where the store fails or a field is not valid. */
  readonly register: (routes: readonly RegisterBody[], source: string) => Promise<readonly Registered[]>;
  /** Takes new settings on from the next request. Throws a sentence, and changes nothing, where a key cannot be used. */
  readonly reconfigure: (settings: RegistrySettings) => void;
  /** Ends the event streams. The store belongs to whoever opened it. */
  readonly close: () => void;
};

export function createRegistry(deps: RegistryDeps): Registry {
  const { store, log, clock, random, version } = deps;
  const limits = { ...REGISTRY_LIMITS, ...deps.limits };
  let { settings } = deps;
  const verifierFor = keepVerifier((jwt) => createJwtVerifier(jwt, clock, deps.fetch));
  const authenticatorFor = ({ jwt, apiKeys }: RegistrySettings): Authenticator =>
    createAuthenticator(jwt && verifierFor(jwt), createKeyCheck(apiKeys, store.apiKeys));
  let authenticator = authenticatorFor(settings);

  const book = createRouteBook({
    registryId: store.registryId,
    store: store.routes,
    receivers: () => settings.receivers,
    maxRoutes: limits.routes,
    clock,
    random,
    log,
  });
  const streams = createStreams({
    book,
    changesAfter: store.routes.changesAfter,
    stillAllowed: (principal) => authenticator.stillAllowed(principal),
    limits,
  });
  const services = {
    book,
    list: store.routes.list,
    feed: createFeed(book),
    streams,
    registrations: createRegistrations({
      book,
      perMinute: limits.registrationsPerMinute,
      monotonic: clock.monotonic,
      schedule: systemSchedule,
    }),
    ledger: deps.ledger,
    snapshot: deps.snapshot,
    undeclaredMethods: () => settings.undeclaredMethods,
    log,
    clock,
    version,
    document: JSON.stringify(describeApi(API, version)),
  };

  return {
    handle: createRouter(API, services, {
      authenticate: (auth, req) => authenticator.authenticate(auth, req),
      onDisk: store.onDisk,
      corsOrigins: () => settings.corsOrigins,
      bodyLimit: limits.body,
      log,
    }),
    subscribe: book.subscribe,
    routeSet: book.routeSet,
    register: async (routes, source) => {
      const inputs = routes.map((route) => registerBody.parse({ ...route, source }));
      const outcomes = await retryWhileBusy(() => book.createAll(inputs));
      await store.onDisk();
      return outcomes.map((created, index) => registered(created, inputs[index]));
    },
    reconfigure: (next) => {
      authenticator = authenticatorFor(next);
      settings = next;
    },
    close: streams.close,
  };
}

/** A reload that leaves the token settings as they are keeps the key set that was fetched: its issuer may be away. */
function keepVerifier(create: (jwt: JwtOptions) => JwtVerifier): (jwt: JwtOptions) => JwtVerifier {
  let kept: { readonly options: string; readonly verify: JwtVerifier } | undefined;
  return (jwt) => {
    const options = JSON.stringify(jwt);
    if (kept?.options !== options) kept = { options, verify: create(jwt) };
    return kept.verify;
  };
}

function registered(created: Created, input: RouteInput | undefined): Registered {
  if (created.kind === 'created') return created;
  if (created.kind === 'conflict' && created.existing.pattern === input?.route_pattern) {
    return { kind: 'exists', route: created.existing, differences: differencesOf(created.existing, input) };
  }
  return { kind: 'refused', reason: refusalOf(created).detail };
}

/** Where it comes from does not count: a route that an SDK registered first is no difference. */
function differencesOf(stored: Route, input: RouteInput): readonly string[] {
  const { source: _source, ...wanted } = input;
  const wire = new Map<string, unknown>(Object.entries(toWire(stored)));
  return Object.entries(wanted)
    .filter(([name, value]) => wire.get(name) !== value)
    .map(([name]) => name);
}
