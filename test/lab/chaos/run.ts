// One run of chaos: payers by the dozen, kills and faults until all have asked; then calm, until everybody has an answer.
import { setMaxListeners } from 'node:events';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout } from 'node:timers/promises';
import { createSemaphore } from '../../../src/gateway/rails/semaphore.ts';
import type { Upstream } from '../../support/upstream.ts';
import { insist, runClient, type Client } from './client.ts';
import { createJournal, type Journal } from './journal.ts';
import { judgeRun, type Verdict } from './oracle.ts';
import { readPaid } from './paid.ts';
import { createPlan, type Scale } from './plan.ts';
import { startFleet } from './fleet.ts';
import { judgeTold, untilTold } from './told-oracle.ts';
import { startTold } from './told.ts';
import { startApi } from './upstream.ts';
import { PAY_TO, startWorld, type World } from './world.ts';

/** Requests of payers that insist, at the same time: what comes in a crowd is slower than it is waited for. */
const INSISTING = 32;
/** Each word of one is a process of its own. */
const OPERATORS = 3;
/** Without any payer getting an answer or charge its end: longer than a lease, the slowest call and the longest pause of a payer. */
const STALLED_MS = 150_000;
const LONGEST_CALM_MS = 1_800_000;
const LOOK_MS = 500;
const SAY_MS = 10_000;
/** Time for what can be known without a chain: every payer asks a few times more. */
const UNKNOWN_MS = 12_000;

export async function runChaos(scale: Scale, say: (line: string) => void = () => undefined): Promise<Verdict> {
  const plan = createPlan(scale);
  const journal = createJournal();
  const lag = monitorEventLoopDelay({ resolution: 10 });
  lag.enable();
  const told = scale.webhooks === true ? await startTold(journal) : undefined;
  const runs = new Map<number, number>();
  const api = (who: string): Promise<Upstream> => startApi(plan.payments, journal, who, runs);
  const start = (): Promise<World> =>
    scale.topology === 'one'
      ? startWorld(api, journal, { readsChain: scale.chain, told, isAsked: scale.asked === true })
      : startFleet(api, journal, { fault: scale.fault, told });
  const world = await start().catch((error: unknown) => {
    told?.close();
    throw error;
  });
  try {
    say('all processes are there');
    world.restless(plan.draw);
    const clients: Client[] = [];
    const next = plan.payments.values();
    const payers = Array.from({ length: world.payersAtOnce }, async () => {
      for (const payment of next) {
        clients.push(await runClient(world, journal, payment));
        if (clients.length % 100 === 0) say(`${clients.length} of ${scale.payments} payers have asked`);
      }
    });
    const over = Promise.all(payers).then(() => true);
    for (let kill = 0; kill < scale.kills; kill++) {
      // Spread over the payers, not over time: a slow machine kills no less often per payment.
      const due = ((kill + plan.draw.below(100) / 100) * scale.payments) / scale.kills;
      if (await reached(() => clients.length >= due, over)) break;
      await world.kill(plan.draw);
    }
    await over;
    await world.calm();
    say(`all have asked, ${journal.kills.length} kills, ${journal.freezes.length} freezes; waiting for what is open`);
    await calmDown(world, journal, clients, scale, say);
    if (told === undefined)
      return await judgeRun(world, journal, clients, { lagMs: lag.max / 1e6, isAsked: scale.asked === true });
    const isTold = await untilTold(world, told);
    const [run, events] = [
      await judgeRun(world, journal, clients, { lagMs: lag.max / 1e6, isAsked: scale.asked === true }),
      await judgeTold(world, told),
    ];
    const untold = isTold ? [] : ['webhooks: events wait for an endpoint that takes them'];
    return {
      violations: [...run.violations, ...untold, ...events.violations],
      counts: { ...run.counts, ...events.counts },
    };
  } finally {
    lag.disable();
    told?.close();
    await world.stop();
  }
}

async function reached(condition: () => boolean, over: Promise<boolean>): Promise<boolean> {
  for (;;) {
    if (condition()) return false;
    if (await Promise.race([over, setTimeout(25, false)])) return true;
  }
}

async function calmDown(
  world: World,
  journal: Journal,
  clients: readonly Client[],
  { chain: readsChain }: Scale,
  say: (line: string) => void,
): Promise<void> {
  const turns = createSemaphore(INSISTING, Infinity);
  if (!readsChain) {
    // What a facilitator took and never said stays unknown without a chain, until an operator looks there himself.
    const stop = AbortSignal.timeout(UNKNOWN_MS);
    await Promise.all(clients.map((client) => insist(world, journal, client, turns, stop)));
    const paid = await readPaid(world.chain, PAY_TO);
    const ended = clients.filter(({ plan }) => plan.kind === 'cancelled' || plan.kind === 'short');
    const neverToSettle = new Set<string>(ended.map(({ nonce }) => nonce));
    const open = (await world.charges()).filter(
      ({ nonce, status }) => status === 'settling' && (paid.has(nonce) || neverToSettle.has(nonce)),
    );
    const next = open.values();
    const operators = Array.from({ length: OPERATORS }, async () => {
      for (const { id, nonce } of next) await world.vouch(id, paid.get(nonce));
    });
    await Promise.all(operators);
  }
  const stop = new AbortController();
  setMaxListeners(0, stop.signal);
  const insisting = Promise.all(clients.map((client) => insist(world, journal, client, turns, stop.signal)));
  const begun = performance.now();
  let [fewest, fewestAt, saidAt] = [Infinity, begun, begun];
  for (;;) {
    const open = [...(await world.charges('claimed')), ...(await world.charges('settling'))].length;
    const waiting = clients.filter(({ done, gaveUp }) => !done && !gaveUp).length;
    if (open + waiting === 0) break;
    const now = performance.now();
    if (open + waiting < fewest) [fewest, fewestAt] = [open + waiting, now];
    if (now - saidAt > SAY_MS) {
      say(`${waiting} payers wait for an answer, ${open} charges for their end`);
      saidAt = now;
    }
    if (now - fewestAt > STALLED_MS || now - begun > LONGEST_CALM_MS) {
      say(`nothing moves any more: ${waiting} payers without an answer, ${open} charges without an end`);
      break;
    }
    await setTimeout(LOOK_MS);
  }
  stop.abort();
  await insisting;
  say('all payers have come to their end');
}
