// One schedule: clients, processes, chain and facilitator under one seed, run until all clients have given up or have
// what they want; then nothing goes wrong any more, time passes, and everything must come to rest as it should.
import type { Offer } from '../../../src/domain/payment/offer.ts';
import type { Route } from '../../../src/domain/routing/route.ts';
import { receiverOf, wayOf } from '../../cases/receivers.ts';
import { route } from '../../cases/routes.ts';
import { createMemoryLedger } from '../../support/memory-ledger.ts';
import type { Bug } from './process.ts';
import { createModelChain } from './chain.ts';
import { runClient, type Client } from './client.ts';
import { createFront } from './front.ts';
import { ASSET, createModelFacilitator, NETWORK } from './facilitator.ts';
import { startProcess, type Process, type World } from './process.ts';
import { createScheduler } from './scheduler.ts';
import { createWatch, PRICE } from './watch.ts';
import { createWeather } from './weather.ts';

export type Run = { readonly violations: readonly string[]; readonly trace: readonly string[] };

const START = Date.UTC(2030, 0, 1);
const STEPS = 6_000;
const DAY_MS = 86_400_000;
/** Share of schedules with a front that asks before it forwards. */
const FRONTS = 0.35;

export async function runSchedule(seed: number, bug?: Bug, traced = false): Promise<Run> {
  const trace: string[] | undefined = traced ? [] : undefined;
  const scheduler = createScheduler(seed, START, trace);
  const { draw } = scheduler;
  const weather = createWeather(draw);
  const durable = createMemoryLedger(scheduler.now, bug?.rules);
  const chain = createModelChain(scheduler, START);
  const facilitator = createModelFacilitator(scheduler, chain, weather);
  const watch = createWatch(scheduler, durable, chain, facilitator);
  const world: World = { scheduler, weather, durable, chain, facilitator, watch, offer: OFFER, bug };

  const processes: Process[] = [];
  const start = (index: number, life: number): void => {
    const started = startProcess(world, `process ${index + 1}.${life}`);
    processes[index] = started;
    void reconcileAgainAndAgain(world, started);
  };
  const lives = Array.from({ length: draw.below(2) + 1 }, () => 1);
  lives.forEach((life, index) => start(index, life));
  let crashesLeft = 3;
  const outside = { name: 'machine', alive: true };
  const crashes = (actor: { readonly name: string }): boolean => {
    if (crashesLeft === 0) return false;
    const index = processes.findIndex((one) => one.actor === actor);
    if (index < 0 || !weather.happens('crash')) return false;
    crashesLeft--;
    processes[index]?.crash();
    const life = (lives[index] ?? 0) + 1;
    lives[index] = life;
    void scheduler.point(outside, 'starts a process again', draw.below(100_000)).then(() => start(index, life));
    return true;
  };

  const someProcess = (): Process | undefined => processes[draw.below(processes.length)];
  const front = draw.chance(FRONTS) ? createFront(world, someProcess) : undefined;
  const clients: Client[] = Array.from({ length: draw.below(2) + 1 }, (_, n) => {
    // One of them goes both ways: what was paid for at one is no good at the other.
    const way = front === undefined ? 'process' : draw.pick(['front', 'front', 'either'] as const);
    const isFront = (): boolean => way === 'front' || (way === 'either' && draw.chance(0.5));
    return runClient(world, n, {
      someDoor: () => (isFront() ? front : someProcess()),
      isAsked: way === 'front',
    });
  });
  const { say } = scheduler;
  if ((await scheduler.run(() => clients.every(({ resting }) => resting()), STEPS, crashes)) !== 'done')
    watch.violated('a client was never answered');

  say('--- from here on nothing goes wrong');
  weather.heal();
  const open = (): boolean =>
    durable
      .all()
      .some(
        ({ state, payment }) => (state === 'claimed' || state === 'settling') && chain.used(payment)?.paid !== false,
      );
  const limit = scheduler.now() + DAY_MS;
  const rest = (): boolean => !open() || scheduler.now() > limit;
  await scheduler.run(rest, STEPS, () => false);
  for (const { insist } of clients) insist();
  say('--- who was not served asks again');
  if (
    (await scheduler.run(
      () => clients.every(({ resting }) => resting()),
      STEPS,
      () => false,
    )) !== 'done'
  )
    watch.violated('a client was never answered, though all is well');
  await scheduler.run(rest, STEPS, () => false);
  watch.atRest(weather.calm);
  for (const { judge } of clients) judge();
  for (const { actor } of processes) scheduler.crash(actor);
  return { violations: watch.violations, trace: trace ?? [] };
}

async function reconcileAgainAndAgain({ scheduler }: World, { actor, reconcile }: Process): Promise<void> {
  for (;;) {
    await scheduler.point(actor, 'reconciles', 5_000 + scheduler.draw.below(25_000), true);
    // As compose does: a failure is logged and the next turn comes.
    await reconcile().catch((error: unknown) => scheduler.say(`${actor.name}: reconciling failed, ${String(error)}`));
  }
}

const RECEIVER = receiverOf({
  network: NETWORK,
  asset: ASSET,
  currencies: ['USD'],
  rpcUrls: ['model'],
  confirmations: 2,
});
const { way: WAY } = wayOf(RECEIVER);
const ROUTE: Route = route('* /r 0.10', { id: '11111111-1111-4111-8111-111111111111' });
const OFFER: Offer = {
  route: ROUTE,
  receiver: RECEIVER,
  price: { units: 10n, scale: 2 },
  amount: '0.10',
  ways: [{ way: WAY, networkName: NETWORK, amount: PRICE }],
  description: 'model',
  termsHash: Buffer.alloc(8),
};
