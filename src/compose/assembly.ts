// The values that the parts of one process share while they are started and joined: the configuration in force, metrics,
// checks, listeners, and how everything ends. No part sees it whole; compose.ts and gateway.ts hand each its own.
import type { Config } from '../config/config.ts';
import { createQuotes } from '../domain/payment/quote.ts';
import type { Route } from '../domain/routing/route.ts';
import { createRefusals, type RefusedRequests } from '../gateway/refusals.ts';
import { createCurrent, type Current } from '../gateway/routes/current-snapshot.ts';
import type { Check } from '../host/admin.ts';
import type { Clock, Random } from '../host/clock.ts';
import type { Log } from '../host/log.ts';
import type { WorkerPlan } from '../host/worker-count.ts';
import { createMetrics, type Metrics } from '../host/metrics.ts';
import type { WhyReport } from '../registry/charges/charge-schemas.ts';
import type { BoundListener, Part } from './part.ts';
import type { AroundPayments } from './payments.ts';
import type { AroundPage } from './proxy.ts';
import type { FindRefusals, WhyParts } from './why.ts';

export type TollgateDeps = {
  readonly log: Log;
  readonly clock: Clock;
  readonly random: Random;
  readonly version: string;
  /** Called once, when everything is ready, before a client can connect to more than the admin listener. */
  readonly beforeListening?: () => void;
  /** Put around the ledger and the rail. */
  readonly aroundPayments?: AroundPayments | undefined;
  /** Put around the page for people. */
  readonly aroundPage?: AroundPage | undefined;
  /** Processes that serve the proxy; left out, this one does. */
  readonly workers?: WorkerPlan;
};

export type Assembly = {
  readonly deps: TollgateDeps;
  /** In force: a reload puts another one here. */
  config: Config;
  draining: boolean;
  readonly metrics: Metrics;
  /** The text of a scrape. */
  metricsText: Metrics['text'];
  readonly current: Current;
  /** Undefined if no proxy runs here. */
  readonly refusals: RefusedRequests | undefined;
  /** In all processes of the proxy; undefined if none runs. */
  findRefusals: FindRefusals | undefined;
  readonly checks: Check[];
  readonly listeners: (readonly [name: string, listener: BoundListener])[];
  /** In the order in which they are called. */
  readonly closers: Part['close'][];
  /** Resolves when all processes that begin with the listeners have started; rejects with a sentence. */
  allStarted: () => Promise<void>;
  /** The ledgers in which a charge is looked for by an id. */
  ledgers: Pick<WhyParts, 'search' | 'findByChargeId'>;
  /** Whether payments can be taken, as far as is known. */
  isPossible: () => boolean;
};

export function createAssembly(config: Config, deps: TollgateDeps): Assembly {
  const metrics = createMetrics();
  const { version } = deps;
  const refusals = config.proxy === undefined ? undefined : createRefusals();
  metrics.gauge('build_info', 'Version of Tollgate and of Node.', ['version', 'node'])(version, process.version)(1);
  const assembly: Assembly = {
    deps,
    config,
    draining: false,
    metrics,
    metricsText: metrics.text,
    current: createCurrent(),
    refusals,
    findRefusals: refusals && (async (id) => (await import('./why.ts')).findRefusals(refusals, id)),
    checks: [],
    listeners: [],
    closers: [],
    allStarted: () => Promise.resolve(),
    ledgers: { search: undefined, findByChargeId: undefined },
    isPossible: () => false,
  };
  const drainingHelp = '1 while the process finishes what is in flight and takes nothing new.';
  metrics.observed('gauge', 'draining', drainingHelp, [], (set) => set({}, assembly.draining ? 1 : 0));
  assembly.checks.push({
    name: 'draining',
    run: () => ({ ok: !assembly.draining, detail: assembly.draining ? 'finishing what is in flight' : 'no' }),
  });
  return assembly;
}

/** Closed before what was added earlier, which it may use. */
export function addPart<P extends Part>({ listeners, closers }: Assembly, name: string, part: P): P {
  if (part.listener !== undefined) listeners.push([name, part.listener]);
  closers.unshift(part.close);
  return part;
}

/** What became of the request or charge with `id`. */
export async function answerWhy(assembly: Assembly, id: string): Promise<WhyReport> {
  const { explainWhy } = await import('./why.ts');
  const { config, current, ledgers, findRefusals: refusals, deps } = assembly;
  const { secrets, quoteTtlMs } = config.charges;
  const quotes = createQuotes({ secrets, ttlMs: quoteTtlMs, nonce: () => '' });
  const routeOf = (routeId: string): Route | undefined => current.snapshot?.matcher.get(routeId);
  return explainWhy(id, { ...ledgers, refusals, quotes, quoteTtlMs, routeOf, clock: deps.clock });
}
