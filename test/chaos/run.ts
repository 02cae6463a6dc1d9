// One run of chaos: payers by the dozen, kills and faults until all have asked; then calm, until everybody has an answer.
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout } from 'node:timers/promises';
import { insist, runClient, type Client } from './client.ts';
import { createJournal, type Journal } from './journal.ts';
import { judgeRun, type Verdict } from './oracle.ts';
import { readPaid } from './paid.ts';
import { createPlan, type Scale } from './plan.ts';
import { startFleet } from './fleet.ts';
import { PAY_TO, startWorld, type World } from './world.ts';

const AT_ONCE = { one: 16, postgres: 48 } as const;
/** Of payers that insist. */
const INSISTING = { one: Infinity, postgres: 32 } as const;
/** Each word of one is a process of its own. */
const OPERATORS = 3;
/** For a payer to have an answer once all is well: a lease, the slowest call, and the chain's proof that a short authorization has ended. */
const CALM_MS = 120_000;
const BLOCK_MS = 250;
/** Time for what can be known without a chain: every payer asks a few times more. */
const UNKNOWN_MS = 12_000;

export async function runChaos(scale: Scale, say: (line: string) => void = () => undefined): Promise<Verdict> {
  const plan = createPlan(scale);
  const journal = createJournal();
  const lag = monitorEventLoopDelay({ resolution: 10 });
  lag.enable();
  const world =
    scale.topology === 'one'
      ? await startWorld(plan, journal, scale.chain)
      : await startFleet(plan, journal, scale.fault);
  try {
    say('all processes are there');
    world.restless(plan.draw);
    const clients: Client[] = [];
    const next = plan.payments.values();
    const payers = Array.from({ length: AT_ONCE[scale.topology] }, async () => {
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
    say(`all have asked, ${journal.kills.length} kills; waiting for what is open`);
    await calmDown(world, journal, clients, scale);
    say('nothing is open');
    return await judgeRun(world, journal, clients, lag.max / 1e6);
  } finally {
    lag.disable();
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
  { topology, chain: readsChain }: Scale,
): Promise<void> {
  if (!readsChain) {
    // What a facilitator took and never said stays unknown without a chain, until an operator looks there himself.
    const unknownUntil = performance.now() + UNKNOWN_MS;
    await Promise.all(clients.map((client) => insist(world, journal, client, unknownUntil)));
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
  // No more at once than before: what comes in a crowd is slower than it is waited for.
  const next = clients.values();
  const insisting = Promise.all(
    Array.from({ length: Math.min(clients.length, INSISTING[topology]) }, async () => {
      for (const client of next) await insist(world, journal, client, performance.now() + CALM_MS);
    }),
  ).then(() => true);
  // Blocks come also while no payer pays: the chain's time is that of its last block, and proofs wait for it.
  while (!(await Promise.race([insisting, setTimeout(BLOCK_MS, false)]))) await world.chain.mine();
  const until = performance.now() + CALM_MS;
  while (performance.now() < until) {
    await world.chain.mine();
    const open = (await world.charges()).filter(({ status }) => status === 'claimed' || status === 'settling');
    if (open.length === 0) return;
    await setTimeout(BLOCK_MS);
  }
}
