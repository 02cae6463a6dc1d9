// What finding a route and pricing it costs by itself, in a process of its own: `node --expose-gc bench/matcher.ts ROOT
// WHAT COUNT` prints numbers. Measures the functions that the proxy calls, of the checkout under ROOT. Paths are new
// strings in every call, as they are when a parser made them: a string that was looked up before keeps its hash, and a
// loop over the same few would measure a case that no server has.
import { match } from 'path-to-regexp';
import type * as clockModule from '../src/host/clock.ts';
import type * as offerModule from '../src/domain/payment/offer.ts';
import type * as profileModule from '../src/domain/routing/profile.ts';
import type * as quoteModule from '../src/domain/payment/quote.ts';
import type * as requiredModule from '../src/domain/payment/payment-required.ts';
import type * as reviseModule from '../src/domain/routing/revise.ts';
import type * as snapshotModule from '../src/domain/routing/snapshot.ts';
import type { PathOptions, RouteSet } from '../src/domain/routing/snapshot.ts';
import type { Requirement } from '../src/domain/payment/way.ts';
import type { Receiver } from '../src/domain/payment/offer.ts';
import { importFrom } from './modules.ts';
import { freePaths, makeRoute, makeRoutes, paidPath, paidPaths } from './routes.ts';
import { NETWORK, PAY_TO } from './tollgate.ts';

export type MatcherNumbers = {
  /** Nanoseconds a look-up: of a working set of 400 paths; of paths never seen before; the same in capitals; the same with an escape. */
  readonly hotNs: number;
  readonly freshNs: number;
  readonly capitalsNs: number;
  readonly escapedNs: number;
  /** In capitals, of paths whose route has dearer ones around it: each that another router could run is looked at. */
  readonly dearerNs: number;
  /** CPU, as everything here. */
  readonly compileMs: number;
  /** One price changed, and in force; by the clock, over many. */
  readonly changeUs?: number;
  /** With the memory of typed arrays. */
  readonly heapMb: number;
};
export type ListNumbers = { readonly freshNs: number; readonly compileMs: number; readonly heapMb: number };
/** Nanoseconds. */
export type QuoteNumbers = { readonly issueNs: number; readonly signNs: number; readonly renderNs: number };

const WARMING = 3;
const BATCHES = 6;
const BATCH = 100_000;
/** Of look-ups that take several times as long. */
const SLOW_BATCH = 30_000;
const WORKING_SET = 200;
const CHANGES = 500;
/** Patterns and prices: the first is what the paths below lead to. */
const AROUND = [
  ['/v1/users/:id/score', '0.01'],
  ['/v1/users/:id/:kind', '0.02'],
  ['/v1/users/*', '0.05'],
  ['/v1/*', '0.10'],
] as const;

const [root = '', what = '', given = '0'] = process.argv.slice(2);
const count = Number(given);

async function measure(): Promise<MatcherNumbers | ListNumbers | QuoteNumbers> {
  switch (what) {
    case 'matcher':
      return measureMatcher();
    case 'list':
      return measureList();
    case 'quote':
      return measureQuotes();
    default:
      throw new Error(`${what}: is not matcher, list or quote`);
  }
}

async function measureMatcher(): Promise<MatcherNumbers> {
  const { compileSnapshot } = (await importFrom(
    root,
    'domain/routing/snapshot.ts',
    'domain/snapshot.ts',
  )) as typeof snapshotModule;
  const { profileFolding } = (await importFrom(
    root,
    'domain/routing/profile.ts',
    'domain/profile.ts',
  )) as typeof profileModule;
  const options = { encodedSlashes: 'refuse', doubleSlashes: 'merge', folding: profileFolding('unknown') } as const;
  const set = { registryId: 'bench', revision: 1, routes: makeRoutes(count) };
  const { made: snapshot, compileMs, heapMb } = weigh(() => compileSnapshot(set, options));
  const resolve = (target: string): unknown => snapshot.resolve('GET', target);
  const routes = AROUND.map(([pattern, amount], index) => ({ ...makeRoute(index), pattern, amount, method: 'GET' }));
  const around = compileSnapshot({ ...set, routes }, options);
  let asked = 0;
  const working = [...freePaths(count, WORKING_SET), ...paidPaths(count, WORKING_SET)];
  const fresh = freshPaths();
  return {
    hotNs: timeBatches(resolve, () =>
      Array.from({ length: BATCH }, (_, n) => copyOf(working[n % working.length] ?? '/')),
    ),
    freshNs: timeBatches(resolve, () => fresh()),
    capitalsNs: timeBatches(resolve, () => fresh(SLOW_BATCH).map((target) => copyOf(target.toUpperCase()))),
    escapedNs: timeBatches(resolve, () => fresh(SLOW_BATCH).map((target) => copyOf(`${target}%20x`))),
    dearerNs: timeBatches(
      (target) => around.resolve('GET', target),
      () => Array.from({ length: SLOW_BATCH }, () => copyOf(`/V1/users/u${asked++}/score`)),
    ),
    compileMs,
    ...(await measureChange(set, options)),
    heapMb,
  };
}

/** Nothing for a checkout that compiles the whole set for each change. */
async function measureChange(set: RouteSet, paths: PathOptions): Promise<{ changeUs?: number }> {
  const { compileSnapshot } = (await importFrom(
    root,
    'domain/routing/snapshot.ts',
    'domain/snapshot.ts',
  )) as typeof snapshotModule;
  const revise = (await importFrom(root, 'domain/routing/revise.ts', 'domain/revise.ts').catch(() => undefined)) as
    | typeof reviseModule
    | undefined;
  const [route] = set.routes;
  if (revise === undefined || route === undefined) return {};
  let snapshot = compileSnapshot(set, paths);
  const startedAt = performance.now();
  for (let revision = 2; revision < CHANGES + 2; revision++) {
    const changed = { ...route, amount: `0.${revision + 100}` };
    const next = revise.changeSnapshot(snapshot, { kind: 'updated', revision, route: changed });
    if (next === undefined) throw new Error('a change was not taken');
    snapshot = next;
  }
  return { changeUs: ((performance.now() - startedAt) * 1000) / CHANGES };
}

/** What is written first: every pattern as a path-to-regexp function, asked one after the other until one matches. */
function measureList(): ListNumbers {
  const { made, compileMs, heapMb } = weigh(() =>
    makeRoutes(count).map((route) => match(route.pattern.replace('/*', '/*rest'))),
  );
  const find = (target: string): unknown => made.find((matches) => matches(target) !== false);
  const fresh = freshPaths();
  // A look-up takes milliseconds where there are many.
  const size = Math.max(20, Math.min(2000, Math.round(1_000_000 / count)));
  return { freshNs: timeBatches(find, () => fresh().slice(0, size)), compileMs, heapMb };
}

async function measureQuotes(): Promise<QuoteNumbers> {
  const { createQuotes } = (await importFrom(root, 'domain/payment/quote.ts', 'domain/quote.ts')) as typeof quoteModule;
  const { createOffers } = (await importFrom(root, 'domain/payment/offer.ts', 'domain/offer.ts')) as typeof offerModule;
  const { createPaymentRequired } = (await importFrom(
    root,
    'domain/payment/payment-required.ts',
    'domain/payment-required.ts',
  )) as typeof requiredModule;
  const { createRandom } = (await importFrom(root, 'host/clock.ts')) as typeof clockModule;
  const random = createRandom();
  const quotes = createQuotes({
    secrets: ['x'.repeat(32)],
    ttlMs: 300_000,
    nonce: () => random(12).toString('base64url'),
  });
  const offer = createOffers(new Map([['default', RECEIVER]]))(makeRoute(0));
  if ('code' in offer) throw new Error(offer.detail);
  const requirement: Requirement = ({ way, amount }, { chargeId: reference }) => ({
    ...{ scheme: way.scheme, network: way.network, amount: amount.toString(), asset: way.asset, payTo: way.payTo },
    ...{ maxTimeoutSeconds: way.timeoutSeconds, extra: { ...way.terms, external_ref: reference } },
  });
  const render = createPaymentRequired({ v1: false, requirement });
  const chargeId = quotes.issue(offer, 'GET', 0);
  const origin = 'http://127.0.0.1:8402';
  const numbers = (): number[] => Array.from({ length: BATCH }, (_, n) => n);
  const paths = (): string[] => numbers().map((n) => copyOf(paidPath(6, n)));
  return {
    issueNs: timeBatches(() => quotes.issue(offer, 'GET', 1000), numbers),
    signNs: timeBatches((n) => quotes.issue(offer, 'GET', n * 1000), numbers),
    renderNs: timeBatches(
      (target) => render({ offer, chargeId, method: 'GET', origin, path: target, reason: 'payment_required' }),
      paths,
    ),
  };
}

const ASSET = '0x036CbD53842c5426634e7929541eC2318f3dCF7e';
const SERVICES = { facilitators: [], rpcUrls: [], rpcPublic: false, confirmations: 1 };
const WAY: Receiver['ways'][number]['way'] = {
  ...{ receiverId: 'default', network: 'eip155:84532', scheme: 'exact', asset: ASSET, decimals: 6, payTo: PAY_TO },
  ...{ timeoutSeconds: 300, terms: { name: 'USDC', version: '2' } },
};
/** Also in the form of earlier revisions, which had one way written flat. */
const RECEIVER = {
  ...{ id: 'default', currencies: ['USD', 'USDC'], settle: 'auto' as const },
  ways: [{ way: WAY, networkName: NETWORK, testnet: true, ...SERVICES }],
  ...{ scheme: 'exact', network: NETWORK, caip2: 'eip155:84532', v1Network: NETWORK, testnet: true, asset: ASSET },
  ...{ assetDecimals: 6, assetName: 'USDC', assetVersion: '2', payTo: PAY_TO, maxTimeoutSeconds: 300, ...SERVICES },
} satisfies Receiver;

/**
 * Mean CPU nanoseconds of a call, over batches; the first ones, in which V8 still learns, do not count. CPU and not time,
 * because others may want the core; the mean, because Linux counts the CPU of a running thread in steps of some
 * milliseconds.
 */
function timeBatches<T>(call: (argument: T) => unknown, makeBatch: () => readonly T[]): number {
  let microseconds = 0;
  let calls = 0;
  let kept: unknown;
  for (let batch = 0; batch < WARMING + BATCHES; batch++) {
    const batchArguments = makeBatch();
    const before = process.threadCpuUsage();
    for (const argument of batchArguments) kept = call(argument);
    const { user, system } = process.threadCpuUsage(before);
    if (batch < WARMING) continue;
    microseconds += user + system;
    calls += batchArguments.length;
  }
  // Looked at, so that the calls cannot be left out.
  if (kept === calls) throw new Error('unreachable');
  return (microseconds * 1000) / calls;
}

/** Paths, half of them free, that were never handed out before. */
function freshPaths(): (size?: number) => string[] {
  const bases = [...freePaths(count, WORKING_SET), ...paidPaths(count, WORKING_SET)];
  let n = 0;
  return (size = BATCH) =>
    Array.from({ length: size }, () => {
      const base = bases[n % bases.length] ?? '/';
      return copyOf(`${base}-${(n++).toString(36)}`);
    });
}

/** A flat string of its own, as a parser makes one. */
function copyOf(text: string): string {
  return Buffer.from(text, 'latin1').toString('latin1');
}

function weigh<T>(make: () => T): { made: T; compileMs: number; heapMb: number } {
  const { gc } = globalThis;
  if (gc === undefined) throw new Error('needs --expose-gc');
  gc();
  const used = (): number => {
    const { heapUsed, arrayBuffers } = process.memoryUsage();
    return heapUsed + arrayBuffers;
  };
  const before = used();
  const cpu = process.cpuUsage();
  const made = make();
  const { user, system } = process.cpuUsage(cpu);
  const compileMs = (user + system) / 1000;
  gc();
  return { made, compileMs, heapMb: (used() - before) / 1024 ** 2 };
}

process.stdout.write(`${JSON.stringify(await measure())}\n`);
