// The upstream restarts again and again while payers pay and repeat without pauses. Whatever it does, nobody is charged
// without an answer to be had: at the end everybody has been answered once and charged once, and nothing is owed. One
// process on its own file, or two on one PostgreSQL.
import type { RequestListener } from 'node:http';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout } from 'node:timers/promises';
import { generatePrivateKey } from 'viem/accounts';
import { freshDatabase, stopSharedPostgres } from '../../postgres/store.ts';
import { createDraw, type Draw } from '../simulation/scheduler.ts';
import { createPayer } from '../../support/chain/payer.ts';
import { startPaidTollgate, type PaidTollgate } from '../../support/paid-tollgate.ts';
import type { Topology } from './plan.ts';
import { fund, PRICE, readCharges } from './world.ts';

export type OutageScale = {
  readonly topology: Topology;
  readonly payments: number;
  readonly seed: number;
  /** How long the upstream is away and there, in turns, in milliseconds: from, to. */
  readonly awayMs: readonly [number, number];
  readonly thereMs: readonly [number, number];
};

type Counts = Record<string, number>;
/** Asks that were lost, of each payment that has no answer yet, by its target. */
type Losses = Map<string, number>;

const CLIENTS = 24;
/** Between an answer and the same request again, whatever Retry-After says. */
const GAP_MS = 50;
/** The three pauses after which a POST is asked for again, and the longest outage, twice. */
const PATIENCE_MS = 400_000;
/** Some answers take long enough for the upstream to go in the middle. */
const SLOWEST_MS = 150;
/**
 * Asks of one payment that outages may cost it: a POST that fails three times is owed, by the contract. A busy machine
 * has more requests in flight when the upstream goes.
 */
const MOST_LOST = 2;
/** Shorter than the pause of 2 s after which a payment that failed once is asked for again. */
const AGAIN_MS = 1_800;
const SECRETS = 'a-secret-of-the-test-of-at-least-32-bytes';

export async function runOutages(
  scale: OutageScale,
  say: (line: string) => void = () => undefined,
): Promise<{ readonly violations: readonly string[]; readonly counts: Counts }> {
  const draw = createDraw(scale.seed);
  const counts: Counts = { outages: 0, payments: 0, 'runs of the handler': 0 };
  const violations: string[] = [];
  const losses: Losses = new Map();
  const paid = await startPaidTollgate({
    routes: ['* /paid/* 0.10'],
    handle: slowly(draw, counts, losses),
    ...(scale.topology === 'one' ? {} : await overPostgres()),
  });
  try {
    const doors = [paid.url(''), ...(scale.topology === 'one' ? [] : [(await paid.another()).url('proxy')])];
    const stop = new AbortController();
    const restarting = restart(paid, scale, { draw, counts, losses, signal: stop.signal });
    const next = Array.from({ length: scale.payments }, (_, n) => n).values();
    const client = async (): Promise<void> => {
      for (const n of next) {
        const method = n % 3 === 0 ? 'GET' : 'POST';
        losses.set(`/paid/${n}`, 0);
        const wrong = await payOnce(paid, doors, `/paid/${n}`, method, counts);
        losses.delete(`/paid/${n}`);
        if (wrong !== undefined) violations.push(`payment ${n} (${method}) ${wrong}`);
        counts['payments'] = (counts['payments'] ?? 0) + 1;
        if (counts['payments'] % 100 === 0) say(`${counts['payments']} payments, ${counts['outages']} outages`);
      }
    };
    await Promise.all(Array.from({ length: CLIENTS }, client));
    stop.abort();
    await restarting;
    violations.push(...(await judge(paid, counts['answered'] ?? 0)));
    return { violations, counts };
  } finally {
    await paid.stop();
    if (scale.topology === 'postgres') await stopSharedPostgres();
  }
}

async function overPostgres(): Promise<{ readonly registry: string; readonly more: string }> {
  const store = `store: "${await freshDatabase()}", jwt: { secret: ${SECRETS} }`;
  return { registry: store, more: `charges: { secrets: [${SECRETS}] }` };
}

function lose(losses: Losses, target: string, asks: number): void {
  const lost = losses.get(target);
  if (lost !== undefined) losses.set(target, lost + asks);
}

function slowly(draw: Draw, counts: Counts, losses: Losses): RequestListener {
  return (req, res) => {
    counts['runs of the handler'] = (counts['runs of the handler'] ?? 0) + 1;
    req.resume();
    res.once('close', () => {
      if (!res.writableFinished) lose(losses, req.url ?? '', 1);
    });
    const slow = draw.chance(0.1) ? draw.below(SLOWEST_MS) : 0;
    void setTimeout(slow).then(() => res.end(`answer to ${req.url ?? ''}`));
  };
}

type Restarting = {
  readonly draw: Draw;
  readonly counts: Counts;
  readonly losses: Losses;
  readonly signal: AbortSignal;
};

/** Takes the upstream away and brings it back, until `signal`; it is there at the end. */
async function restart(
  { upstream: { server, port } }: PaidTollgate,
  { awayMs, thereMs }: OutageScale,
  { draw, counts, losses, signal }: Restarting,
): Promise<void> {
  const between = ([from, to]: readonly [number, number]): number => from + draw.below(to - from + 1);
  const wait = (ms: number): Promise<unknown> => setTimeout(ms, undefined, { signal }).catch(() => undefined);
  const mostLost = (): number => Math.max(0, ...losses.values());
  while (!signal.aborted) {
    await wait(between(thereMs));
    // It stays until who has one ask left was answered.
    while (mostLost() >= MOST_LOST && !signal.aborted) await wait(GAP_MS);
    if (signal.aborted) return;
    counts['outages'] = (counts['outages'] ?? 0) + 1;
    await new Promise<void>((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
    // What stands in front of it may accept connections all the same.
    const accepts = draw.chance(0.3) && mostLost() === 0;
    const takeAway = accepts ? await closeAtOnce(port) : undefined;
    const since = performance.now();
    await wait(between(awayMs));
    await takeAway?.();
    // Any payment may have lost an ask then, or another one after its pause of 2 s.
    const asks = !accepts ? 0 : performance.now() - since < AGAIN_MS ? 1 : 2;
    for (const target of losses.keys()) lose(losses, target, asks);
    await new Promise<void>((resolve) => void server.listen(port, '127.0.0.1', resolve));
  }
}

/** A process of its own, so that it closes as quickly as such things do; what is returned ends it. */
async function closeAtOnce(port: number): Promise<() => Promise<void>> {
  const program = `require('node:net').createServer((s) => s.destroy()).listen(${port}, '127.0.0.1', () => console.log('there'))`;
  const front = spawn(process.execPath, ['-e', program], { stdio: ['ignore', 'pipe', 'inherit'] });
  await once(front.stdout, 'data');
  return async () => {
    const ended = once(front, 'exit');
    front.kill('SIGKILL');
    await ended;
  };
}

/** What is wrong with how it went; undefined: it was answered once, or every claim of its payment was given back. */
async function payOnce(
  paid: PaidTollgate,
  doors: readonly string[],
  target: string,
  method: 'GET' | 'POST',
  counts: Counts,
): Promise<string | undefined> {
  const payer = await createPayer(undefined, 0n, generatePrivateKey());
  await fund(paid.chain, payer.address);
  const credential = await paid.sign(await paid.quote(target, method), payer);
  const until = performance.now() + PATIENCE_MS;
  const told: string[] = [];
  for (let asked = 0; performance.now() < until; asked++) {
    const door = doors[asked % doors.length] ?? '';
    const response = await fetch(`${door}${target}`, { method, headers: { 'payment-signature': credential } });
    const text = await response.text().catch(() => 'cut');
    if (response.status === 200 && text === `answer to ${target}`) {
      counts['answered'] = (counts['answered'] ?? 0) + 1;
      return undefined;
    }
    const said = text.startsWith('{') ? (JSON.parse(text) as { code?: string; charged?: unknown }) : {};
    const what = `${response.status} ${said.code ?? text.slice(0, 40)} charged ${String(said.charged)}`;
    counts[what] = (counts[what] ?? 0) + 1;
    told.push(what);
    // Ten claims of one credential; it says nothing about the money, the books do.
    if (response.status === 402) return undefined;
    if (said.code === 'already_paid') return `ended as ${told.slice(-3).join(', ')}`;
    // A busy machine's ledger may be too late to claim anything: then there is no charge to tell of.
    const isTold = said.charged !== undefined || said.code === 'ledger_unavailable';
    if (!isTold && said.code !== undefined) return `was not told where its money is: ${what}`;
    await setTimeout(GAP_MS);
  }
  return `has no answer after ${PATIENCE_MS} ms: ${told.slice(-3).join(', ')}`;
}

async function judge(paid: PaidTollgate, answered: number): Promise<string[]> {
  const token = await paid.cli('token');
  const charges = await readCharges(paid.tollgate().url('registry'), token);
  const violations: string[] = [];
  const owed = charges.filter((charge) => charge['owed'] !== null);
  if (owed.length > 0) violations.push(`${owed.length} charges are owed: ${JSON.stringify(owed[0])}`);
  const taken = charges.filter((charge) => charge['charged'] === true);
  if (taken.length !== answered) violations.push(`${taken.length} charges took money for ${answered} answers`);
  const earned = await paid.earned();
  if (earned !== BigInt(answered) * PRICE) violations.push(`the chain moved ${earned} for ${answered} answers`);
  return violations;
}
