// Makes the publication of a set of routes in a thread of its own, and says what an owner should know about it.
import { setImmediate as breathe } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import type { Config, ProxyConfig } from '../../config/config.ts';
import {
  CRAWLED_BYTES,
  saleRouteOf,
  takenPaths,
  winnerOf,
  type MadePublication,
  type PublicationReport,
} from '../../domain/discovery/publication.ts';
import type { OmittedOperation, OmissionReason } from '../../domain/discovery/sold-operations.ts';
import { findUnpayable } from '../../domain/payment/offer.ts';
import { createResolver } from '../../domain/routing/resolve.ts';
import type { Route } from '../../domain/routing/route.ts';
import type { Snapshot } from '../../domain/routing/snapshot.ts';
import { receiversById } from '../part.ts';
import { writeRoutes, type PublicationReply, type PublicationTask, type PublicationJob } from './publication-wire.ts';
import { nameWay } from '../way-warnings.ts';
import type { PublishedPrices, PublishedSale } from '../../domain/discovery/published-price.ts';
import type { PlanPrice } from '../../domain/selling/price.ts';

export type PublicationConfig = Pick<Config, 'receivers' | 'selling'> & {
  readonly discovery: NonNullable<Config['discovery']>;
  readonly proxy: ProxyConfig;
};

/** Routes that cross to the thread before others run: about a millisecond. */
const SLICE = 256;
/** Enough for 100,000 routes and a document of 2 MiB. */
const MEMORY_MB = 256;
/** Size of the young generation: what is read is soon forgotten, and 100,000 routes take 40 MB less so. */
const YOUNG_MB = 16;
const TIME_MS = 120_000;

/** The configuration, if it wants a publication. */
export function publishingOf({
  discovery,
  proxy,
  receivers,
  selling,
}: Pick<Config, 'discovery' | 'proxy' | 'receivers' | 'selling'>): PublicationConfig | undefined {
  if (discovery === undefined || !discovery.serve || proxy === undefined) return undefined;
  return { discovery, proxy, receivers, selling };
}

/** Makes the publication. `owner`: JSON of the owner's document. Rejects if the thread cannot make it. */
export async function makePublication(
  config: PublicationConfig,
  owner: string | undefined,
  snapshot: Pick<Snapshot, 'routes' | 'matcher' | 'paths'>,
): Promise<MadePublication> {
  const script = new URL(`./publication-worker${import.meta.url.endsWith('.ts') ? '.ts' : '.js'}`, import.meta.url);
  const worker = new Worker(script, {
    workerData: taskOf(config, owner),
    env: {},
    execArgv: [],
    name: 'publication',
    resourceLimits: { maxOldGenerationSizeMb: MEMORY_MB, maxYoungGenerationSizeMb: YOUNG_MB },
  });
  // The look-ups of requests stay in the memory of the proxy's own.
  const { resolve } = createResolver(snapshot.matcher, snapshot.paths);
  const made = Promise.withResolvers<MadePublication>();
  const timer = setTimeout(() => made.reject(new Error(`it took longer than ${TIME_MS / 1000} s`)), TIME_MS);
  worker.unref();
  worker.on('message', (message: PublicationReply) => {
    if (message.kind === 'made') return made.resolve(message.made);
    const winners = message.questions.map((question) => winnerOf(question, resolve));
    worker.postMessage({ kind: 'winners', winners, taken: takenPaths(resolve) } satisfies PublicationJob, []);
  });
  worker.once('error', made.reject);
  worker.once('exit', () => made.reject(new Error('its thread ended')));
  try {
    await Promise.race([made.promise, send(worker, config, snapshot.routes)]);
    return await made.promise;
  } finally {
    clearTimeout(timer);
    void worker.terminate();
  }
}

async function send(worker: Worker, config: PublicationConfig, routes: readonly Route[]): Promise<void> {
  const receivers = receiversById(config);
  const isPayable = (route: Route): boolean => findUnpayable(route, receivers, 'refuse').length === 0;
  for (let at = 0; at === 0 || at < routes.length; at += SLICE) {
    const slice = routes.slice(at, at + SLICE).map((route) => saleRouteOf(route, isPayable(route)));
    const isLast = at + SLICE >= routes.length;
    worker.postMessage({ kind: 'routes', text: writeRoutes(slice), isLast } satisfies PublicationJob, []);
    await breathe();
  }
}

function taskOf(
  { discovery, proxy, receivers, selling }: PublicationConfig,
  owner: string | undefined,
): PublicationTask {
  const { title, serviceName, contact, docsUrl, llms, exclude } = discovery;
  return {
    settings: {
      title: title ?? serviceName,
      ...{ contact, docsUrl, llms: llms?.text },
      customerHeader: proxy.customerHeader,
      ways: new Map(receivers.map(({ id, ways }) => [id, ways.map(nameWay)])),
      prices: pricesOf(selling),
    },
    exclude: exclude.map(({ text }) => text),
    owner,
  };
}

/** How plans sell, without what a price service is told in secret. */
function pricesOf({ plans }: Config['selling']): PublishedPrices {
  return new Map(
    [...plans.byId].flatMap(([id, { price, passes, single }]): [string, PublishedSale][] =>
      price === undefined && passes.length === 0 ? [] : [[id, { price: price && untold(price), passes, single }]],
    ),
  );
}

function untold(price: PlanPrice): PlanPrice {
  return { ...price, service: price.service && { ...price.service, headers: {} } };
}

const MOST_NAMED = 5;
const REASONS = {
  paused: 'paused: it costs nothing',
  excluded: 'named by discovery.exclude',
  unpayable: 'no receiver here can take its price',
  wildcard: 'a wildcard without an operation in an OpenAPI document',
  method: 'no OpenAPI document can name its method',
  shadowed: 'another route takes its requests',
  no_room: 'more operations than there is room for',
} as const satisfies Record<OmissionReason, string>;
/** Left out because their owner said so. */
const WANTED: ReadonlySet<OmissionReason> = new Set(['paused', 'excluded']);

/** Says why `left` is not told, in a few words. */
export function leftOutReason({ why }: OmittedOperation): string {
  return REASONS[why];
}

/** Warns of what an owner may not have meant. */
export function publicationWarnings({
  operations,
  leftOut,
  leftOutCounts,
  taken,
  cut,
  without,
  bytes,
}: PublicationReport): string[] {
  const warnings = taken.map(
    ({ path, by }) =>
      `GET ${path} belongs to ${by}, so what is sold is not told there; take the route away from that path`,
  );
  for (const [why, count] of Object.entries(leftOutCounts)) {
    const left = leftOut.filter((each) => each.why === why);
    const [first] = left;
    if (first === undefined || WANTED.has(first.why)) continue;
    const named = left.slice(0, MOST_NAMED).map(({ method, pattern }) => `${method} ${pattern}`);
    const more = count > named.length ? ` and ${count - named.length} more` : '';
    warnings.push(`left out of /openapi.json (${leftOutReason(first)}): ${named.join(', ')}${more}`);
  }
  const gone = [...(without.responses ? ['schemas of responses'] : []), ...(without.bodies ? ['request bodies'] : [])];
  if (cut > 0) gone.push(cut === 1 ? 'the last operation' : `the last ${cut} operations`);
  if (gone.length > 0) warnings.push(`/openapi.json would be larger than 1 MiB, so it is without ${gone.join(', ')}`);
  if (bytes > CRAWLED_BYTES)
    warnings.push(
      `/openapi.json has ${bytes} bytes; crawlers read the first ${CRAWLED_BYTES}, so exclude what few look for`,
    );
  if (operations.length === 0) warnings.push('/openapi.json holds no operation: nothing that is sold can be told');
  return warnings;
}

/** Routes that are not told. */
export function countLeftOut({ leftOutCounts }: PublicationReport): number {
  return Object.values(leftOutCounts).reduce((sum, count) => sum + count, 0);
}
