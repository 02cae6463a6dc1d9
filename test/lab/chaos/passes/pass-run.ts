// One run of chaos on passes: a few payers buy passes over a real chain, dozens of clients draw on them until nothing is left, and
// processes are killed meanwhile, also exactly between a draw and its answer. Then calm, and the oracle.
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout } from 'node:timers/promises';
import { creditUnits } from '../../../../src/domain/selling/pass-book.ts';
import { createDraw, type Draw } from '../../simulation/scheduler.ts';
import { REPLICAS, startFleet } from '../fleet.ts';
import { createJournal } from '../journal.ts';
import type { Verdict } from '../oracle.ts';
import type { Conduct, Topology } from '../plan.ts';
import { startWorld, type Door, type World } from '../world.ts';
import { readBooks, watchBooks } from './books.ts';
import { buyPass, isChargedAnswer, pauseAfter, sendOrder, shownFor, type Answered } from './draw-client.ts';
import { createDrawnApi, type DrawnApi } from './drawn-api.ts';
import {
  createPassJournal,
  type BoughtPass,
  type Order,
  type PassEnding,
  type PassJournal,
  type PassRole,
} from './pass-journal.ts';
import { judgePasses } from './pass-oracle.ts';

export type PassScale = {
  readonly topology: Topology;
  /** Uses of the pass that everybody draws on. */
  readonly uses: number;
  readonly kills: number;
  readonly seed: number;
  /** The name of a fault in the program, over PostgreSQL: see faults.ts. */
  readonly fault?: string | undefined;
};

/** Clients of the two large passes at the same time. */
const CLIENTS = 14;
/** A pass of a few uses, and how many clients fall upon it at once. */
const FEW = { uses: 5, clients: 8, everyUses: 400 } as const;
/** Requests that are held at each door while somebody is killed. */
const HELD_AT_A_DOOR = 2;
/** For a request to arrive at an upstream that holds it. */
const ARRIVES_MS = 4_000;
const LOOK_MS = 50;
const SAY_MS = 10_000;
/** Without any answer, or with a reservation that does not end: longer than a lease, and the longest pause of a process. */
const STALLED_MS = 60_000;
const PRICE = '0.10';
const LARGE_PRICE = '0.30';

type Stage = {
  readonly world: World;
  readonly doors: readonly Door[];
  readonly journal: PassJournal;
  readonly api: DrawnApi;
  readonly draw: Draw;
  readonly scale: PassScale;
  /** Ends everything that hangs. */
  readonly stop: AbortSignal;
};

export async function runPasses(scale: PassScale, say: (line: string) => void = () => undefined): Promise<Verdict> {
  const draw = createDraw(scale.seed);
  const [faults, journal] = [createJournal(), createPassJournal()];
  const api = createDrawnApi(journal);
  const lag = monitorEventLoopDelay({ resolution: 10 });
  lag.enable();
  const selling = plansFor(scale);
  const world =
    scale.topology === 'one'
      ? await startWorld(api.start, faults, { readsChain: true, workers: 2, selling })
      : await startFleet(api.start, faults, { shape: REPLICAS, selling, fault: scale.fault });
  const stalled = new AbortController();
  const unwatch = watchBooks(world, journal);
  const stopSaying = sayProgress(journal, stalled, say);
  try {
    say('all processes are there');
    const stage: Stage = { world, doors: doorsOf(world), journal, api, draw, scale, stop: stalled.signal };
    world.restless(draw);
    await storm(stage).catch((error: unknown) => {
      if (!stalled.signal.aborted) throw error;
      const last = journal.requests
        .slice(-6)
        .map(({ order: { name }, who, end }) => `${name} at ${who}: ${JSON.stringify(end)}`);
      journal.violations.push(`nobody was served any more; at last ${last.join(', ')}`);
    });
    await world.calm();
    say(`all passes are used up, ${faults.kills.length} kills, ${faults.freezes.length} freezes`);
    const ends = await comeToRest(stage);
    await unwatch();
    return await judgePasses({ world, faults, journal, ends, lagMs: lag.max / 1e6 });
  } finally {
    stopSaying();
    lag.disable();
    await unwatch();
    await world.stop();
  }
}

function plansFor({ uses }: PassScale): string {
  const credit = (Math.max(10, Math.floor(uses / 10)) / 10).toFixed(2);
  return [
    'selling:',
    '  plans:',
    '    - id: default',
    `      price: { rules: [{ when: { query.size: [large] }, amount: "${LARGE_PRICE}" }] }`,
    '      passes:',
    `        - { id: many, amount: "0.70", uses: ${uses} }`,
    `        - { id: few, amount: "0.40", uses: ${FEW.uses} }`,
    `        - { id: money, amount: "0.90", credit: "${credit}" }`,
  ].join('\n');
}

/** All of them, in their turn. */
function doorsOf({ door }: World): readonly Door[] {
  const doors = new Map<string, Door>();
  for (let each = door(); !doors.has(each.who); each = door()) doors.set(each.who, each);
  return [...doors.values()];
}

function sayProgress(journal: PassJournal, stalled: AbortController, say: (line: string) => void): () => void {
  let [last, movedAt] = [0, performance.now()];
  const timer = setInterval(() => {
    const served = journal.requests.filter(({ end }) => end.kind === 'served').length;
    say(`${journal.requests.length} requests, ${served} served`);
    if (served > last) [last, movedAt] = [served, performance.now()];
    if (performance.now() - movedAt > STALLED_MS) stalled.abort(new Error('nobody is served any more'));
  }, SAY_MS);
  return () => clearInterval(timer);
}

/** Everybody buys, draws and is killed, until the two large passes are used up. */
async function storm(stage: Stage): Promise<void> {
  const { journal, draw, scale } = stage;
  const [many, money, held] = await Promise.all([buy(stage, 'many'), buy(stage, 'money'), buy(stage, 'held')]);
  let drawn = 0;
  let isOver = false;
  const large = [many, money];
  const client = async (): Promise<void> => {
    for (;;) {
      const open = large.filter((pass) => !pass.isOver);
      const pass = open.length > 1 && draw.chance(0.85) ? many : open.at(-1);
      if (pass === undefined || stage.stop.aborted) return;
      const served = await drawOnce(stage, pass, makeOrder(journal, pass, draw));
      if (served && pass === many) drawn++;
    }
  };
  const crowds = async (): Promise<void> => {
    for (let sold = 0; sold < Math.max(2, scale.uses / FEW.everyUses); sold++)
      if (await reached(() => drawn >= sold * FEW.everyUses || isOver, stage.stop)) await crowd(stage);
  };
  const killing = async (): Promise<void> => {
    for (let kill = 0; kill < scale.kills; kill++) {
      const due = ((kill + draw.below(100) / 100) * scale.uses) / scale.kills;
      if (!(await reached(() => drawn >= due || isOver, stage.stop)) || isOver) return;
      await killBetween(stage, held);
    }
  };
  const clients = Promise.all(Array.from({ length: CLIENTS }, client)).then(() => void (isOver = true));
  await Promise.all([clients, crowds(), killing()]);
}

async function buy({ world, journal, draw, stop }: Stage, role: PassRole): Promise<BoughtPass> {
  const index = journal.sales++;
  const kind = role === 'money' ? 'credit' : 'uses';
  const method = draw.pick(['GET', 'POST'] as const);
  const bought = await buyPass(world, journal, { index, role, kind, method, amount: costOf(kind, false) }, stop);
  journal.passes.push(bought);
  return bought;
}

/** What a request takes, in the unit of the books. */
function costOf(kind: BoughtPass['kind'], isLarge: boolean): bigint {
  return kind === 'uses' ? 1n : creditUnits(isLarge ? LARGE_PRICE : PRICE);
}

/** True once `condition` holds; false if everything is ended before. */
async function reached(condition: () => boolean, stop: AbortSignal): Promise<boolean> {
  while (!condition()) {
    if (stop.aborted) return false;
    await setTimeout(LOOK_MS);
  }
  return true;
}

const CONDUCTS = ['slow', 'slow', 'large', 'not_found', 'fails', 'fails', 'hangs_up', 'breaks_off'] as const;

/** What a client of a large pass wants next. */
function makeOrder(journal: PassJournal, pass: BoughtPass, draw: Draw): Order {
  const conduct: Conduct = draw.chance(0.88) ? 'small' : draw.pick(CONDUCTS);
  return newOrder(journal, pass, {
    conduct,
    method: draw.pick(['GET', 'POST']),
    isLarge: pass.kind === 'credit' && draw.chance(0.3),
    isKeyed: draw.chance(0.2),
    shows: draw.chance(0.1) ? 'payment' : 'token',
    leavesAfterMs: draw.chance(0.03) ? draw.below(draw.pick([20, 150, 400])) : undefined,
  });
}

type Wanted = Pick<Order, 'conduct' | 'method'> &
  Partial<Pick<Order, 'isLarge' | 'shows' | 'leavesAfterMs'>> & { readonly isKeyed?: boolean };

function newOrder(journal: PassJournal, { index, kind }: BoughtPass, wanted: Wanted): Order {
  const { conduct, method, isLarge = false, isKeyed = false, shows = 'token', leavesAfterMs } = wanted;
  const name = `p${index}.${journal.orders.size}`;
  const amount = costOf(kind, isLarge);
  const order = {
    ...{ name, pass: index, method, conduct, amount, isLarge, shows, leavesAfterMs, buys: false },
    key: isKeyed ? `key-of-${name}` : undefined,
  };
  journal.orders.set(name, order);
  return order;
}

/** Sends an order, with a key until its answer is there; true if it was charged for an answer. */
async function drawOnce({ world, journal, stop }: Stage, pass: BoughtPass, order: Order): Promise<boolean> {
  for (let tries = 0; ; tries++) {
    // It leaves once: it asks again because it wants the answer.
    const asked = tries === 0 ? order : { ...order, leavesAfterMs: undefined };
    const answered = await sendOrder(world.door(), journal, asked, shownFor(pass, order));
    const { end } = answered.request;
    if (end.kind === 'served' && isChargedAnswer(order, end.status)) return true;
    if (isUsedUp(answered)) pass.isOver = true;
    const isLast = end.kind === 'told' && (end.status === 402 || end.code === 'idempotency_conflict');
    if (isLast || order.key === undefined || stop.aborted) {
      if (end.kind !== 'served') await setTimeout(pauseAfter(answered));
      return false;
    }
    await setTimeout(pauseAfter(answered));
  }
}

function isUsedUp({ request: { end } }: Answered): boolean {
  return end.kind === 'told' && end.status === 402 && end.code === 'pass_used_up';
}

/** A pass of a few uses, upon which many clients fall at once until it is used up. */
async function crowd(stage: Stage): Promise<void> {
  const { journal, draw } = stage;
  const pass = await buy(stage, 'few');
  const client = async (): Promise<void> => {
    while (!pass.isOver && !stage.stop.aborted)
      await drawOnce(stage, pass, newOrder(journal, pass, { conduct: 'small', method: draw.pick(['GET', 'POST']) }));
  };
  await Promise.all(Array.from({ length: FEW.clients }, client));
}

/** Kills somebody while requests have drawn at every door and wait for an answer. */
async function killBetween({ world, doors, journal, api, draw, stop }: Stage, pass: BoughtPass): Promise<void> {
  const orders: Order[] = [];
  const answers = doors.flatMap((door) =>
    Array.from({ length: HELD_AT_A_DOOR }, () => {
      const order = newOrder(journal, pass, { conduct: 'held', method: draw.pick(['GET', 'POST']) });
      orders.push(order);
      return sendOrder(door, journal, order, shownFor(pass, order));
    }),
  );
  const names = new Set(orders.map(({ name }) => name));
  let ended = 0;
  for (const answer of answers) void answer.then(() => ended++);
  const arrived = (): number => journal.runs.filter(({ order }) => names.has(order)).length;
  const late = performance.now() + ARRIVES_MS;
  await reached(() => arrived() + ended >= orders.length || performance.now() > late, stop);
  await world.kill(draw);
  api.release();
  // Those that arrive only now are not held: one of them could wait for longer than everybody's patience.
  const releasing = setInterval(api.release, LOOK_MS);
  await Promise.all(answers).finally(() => clearInterval(releasing));
}

/** Draws what is left of each pass, waits until nothing is reserved, and asks every door once more. */
async function comeToRest(stage: Stage): Promise<readonly PassEnding[]> {
  const { world, journal, doors } = stage;
  const endings: PassEnding[] = [];
  for (const pass of journal.passes) {
    const least = costOf(pass.kind, false);
    const order = (): Order => newOrder(journal, pass, { conduct: 'small', method: 'GET' });
    const late = performance.now() + STALLED_MS;
    for (;;) {
      const books = await readBooks(world, pass);
      const isAtRest = books?.reserved === 0n && (pass.role === 'held' || books.left < least);
      if (isAtRest || performance.now() > late) break;
      if (books !== undefined && books.left >= least && pass.role !== 'held') await drawOnce(stage, pass, order());
      else await setTimeout(LOOK_MS);
    }
    const last = pass.role === 'held' ? [] : doors;
    const asked = last.map((door) => {
      const one = order();
      return sendOrder(door, journal, one, shownFor(pass, one));
    });
    const told = (await Promise.all(asked)).map(({ request: { end } }) =>
      end.kind === 'told' ? `${end.status} ${end.code}` : end.kind,
    );
    endings.push({ pass, books: await readBooks(world, pass), told });
  }
  return endings;
}
