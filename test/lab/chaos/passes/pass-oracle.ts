// What must hold of passes after a run, by the records of clients, upstream and chain; the books are compared with them. Each pass
// was paid for once, gives what was bought and no more, and takes nothing for an answer that its client could not have, but for
// what the rule of leases says: of each pass three uses are given back whose process died, and three whose client went.
import { GIVEN_BACK_AT_MOST } from '../../../../src/domain/selling/pass-book.ts';
import { firstUseOf } from '../../../../src/domain/selling/pass-opening.ts';
import type { Journal } from '../journal.ts';
import type { Verdict } from '../oracle.ts';
import { readPaid } from '../paid.ts';
import { PAY_TO, type World } from '../world.ts';
import { faultOf } from './books.ts';
import { isChargedAnswer } from './draw-client.ts';
import type { BoughtPass, Order, PassEnding, PassJournal, PassRequest, PassRun } from './pass-journal.ts';

type Judged = {
  readonly world: World;
  readonly faults: Journal;
  readonly journal: PassJournal;
  readonly ends: readonly PassEnding[];
  /** How late this process read what came, at worst. */
  readonly lagMs: number;
};

/** From the end of a process to the moment in which a client sees it, or the other way round. */
const SEEN_MS = 1_000;
/** For the word that a use is given back to be written, while the ledger answers, and while it was away. */
const WORD_MS = 15_000;
const AWAY_WORD_MS = 60_000;
/** Of a use that nobody renews; less what a busy machine takes. */
const LEASE_MS = 10_000 - 3_000;
/** One of a currency, in the unit of the books. */
const CREDIT_UNIT = 1e18;
/** Times that the upstream is asked for one key. */
const ASKS = 4;

/** Answers of ours that a good pass may get. */
const TOLD =
  /^(402 pass_used_up|409 (pass_in_use|idempotency_conflict)|502 upstream_\w+|503 (ledger_unavailable|not_ready|registry_unavailable))$/;

export async function judgePasses({ world, faults, journal, ends, lagMs }: Judged): Promise<Verdict> {
  const violations = [...journal.violations];
  const runs = new Map(journal.runs.map((run) => [run.run, run]));
  const requests = Map.groupBy(journal.requests, ({ order }) => order.pass);
  const ran = Map.groupBy(journal.runs, ({ order }) => journal.orders.get(order)?.pass);
  for (const { order, run } of ran.get(undefined) ?? []) violations.push(`run ${run} is for nobody's order: ${order}`);
  const counts: Record<string, number> = {};
  const count = (what: string, by = 1): void => void (counts[what] = (counts[what] ?? 0) + by);
  for (const end of ends) {
    const { pass } = end;
    const wrong = (what: string): void => void violations.push(`pass ${pass.index} (${pass.role}) ${what}`);
    const mine = requests.get(pass.index) ?? [];
    judgeAnswers(mine, { runs, faults, lagMs }, wrong);
    judgeUses(ran.get(pass.index) ?? [], journal.orders, wrong);
    judgeBooks({ end, mine, ran: ran.get(pass.index) ?? [], faults, lagMs }, wrong, count);
  }
  violations.push(...(await judgeMoney(world, journal.passes)));
  count('passes sold', ends.length);
  count('looks at the books', journal.looks);
  count('requests', journal.requests.length);
  count('runs of the handler', journal.runs.length);
  count('kills', faults.kills.length);
  for (const { who, how } of faults.kills) count(`${who.replace(/ \d+$/, '')}: ${how}`);
  count('stood still for longer than a lease', faults.freezes.length);
  for (const [what, often] of [...faults.weather].toSorted(([a], [b]) => (a < b ? -1 : 1))) count(what, often);
  for (const { end } of journal.requests) count(end.kind === 'told' ? `told ${end.status} ${end.code}` : end.kind);
  return { violations, counts };
}

type Wrong = (what: string) => void;
type Troubles = { readonly faults: Journal; readonly lagMs: number };

function describe({ order, who, from, to, end }: PassRequest): string {
  return `${order.name} ${order.method} ${order.conduct}${order.key === undefined ? '' : ' with a key'} at ${who}, ${from.toFixed(0)}-${to.toFixed(0)}: ${JSON.stringify(end)}`;
}

/** Whether `who` was killed between two moments. */
function wasKilled({ faults, lagMs }: Troubles, who: string, from: number, to: number): boolean {
  return faults.kills.some((kill) => kill.who === who && kill.at >= from - lagMs - SEEN_MS && kill.at <= to + lagMs);
}

/** Whether `who` was away for a while between two moments, or on its way back: it holds connections until a worker is there. */
function wasAway({ faults, lagMs }: Troubles, { who, from, to }: PassRequest): boolean {
  return faults.kills.some(
    ({ who: killed, at, backAt }) => killed === who && at <= to + lagMs + SEEN_MS && backAt >= from - lagMs - SEEN_MS,
  );
}

/** Whether `who` stood still while it was asked. */
function wasFrozen({ faults, lagMs }: Troubles, { who, from, to }: PassRequest): boolean {
  return faults.freezes.some((each) => each.who === who && each.at <= to + lagMs && each.backAt >= from - lagMs);
}

/** A good pass may get it. Who stood still finds all its time-outs over before it reads what came meanwhile. */
function isTold(status: number, code: string, isFrozen: boolean): boolean {
  return TOLD.test(`${status} ${code}`) || (isFrozen && code === 'upstream_timeout');
}

/** Every answer is one of this request's own; connections end only with a process, or with the upstream's. */
function judgeAnswers(
  mine: readonly PassRequest[],
  { runs, ...troubles }: Troubles & { readonly runs: ReadonlyMap<number, PassRun> },
  wrong: Wrong,
): void {
  for (const request of mine) {
    const { order, end } = request;
    switch (end.kind) {
      case 'served':
        if (runs.get(end.run ?? 0)?.order !== order.name)
          wrong(`has an answer of another request: ${describe(request)}`);
        break;
      case 'cut':
      case 'broken':
      case 'refused':
        if (order.conduct !== 'breaks_off' && !wasAway(troubles, request))
          wrong(`was cut by a process that lived: ${describe(request)}`);
        break;
      case 'told':
        if (!order.buys && !isTold(end.status, end.code, wasFrozen(troubles, request)))
          wrong(`is good, and was told ${describe(request)}`);
        if (end.code === 'idempotency_conflict' && order.key === undefined) wrong(`has no key: ${describe(request)}`);
        break;
      case 'left':
        break;
      default:
        end satisfies never;
    }
  }
}

/** Each run is a use; two orders are two uses, and requests with one key are one, for which the upstream is asked four times. */
function judgeUses(ran: readonly PassRun[], orders: ReadonlyMap<string, Order>, wrong: Wrong): void {
  for (const { run, order, useId } of ran) if (useId === '') wrong(`run ${run} for ${order} is no use`);
  const byUse = Map.groupBy(ran, ({ useId }) => useId);
  for (const [useId, those] of byUse) {
    const names = new Set(those.map(({ order }) => order));
    if (names.size > 1) wrong(`has one use for several orders: ${useId} for ${[...names].join(', ')}`);
  }
  for (const [name, those] of Map.groupBy(ran, ({ order }) => order)) {
    const order = orders.get(name);
    if (order === undefined || order.buys) continue;
    const uses = new Set(those.map(({ useId }) => useId));
    if (uses.size > 1) wrong(`draws several times for one order: ${name} as ${[...uses].join(', ')}`);
    // A connection that was kept, and ends before an answer, is tried anew.
    const most = (order.key === undefined ? 1 : ASKS) + (order.conduct === 'hangs_up' ? 1 : 0);
    if (those.length > most) wrong(`asked the upstream ${those.length} times for ${name}`);
  }
}

type PassRecords = Troubles & {
  readonly end: PassEnding;
  readonly mine: readonly PassRequest[];
  readonly ran: readonly PassRun[];
};

/** What was drawn lies between what clients have and that with all that they may have lost. */
function judgeBooks(records: PassRecords, wrong: Wrong, count: (what: string, by?: number) => void): void {
  const { end, mine, ran } = records;
  const { pass, books, told } = end;
  if (books === undefined) return wrong('has no books at the end');
  const fault = faultOf(books);
  if (fault !== undefined) wrong(fault);
  if (books.reserved > 0n) wrong(`has ${books.reserved} reserved at the end`);
  for (const each of told) if (each !== '402 pass_used_up') wrong(`is used up, and a door says ${each}`);

  const delivered = deliveredUses(mine, ran);
  const had = sum([...delivered.values()]);
  const { lost, left, doubtful, consumers } = lossesOf(records, delivered);
  const dead = [...lost, ...left];
  // The dearest were given back, where nobody can know which.
  const givenBack = (lost.length > 0 ? GIVEN_BACK_AT_MOST : 0) + (left.length > 0 ? GIVEN_BACK_AT_MOST : 0);
  const least = had + sum(dead.toSorted(byAmount).slice(0, Math.max(0, dead.length - givenBack)));
  const back = Math.max(0, Math.min(GIVEN_BACK_AT_MOST, lost.length) - consumers);
  const most = had + sum(doubtful) - sum(lost.toSorted(byAmount).slice(0, back));
  const figures = `${books.drawn} drawn of ${books.sold}; clients have ${had}; ${lost.length} requests died with their process before any answer, ${left.length} were left before one, ${doubtful.length} may have been drawn for nothing`;
  if (had > books.sold) wrong(`gave more than was bought: ${figures}`);
  if (books.drawn < least) wrong(`took less than ${least}: ${figures}`);
  if (books.drawn > most) wrong(`took more than ${most}: ${figures}`);
  const kind = `${pass.role}: `;
  const units = (amount: bigint): number => (pass.kind === 'uses' ? Number(amount) : Number(amount) / CREDIT_UNIT);
  count(`${kind}bought`, units(books.sold));
  count(`${kind}drawn`, units(books.drawn));
  count(`${kind}clients have`, units(had));
  count(`${kind}drawn, and no client has the answer`, units(books.drawn - had));
  count(`${kind}killed between draw and answer`, lost.length);
  count(`${kind}left before an answer`, left.length);
}

function sum(amounts: readonly bigint[]): bigint {
  return amounts.reduce((all, each) => all + each, 0n);
}

function byAmount(one: bigint, other: bigint): number {
  return Number(one - other);
}

/** Uses whose charged answer a client has, whole, with what they take. */
function deliveredUses(mine: readonly PassRequest[], ran: readonly PassRun[]): ReadonlyMap<string, bigint> {
  const runs = new Map(ran.map((run) => [run.run, run]));
  const uses = new Map<string, bigint>();
  for (const { order, end } of mine) {
    const run = end.kind === 'served' ? runs.get(end.run ?? 0) : undefined;
    if (end.kind === 'served' && run !== undefined && isChargedAnswer(order, end.status))
      uses.set(run.useId, order.amount);
  }
  return uses;
}

type Losses = {
  /** Requests that had drawn, and whose process died before it had any of an answer. */
  readonly lost: readonly bigint[];
  /** Those whose client went before that. */
  readonly left: readonly bigint[];
  /** All that may have drawn without an answer, those among them. */
  readonly doubtful: readonly bigint[];
  /** Requests that may have used up what is given back, though they are not lost. One whose use was taken at once did not. */
  readonly consumers: number;
};

function lossesOf(
  { end: { pass }, mine, ran, ...troubles }: PassRecords,
  delivered: ReadonlyMap<string, bigint>,
): Losses {
  const runs = Map.groupBy(ran, ({ order }) => order);
  const [lost, left]: [bigint[], bigint[]] = [[], []];
  const doubtful: bigint[] = [];
  let consumers = 0;
  const buying = mine.find(({ order }) => order.buys)?.order;
  if (!delivered.has(firstUseOf(pass.id))) doubtful.push(buying?.amount ?? 0n);
  for (const [name, those] of Map.groupBy(mine, ({ order }) => order.name)) {
    const [{ order }] = those as [PassRequest];
    const [run] = runs.get(name) ?? [];
    const isHad = run !== undefined && delivered.has(run.useId);
    const open = those.filter((request) => mayHaveDrawn(request, troubles));
    if (order.buys) doubtful.push(...open.map(() => order.amount));
    else if (open.length > 0 && !isHad) doubtful.push(order.amount);
    const [only] = those.length === 1 && order.key === undefined && !order.buys ? those : [];
    const isUnanswered = run !== undefined && !run.hasBegun && run.endedAt < Infinity;
    if (only !== undefined && isUnanswered && only.end.kind === 'broken') lost.push(order.amount);
    else if (only !== undefined && isUnanswered && only.end.kind === 'left') left.push(order.amount);
    else if (only !== undefined && isHad) continue;
    else if (open.length > 0 || those.some(({ from, to, end }) => to - from >= LEASE_MS || isFailure(end))) consumers++;
  }
  return { lost, left, doubtful, consumers };
}

function isFailure(end: PassRequest['end']): boolean {
  return (end.kind === 'told' || end.kind === 'served') && end.status >= 500;
}

/**
 * Whether a request may have drawn though its client has nothing: the answer was on its way, or the word that nothing was drawn died
 * with its process.
 */
function mayHaveDrawn({ order, who, from, to, end }: PassRequest, troubles: Troubles): boolean {
  switch (end.kind) {
    case 'left':
      return true;
    case 'broken':
    case 'cut':
      return order.conduct === 'breaks_off' || wasKilled(troubles, who, from, to + SEEN_MS);
    case 'served':
      return !isChargedAnswer(order, end.status) && wasKilled(troubles, who, from, to + WORD_MS);
    case 'told':
      return end.status >= 500 && wasKilled(troubles, who, from, to + (end.status === 503 ? AWAY_WORD_MS : WORD_MS));
    case 'refused':
      return false;
    default:
      return end satisfies never;
  }
}

/** One transfer for each pass, and no other. */
async function judgeMoney(world: World, passes: readonly BoughtPass[]): Promise<readonly string[]> {
  const violations: string[] = [];
  const paid = await readPaid(world.chain, PAY_TO);
  for (const { index, nonces } of passes) {
    const transfers = nonces.filter((nonce) => paid.has(nonce)).length;
    if (transfers !== 1) violations.push(`pass ${index} was paid for ${transfers} times`);
  }
  if (paid.size !== passes.length) violations.push(`${paid.size} payments for ${passes.length} passes`);
  const [earned, price] = [await world.chain.balanceOf(PAY_TO), sum(passes.map(({ atomic }) => atomic))];
  if (earned !== price) violations.push(`the chain moved ${earned} for passes of ${price}`);
  const charges = await world.charges();
  const settled = charges.filter(({ status }) => status === 'settled' || status === 'delivered');
  if (settled.length !== passes.length)
    violations.push(`${settled.length} charges are settled for ${passes.length} passes`);
  return violations;
}
