// What must hold after a run, judged by the upstream's, the facilitator's, the clients' and the chain's own records. The
// ledger is only compared with them.
import type { Client } from './client.ts';
import type { ClientRequest, FrontLine, Journal, Run, SettleCall } from './journal.ts';
import { readPaid } from './paid.ts';
import type { Conduct } from './plan.ts';
import { PAY_TO, PRICE, SETTLE_MS, type ListedCharge, type World } from './world.ts';

/**
 * A call that left before its client was answered may be read by a busy facilitator this much later: as long as Tollgate
 * waits for one. A settlement for nobody comes seconds later, or after a restart.
 */
const SLACK_MS = SETTLE_MS;
/** The same after a client left: that it is gone is noticed a little later. */
const LEFT_SLACK_MS = SETTLE_MS + 1_000;
/** From the last byte of an answer to the moment in which its client is known to have it. */
const SEEN_MS = 300;
const RUNS = { GET: 17, POST: 5 } as const;
/** Of a claim that nobody renews; less what a busy machine takes between the claim and the run of the handler. */
const LEASE_MS = 10_000 - 3_000;
/** From the end of a claim to the moment in which the upstream sees its connection end. */
const END_SEEN_MS = 500;
/** For the record of a delivery, however often the database is away meanwhile: its time-out, and the lease of the charge. */
const RECORD_MS = 15_000;

export type Verdict = { readonly violations: readonly string[]; readonly counts: Readonly<Record<string, number>> };

/**
 * `lagMs`: how late this process read what came, at worst: upstream, facilitator and clients live in it. `isAsked`: payers came
 * through a front that asked.
 */
export async function judgeRun(
  world: World,
  journal: Journal,
  clients: readonly Client[],
  { lagMs, isAsked }: { readonly lagMs: number; readonly isAsked: boolean },
): Promise<Verdict> {
  const violations: string[] = [];
  const paid = await readPaid(world.chain, PAY_TO);
  const charges = new Map((await world.charges()).map((charge) => [charge.nonce, charge]));
  const requests = Map.groupBy(journal.requests, ({ n }) => n);
  const runs = Map.groupBy(journal.runs, ({ n }) => n);
  const settles = Map.groupBy(journal.settles, ({ nonce }) => nonce);
  const seen = { kills: journal.kills, freezes: journal.freezes, lagMs };
  const front = isAsked ? Map.groupBy(journal.front, ({ n }) => n) : undefined;
  let again = 0;
  for (const client of clients) {
    const mine = requests.get(client.plan.n) ?? [];
    const wrong = (what: string): void => {
      const told = mine
        .map(({ from, to, end }) => `${from.toFixed(0)}-${to.toFixed(0)} ${describeEnd(end)}`)
        .join(', ');
      violations.push(
        `payment ${client.plan.n} (${JSON.stringify(client.plan)}) ${what}; its requests: ${told}; charge: ${JSON.stringify(charges.get(client.nonce))}`,
      );
    };
    const lines = front && (front.get(client.plan.n) ?? []);
    judgeMoney(client, mine, { moved: paid.has(client.nonce), lines, charge: charges.get(client.nonce) }, seen, wrong);
    const ran = runs.get(client.plan.n) ?? [];
    again += judgeAnswers(client, mine, ran, seen, charges.get(client.nonce), wrong);
    judgeRuns(client, mine, ran, seen, wrong);
    judgeLeases(ran, seen, wrong);
    judgeSettles(settles.get(client.nonce) ?? [], mine, seen, wrong);
  }
  for (const { n, run, chargeId } of journal.runs) {
    if (chargeId === '') violations.push(`payment ${n}: run ${run} of the handler was not paid for`);
  }
  const settled = [...charges.values()].filter(isSettled);
  const booked = settled.reduce((sum, { amount_atomic: amount }) => sum + BigInt(amount), 0n);
  const earned = await world.chain.balanceOf(PAY_TO);
  if (booked !== earned) violations.push(`the ledger has ${booked}, the chain ${earned}`);
  if (BigInt(paid.size) * PRICE !== earned) violations.push(`${paid.size} payments moved ${earned}`);
  const counts = {
    ...countEnds(journal, clients, paid.size, settled.length),
    'delivered again after a death or a freeze': again,
  };
  return { violations, counts };
}

type Wrong = (what: string) => void;
/** What happened to processes; `lagMs` as above. */
type Troubles = Pick<Journal, 'kills' | 'freezes'> & { readonly lagMs: number };

/** When what a process did at `at` at the latest could be seen: one that stood still then does it when it goes on. */
function seenBy({ freezes, lagMs }: Troubles, who: string, at: number): number {
  const frozen = freezes.filter((each) => each.who === who && each.at - SEEN_MS <= at && at <= each.backAt);
  return Math.max(at, ...frozen.map(({ backAt }) => backAt)) + lagMs;
}

function judgeMoney(
  { plan, gaveUp }: Client,
  mine: readonly ClientRequest[],
  { moved, lines, charge }: Books,
  troubles: Troubles,
  wrong: Wrong,
): void {
  const served = mine.some(({ end }) => end.kind === 'served' && end.charged);
  if (moved !== (charge !== undefined && isSettled(charge))) wrong(`moved ${moved}, and the ledger disagrees`);
  if (charge !== undefined && (charge.status === 'claimed' || charge.status === 'settling')) wrong('never ends');
  if (served && !moved) wrong('was served under a receipt and no money moved');
  if (gaveUp && moved) wrong('was told that nothing was taken, and was charged');
  if ((plan.kind === 'poor' || plan.kind === 'forged') && moved) wrong('was charged for a payment that is no good');
  // Where it cannot be delivered any more its payer is told so, and the books say that it is owed or was partly there.
  const toldPaid = mine.some(({ end }) => end.kind === 'told' && end.code.startsWith('already_paid'));
  if (moved && !served && !toldPaid && !lostAnswer(mine, charge, troubles)) wrong('was charged and has no answer');
  if (
    moved &&
    !served &&
    toldPaid &&
    plan.version === 2 &&
    charge?.['partial'] !== true &&
    (charge?.['owed'] ?? null) === null &&
    !(lines !== undefined && wasHandedOver(lines, mine))
  ) {
    wrong('was charged, has no answer, and the books owe nothing');
  }
}

/** What chain, front and ledger say of one payment. `lines` undefined: no front stood in between. */
type Books = {
  readonly moved: boolean;
  readonly lines: readonly FrontLine[] | undefined;
  readonly charge: ListedCharge | undefined;
};

/**
 * Whether a front had its allow and nothing more is owed by Tollgate: it was not told that this led nowhere. A front whose client
 * left may not have read an allow that it was handed.
 */
function wasHandedOver(lines: readonly FrontLine[], mine: readonly ClientRequest[]): boolean {
  const last = lines.at(-1)?.what;
  if (last === 'reported' || last === 'report refused') return false;
  return last !== undefined || mine.some(({ end }) => unread.has(end.kind));
}

/**
 * Whether the whole answer was handed over while its client was leaving, and the copy that its process keeps for a minute
 * died with it, or was asked for elsewhere: what lies in the buffer of a client's socket nobody can know.
 */
function lostAnswer(mine: readonly ClientRequest[], charge: ListedCharge | undefined, troubles: Troubles): boolean {
  const deliveredAt = Date.parse(charge?.delivered_at ?? '') - performance.timeOrigin;
  const last = Math.max(...mine.map(({ to }) => to));
  return mine.some(
    ({ who, from, to, end }) =>
      unread.has(end.kind) &&
      from <= deliveredAt &&
      deliveredAt <= seenBy(troubles, who, to) + SEEN_MS &&
      (mine.some((other) => other.who !== who && other.to > deliveredAt) ||
        troubles.kills.some((kill) => kill.who === who && kill.at > deliveredAt && kill.at < last)),
  );
}

const unread = new Set<ClientRequest['end']['kind']>(['left', 'broken', 'cut']);

/**
 * A delivery is a run of the handler whose whole answer a client got under a receipt. There is one for a payment, and one more
 * only where the process that gave it was killed, or stood still for longer than its lease, when it had begun to give it and
 * before it could write that down: that is what is returned.
 */
function judgeAnswers(
  { plan }: Client,
  mine: readonly ClientRequest[],
  ran: readonly Run[],
  { kills, freezes, lagMs }: Troubles,
  charge: ListedCharge | undefined,
  wrong: Wrong,
): number {
  const whole = mine.filter(({ end }) => end.kind === 'served' && end.status < 500 && end.charged);
  const runOf = ({ end }: ClientRequest): number => (end.kind === 'served' ? (end.run ?? 0) : 0);
  const runs = Map.groupBy(whole, runOf);
  let again = 0;
  for (const [run, answers] of runs) {
    const next = Math.min(...whole.filter((answer) => runOf(answer) > run).map(({ to }) => to));
    if (next === Infinity) continue;
    const died = answers.some(
      ({ who, headAt = Infinity, to }) =>
        kills.some(
          (kill) => kill.who === who && kill.at > to - SEEN_MS - lagMs && kill.at < Math.min(next, to + RECORD_MS),
        ) ||
        freezes.some(
          (freeze) =>
            freeze.who === who &&
            freeze.at > headAt - SEEN_MS - lagMs &&
            freeze.at < Math.min(next - LEASE_MS, to + RECORD_MS),
        ),
    );
    if (died) again++;
    else wrong(`was delivered again after run ${run}, whose process lived on`);
  }
  const claims = Number(charge?.['claims'] ?? 1);
  // Before it is settled a run may be repeated with every claim.
  if (ran.length > RUNS[plan.method] + claims - 1) wrong(`ran the handler ${ran.length} times`);
  return again;
}

/**
 * A handler runs again for a payment only where the run before it came to nothing: by its own conduct, by the death of the
 * process that asked for it, or for a request that was told so or was not there any more.
 */
function judgeRuns(
  { plan }: Client,
  mine: readonly ClientRequest[],
  ran: readonly Run[],
  troubles: Troubles,
  wrong: Wrong,
): void {
  const { kills, freezes, lagMs } = troubles;
  for (const [index, { run, who, at }] of ran.entries()) {
    const next = ran[index + 1];
    if (next === undefined || USELESS.has(plan.conducts[run - 1] ?? 'small')) continue;
    const died =
      kills.some((kill) => kill.who === who && kill.at >= at - SEEN_MS - lagMs && kill.at <= next.at) ||
      freezes.some((freeze) => freeze.who === who && freeze.backAt >= at && freeze.at <= next.at - LEASE_MS);
    const came = mine.some(
      (request) =>
        request.who === who &&
        request.from <= at &&
        at <= seenBy(troubles, who, request.to) + LEFT_SLACK_MS &&
        isLost(request),
    );
    if (!died && !came) wrong(`ran again, at ${next.who}, after run ${run} at ${who}, which was good`);
  }
}

const USELESS: ReadonlySet<Conduct> = new Set(['not_found', 'fails', 'hangs_up', 'breaks_off']);

function isLost({ end }: ClientRequest): boolean {
  return (
    unread.has(end.kind) || (end.kind === 'told' && (end.status >= 500 || end.code.startsWith('settlement_refused')))
  );
}

/** While a process that lives works on a payment, no other one runs its handler. */
function judgeLeases(ran: readonly Run[], { kills, lagMs }: Troubles, wrong: Wrong): void {
  for (const first of ran) {
    const died = kills.find(({ who, at }) => who === first.who && at >= first.at)?.at ?? Infinity;
    const leaseUntil = Math.min(first.endedAt - END_SEEN_MS - lagMs, first.at + LEASE_MS, died);
    for (const { run, who, at } of ran)
      if (at > first.at && at < leaseUntil)
        wrong(
          `ran twice at once: run ${first.run} at ${first.who} and, ${(at - first.at).toFixed(0)} ms later, run ${run} at ${who}`,
        );
  }
}

/** A settle call is sent only for a request that waits for it. */
function judgeSettles(
  settles: readonly SettleCall[],
  mine: readonly ClientRequest[],
  troubles: Troubles,
  wrong: Wrong,
): void {
  for (const { at } of settles) {
    const waited = mine.some(({ who, from, to, end }) => {
      const gone = end.kind === 'left' || end.kind === 'broken';
      return at >= from && at <= seenBy(troubles, who, to) + (gone ? LEFT_SLACK_MS : SLACK_MS);
    });
    if (!waited) wrong(`was settled ${at.toFixed(0)} ms into the run, when nobody waited for it`);
  }
}

function isSettled({ status }: ListedCharge): boolean {
  return status === 'settled' || status === 'delivered';
}

function describeEnd(end: ClientRequest['end']): string {
  if (end.kind === 'told') return `${end.status} ${end.code}`;
  return end.kind === 'served' ? `served ${end.status} run ${end.run}${end.charged ? ' charged' : ''}` : end.kind;
}

function countEnds(
  journal: Journal,
  clients: readonly Client[],
  paid: number,
  settled: number,
): Readonly<Record<string, number>> {
  const ends = (kind: string): number => journal.requests.filter(({ end }) => end.kind === kind).length;
  return {
    payments: clients.length,
    requests: journal.requests.length,
    kills: journal.kills.length,
    ...countBy(journal.freezes.map(({ who }) => `${who}: SIGSTOP for longer than a lease`)),
    ...countBy(journal.kills.map(({ who, how }) => `${who}: ${how}`)),
    ...Object.fromEntries([...journal.weather].toSorted(([a], [b]) => (a < b ? -1 : 1))),
    ...countBy(journal.front.map(({ what }) => `front: ${what}`)),
    'runs of the handler': journal.runs.length,
    'calls to settle': journal.settles.length,
    'payments that moved money': paid,
    'charges settled': settled,
    'gave up': clients.filter(({ gaveUp }) => gaveUp).length,
    served: ends('served'),
    left: ends('left'),
    broken: ends('broken'),
    cut: ends('cut'),
    told: ends('told'),
  };
}

function countBy(names: readonly string[]): Readonly<Record<string, number>> {
  return Object.fromEntries(
    [...Map.groupBy(names.toSorted(), (name) => name)].map(([name, all]) => [name, all.length]),
  );
}
