// Answers what the workers of a process ask of it: the routes in force, their changes as they happen, and its ledger.
// The endpoints are those of a registry for its sidecars, with the same schemas; asked with one key, counted nowhere.
import { timingSafeEqual } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { CounterChanger } from '../domain/selling/counter.ts';
import type { PassLedger } from '../domain/selling/pass-store.ts';
import type { Ledger } from '../domain/payment/ledger.ts';
import { problem } from '../domain/problem.ts';
import type { RouteSet } from '../domain/routing/snapshot.ts';
import { systemSchedule, type Clock, type Random } from '../host/clock.ts';
import type { Log } from '../host/log.ts';
import { API } from './api.ts';
import { fail, type Endpoint } from './http/endpoint.ts';
import { createFeed } from './stream/feed.ts';
import type { SetProof } from '../domain/routing/set-proof.ts';
import type { RouteEvent } from './routes/route-index.ts';
import { LEDGER_BODY_BYTES } from './charges/ledger-endpoints.ts';
import { createRouter } from './http/router.ts';
import type { Services } from './http/services.ts';
import { createSidecars } from './stream/sidecars.ts';
import type { Head } from './store/ports.ts';
import { createStreams } from './stream/open-streams.ts';
import { createWholeSets } from './stream/feed-queue.ts';

/** The routes in force in this process, with numbers of its own. */
export type RoutesInForce = {
  readonly registryId: string;
  /** Whether there are any yet; an empty set is one too. */
  readonly isKnown: () => boolean;
  readonly head: () => Head;
  /** Number of routes. */
  readonly count: () => number;
  readonly prove: () => Promise<SetProof>;
  readonly routeSet: () => RouteSet;
  readonly subscribe: (listener: (change: RouteEvent) => void) => () => void;
  readonly changesAfter: (revision: number, limit: number) => Promise<readonly RouteEvent[] | 'too_old'>;
};

type WorkerApi = {
  readonly handle: (req: IncomingMessage, res: ServerResponse) => void;
  readonly close: () => void;
};

type WorkerApiOptions = {
  readonly routes: RoutesInForce;
  /** Ledger; undefined: the workers have another one. */
  readonly ledger: (Ledger & { readonly counters?: CounterChanger; readonly passes?: PassLedger }) | undefined;
  readonly key: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
};

const ENDPOINTS: ReadonlySet<string> = new Set([
  ...['getRouteSet', 'streamEvents', 'claimPayment', 'advanceClaim', 'renewLeases', 'findClaims', 'changeCounters'],
  ...['drawOnPass', 'findPasses', 'listRevocations'],
]);
const HEARTBEAT_MS = 15_000;
const STREAM_BUFFER = 16 * 1024 * 1024;
const PRINCIPAL = { kind: 'api_key', id: undefined, name: 'worker', scopes: [], digest: Buffer.alloc(0) } as const;

export function createWorkerApi({ routes, ledger, key, clock, random, log }: WorkerApiOptions): WorkerApi {
  const streams = createStreams({
    routes,
    stillAllowed: () => Promise.resolve(true),
    random,
    limits: {
      ...{ streams: Infinity, streamsPerKey: Infinity, streamBuffer: STREAM_BUFFER },
      ...{ heartbeatMs: HEARTBEAT_MS, keysMs: HEARTBEAT_MS },
    },
  });
  // No worker has seen more than there is here.
  const reached = { ...routes, reach: () => Promise.resolve() };
  const wholeSets = createWholeSets(systemSchedule, random);
  const services = {
    routes: reached,
    wholeSets,
    feed: createFeed(routes),
    streams,
    sidecars: createSidecars(clock.monotonic),
  };
  const expected = Buffer.from(`Bearer ${key}`);
  const isWorker = ({ headers }: IncomingMessage): boolean => {
    const presented = Buffer.from(headers.authorization ?? '');
    return presented.length === expected.length && timingSafeEqual(presented, expected);
  };
  const isMissing = (id: string): boolean => id === 'getRouteSet' && !routes.isKnown();
  const api = API.filter(({ id }) => ENDPOINTS.has(id)).map((row): Endpoint<Services> => {
    return {
      ...row,
      run: (call, given) =>
        isMissing(row.id) ? fail(problem('routes_absent', 'No routes were loaded yet.')) : row.run(call, given),
    };
  });
  const books = { ledger, counters: ledger?.counters, passes: ledger?.passes };
  return {
    // The rows that are served ask for nothing else.
    handle: createRouter(api, { ...services, ...books, clock, log } as unknown as Services, {
      authenticate: async (_auth, req) =>
        isWorker(req) ? PRINCIPAL : problem('credentials_invalid', 'This socket is for the workers of this process.'),
      corsOrigins: () => [],
      bodyLimit: LEDGER_BODY_BYTES,
      log,
    }),
    close: streams.close,
  };
}
