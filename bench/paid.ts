// `node bench/paid.ts [--seconds S] [--rounds N] [--connections N] [--root CHECKOUT ...] [--paid] [--profile] [--workers N] [--postgres]`: CPU of
// Tollgate per paid request, with a facilitator that says yes at once, in both settle modes, on the store as it is shipped
// (SQLite, every step durable). Several checkouts are all started and measured in turn, so that a drift of the machine
// meets all of them; two processes of one checkout differ by a few percent as long as they live, so each is better given twice
// or three times. Beside a single one the CPU of a constant answer of node:http is measured in every round: it tells the
// machine's pace. Every request carries a payment and a charge id of its own; every answer is checked for its status,
// body and receipt, and afterwards, Tollgate being killed, the rows of its store and the counts of facilitator and upstream
// have to agree.
// The signatures are made up: who checks them is the facilitator, and its time is not ours. What it does not show: a real
// facilitator takes tens of milliseconds, which is waiting and not work, and makes more requests share a commit.
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import type { ClosedJob, ClosedResult } from './closed.ts';
import { CONSTANT, PAID_GET, PAID_POST, suffixOf } from './names.ts';
import { startConstant } from './peers/peers.ts';
import {
  LOAD_CORE,
  NODE,
  readFamily,
  readThreadsUs,
  SERVER_CORE,
  startServer,
  type Server,
  type ThreadsUs,
} from './process.ts';
import { renderProfiles } from './profile.ts';
import { build, programOf } from './program.ts';
import { formatSpread, median, percentile, spread } from './report.ts';
import { runLoad } from './stage.ts';
import { startPostgres, type PostgresServer } from '../test/postgres/server.ts';
import { CONSTANT_ANSWER, POST_BODY, UPSTREAM_BODY } from './upstream-answers.ts';

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '4' },
    rounds: { type: 'string', default: '3' },
    connections: { type: 'string', default: '64' },
    root: { type: 'string', multiple: true, default: [path.resolve(import.meta.dirname, '..')] },
    /** Nothing but paid requests. */
    paid: { type: 'boolean', default: false },
    profile: { type: 'boolean', default: false },
    /** Processes that serve, on all cores; left out, one, on one core. */
    workers: { type: 'string' },
    /** The store is a PostgreSQL of this run; its CPU is told for itself. */
    postgres: { type: 'boolean', default: false },
  },
});
const seconds = Number(values.seconds);
const rounds = Number(values.rounds);
const connections = Number(values.connections);
const PAYER_COUNT = 64;
const SECRET = 'a-secret-of-the-bench-of-at-least-32-bytes';
const PAY_TO = '0x1111111111111111111111111111111111111111';
const BUSY_PAYERS = 4;
/**
 * Before anything is measured, and with every kind of request in turn: until tens of thousands of requests were made the
 * engine's compilers are at work, on threads of their own, and what they learned of one kind they learn anew with the
 * next. They take up to a fifth of what is measured meanwhile.
 */
const WARM = { passes: 3, requests: 8000 };
/** The machine itself changed its pace where rounds differ by more than this. */
const UNSTEADY = 1.3;
/** Of the end of a charge id, which the signature leaves out. */
const NONCE_CHARACTERS = 16;

type Accepted = { readonly extra: { readonly external_ref: string } };
type Reply = { readonly status: number; readonly body: string; readonly receipt: boolean; readonly demanded: string };
type Load = {
  readonly name: string;
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly status: number;
  readonly pays: boolean;
};
/** One checkout of Tollgate under load. */
type Entrant = {
  /** Of its rows. */
  readonly suffix: string;
  readonly ask: (load: Load) => Promise<void>;
  /** Asks without a pause until the time is over and so many requests were answered; how long each took, ms. */
  readonly fire: (load: Load, ms: number, requests?: number) => Promise<number[]>;
  readonly measure: (load: Load) => Promise<Measured>;
  /** Ends it and holds its store against what was answered. */
  readonly finish: () => Promise<{ readonly payments: number; readonly forwarded: number }>;
};
type Measured = ThreadsUs & {
  readonly rate: number;
  readonly p50: number;
  readonly p99: number;
  readonly database: number;
};
/** Of constant answers: CPU us of one, and how many a second. */
type Pace = { readonly cpuUs: number; readonly rate: number };

const FREE: Load = { name: 'free GET', method: 'GET', path: '/free', status: 200, pays: false };
const UNPAID: Load = { name: '402', method: 'GET', path: '/paid/x', status: 402, pays: false };
const PAID_GETS: Load = { name: PAID_GET, method: 'GET', path: '/paid/x', status: 200, pays: true };
const PAID: readonly Load[] = [
  PAID_GETS,
  { name: PAID_POST, method: 'POST', path: '/paid/x', status: 200, pays: true },
];

const database = values.postgres ? await startPostgres({ settings: { autovacuum: 'on' } }) : undefined;
const folder = mkdtempSync(path.join(tmpdir(), 'tollgate-bench-paid-'));
const started: { stop: () => Promise<void> }[] = [];
try {
  await main();
} finally {
  for (const server of started.reverse()) await server.stop();
  await database?.close();
  if (!values.profile) rmSync(folder, { recursive: true, force: true });
}

async function main(): Promise<void> {
  const services = await start('services', ['bench/paid-services.ts'], LOAD_CORE, ['facilitator', 'upstream']);
  const entrants: Entrant[] = [];
  for (const [index, root] of values.root.entries()) entrants.push(await enter(root, suffixOf(index), services));
  // A profile is of paid requests alone.
  const loads = values.paid || values.profile ? PAID : [FREE, UNPAID, ...PAID];
  for (let pass = 0; pass < WARM.passes; pass++)
    for (const { fire } of entrants) for (const load of loads) await fire(load, 0, WARM.requests);
  const answerConstantly = entrants.length > 1 ? undefined : await startYardstick();
  const pace: Pace[] = [];
  const measuredFromUs = Number(process.hrtime.bigint() / 1000n);
  const results = new Map<string, Measured[]>();
  const take = async ({ suffix, measure }: Entrant, load: Load, name = load.name): Promise<void> => {
    const row = name + suffix;
    results.set(row, [...(results.get(row) ?? []), await measure(load)]);
  };
  for (let round = 0; round < rounds; round++) {
    // Whoever comes first comes after another kind of request: not always the same.
    const inTurn = round % 2 === 0 ? entrants : entrants.toReversed();
    for (const load of loads) for (const entrant of inTurn) await take(entrant, load);
    if (answerConstantly !== undefined) pace.push(await answerConstantly());
    if (!loads.includes(FREE)) continue;
    // Free requests beside a process that is busy being paid: CPU is that of both, the latency that of the free ones alone.
    for (const entrant of inTurn) {
      const others = new AbortController();
      const busy = Array.from({ length: BUSY_PAYERS }, async () => {
        while (!others.signal.aborted) await entrant.ask(PAID_GETS);
      });
      await take(entrant, FREE, `free GET while ${BUSY_PAYERS} others pay without a pause`);
      others.abort();
      await Promise.all(busy);
    }
  }
  show(results, pace);
  const expected = { verify: 0, settle: 0, upstream: 0 };
  for (const { finish } of entrants) {
    const { payments, forwarded } = await finish();
    expected.verify += payments;
    expected.settle += payments;
    expected.upstream += forwarded;
  }
  const counts = JSON.parse((await call(services.port('upstream'), new Agent(), 'GET', '/counts', {})).body) as object;
  console.log(`Facilitator and upstream: ${JSON.stringify(counts)}`);
  if (JSON.stringify(counts) !== JSON.stringify(expected))
    throw new Error(`they should have counted ${JSON.stringify(expected)}`);
  if (values.profile) console.log(renderProfiles(folder, measuredFromUs));
}

async function enter(root: string, suffix: string, services: Server): Promise<Entrant> {
  if (suffix !== '') console.log(`${suffix.trim()}: ${root}`);
  const home = mkdtempSync(path.join(folder, 'tollgate-'));
  const config = path.join(home, 'tollgate.yaml');
  const store = (await database?.createDatabase()) ?? 'sqlite:data/tollgate.db';
  writeFileSync(config, configuration(services.port('upstream'), services.port('facilitator'), store));
  const profiling = values.profile ? ['--cpu-prof', `--cpu-prof-dir=${home}`] : [];
  build(root);
  const tollgate = await start(
    'Tollgate',
    [...profiling, ...programOf(root), 'serve', '-c', config],
    values.workers === undefined ? SERVER_CORE : undefined,
    ['proxy'],
  );
  const agent = new Agent({ keepAlive: true, maxSockets: connections + BUSY_PAYERS });
  const send = (load: Load, headers: Record<string, string>): Promise<Reply> =>
    call(tollgate.port('proxy'), agent, load.method, load.path, headers);

  const paying = new Map<string, () => Record<string, string>>();
  const askForQuotes = async (): Promise<void> => {
    for (const method of ['GET', 'POST'] as const) {
      const { demanded } = await send({ ...UNPAID, method }, {});
      const { accepts } = JSON.parse(Buffer.from(demanded, 'base64').toString()) as { accepts: [Accepted] };
      paying.set(method, payerOf(accepts[0]));
    }
  };
  await askForQuotes();
  // A quote is of its second: those who pay present old ones and new ones.
  const asking = setInterval(() => void askForQuotes().catch(() => undefined), 1000);

  let payments = 0;
  let forwarded = 0;
  const ask: Entrant['ask'] = async (load) => {
    const { status, body, receipt } = await send(load, load.pays ? (paying.get(load.method)?.() ?? {}) : {});
    if (load.pays) payments++;
    if (load.status === 200) forwarded++;
    if (status !== load.status || (status === 200 && body !== UPSTREAM_BODY) || receipt !== load.pays)
      throw new Error(`${load.name}: answered ${status}, receipt ${receipt}: ${body.slice(0, 300)}`);
  };
  const fire: Entrant['fire'] = async (load, ms, requests = 0) => {
    const end = performance.now() + ms;
    const took: number[] = [];
    const loop = async (): Promise<void> => {
      while (performance.now() < end || took.length < requests) {
        const startedAt = performance.now();
        await ask(load);
        took.push(performance.now() - startedAt);
      }
    };
    await Promise.all(Array.from({ length: connections }, loop));
    return took;
  };
  const measure: Entrant['measure'] = async (load) => {
    const [before, databaseUs, startedAt] = [readFamilyUs(tollgate.pid), readDatabaseUs(), performance.now()];
    const took = (await fire(load, seconds * 1000)).toSorted((a, b) => a - b);
    const elapsed = (performance.now() - startedAt) / 1000;
    const after = readFamilyUs(tollgate.pid);
    const each = (key: keyof ThreadsUs): number => (after[key] - before[key]) / took.length;
    return {
      ...{ all: each('all'), main: each('main'), ledger: each('ledger') },
      database: (readDatabaseUs() - databaseUs) / took.length,
      ...{ rate: took.length / elapsed, p50: percentile(took, 50), p99: percentile(took, 99) },
    };
  };
  const finish: Entrant['finish'] = async () => {
    clearInterval(asking);
    agent.destroy();
    await setTimeout(200);
    // Nothing is given time to be written down: what was answered has to be there.
    if (values.profile) await tollgate.stop();
    else process.kill(tollgate.pid, 'SIGKILL');
    await setTimeout(200);
    const rows = database ? await countStored(database, store) : countRows(path.join(home, 'data/tollgate.db'));
    console.log(`\n${payments} payments; rows ${JSON.stringify(rows)}`);
    if ((rows['settled'] ?? 0) + (rows['delivered'] ?? 0) !== payments)
      throw new Error(`${payments} paid requests were answered: the store says otherwise`);
    return { payments, forwarded };
  };
  return { suffix, ask, fire, measure, finish };
}

/** What node:http takes for the same bytes every time, under a load that keeps it busy. */
async function startYardstick(): Promise<() => Promise<Pace>> {
  const server = await startConstant(CONSTANT_ANSWER, { folder, profiles: undefined });
  started.push(server);
  const expect = { status: 200, bytes: UPSTREAM_BODY.length };
  const job: ClosedJob = {
    ...{ port: server.port('proxy'), pid: server.pid, method: 'GET', paths: ['/'], body: 'none' },
    ...{ expect, connections, seconds },
  };
  const measure = async (): Promise<Pace> => {
    const { requests, seconds: took, cpuUs, faults } = await runLoad<ClosedResult>('closed.ts', job);
    if (faults.length > 0) throw new Error(`${CONSTANT}: ${faults.join('; ')}`);
    return { cpuUs: cpuUs / requests, rate: requests / took };
  };
  // Once for its compilers.
  await measure();
  return measure;
}

async function start(
  name: string,
  args: string[],
  core: number | undefined,
  listeners: string[],
): ReturnType<typeof startServer> {
  const server = await startServer(
    { name, file: NODE, args, core, folder: path.resolve(import.meta.dirname, '..') },
    listeners,
  );
  started.push(server);
  return server;
}

function call(
  port: number,
  agent: Agent,
  method: string,
  target: string,
  headers: Record<string, string>,
): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const body = method === 'POST' ? POST_BODY : undefined;
    const framing = body === undefined ? {} : { 'content-type': 'application/json', 'content-length': body.length };
    const options = { port, host: '127.0.0.1', method, path: target, headers: { ...headers, ...framing }, agent };
    const req = request(options, (res) => {
      const { 'payment-required': demanded, 'payment-response': receipt } = res.headers;
      let text = '';
      res.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
      res.on('end', () => {
        const paid = typeof receipt === 'string' && Buffer.from(receipt, 'base64').includes('"success":true');
        resolve({ status: res.statusCode ?? 0, body: text, receipt: paid, demanded: String(demanded) });
      });
    });
    req.on('error', reject);
    req.end(body);
  });
}

/** Of a process and its workers; `main`: the main threads of all of them. */
function readFamilyUs(pid: number): ThreadsUs {
  const each = readFamily(pid).map(readThreadsUs);
  const sum = (key: keyof ThreadsUs): number => each.reduce((total, times) => total + times[key], 0);
  return { all: sum('all'), main: sum('main'), ledger: sum('ledger') };
}

/** Of all processes of the database; 0 if there is none. */
function readDatabaseUs(): number {
  return database === undefined ? 0 : readFamilyUs(database.pid()).all;
}

/** The headers of a new payment each time, as an x402 v2 client makes them of `accepted`. */
function payerOf(accepted: Accepted): () => Record<string, string> {
  const payers = Array.from({ length: PAYER_COUNT }, () => `0x${randomBytes(20).toString('hex')}`);
  const signature = `0x${'11'.repeat(65)}`;
  const ref = accepted.extra.external_ref.slice(0, -NONCE_CHARACTERS);
  let made = 0;
  return () => {
    const authorization = {
      from: payers[made++ % PAYER_COUNT],
      to: PAY_TO,
      value: '10000',
      validAfter: '0',
      validBefore: String(Math.floor(Date.now() / 1000) + 250),
      nonce: `0x${randomBytes(32).toString('hex')}`,
    };
    // The quote of one 402 with another nonce is a quote of its own: its signature leaves the nonce out.
    const external_ref = ref + randomBytes(12).toString('base64url');
    const payment = {
      x402Version: 2,
      resource: { url: 'http://127.0.0.1/paid/x', description: 'GET /paid/*', mimeType: 'application/json' },
      accepted: { ...accepted, extra: { ...accepted.extra, external_ref } },
      payload: { signature, authorization },
    };
    return { 'payment-signature': Buffer.from(JSON.stringify(payment)).toString('base64') };
  };
}

function configuration(upstream: number, facilitator: number, store: string): string {
  return `
workers: ${values.workers ?? 1}
proxy: { listen: 127.0.0.1:0, upstream: "http://127.0.0.1:${upstream}", timeouts: { drain_delay: 0s } }
registry: { listen: 127.0.0.1:0, store: "${store}", jwt: { secret: ${SECRET} } }
admin: { listen: 127.0.0.1:0 }
log: { level: info, access: false }
charges: { max_unsettled_per_payer: 1000, secrets: [${SECRET}] }
receivers:
  - { id: default, network: base-sepolia, pay_to_address: "${PAY_TO}", rpc_url: none, facilitators: ["http://127.0.0.1:${facilitator}"] }
routes:
  - { method: GET, route_pattern: /paid/*, amount: "0.01" }
  - { method: POST, route_pattern: /paid/*, amount: "0.01" }
`;
}

async function countStored(server: PostgresServer, url: string): Promise<Readonly<Record<string, number>>> {
  const sql = 'SELECT state, count(*) AS charges FROM tollgate.charges GROUP BY state';
  const rows = await server.query(sql, new URL(url).pathname.slice(1));
  return Object.fromEntries(rows.map(({ state, charges }) => [String(state), Number(charges)]));
}

function countRows(file: string): Readonly<Record<string, number>> {
  const db = new DatabaseSync(file);
  const rows = db.prepare('SELECT state, count(*) AS charges FROM charges GROUP BY state').all();
  db.close();
  return Object.fromEntries(rows.map(({ state, charges }) => [String(state), Number(charges)]));
}

/** CPU of the checkout `root` over that of the first, each over all its processes: the median of the rounds. */
function besideFirst(results: ReadonlyMap<string, readonly Measured[]>, name: string, root: string): number {
  const cpuOf = (wanted: string, round: number): number => {
    const rows = values.root.flatMap((each, index) => (each === wanted ? [name + suffixOf(index)] : []));
    return geometricMean(rows.map((row) => results.get(row)?.[round]?.all ?? Number.NaN));
  };
  const [first = ''] = values.root;
  return median(Array.from({ length: rounds }, (_, round) => cpuOf(root, round) / cpuOf(first, round)));
}

function geometricMean(numbers: readonly number[]): number {
  return Math.exp(numbers.reduce((sum, each) => sum + Math.log(each), 0) / numbers.length);
}

function show(results: ReadonlyMap<string, readonly Measured[]>, pace: readonly Pace[]): void {
  console.log(
    '| request | CPU us, all threads (min-max) | main thread | ledger thread | a second and core | a second here | p50 ms | p99 ms |',
  );
  console.log('|---|---:|---:|---:|---:|---:|---:|---:|');
  for (const [name, all] of results) {
    const of = (key: keyof Measured): number => median(all.map((each) => each[key]));
    const cpu = formatSpread(spread(all.map((each) => each.all)), 0);
    const numbers = [
      of('main').toFixed(0),
      of('ledger').toFixed(0),
      (1e6 / of('all')).toFixed(0),
      of('rate').toFixed(0),
    ];
    console.log(`| ${[name, cpu, ...numbers, of('p50').toFixed(1), of('p99').toFixed(1)].join(' | ')} |`);
  }
  if (pace.length > 0) {
    const cpu = spread(pace.map(({ cpuUs }) => cpuUs));
    const perCore = (1e6 / (cpu?.median ?? Number.NaN)).toFixed(0);
    const rate = median(pace.map((each) => each.rate)).toFixed(0);
    console.log(`| ${[CONSTANT, formatSpread(cpu, 1), '-', '-', perCore, rate, '-', '-'].join(' | ')} |`);
  }
  console.log(
    `\nMedians of ${rounds} rounds of ${seconds} s over ${connections} connections. CPU us of every round, main + ledger:`,
  );
  for (const [name, all] of results) {
    const each = all.map(
      ({ all: cpu, main, ledger, database: stored }) =>
        `${cpu.toFixed(0)} (${main.toFixed(0)} + ${ledger.toFixed(0)})${database ? `, database ${stored.toFixed(0)}` : ''}`,
    );
    console.log(`- ${name}: ${each.join(', ')}`);
  }
  const [first, ...others] = new Set(values.root);
  for (const root of others)
    for (const { name } of PAID)
      console.log(`- ${name}: ${besideFirst(results, name, root).toFixed(3)} in ${root} of ${first}, round by round`);
  const slower = [...results.values()].map(
    (all) => Math.max(...all.map((each) => each.all)) / Math.min(...all.map((each) => each.all)),
  );
  if (Math.max(...slower) > UNSTEADY)
    console.log(
      `The slowest round took ${Math.max(...slower).toFixed(2)} times the fastest: compare nothing with this run.`,
    );
}
