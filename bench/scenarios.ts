// The scenarios by name: the one list that the command line, its help, the README's table and the tests read.
import { measureBodies } from './bodies.ts';
import { measureChanges } from './change.ts';
import { measureLatency } from './latency.ts';
import { measureMemory } from './memory.ts';
import { measurePaid } from './paying.ts';
import { measureDecisions } from './deciding.ts';
import { measureDemands } from './demands.ts';
import { measureFree, measurePost } from './forwarding.ts';
import { measurePasses } from './pass-by-seconds.ts';
import { measurePrices } from './pricing.ts';
import { measureMatcher, measureQuotes } from './matching.ts';
import type { Section } from './report.ts';
import type { Stage } from './stage.ts';
import { measureSwaps } from './swap.ts';

export type Scenario = {
  readonly name: string;
  readonly summary: string;
  readonly run: (stage: Stage) => Promise<Section>;
};

export const SCENARIOS: readonly Scenario[] = [
  {
    name: 'matcher',
    summary: 'canonicalise and match: hot, never seen, compile time, heap; no server',
    run: measureMatcher,
  },
  { name: 'quote', summary: 'charge id, 402 body and header; no server', run: measureQuotes },
  { name: 'free', summary: 'free GET: upstream direct, peers, Tollgate with few and many routes', run: measureFree },
  { name: 'post', summary: 'free POST with a small body', run: measurePost },
  {
    name: 'payment-required',
    summary: '402 with few and many routes, against constant answers',
    run: (stage) => measureDemands(withMoreRounds(stage)),
  },
  {
    name: 'price',
    summary: '402 of a price by rules and units, beside one without a plan',
    run: (stage) => measurePrices(withMoreRounds(stage)),
  },
  {
    name: 'pass',
    summary: 'GET with a pass by seconds, beside a free GET',
    run: (stage) => measurePasses(withMoreRounds(stage)),
  },
  {
    name: 'decision',
    summary: 'questions of another proxy: an allow and a 402, beside a free GET and what the question costs Caddy',
    run: measureDecisions,
  },
  { name: 'latency', summary: 'what is added at a fixed rate', run: measureLatency },
  {
    name: 'change',
    summary: 'prices changed under load: failures, the longest pause, time to effect',
    run: (stage) => measureChanges(withMostRoutes(stage, CHANGE_SECONDS)),
  },
  {
    name: 'swap',
    summary: "a sidecar's whole set replaced by another under load: failures, the longest pause, time to effect",
    run: (stage) => measureSwaps(withMostRoutes(stage, SWAP_SECONDS)),
  },
  { name: 'download', summary: '10 MB from the upstream', run: (stage) => measureBodies(stage, 'download') },
  { name: 'upload', summary: '10 MB to the upstream', run: (stage) => measureBodies(stage, 'upload') },
  { name: 'paid', summary: 'paid requests a second and core, in both settle modes', run: measurePaid },
  { name: 'memory', summary: 'resident memory: idle, and with 10,000 idle connections', run: measureMemory },
];

/** Room for a few changes. */
const CHANGE_SECONDS = 3;
/** Room for a swap, and for what is left of the set before it to be collected. */
const SWAP_SECONDS = 6;

/** Where two things cost nearly the same, a few rounds on a machine that others use do not tell which costs less. */
function withMoreRounds(stage: Stage): Stage {
  const { plan } = stage;
  return { ...stage, plan: { ...plan, rounds: 2 * plan.rounds } };
}

/** A change of the route set is dearest where the set is largest. */
function withMostRoutes(stage: Stage, leastSeconds: number): Stage {
  const { plan } = stage;
  const seconds = Math.max(plan.seconds, leastSeconds);
  return { ...stage, plan: { ...plan, seconds, counts: [Math.max(...plan.counts)] } };
}
