// What the ledger costs by itself, in a process of its own: `node bench/ledger.ts [ROOT] [ROUNDS] [sqlite|postgres]` prints numbers
// as JSON. Measures a store of the checkout under ROOT, new and in the temporary folder: claims, and whole charges (claim,
// settle, settled, delivered), with one caller and with many. Every answer is checked; rounds alternate, medians count.
// Shows neither a network nor a facilitator, and the disk is whatever the temporary folder is on.
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Claim } from '../src/domain/payment/charge.ts';
import type { ChargeEvent } from '../src/domain/payment/transition.ts';
import { readThreadsUs } from './process.ts';
import type * as ledgerModule from '../src/domain/payment/ledger.ts';
import type * as networksModule from '../src/gateway/rails/rails.ts';
import type * as chargesModule from '../src/registry/store/sqlite/charge-store.ts';
import type * as placeModule from '../src/registry/store/postgres/place.ts';
import { startPostgres, type PostgresServer } from '../test/postgres/server.ts';

export type Spread = { readonly median: number; readonly min: number; readonly max: number };
export type LedgerNumbers = {
  readonly callers: number;
  readonly claimsPerSecond: Spread;
  readonly chargesPerSecond: Spread;
  /** Microseconds of the thread that serves requests, for a whole charge: four calls. */
  readonly mainThreadUs: Spread;
  /** The same of the ledger's thread, or of all processes of the database. */
  readonly ledgerThreadUs: Spread;
  /** Of PostgreSQL, for a whole charge: bytes of its log, and bytes that its rows and indexes take when it is over. */
  readonly bytes: { readonly log: number; readonly kept: number } | undefined;
  /** Milliseconds until a claim is durable. */
  readonly claimMs: { readonly p50: number; readonly p99: number };
};

const CALLERS = [1, 16, 128];
const ROUND_MS = 700;
const OPTIONS = { leaseMs: 60_000, maxUnsettledPerPayer: 8 };
const LONG_MS = 3_600_000;

const [root = path.resolve(import.meta.dirname, '..'), given = '5', kind = 'sqlite'] = process.argv.slice(2);
let database: PostgresServer | undefined;
let databaseName = '';
const rounds = Math.max(1, Number(given) || 5);

process.stdout.write(`${JSON.stringify(await measure(), undefined, 2)}\n`);

type Opened = Pick<ledgerModule.Ledger, 'claim' | 'advance'> & { readonly close: () => Promise<void> };

/** A revision whose claims look as they do here. */
async function open(file: string, options: Parameters<typeof chargesModule.openCharges>[1]): Promise<Opened> {
  const load = (name: string): Promise<unknown> => import(pathToFileURL(path.join(root, 'src', name)).href);
  if (kind === 'postgres') return openOnPostgres(load, options);
  const { openCharges } = (await load('registry/store/sqlite/charge-store.ts')) as typeof chargesModule;
  const { createLedger } = (await load('domain/payment/ledger.ts')) as typeof ledgerModule;
  const { SPELLING } = (await load('gateway/rails/rails.ts')) as typeof networksModule;
  const store = openCharges(file, options);
  return { ...createLedger(store, SPELLING), close: store.close };
}

async function openOnPostgres(
  load: (name: string) => Promise<unknown>,
  options: Parameters<typeof chargesModule.openCharges>[1],
): Promise<Opened> {
  const { postgresPlace } = (await load('registry/store/postgres/place.ts')) as typeof placeModule;
  const { createLedger } = (await load('domain/payment/ledger.ts')) as typeof ledgerModule;
  const { SPELLING } = (await load('gateway/rails/rails.ts')) as typeof networksModule;
  const server = (database = await startPostgres({ settings: { autovacuum: 'on' } }));
  const { pathname } = new URL(await server.createDatabase());
  databaseName = pathname.slice(1);
  const place = postgresPlace({
    ...{ kind: 'postgres', name: 'bench', host: '127.0.0.1', port: server.port, user: 'tollgate' },
    ...{ database: pathname.slice(1), password: undefined, tls: { mode: 'off', caFile: undefined } },
    ...{ schema: 'tollgate', connections: 2, timeoutMs: 20_000, pooler: false },
  });
  const store = place.openCharges(options);
  const close = async (): Promise<void> => {
    await store.close();
    await server.close();
  };
  return { ...createLedger(store, SPELLING), close };
}

/** CPU so far in microseconds of what keeps the ledger. */
function keeperUs(): number {
  const parent = database?.pid();
  if (parent === undefined) return readThreadsUs(process.pid).ledger;
  const ticks = readdirSync('/proc').flatMap((name) => {
    if (!/^\d+$/.test(name)) return [];
    try {
      const fields = readFileSync(`/proc/${name}/stat`, 'utf8')
        .replace(/^.*\) /, '')
        .split(' ');
      const isOurs = Number(name) === parent || Number(fields[1]) === parent;
      return isOurs ? [Number(fields[11]) + Number(fields[12])] : [];
    } catch {
      return [];
    }
  });
  return ticks.reduce((sum, each) => sum + each, 0) * 10_000;
}

/** Bytes that the database has written to its log so far. */
async function logPosition(): Promise<number> {
  const rows = await database?.query("SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::text AS bytes");
  return Number(rows?.[0]?.['bytes'] ?? 0);
}

/** Of a charge that is over: its row, and its part of the indexes. */
async function keptBytes(): Promise<number | undefined> {
  const row = "sum(pg_column_size(c)) FILTER (WHERE state = 'delivered') / count(*) FILTER (WHERE state = 'delivered')";
  const sql = `SELECT (${row} + pg_indexes_size('tollgate.charges') / count(*))::int AS bytes FROM tollgate.charges AS c`;
  const rows = await database?.query(sql, databaseName);
  return rows && Number(rows[0]?.['bytes']);
}

async function measure(): Promise<readonly LedgerNumbers[]> {
  const folder = mkdtempSync(path.join(tmpdir(), 'tollgate-bench-ledger-'));
  const log = { debug: quiet, info: quiet, warn: quiet, error: complain, enabled: () => true };
  const ledger = await open(path.join(folder, 'ledger.db'), { now: Date.now, log });
  let n = 0;

  const claim = async (): Promise<Claim> => {
    const what = makeClaim(n++);
    const claimed = await ledger.claim(what, { ...OPTIONS, owner: 'bench', changeId: `claim-${n}` });
    if (claimed.kind !== 'claimed') throw new Error(`a claim was answered ${claimed.kind}`);
    return what;
  };
  const delivered: Promise<void>[] = [];
  const charge = async (): Promise<void> => {
    const what = await claim();
    const proof = {
      transaction: what.payment.unique,
      logIndex: null,
      amount: what.amount,
      payer: what.payment.payer,
    };
    const advance = async (event: ChargeEvent): Promise<void> => {
      const advanced = await ledger.advance(what.id, event, { owner: 'bench', changeId: `${event.kind}-${what.id}` });
      if (advanced.kind !== 'ok') throw new Error(`${event.kind} was answered ${advanced.because}`);
    };
    await advance({ kind: 'settle_started', via: 'facilitator', leaseMs: LONG_MS });
    await advance({ kind: 'settled', proof, leaseMs: LONG_MS });
    // Nobody waits for it, here as in the product; the round ends when all are there.
    delivered.push(advance({ kind: 'delivered', partial: false }));
  };

  try {
    for (const callers of CALLERS) await run(callers, charge, () => Promise.all(delivered.splice(0)));
    const taken = CALLERS.map((callers) => ({
      callers,
      claims: [] as number[],
      charges: [] as number[],
      main: [] as number[],
      ledger: [] as number[],
      log: [] as number[],
      waits: [] as number[],
    }));
    for (let round = 0; round < rounds; round++) {
      for (const numbers of taken) {
        const claims = await run(numbers.callers, claim);
        const charges = await run(numbers.callers, charge, () => Promise.all(delivered.splice(0)));
        numbers.claims.push(claims.perSecond);
        numbers.waits.push(...claims.waits);
        numbers.charges.push(charges.perSecond);
        numbers.main.push(charges.mainThreadUs);
        numbers.ledger.push(charges.ledgerThreadUs);
        numbers.log.push(charges.logBytes);
      }
    }
    const kept = await keptBytes();
    return taken.map(({ callers, claims, charges, main, ledger, log: logged, waits }) => ({
      callers,
      claimsPerSecond: spread(claims),
      chargesPerSecond: spread(charges),
      mainThreadUs: spread(main),
      ledgerThreadUs: spread(ledger),
      bytes: kept === undefined ? undefined : { log: quantile(logged, 0.5), kept },
      claimMs: { p50: quantile(waits, 0.5), p99: quantile(waits, 0.99) },
    }));
  } finally {
    await ledger.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** `callers` loops at once, each waiting for its own. */
async function run(
  callers: number,
  call: () => Promise<unknown>,
  last: () => Promise<unknown> = async () => undefined,
): Promise<{ perSecond: number; mainThreadUs: number; ledgerThreadUs: number; logBytes: number; waits: number[] }> {
  const waits: number[] = [];
  const logBefore = await logPosition();
  const cpu = process.threadCpuUsage();
  const ledgerBefore = keeperUs();
  const begin = performance.now();
  const loop = async (): Promise<void> => {
    while (performance.now() - begin < ROUND_MS) {
      const called = performance.now();
      await call();
      waits.push(performance.now() - called);
    }
  };
  await Promise.all(Array.from({ length: callers }, loop));
  await last();
  const seconds = (performance.now() - begin) / 1000;
  const { user, system } = process.threadCpuUsage(cpu);
  const ledgerUs = keeperUs() - ledgerBefore;
  const logged = (await logPosition()) - logBefore;
  return {
    perSecond: waits.length / seconds,
    mainThreadUs: (user + system) / waits.length,
    ledgerThreadUs: ledgerUs / waits.length,
    logBytes: logged / waits.length,
    waits,
  };
}

function makeClaim(n: number): Claim {
  const hex = (value: number, digits: number): string => `0x${value.toString(16).padStart(digits, '0')}`;
  const [network, asset] = ['eip155:84532', hex(1, 40)];
  return {
    id: `chg_${n.toString(36).padStart(112, '0')}`,
    payment: { network, asset, payer: hex(n % 100_000, 40), unique: hex(n, 64) },
    // About what an x402 v2 credential holds.
    credential: 'A'.repeat(1200),
    credentialSha256: n.toString(16).padStart(64, '0'),
    x402Version: 2,
    way: {
      ...{ receiverId: 'default', network, scheme: 'exact', asset, decimals: 6 },
      ...{ payTo: hex(2, 40), timeoutSeconds: 300, terms: { name: 'USDC', version: '2' } },
    },
    amount: 10_000n,
    deadline: 4_000_000_000n,
    route: { id: '11111111-1111-4111-8111-111111111111', method: 'GET', pattern: '/reports/*' },
    request: { method: 'GET', path: '/reports/q3', targetSha256: n.toString(16).padStart(64, '1') },
    requestId: `request-${n}`,
    price: { amount: '0.01', currency: 'USD' },
    customerId: null,
    settle: 'before_response',
    asker: null,
    askSha256: null,
    pass: null,
  };
}

function spread(values: readonly number[]): Spread {
  return { median: quantile(values, 0.5), min: quantile(values, 0), max: quantile(values, 1) };
}

function quantile(values: readonly number[], q: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  const value = sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))] ?? 0;
  return Math.round(value * 100) / 100;
}

function quiet(): void {
  // A measurement has nothing to say.
}

function complain(msg: string, fields: object = {}): void {
  process.stderr.write(`${msg} ${JSON.stringify(fields)}\n`);
}
