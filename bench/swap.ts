// The scenario `swap`: the registry of a sidecar has another set of routes from one moment to the next, no route of which is
// in the one before, while requests come at a fixed rate. The sidecar hears of it, fetches, reads and compiles the set and
// puts it in force, all in the process that serves. No request may fail: what costs something in one set does so in the
// other. What counts is the longest pause, and how long it takes until the proxy asks for the new prices.
import path from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { ask, checkDemand, checkFree, expect } from './check.ts';
import { RATE } from './latency.ts';
import { MIXED_COLUMNS, runMixed } from './mixed.ts';
import { swappedName, tollgateName } from './names.ts';
import { LOAD_CORE, NODE, startServer, type Server } from './process.ts';
import type { Section } from './report.ts';
import { EDITIONS, freePaths, makeRoute, paidPath } from './routes.ts';
import { measureSection, peakMb, withPool, type Contender, type Pool, type Stage } from './stage.ts';
import { startSidecar, type Tollgate } from './tollgate.ts';

/** After the burst, so that requests flow when the set changes. */
const SWAP_AFTER_MS = 500;
const POLL_MS = 10;
/** How long a first set may take to have effect. */
const LOST_MS = 60_000;

type Pair = {
  readonly suffix: string;
  readonly routes: number;
  readonly registry: Server;
  readonly tollgate: Tollgate;
};

export function measureSwaps(stage: Stage): Promise<Section> {
  return withPool(async (pool) => {
    const contenders: Contender[] = [];
    for (const pair of await startPairs(stage, pool)) contenders.push(atRest(stage, pair), swapping(stage, pair));
    return measureSection(stage, contenders, {
      name: 'swap',
      title: `A sidecar's whole set swapped for another under ${RATE} requests/s`,
      columns: [
        ...MIXED_COLUMNS,
        { key: 'effectMs', title: 'in effect ms', digits: 0 },
        { key: 'peakMb', title: 'peak MB', digits: 0 },
      ],
      references: { key: 'cpuUs', rows: [] },
      remarks: [
        'The longest pause counts from when a request was due; the rows at rest say how much of it is the load generator and its core. The set is fetched compressed over the loopback interface; it is in effect when an answer asks for its price.',
      ],
    });
  });
}

async function startPairs(stage: Stage, pool: Pool): Promise<Pair[]> {
  const { checkouts, folder, plan, profiles, upstream } = stage;
  const pairs: Pair[] = [];
  for (const routes of plan.counts) {
    for (const { suffix, root } of checkouts) {
      const label = `${tollgateName(routes)}, sidecar${suffix}`;
      stage.say(`starting ${label}`);
      const args = [path.join(import.meta.dirname, 'registry.ts'), String(routes)];
      const registry = await pool.keep(startServer({ name: 'registry', file: NODE, args, core: LOAD_CORE }, ['proxy']));
      const options = { label, root, routes, upstreamPort: upstream.port('upstream'), folder, profiles };
      const tollgate = await pool.keep(startSidecar(options, registry.port('proxy')));
      await untilPrice(tollgate, priceOf(0), LOST_MS);
      pairs.push({ suffix, routes, registry, tollgate });
    }
  }
  return pairs;
}

function atRest(stage: Stage, { suffix, routes, tollgate }: Pair): Contender {
  return {
    name: `${tollgateName(routes)}, at rest${suffix}`,
    check: () => checkBoth(stage, tollgate, routes),
    measure: async () => {
      const { faults, ...round } = await runMixed(stage, tollgate, routes);
      return { round, faults };
    },
  };
}

function swapping(stage: Stage, { suffix, routes, registry, tollgate }: Pair): Contender {
  let swaps = 0;
  return {
    name: swappedName(routes) + suffix,
    check: () => checkBoth(stage, tollgate, routes),
    measure: async () => {
      const load = runMixed(stage, tollgate, routes);
      // Where the swap fails first, that is what is told.
      load.catch(() => undefined);
      await setTimeout(stage.plan.burstSeconds * 1000 + SWAP_AFTER_MS);
      await swap(registry);
      const patienceMs = stage.plan.seconds * 1000;
      const effectMs = await untilPrice(tollgate, priceOf(++swaps), patienceMs);
      const { faults, ...rest } = await load;
      return { round: { ...rest, effectMs, peakMb: peakMb(tollgate.pid) }, faults };
    },
  };
}

async function swap(registry: Server): Promise<void> {
  const { status } = await ask(registry.port('proxy'), { method: 'POST', path: '/swap' });
  expect(status === 204, `answers ${status} to a swap`);
}

function priceOf(swaps: number): string {
  return makeRoute(0, EDITIONS[swaps % EDITIONS.length]).amount;
}

/** Resolves with how long it took until an unpaid request was asked for `amount`. */
async function untilPrice(tollgate: Tollgate, amount: string, patienceMs: number): Promise<number> {
  const startedAt = performance.now();
  while (performance.now() - startedAt < patienceMs) {
    const { status, body } = await ask(tollgate.port('proxy'), { method: 'GET', path: paidPath(0, 0) });
    const demand: unknown = status === 402 ? JSON.parse(body.toString()) : undefined;
    if (typeof demand === 'object' && demand !== null && 'amount' in demand && demand.amount === amount)
      return performance.now() - startedAt;
    await setTimeout(POLL_MS);
  }
  throw new Error(`a set of routes came ${patienceMs / 1000} s ago and is not in force`);
}

async function checkBoth({ witness }: Stage, tollgate: Tollgate, routes: number): Promise<void> {
  const [free = '/'] = freePaths(routes, 1);
  await checkFree(tollgate.port('proxy'), witness, 'GET', free);
  await checkDemand(tollgate.port('proxy'), witness, paidPath(0, 0));
}
