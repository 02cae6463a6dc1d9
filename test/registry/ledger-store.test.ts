// The ledger on SQLite where disks, threads and processes misbehave: nothing that was answered is lost, nothing that
// could not be written is answered, and nobody but payments waits for a slow disk.
import { execFileSync, spawn, spawnSync, type ChildProcess } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  copyFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  writeFileSync,
  rmSync,
} from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { createInterface } from 'node:readline';
import { Worker } from 'node:worker_threads';
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { LedgerUnavailable, type PruneTimes } from '../../src/domain/payment/ledger.ts';
import { REDEEM_MS, type ClaimResult } from '../../src/domain/payment/claim-policy.ts';
import { createRandom } from '../../src/host/clock.ts';
import { createLog } from '../../src/host/log.ts';
import { openLedger, type SqliteLedger } from '../support/sqlite-ledger.ts';
import type { SqliteChargesOptions } from '../../src/registry/store/sqlite/charge-store.ts';
import { migrateFile, openDatabase } from '../../src/registry/store/sqlite/database.ts';
import { openStore } from '../../src/registry/store/sqlite/store.ts';
import { storedRoute as route } from '../cases/routes.ts';
import { claimOf, proofOf } from '../cases/claims.ts';
import { temporaryFolder } from './kit.ts';
import { threadMs } from '../support/thread-time.ts';

const log = createLog('error', () => undefined, Date.now);
const OPTIONS = { owner: 'one', leaseMs: 60_000, maxUnsettledPerPayer: 8 };
const EVERYBODY = 0o777;

let folder: string;
let remove: () => void;
let file: string;
let offset = 0;
const ledgers: SqliteLedger[] = [];
const processes: ChildProcess[] = [];

beforeEach(() => {
  ({ folder, remove } = temporaryFolder());
  file = join(folder, 'ledger.db');
  offset = 0;
});
afterEach(async () => {
  for (const child of processes.splice(0)) child.kill('SIGKILL');
  await Promise.all(ledgers.splice(0).map((each) => each.close()));
  remove();
});

function open(options: Partial<SqliteChargesOptions> = {}): SqliteLedger {
  const ledger = openLedger(file, { now: () => Date.now() + offset, log, ...options });
  ledgers.push(ledger);
  return ledger;
}

const claim = (ledger: SqliteLedger, n: number): Promise<ClaimResult> => ledger.claim(claimOf(n), OPTIONS);

type Running = {
  child: ChildProcess;
  said: string[];
  until: (count: number) => Promise<void>;
  ask: (line: string) => void;
};

/** A process of its own over `file`, as somebody who may not do everything where the tests run as root. */
async function start(uid?: number): Promise<Running> {
  const script = new URL('../support/ledger-process.ts', import.meta.url).pathname;
  const child = spawn(process.execPath, [script, file], {
    stdio: ['pipe', 'pipe', 'inherit'],
    ...(uid === undefined ? {} : { uid, gid: uid }),
  });
  processes.push(child);
  const said: string[] = [];
  let wake = (): void => undefined;
  createInterface(child.stdout).on('line', (line) => {
    if (line !== 'ready') said.push(line);
    wake();
  });
  await new Promise<void>((resolve) => (wake = resolve));
  const until = async (count: number): Promise<void> => {
    while (said.length < count) await new Promise<void>((resolve) => (wake = resolve));
  };
  return { child, said, until, ask: (line) => void child.stdin.write(`${line}\n`) };
}

describe('what was answered is durable', () => {
  test('behaviour: kill -9 right after `claimed` loses none of it', async () => {
    const { child, said, until, ask } = await start();
    ask('claim 0');
    await until(1);
    for (let n = 1; n <= 300; n++) ask(`claim ${n}`);
    await until(20);
    const exited = new Promise((resolve) => child.once('exit', (_code, signal) => resolve(signal)));
    child.kill('SIGKILL');
    expect(await exited).toBe('SIGKILL');
    const claimed = said.filter((line) => line.endsWith(' claimed')).map((line) => Number(line.split(' ')[0]));
    expect(claimed.length).toBeGreaterThanOrEqual(20);
    const ledger = open();
    for (const n of claimed)
      expect(await ledger.findByChargeId(claimOf(n).id)).toMatchObject({ state: 'claimed', owner: 'process' });
    expect((await claim(ledger, 0)).kind).toBe('in_use');
  });

  test('behaviour: closing a ledger finishes what was called, and refuses what comes later', async () => {
    const ledger = open({ commitDelayMs: 20 });
    const called = Promise.all([claim(ledger, 1), claim(ledger, 2)]);
    const closed = ledger.close();
    await expect(claim(ledger, 3)).rejects.toThrow(LedgerUnavailable);
    expect((await called).map(({ kind }) => kind)).toEqual(['claimed', 'claimed']);
    await closed;
    await ledger.close();
    const again = open();
    expect([(await claim(again, 1)).kind, (await claim(again, 3)).kind]).toEqual(['in_use', 'claimed']);
  });

  // Linux tells who holds which lock. Without this one a process that closes the file takes our write-ahead log away.
  const locks = '/proc/locks';
  test.skipIf(!existsSync(locks))('attack: opening the file a second time drops no lock on it', async () => {
    const store = openStore(file, { random: createRandom() });
    const held = (): boolean => readFileSync(locks, 'utf8').includes(`:${statSync(file).ino} 1073741826 `);
    expect(held()).toBe(true);
    const ledger = open();
    await claim(ledger, 1);
    await ledger.countByState();
    migrateFile(file);
    expect(held()).toBe(true);
    store.close();
  });

  test('behaviour: only its owner may read the ledger’s file and its journals', async () => {
    await claim(open(), 1);
    const modes = readdirSync(folder).map((name) => [name, statSync(join(folder, name)).mode & EVERYBODY]);
    expect(modes.length).toBeGreaterThan(1);
    expect(modes.filter(([, mode]) => mode !== 0o600)).toEqual([]);
  });
});

describe('a slow disk', () => {
  const SLOW_MS = 400;

  test('behaviour: a slow disk stalls nothing but payments, and claims that come together share a commit', async () => {
    const store = openStore(file, { random: createRandom() });
    await store.routes.write([{ kind: 'insert', route: route('GET /a'), key: '/a' }], { maxRoutes: 10 });
    const ledger = open({ commitDelayMs: SLOW_MS });
    await ledger.check();
    let turns = 0;
    let longest = 0;
    let last = threadMs();
    let timer: NodeJS.Timeout | undefined;
    const tick = (): void => {
      turns++;
      longest = Math.max(longest, threadMs() - last);
      last = threadMs();
      timer = setTimeout(tick, 1);
    };
    const begin = performance.now();
    tick();
    const claims = Array.from({ length: 50 }, (_, n) => claim(ledger, n));
    const loaded = new Promise<void>((resolve) => setImmediate(resolve)).then(() => store.routes.load());
    expect((await Promise.all(claims)).every(({ kind }) => kind === 'claimed')).toBe(true);
    const took = performance.now() - begin;
    expect((await loaded).routes.length).toBe(1);
    clearTimeout(timer);
    store.close();
    // The knob works; fifty claims took one commit or two; the event loop never waited for it.
    expect(took).toBeGreaterThanOrEqual(SLOW_MS);
    expect(took).toBeLessThan(25 * SLOW_MS);
    expect(turns).toBeGreaterThan(5);
    expect(longest).toBeLessThan(SLOW_MS);
  });

  test('behaviour: whoever waits too long for a slow disk is told; what was not begun is never done', async () => {
    // So slow that a busy machine sends the second call in time.
    const ledger = open({ commitDelayMs: 5 * SLOW_MS, timeoutMs: 2 * SLOW_MS });
    const first = claim(ledger, 1);
    // Sent while the first commit runs: still in the queue when its time is up.
    const second = new Promise((resolve) => setTimeout(resolve, 60)).then(() => claim(ledger, 2));
    const settledBoth = await Promise.allSettled([first, second]);
    expect(settledBoth.map((each) => each.status === 'rejected' && each.reason instanceof LedgerUnavailable)).toEqual([
      true,
      true,
    ]);
    await ledger.close();
    const again = open();
    expect(await again.findByChargeId(claimOf(2).id)).toBeUndefined();
    expect((await again.findByChargeId(claimOf(1).id))?.state).toBe('claimed');
  });

  test('refuses: more calls of a ledger than may wait', async () => {
    const ledger = open({ maxQueued: 10 });
    const all = await Promise.allSettled(Array.from({ length: 30 }, (_, n) => claim(ledger, n)));
    expect(all.filter(({ status }) => status === 'fulfilled').length).toBe(10);
    expect((await claim(ledger, 29)).kind).toBe('claimed');
  });

  test('behaviour: somebody who looks through charges delays no claim', async () => {
    const ledger = open();
    await claim(ledger, 1);
    const reader = new DatabaseSync(file);
    reader.exec('BEGIN; SELECT count(*) FROM charges');
    expect((await claim(ledger, 2)).kind).toBe('claimed');
    expect((await ledger.list({ limit: 10 })).charges.length).toBe(2);
    reader.close();
  });
});

describe('a store that is away', () => {
  const unavailable = async (what: Promise<unknown>): Promise<void> => {
    await expect(what).rejects.toThrow(LedgerUnavailable);
  };

  test('attack: a file that is deleted is no empty ledger, and serves again when it is back', async () => {
    const lines: string[] = [];
    const ledger = open({ log: createLog('error', (line) => void lines.push(line), Date.now) });
    await claim(ledger, 1);
    renameSync(file, `${file}.away`);
    await unavailable(claim(ledger, 2));
    await unavailable(claim(ledger, 1));
    await unavailable(ledger.find(claimOf(1).payment));
    await unavailable(ledger.check());
    // The one that noticed, and all that came after: an outage does not flood the log.
    expect(lines.length).toBe(2);
    expect(readdirSync(folder)).not.toContain('ledger.db');
    writeFileSync(file, '');
    await unavailable(claim(ledger, 1));
    renameSync(`${file}.away`, file);
    expect((await claim(ledger, 1)).kind).toBe('in_use');
    await ledger.check();
    // A copy in its place is another file: it is opened anew.
    copyFileSync(file, `${file}.copy`);
    renameSync(`${file}.copy`, file);
    await unavailable(claim(ledger, 1));
    expect((await claim(ledger, 1)).kind).toBe('in_use');
  });

  test('behaviour: a corrupt ledger is refused, and a good one in its place is taken', async () => {
    const first = open();
    await claim(first, 1);
    await first.close();
    copyFileSync(file, `${file}.good`);
    const bytes = readFileSync(file);
    writeFileSync(file, bytes.fill(0x55, 0, 100));
    const ledger = open();
    await unavailable(claim(ledger, 2));
    copyFileSync(`${file}.good`, file);
    expect((await claim(ledger, 1)).kind).toBe('in_use');
    expect((await claim(ledger, 2)).kind).toBe('claimed');
  });

  test('behaviour: pages that are corrupt inside are found when they are read', async () => {
    const first = open();
    await Promise.all(Array.from({ length: 200 }, (_, n) => claim(first, n)));
    await first.close();
    copyFileSync(file, `${file}.good`);
    const bytes = readFileSync(file);
    writeFileSync(file, bytes.fill(0x55, 40_960));
    const ledger = open();
    await unavailable(claim(ledger, 100));
    copyFileSync(`${file}.good`, file);
    expect((await claim(ledger, 100)).kind).toBe('in_use');
  });

  test('behaviour: a row that is no charge is refused alone', async () => {
    const ledger = open();
    await Promise.all([claim(ledger, 1), claim(ledger, 2)]);
    const db = new DatabaseSync(file);
    db.exec(
      `PRAGMA ignore_check_constraints = ON; UPDATE charges SET settle = 'nonsense' WHERE id = '${claimOf(1).id}'`,
    );
    db.close();
    const [three, one, two] = await Promise.allSettled([
      claim(ledger, 3),
      ledger.findByChargeId(claimOf(1).id),
      claim(ledger, 2),
    ]);
    expect(one.status === 'rejected' && one.reason instanceof LedgerUnavailable).toBe(true);
    expect([two, three].map((each) => each.status === 'fulfilled' && each.value.kind)).toEqual(['in_use', 'claimed']);
    // What was undone with the first attempt is counted once.
    expect(await ledger.countByState()).toMatchObject({ claimed: 3 });
  });

  test.each([
    ['an open charge whose credential is gone', 'DELETE FROM charge_credentials', 1],
    ['a charge that is over and still has one', "INSERT INTO charge_credentials VALUES (2, 'left behind')", 2],
  ])('refuses: to serve %s', async (_what, sql, n) => {
    const ledger = open();
    await Promise.all([claim(ledger, 1), claim(ledger, 2)]);
    await ledger.advance(claimOf(2).id, { kind: 'released', reason: 'upstream_500' }, OPTIONS);
    const db = new DatabaseSync(file);
    db.exec(sql);
    db.close();
    await unavailable(ledger.findByChargeId(claimOf(n).id));
    expect((await claim(ledger, 3)).kind).toBe('claimed');
  });

  test('behaviour: a report that is asked for after the file was taken away makes no new one', async () => {
    const ledger = open();
    await claim(ledger, 1);
    rmSync(folder, { recursive: true });
    const reports = ledger.alarms();
    await unavailable(ledger.check());
    await unavailable(reports);
    expect(existsSync(file)).toBe(false);
    await unavailable(ledger.check());
  });

  test('behaviour: a file that may only be read is refused, and taken once it may be written', async () => {
    migrateFile(file);
    for (const name of readdirSync(folder)) chmodSync(join(folder, name), 0o444);
    chmodSync(folder, EVERYBODY);
    const { said, until, ask } = await start(process.getuid?.() === 0 ? 65_534 : undefined);
    ask('claim 1');
    await until(1);
    expect(said).toEqual(['1 LedgerUnavailable']);
    for (const name of readdirSync(folder)) chmodSync(join(folder, name), 0o666);
    ask('claim 1');
    await until(2);
    expect(said[1]).toBe('1 claimed');
  });

  const limits = spawnSync('prlimit', ['--version']).status === 0;
  test.skipIf(!limits)('behaviour: a full disk refuses, and serves again when there is room', async () => {
    const { child, said, until, ask } = await start();
    ask('claim 1');
    await until(1);
    const limit = (bytes: number | 'unlimited'): void =>
      void execFileSync('prlimit', ['--pid', String(child.pid), `--fsize=${bytes}:unlimited`]);
    limit(statSync(`${file}-wal`).size);
    ask('claim 2');
    await until(2);
    limit('unlimited');
    ask('claim 2');
    ask('claim 1');
    await until(4);
    expect(said).toEqual(['1 claimed', '2 LedgerUnavailable', '2 claimed', '1 in_use']);
  });

  test('behaviour: a folder that is missing is made, one that cannot be is refused', async () => {
    file = join(folder, 'a', 'b', 'ledger.db');
    expect((await claim(open(), 1)).kind).toBe('claimed');
    writeFileSync(join(folder, 'plain'), '');
    file = join(folder, 'plain', 'ledger.db');
    const ledger = open();
    await unavailable(claim(ledger, 1));
    renameSync(join(folder, 'plain'), join(folder, 'plain.away'));
    mkdirSync(join(folder, 'plain'));
    expect((await claim(ledger, 1)).kind).toBe('claimed');
  });
});

describe('threads', () => {
  test('behaviour: a thread that dies refuses what it had, and is replaced; what was committed is there', async () => {
    const started: Worker[] = [];
    let sent = (): number => 0;
    const ledger = open({
      commitDelayMs: 100,
      timeoutMs: 60_000,
      spawn: (script, options) => {
        const worker = new Worker(script, { workerData: options, env: {}, execArgv: [] });
        const post = vi.spyOn(worker, 'postMessage');
        sent = () => post.mock.calls.length;
        started.push(worker);
        return worker;
      },
    });
    await claim(ledger, 1);
    const pending = claim(ledger, 2);
    const refused = expect(pending).rejects.toThrow('thread of the ledger died');
    await vi.waitFor(() => expect(sent()).toBe(2), { interval: 1 });
    expect(started.length).toBe(1);
    // Waits behind the one that the thread has.
    const behind = Promise.allSettled([claim(ledger, 4)]);
    await started[0]!.terminate();
    await refused;
    await behind;
    await vi.waitFor(async () => expect((await claim(ledger, 1)).kind).toBe('in_use'), {
      timeout: 30_000,
      interval: 50,
    });
    expect(started.length).toBe(2);
    expect((await claim(ledger, 3)).kind).toBe('claimed');
  });

  test('behaviour: a thread that keeps dying is not started over and over', async () => {
    // Time goes by only where the test says so.
    let now = performance.now();
    const clock = vi.spyOn(performance, 'now').mockImplementation(() => now);
    onTestFinished(() => clock.mockRestore());
    let started = 0;
    const ledger = open({
      spawn: () => {
        started++;
        return new Worker('throw new Error("no")', { eval: true });
      },
    });
    for (let n = 0; n < 20; n++) await expect(claim(ledger, n)).rejects.toThrow(LedgerUnavailable);
    expect(started).toBe(1);
    now += 1000;
    await expect(claim(ledger, 20)).rejects.toThrow(LedgerUnavailable);
    expect(started).toBe(2);
  });

  test('behaviour: a process that is done is not kept alive by an idle ledger', () => {
    const module = new URL('../support/sqlite-ledger.ts', import.meta.url).href;
    const code = `import { openLedger } from ${JSON.stringify(module)};
      const log = { error: () => undefined };
      const ledger = openLedger(${JSON.stringify(file)}, { now: Date.now, log });
      await ledger.check();
      console.log(JSON.stringify(await ledger.countByState()));`;
    const output = execFileSync(process.execPath, ['--input-type=module', '-e', code], {
      encoding: 'utf8',
      timeout: 30_000,
    });
    expect(JSON.parse(output)).toMatchObject({ claimed: 0 });
  });
});

describe('what is kept', () => {
  const count = (table: string): unknown => {
    const db = openDatabase(file, 1000);
    const row = db.prepare(`SELECT count(*) AS n FROM ${table}`).get();
    db.close();
    return row?.['n'];
  };

  const DAY = 24 * 3_600_000;
  const end = async (ledger: SqliteLedger, n: number, how: 'delivered' | 'failed' | 'settled'): Promise<void> => {
    await ledger.advance(claimOf(n).id, { kind: 'settle_started', via: 'first', leaseMs: 1 }, OPTIONS);
    const proof = proofOf(claimOf(n));
    await ledger.advance(
      claimOf(n).id,
      how === 'failed' ? { kind: 'settle_refused', reason: 'no' } : { kind: 'settled', proof, leaseMs: 60_000 },
      OPTIONS,
    );
    if (how === 'delivered') await ledger.advance(claimOf(n).id, { kind: 'delivered', partial: false }, OPTIONS);
  };
  const pruneBefore = (retention?: number): PruneTimes => {
    const now = Date.now() + offset;
    const closedMs = retention === undefined ? undefined : now - retention;
    return { closedMs, releasedMs: now - 2 * DAY, answersMs: now - REDEEM_MS };
  };
  const prune = (ledger: SqliteLedger): Promise<boolean> => ledger.prune(pruneBefore(retention), 100);
  let retention: number | undefined;

  test('behaviour: released charges go after two days, kept answers after their day, and money stays', async () => {
    retention = undefined;
    const ledger = open();
    for (const n of [1, 2, 3]) await claim(ledger, n);
    await ledger.advance(claimOf(1).id, { kind: 'released', reason: 'upstream_500' }, OPTIONS);
    await end(ledger, 2, 'settled');
    await end(ledger, 3, 'delivered');
    const answer = { status: 200, headers: [], body: Buffer.alloc(1000) };
    await ledger.advance(claimOf(2).id, { kind: 'answer_kept', answer, headSent: false }, OPTIONS);
    offset += REDEEM_MS - 60_000;
    await prune(ledger);
    expect([count('charges'), count('charge_answers')]).toEqual([3, 1]);
    offset += 120_000;
    await prune(open());
    expect([count('charges'), count('charge_answers')]).toEqual([3, 0]);
    offset += 3 * DAY;
    await prune(open());
    expect(count('charges')).toBe(2);
    expect(await open().countByState()).toMatchObject({ released: 0, settled: 1, delivered: 1 });
  });

  test('behaviour: with a retention charges that are over go, unsettled and owed ones stay, and so do the sums', async () => {
    retention = 7 * DAY;
    const ledger = open();
    // Their payments have ended within the year; that of the last has not.
    const deadline = BigInt(Math.floor(Date.now() / 1000) + 300);
    for (const n of [1, 2, 3, 4, 5, 6, 7])
      await ledger.claim(claimOf(n, { deadline: n === 7 ? 4_000_000_000n : deadline }), OPTIONS);
    await end(ledger, 1, 'delivered');
    await end(ledger, 2, 'failed');
    await end(ledger, 3, 'settled');
    await end(ledger, 4, 'settled');
    await ledger.advance(claimOf(4).id, { kind: 'undelivered', because: 'upstream_failed', headSent: false }, OPTIONS);
    await ledger.advance(claimOf(4).id, { kind: 'refunded', note: 'by hand' }, { owner: 'operator' });
    await ledger.advance(claimOf(5).id, { kind: 'settle_started', via: 'first', leaseMs: 1 }, OPTIONS);
    await end(ledger, 7, 'delivered');
    offset += 6 * DAY;
    await prune(ledger);
    expect(count('charges')).toBe(7);
    offset += 2 * DAY;
    await prune(open());
    const left = open();
    expect((await left.list({ limit: 10 })).charges.map(({ id }) => id)).toEqual(
      [7, 6, 5, 3].map((n) => claimOf(n).id),
    );
    expect(await left.countByState()).toEqual({
      ...{ claimed: 1, settling: 1, settled: 1, delivered: 1, released: 0, failed: 0 },
    });
    const query = { fromMs: 0, toMs: Date.now() + offset, bucket: 'total', limit: 10 } as const;
    expect(await left.summary(query)).toMatchObject({ sums: [{ charges: 4, amount: 400_000n }] });
  });

  test('behaviour: however many charges are over, a part of them goes at a time, and all of them in the end', async () => {
    const ledger = open({ maxQueued: 5_000 });
    const deadline = BigInt(Math.floor(Date.now() / 1000) + 300);
    await Promise.all(
      Array.from({ length: 350 }, async (_, n) => {
        await ledger.claim(claimOf(n, { deadline }), OPTIONS);
        await end(ledger, n, 'failed');
      }),
    );
    offset += 8 * DAY;
    expect(await ledger.prune(pruneBefore(7 * DAY), 100)).toBe(true);
    expect(count('charges')).toBe(250);
    for (let parts = 0; await ledger.prune(pruneBefore(7 * DAY), 100); parts++) expect(parts).toBeLessThan(10);
    expect(count('charges')).toBe(0);
    expect(await ledger.countByState()).toMatchObject({ failed: 0 });
  });

  test('behaviour: a charge whose client had the head and came no more within the day is delivered in part', async () => {
    retention = undefined;
    const ledger = open();
    for (const n of [1, 2]) await claim(ledger, n);
    for (const n of [1, 2]) {
      await end(ledger, n, 'settled');
      const lost = { kind: 'undelivered', because: 'answer_lost', headSent: n === 1 } as const;
      expect(await ledger.advance(claimOf(n).id, lost, OPTIONS)).toMatchObject({ charge: { state: 'settled' } });
    }
    offset += REDEEM_MS - 60_000;
    await prune(ledger);
    expect(await open().countByState()).toMatchObject({ settled: 2, delivered: 0 });
    offset += 120_000;
    await prune(open());
    expect(await open().findByChargeId(claimOf(1).id)).toMatchObject({ state: 'delivered', partial: true });
    expect(await open().findByChargeId(claimOf(2).id)).toMatchObject({ state: 'settled' });
  });

  test('attack: claims and changes that are refused leave nothing in the file', async () => {
    const ledger = open();
    await claim(ledger, 1);
    await Promise.all(Array.from({ length: 50 }, () => claim(ledger, 1)));
    for (let n = 2; n < 40; n++) await ledger.claim({ ...claimOf(n), id: claimOf(1).id }, OPTIONS);
    await Promise.allSettled(
      Array.from({ length: 50 }, (_, n) => ledger.claim({ ...claimOf(n + 50), id: 'x' }, OPTIONS)),
    );
    for (let n = 0; n < 50; n++)
      await ledger.advance(`chg_unknown${n}`, { kind: 'delivered', partial: false }, OPTIONS);
    expect(count('charges')).toBe(1);
  });

  test('behaviour: no authorization is on disk once it was used', async () => {
    const credential = Buffer.from('a signature that is worth money'.repeat(20)).toString('base64');
    const what = claimOf(1, { credential, credentialSha256: claimOf(1).credentialSha256 });
    const ledger = open();
    await ledger.claim(what, OPTIONS);
    await ledger.advance(what.id, { kind: 'settle_started', via: 'first', leaseMs: 1000 }, OPTIONS);
    expect((await ledger.find(what.payment))?.credential).toBe(credential);
    await ledger.advance(what.id, { kind: 'settled', proof: proofOf(what), leaseMs: 1000 }, OPTIONS);
    await ledger.close();
    const db = openDatabase(file, 1000);
    expect(db.prepare('SELECT * FROM charge_credentials').all()).toEqual([]);
    expect(JSON.stringify(db.prepare('SELECT * FROM charges').all())).not.toContain(credential);
    db.close();
  });
});
