// What must hold after a run, judged by the upstream's, the facilitator's, the clients' and the chain's own records. The
// ledger is only compared with them.
import type { Client } from './client.ts';
import type { ClientRequest, Journal } from './journal.ts';
import { readPaid } from './paid.ts';
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
const RUNS = { GET: 14, POST: 5 } as const;

export type Verdict = { readonly violations: readonly string[]; readonly counts: Readonly<Record<string, number>> };

/** `lagMs`: how late this process read what came, at worst: upstream, facilitator and clients live in it. */
export async function judgeRun(
  world: World,
  journal: Journal,
  clients: readonly Client[],
  lagMs: number,
): Promise<Verdict> {
  const violations: string[] = [];
  const paid = await readPaid(world.chain, PAY_TO);
  const charges = new Map((await world.charges()).map((charge) => [charge.nonce, charge]));
  const requests = Map.groupBy(journal.requests, ({ n }) => n);
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
    judgeMoney(client, mine, paid.has(client.nonce), charges.get(client.nonce), wrong, journal.kills);
    judgeAnswers(client, mine, journal, charges.get(client.nonce), wrong);
    judgeSettles(client, mine, journal, lagMs, wrong);
  }
  for (const { n, run, chargeId } of journal.runs) {
    if (chargeId === '') violations.push(`payment ${n}: run ${run} of the handler was not paid for`);
  }
  const settled = [...charges.values()].filter(isSettled);
  const booked = settled.reduce((sum, { amount_atomic: amount }) => sum + BigInt(amount), 0n);
  const earned = await world.chain.balanceOf(PAY_TO);
  if (booked !== earned) violations.push(`the ledger has ${booked}, the chain ${earned}`);
  if (BigInt(paid.size) * PRICE !== earned) violations.push(`${paid.size} payments moved ${earned}`);
  return { violations, counts: countEnds(journal, clients, paid.size, settled.length) };
}

type Wrong = (what: string) => void;

function judgeMoney(
  { plan, gaveUp }: Client,
  mine: readonly ClientRequest[],
  moved: boolean,
  charge: ListedCharge | undefined,
  wrong: Wrong,
  kills: Journal['kills'],
): void {
  const served = mine.some(({ end }) => end.kind === 'served' && end.charged);
  if (moved !== (charge !== undefined && isSettled(charge))) wrong(`moved ${moved}, and the ledger disagrees`);
  if (charge !== undefined && (charge.status === 'claimed' || charge.status === 'settling')) wrong('never ends');
  if (served && !moved) wrong('was served under a receipt and no money moved');
  if (gaveUp && moved) wrong('was told that nothing was taken, and was charged');
  if ((plan.kind === 'poor' || plan.kind === 'forged') && moved) wrong('was charged for a payment that is no good');
  // Where it cannot be delivered any more its payer is told so, and the books say that it is owed or was partly there.
  const toldPaid = mine.some(({ end }) => end.kind === 'told' && end.code.startsWith('already_paid'));
  if (moved && !served && !toldPaid && !lostAnswer(mine, charge, kills)) wrong('was charged and has no answer');
  if (
    moved &&
    !served &&
    toldPaid &&
    plan.version === 2 &&
    charge?.['partial'] !== true &&
    (charge?.['owed'] ?? null) === null
  ) {
    wrong('was charged, has no answer, and the books owe nothing');
  }
}

/**
 * Whether the whole answer was handed over while its client was leaving, and the copy that is kept for such a client died
 * with the process before it came back: what lies in the buffer of a client's socket nobody can know.
 */
function lostAnswer(
  mine: readonly ClientRequest[],
  charge: ListedCharge | undefined,
  kills: Journal['kills'],
): boolean {
  const deliveredAt = Date.parse(charge?.delivered_at ?? '') - performance.timeOrigin;
  const left = mine.some(
    ({ from, to, end }) => unread.has(end.kind) && from <= deliveredAt && deliveredAt <= to + SEEN_MS,
  );
  const last = Math.max(...mine.map(({ to }) => to));
  return left && kills.some(({ at }) => at > deliveredAt && at < last);
}

const unread = new Set<ClientRequest['end']['kind']>(['left', 'broken', 'cut']);

function judgeAnswers(
  { plan }: Client,
  mine: readonly ClientRequest[],
  journal: Journal,
  charge: ListedCharge | undefined,
  wrong: Wrong,
): void {
  const whole = mine.flatMap(({ end, to }) =>
    end.kind === 'served' && end.status < 500 && end.charged ? [{ run: end.run, at: to }] : [],
  );
  const runs = new Set(whole.map(({ run }) => run));
  // Killed between the last byte and its record, the process cannot know that the answer arrived.
  const times = whole.map(({ at }) => at);
  const [first, last] = [Math.min(...times), Math.max(...times)];
  const killed = journal.kills.filter(({ at }) => at > first - SEEN_MS && at < last).length;
  if (runs.size > 1 + killed) wrong(`was delivered ${runs.size} times`);
  const asked = journal.runs.filter(({ n }) => n === plan.n).length;
  const claims = Number(charge?.['claims'] ?? 1);
  // Before it is settled a run may be repeated with every claim.
  if (asked > RUNS[plan.method] + claims - 1) wrong(`ran the handler ${asked} times`);
}

/** A settle call is sent only for a request that waits for it. */
function judgeSettles(
  { nonce }: Client,
  mine: readonly ClientRequest[],
  journal: Journal,
  lagMs: number,
  wrong: Wrong,
): void {
  for (const { at } of journal.settles.filter((call) => call.nonce === nonce)) {
    const waited = mine.some(({ from, to, end }) => {
      const gone = end.kind === 'left' || end.kind === 'broken';
      return at >= from && at <= to + lagMs + (gone ? LEFT_SLACK_MS : SLACK_MS);
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
