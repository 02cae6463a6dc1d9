// Payers who were charged, were told that the end is not known, and insist: each repeats the very same request after a
// pause, until it is answered. The looks are the real ones, over a node of the model chain that is asked five times a second
// by a process. What is measured is how long after the chain could prove its payment each of them is answered.
import { createHash } from 'node:crypto';
import type { PaymentKey } from '../../../src/domain/payment/charge.ts';
import type { Offer } from '../../../src/domain/payment/offer.ts';
import { createLook } from '../../../src/gateway/rails/evm/look.ts';
import { callService } from '../../../src/gateway/rails/service-call.ts';
import { receiverOf, wayOf } from '../../cases/receivers.ts';
import { route } from '../../cases/routes.ts';
import { createMemoryLedger } from '../../support/memory-ledger.ts';
import { createModelChain } from './chain.ts';
import { ASSET, createModelFacilitator, NETWORK, type Signed } from './facilitator.ts';
import { modelNode } from './node.ts';
import { startProcess, type Bug, type Process, type World } from './process.ts';
import { createScheduler } from './scheduler.ts';
import { createWatch, PRICE } from './watch.ts';
import type { Weather } from './weather.ts';

export type Insisting = {
  readonly seed: number;
  readonly payers: number;
  readonly processes: number;
  readonly blocksPerSecond: number;
  /** Between an answer and the next request. */
  readonly pauseMs: number;
  /** From the settle call to the block that holds the transfer. */
  readonly minedAfterMs: number;
  /** How far the chain's clock is behind. */
  readonly behindMs?: number;
  readonly bug?: Bug | undefined;
};

export type Insisted = {
  /** Each payer's wait from what the chain proved to the answer, in seconds; undefined if it never came. */
  readonly waits: readonly (number | undefined)[];
  /** Calls that one process made within any second, at most. */
  readonly callsASecond: number;
  readonly calls: number;
  readonly violations: readonly string[];
};

/** The longest wait, in seconds: for ever if somebody was never answered. */
export function latest({ waits }: Insisted): number {
  return Math.max(...waits.map((wait) => wait ?? Number.POSITIVE_INFINITY));
}

const START = Date.UTC(2030, 0, 1);
const CONFIRMATIONS = 2;
const HEIGHT = 10_000_000;
/** Payers give up then; nobody should have to. */
const PATIENCE_MS = 1_200_000;
const STEPS = 5_000_000;
/** A call over ky takes a few turns of the event loop. */
const TURNS = 4;
const RECONCILE_MS = 1_000;

export async function runInsisting(wanted: Insisting): Promise<Insisted> {
  // The first call loads ky, which takes real time.
  await loadCalls();
  const { seed, payers, processes, blocksPerSecond, pauseMs, minedAfterMs, behindMs = 0, bug } = wanted;
  const scheduler = createScheduler(seed, START, undefined, TURNS);
  const { draw } = scheduler;
  const weather = unsettled(draw.below, minedAfterMs);
  const durable = createMemoryLedger(scheduler.now, bug?.rules);
  const blockMs = 1000 / blocksPerSecond;
  const chain = createModelChain(scheduler, START, { blockMs, height: HEIGHT, behindMs });
  const facilitator = createModelFacilitator(scheduler, chain, weather);
  const watch = createWatch(scheduler, durable, chain, facilitator);
  const calls: number[] = [];
  let callsASecond = 0;

  const rail: NonNullable<Bug['rail']> = (plain, at) => {
    const { actor } = at;
    const made: number[] = [];
    const asked = (now: number): void => {
      calls.push(now);
      made.push(now);
      // Exactly five may begin in each second, counted from any moment.
      callsASecond = Math.max(callsASecond, made.filter((each) => each > now - 1000).length);
      if (made.length > 100) made.splice(0, 50);
    };
    const terms = { payTo: WAY.payTo, amount: PRICE };
    const look = createLook({
      fetch: modelNode({ scheduler, chain, terms }, actor, asked),
      schedule: (ms, run) => scheduler.timer(actor, 'a timer of a look', ms, run),
      clock: { now: scheduler.now, monotonic: scheduler.now },
      services: () => SERVICES,
    });
    return { ...(bug?.rail?.(plain, at) ?? plain), look };
  };
  const world: World = {
    ...{ scheduler, weather, durable, chain, facilitator, watch },
    offer: OFFER,
    bug: { ...bug, rail },
  };
  const started = Array.from({ length: processes }, (_, index) => startProcess(world, `process ${index + 1}`));
  for (const each of started) void reconcileAgainAndAgain(world, each);

  const waits: (number | undefined)[] = Array.from({ length: payers }, () => undefined);
  let resting = 0;
  for (let n = 0; n < payers; n++) {
    void insist(world, n, { pauseMs, blockMs, someProcess: () => draw.pick([started[0]!, ...started.slice(1)]) }).then(
      (wait) => {
        waits[n] = wait;
        resting += 1;
      },
      (error: unknown) => {
        watch.violated(`a payer failed: ${String(error)}`);
        resting += 1;
      },
    );
  }
  await scheduler.run(
    () => resting === payers,
    STEPS,
    () => false,
  );
  for (const { actor } of started) scheduler.crash(actor);
  return { waits, callsASecond, calls: calls.length, violations: watch.violations };
}

type Insist = { readonly pauseMs: number; readonly blockMs: number; readonly someProcess: () => Process };

/** Seconds from what the chain proved to the answer. */
async function insist(
  { scheduler, watch, chain }: World,
  n: number,
  { pauseMs, blockMs, someProcess }: Insist,
): Promise<number | undefined> {
  const actor = { name: `payer ${n + 1}`, alive: true };
  const payer = `0x${(n + 1).toString(16).padStart(40, '0')}`;
  const unique = `0x${createHash('sha256').update(payer).digest('hex')}`;
  const key: PaymentKey = { network: NETWORK, asset: ASSET, payer, unique };
  await scheduler.point(actor, 'comes', scheduler.draw.below(3_000));
  const validBefore = Math.floor(scheduler.now() / 1000) + 300;
  const signed: Signed = {
    ...{ payer, nonce: unique, ref: undefined, amount: PRICE.toString(), payTo: WAY.payTo, validBefore },
  };
  watch.signed(key, validBefore);
  const since = scheduler.now();
  while (scheduler.now() - since < PATIENCE_MS) {
    const { reply } = someProcess().handle({
      ...{ method: 'POST', target: `/r?payer=${n}`, credential: JSON.stringify(signed), key },
    });
    const said = await scheduler.crossing(actor, 'has an answer', reply);
    if (said.kind === 'answer' && said.served) {
      const { block } = chain.used(key) ?? { block: 0 };
      // By our clock: the chain's may be behind.
      const provenAt = START + (block + CONFIRMATIONS - HEIGHT) * blockMs;
      return Math.max(0, scheduler.now() - Math.max(provenAt, since)) / 1000;
    }
    await scheduler.point(actor, 'waits', pauseMs + scheduler.draw.below(50));
  }
  return undefined;
}

async function reconcileAgainAndAgain({ scheduler }: World, { actor, reconcile }: Process): Promise<void> {
  for (;;) {
    await scheduler.point(actor, 'reconciles', RECONCILE_MS, true);
    await reconcile().catch(() => undefined);
  }
}

/** Every settlement is taken by its facilitator, and its end is not told. */
function unsettled(below: (end: number) => number, minedAfterMs: number): Weather {
  return {
    calm: true,
    happens: (mishap) => mishap === 'impatience',
    delay: () => below(40),
    miningDelay: () => minedAfterMs + below(500),
    remembers: () => false,
    heal: () => undefined,
  };
}

async function loadCalls(): Promise<void> {
  const limits = { depth: 1, nodes: 1, string: 1 };
  await callService(
    { method: 'GET', url: 'http://node.test/', headers: {}, body: undefined, timeoutMs: 1000, maxBytes: 10, limits },
    async () => Response.json(null),
  );
}

const RECEIVER = receiverOf({
  network: NETWORK,
  asset: ASSET,
  currencies: ['USD'],
  rpcUrls: ['http://node.test/'],
  confirmations: CONFIRMATIONS,
});
const SERVICES = wayOf(RECEIVER);
const { way: WAY } = SERVICES;
const OFFER: Offer = {
  route: route('* /r 0.10', { id: '11111111-1111-4111-8111-111111111111' }),
  receiver: RECEIVER,
  price: { units: 10n, scale: 2 },
  amount: '0.10',
  ways: [{ way: WAY, networkName: NETWORK, amount: PRICE }],
  description: 'model',
  termsHash: Buffer.alloc(8),
};
