// One schedule of passes: they are bought, drawn on by requests that share them, revoked and refunded, at processes that crash, over a
// ledger that is reached through a network, under one seed. Then nothing goes wrong any more, and everything must come to rest.
import { standingOfBook } from '../../../../src/domain/selling/pass-book.ts';
import type { PassInSale, SoldPass } from '../../../../src/domain/selling/pass.ts';
import { createMemoryLedger } from '../../../support/memory-ledger.ts';
import { createScheduler, type Draw } from '../scheduler.ts';
import type { Run } from '../schedule.ts';
import { createWeather } from '../weather.ts';
import { drawnBy } from '../../../../src/domain/selling/pass-opening.ts';
import {
  PLAN_ID,
  startDrawProcess,
  type DrawBug,
  type DrawProcess,
  type DrawReply,
  type DrawWorld,
} from './draw-process.ts';
import { createDrawRules } from './draw-rules.ts';
import { someMeter } from './metered-responses.ts';

const START = Date.UTC(2030, 0, 1);
const STEPS = 6_000;
const REST_MS = 600_000;
const ATTEMPTS = 6;
const PRICES = ['0.10', '0.25'] as const;
const END_LOST_MS = 10_000;

export async function runDraws(seed: number, bug?: DrawBug, traced = false): Promise<Run> {
  const trace: string[] | undefined = traced ? [] : undefined;
  const scheduler = createScheduler(seed, START, trace);
  const { draw, say } = scheduler;
  const weather = createWeather(draw);
  const durable = createMemoryLedger(scheduler.now, bug?.charges, bug?.books);
  const rules = createDrawRules(scheduler, durable);
  const meter = someMeter(draw);
  const world: DrawWorld = { scheduler, weather, durable, rules, bug, meter };
  const outside = { name: 'machine', alive: true };

  const lives = Array.from({ length: draw.below(3) + 1 }, () => 1);
  const nameOf = (index: number): string => `process ${index + 1}.${lives[index]}`;
  const processes: DrawProcess[] = lives.map((_, index) => startDrawProcess(world, nameOf(index)));
  // A supervisor ends what its worker had at once; who is far away waits for the lease.
  const endsRuns = draw.chance(0.5);
  let crashesLeft = 3;
  const crashes = (actor: { readonly name: string }): boolean => {
    const index = processes.findIndex((one) => one.actor === actor);
    if (crashesLeft === 0 || index < 0 || !weather.happens('crash')) return false;
    crashesLeft--;
    const run = nameOf(index);
    processes[index]?.crash();
    lives[index] = (lives[index] ?? 0) + 1;
    void scheduler.point(outside, 'starts a process again', draw.below(60_000)).then(async () => {
      if (endsRuns) await durable.store.endRun(run);
      processes[index] = startDrawProcess(world, nameOf(index));
    });
    return true;
  };
  const someProcess = (): DrawProcess | undefined => processes[draw.below(processes.length)];

  const sales = Array.from({ length: draw.below(2) + 1 }, (_, n) => ({
    n: n + 1,
    sale: someSale(draw, meter !== undefined),
    price: draw.pick(PRICES),
  }));
  const settledPass = (n: number): SoldPass | undefined => sold.get(n);
  const sold = new Map<number, SoldPass>();
  const live = async (n: number): Promise<void> => {
    const sale = sales[n - 1];
    if (sale === undefined) return;
    const bought = await someProcess()?.buy(sale.n, sale.sale, sale.price);
    if (bought !== undefined) sold.set(n, bought);
    const pass = settledPass(n);
    if (pass === undefined) return;
    await Promise.all(
      Array.from({ length: draw.below(5) + 1 }, (_, user) => useUp(pass, sale.price, `${n}.${user + 1}`)),
    );
  };

  const ask = async (
    pass: SoldPass,
    user: string,
    target: string,
    rest: { key: string | undefined; amount: string },
  ): Promise<DrawReply> => {
    const door = someProcess();
    if (door === undefined || !door.actor.alive) return 'broken';
    const connection = { gone: false };
    const replied = door.draw({ pass, target, ...rest }, connection);
    const actor = { name: `user ${user}`, alive: true };
    if (weather.happens('client_leaves'))
      void scheduler
        .point(actor, 'leaves', draw.below(draw.pick([50, 500, 20_000])))
        .then(() => (connection.gone = true));
    const reply = await scheduler.crossing(actor, 'has an answer', replied);
    say(`user ${user}: ${reply === 'broken' ? reply : `${reply.status} ${reply.code ?? ''}`}`);
    return reply;
  };
  /** Requests of one user, each repeated under its key for as long as it was not answered. */
  const useUp = async (pass: SoldPass, price: string, user: string): Promise<void> => {
    const actor = { name: `user ${user}`, alive: true };
    const wanted = draw.below(4) + 1;
    for (let n = 1; n <= wanted; n++) {
      // Two users may send one key: a request that is sent twice.
      const key = draw.chance(0.5) ? (draw.chance(0.2) ? 'shared' : `key-${user}-${n}`) : undefined;
      const amount = draw.chance(0.8) ? price : draw.pick(PRICES);
      for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
        await scheduler.point(actor, 'thinks', draw.below(draw.pick([20, 20, 3_000, 20_000])));
        const reply = await ask(pass, user, '/r', { key, amount });
        if (key === undefined || (reply !== 'broken' && reply.status < 500 && reply.status !== 409)) break;
      }
    }
  };
  const operate = async (): Promise<void> => {
    const actor = { name: 'operator', alive: true };
    await scheduler.point(actor, 'waits', draw.below(30_000));
    const [book] = durable.passes.books();
    if (book === undefined) return;
    if (draw.chance(0.5)) {
      say(`operator: revokes ${book.id}`);
      await durable.passes.revoke(book.id);
      return;
    }
    const charge = durable.all().find(({ id }) => id === book.id.replace('pass_', 'chg_'));
    if (charge === undefined) return;
    const transfer = { transaction: `0x${'7'.repeat(64)}`, logIndex: 1, amount: charge.amount, reason: '' };
    const cause = { actor: 'root', via: 'command_line', requestId: null } as const;
    const event = { kind: 'refunded', note: '', transfer } as const;
    const refunded = await durable.advance(charge.id, event, { owner: 'operator-1', cause });
    say(`operator: refunds ${charge.id}: ${refunded.kind}`);
    if (refunded.kind === 'ok') rules.refunded(book.id);
  };

  void endLostAgainAndAgain(world);
  let resting = 0;
  const started = [...sales.map(({ n }) => live(n)), ...(draw.chance(0.25) ? [operate()] : [])];
  for (const each of started)
    each.then(
      () => (resting += 1),
      (error: unknown) => rules.violated(`a client failed: ${String(error)}`),
    );
  const isDone = (): boolean => resting === started.length;
  if ((await scheduler.run(isDone, STEPS, crashes)) !== 'done') rules.violated('somebody was never answered');

  say('--- from here on nothing goes wrong');
  weather.heal();
  const limit = scheduler.now() + REST_MS;
  await scheduler.run(
    () => scheduler.now() > limit,
    STEPS,
    () => false,
  );
  rules.atRest(weather.calm);

  say('--- what is left can be used');
  let isAsked = false;
  void askForTheRest(world, { sold, someProcess }).finally(() => (isAsked = true));
  if (
    (await scheduler.run(
      () => isAsked,
      STEPS,
      () => false,
    )) !== 'done'
  )
    rules.violated('the last request was never answered');
  for (const { actor } of processes) scheduler.crash(actor);
  return { violations: rules.violations, trace: trace ?? [] };
}

/** Whoever has a pass that is good and holds enough is served. */
async function askForTheRest(
  { scheduler, durable, rules }: DrawWorld,
  {
    sold,
    someProcess,
  }: { readonly sold: ReadonlyMap<number, SoldPass>; readonly someProcess: () => DrawProcess | undefined },
): Promise<void> {
  const actor = { name: 'last user', alive: true };
  for (const pass of sold.values()) {
    const book = durable.passes.books().find(({ id }) => id === pass.passId);
    if (book === undefined) continue;
    const isEnough = standingOfBook(book, scheduler.now()).left >= drawnBy(pass, PRICES[1]);
    const request = { pass, key: undefined, target: '/last', amount: PRICES[1] };
    const replied = someProcess()?.draw(request, { gone: false }) ?? Promise.resolve<DrawReply>('broken');
    const reply = await scheduler.crossing(actor, 'has an answer', replied);
    const status = reply === 'broken' ? 0 : reply.status;
    if (status !== (isEnough ? 200 : 402))
      rules.violated(`${pass.passId} holds ${isEnough ? 'enough' : 'too little'}, and its last request is ${status}`);
  }
}

async function endLostAgainAndAgain({ scheduler, durable: { passes }, rules }: DrawWorld): Promise<void> {
  const registry = { name: 'registry', alive: true };
  for (;;) {
    await scheduler.point(registry, 'ends what nobody works on', END_LOST_MS, true);
    await passes.endLost(100);
    rules.booksHold();
  }
}

function someSale(draw: Draw, isMetered: boolean): PassInSale {
  const common = {
    planId: PLAN_ID,
    termsId: 'terms',
    scope: 'plan',
    validMs: draw.pick([90_000, 86_400_000, 86_400_000]),
  } as const;
  return draw.chance(isMetered ? 0.2 : 0.6)
    ? { ...common, kind: 'uses', uses: draw.below(12) + 1, first: '1' }
    : {
        ...common,
        kind: 'credit',
        credit: draw.pick(['0.50', '1']),
        first: draw.pick(PRICES),
        ...(isMetered ? { isMetered } : {}),
      };
}
