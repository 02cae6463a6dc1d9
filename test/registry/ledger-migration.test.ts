// A ledger that an older version wrote is carried over whole: every charge in every state, with its credential where it is
// still needed and its kept answer, in the order and under the numbers that it had.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Charge } from '../../src/domain/charge.ts';
import { createLog } from '../../src/host/log.ts';
import { openLedger, type SqliteLedger } from '../../src/registry/store/ledger.ts';
import { allValues } from '../../src/registry/store/ledger-rows.ts';
import { migrateFile } from '../../src/registry/store/sqlite.ts';
import { claimOf, proofOf } from '../cases/claims.ts';
import { temporaryFolder } from './kit.ts';

const MIGRATIONS = new URL('../../src/registry/store/migrations/', import.meta.url);
const OPTIONS = { owner: 'two', leaseMs: 60_000, maxUnsettledPerPayer: 8 };
/** Versions whose tables were written anew since: the last with credentials in the rows of charges, and the one after. */
const VERSIONS = [3, 4];
const NOW = Date.now();

let file: string;
let remove: () => void;
let ledger: SqliteLedger | undefined;
let said: string[];

beforeEach(() => {
  said = [];
  const made = temporaryFolder();
  remove = made.remove;
  file = join(made.folder, 'ledger.db');
});
afterEach(async () => {
  await ledger?.close();
  ledger = undefined;
  remove();
});

const open = (): SqliteLedger =>
  (ledger = openLedger(file, { now: Date.now, log: createLog('info', (line) => said.push(line), Date.now) }));

/** The `n`th charge, in a state that its rest describes. */
function chargeOf(n: number, rest: Partial<Charge>): Charge {
  return {
    ...claimOf(n),
    state: 'claimed',
    owner: 'one',
    leaseUntil: NOW + 3_600_000,
    claims: 1,
    attempts: 0,
    nextTryAt: null,
    proof: null,
    reason: null,
    failedBy: null,
    asks: 0,
    repeats: 0,
    undelivered: null,
    undeliveredAt: null,
    answer: null,
    changeId: `change ${n}`,
    createdAt: NOW + n,
    updatedAt: NOW + 10 + n,
    settledAt: null,
    deliveredAt: null,
    ...rest,
  };
}

const OVER = { credential: null, owner: null, leaseUntil: 0 } as const;
const answer = { status: 200, headers: ['Content-Type', 'text/plain'], body: Buffer.from('what was paid for') };
const CHARGES: readonly Charge[] = [
  chargeOf(1, {}),
  chargeOf(2, { state: 'settling', attempts: 2, nextTryAt: 5000, owner: null, reason: 'no_answer', customerId: 'c' }),
  chargeOf(3, {
    ...OVER,
    state: 'settled',
    proof: proofOf(claimOf(3)),
    settledAt: 3,
    undeliveredAt: NOW,
    answer,
  }),
  chargeOf(4, {
    ...OVER,
    state: 'delivered',
    proof: proofOf(claimOf(4), { logIndex: 7 }),
    settledAt: 3,
    deliveredAt: 4,
  }),
  chargeOf(5, { ...OVER, state: 'released', claims: 2, reason: 'upstream_500' }),
  chargeOf(6, { ...OVER, state: 'failed', failedBy: 'refusal', reason: 'insufficient_funds' }),
];

/** A file as an older version made and filled it; the last charge it took is gone again. */
function writeOldFile(version: number, charges: readonly Charge[]): void {
  const db = new DatabaseSync(file);
  const old = readdirSync(MIGRATIONS).sort().slice(0, version);
  db.exec(`PRAGMA journal_mode = WAL; ${old.map((name) => readFileSync(new URL(name, MIGRATIONS), 'utf8')).join(';')}`);
  db.exec(`PRAGMA user_version = ${version}`);
  const columns = db
    .prepare("SELECT name FROM pragma_table_info('charges') WHERE name NOT IN ('seq', 'credential')")
    .all()
    .map(({ name }) => String(name));
  const inRow = version === 3;
  if (inRow) columns.push('credential');
  const insert = db.prepare(
    `INSERT INTO charges (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})`,
  );
  for (const charge of [...charges, chargeOf(99, { ...OVER, state: 'released' })]) {
    const { lastInsertRowid: seq } = insert.run(...allValues(charge), ...(inRow ? [charge.credential] : []));
    if (!inRow && charge.credential !== null)
      db.prepare('INSERT INTO charge_credentials (seq, credential) VALUES (?, ?)').run(seq, charge.credential);
    db.prepare('UPDATE charge_counts SET charges = charges + 1 WHERE state = ?').run(charge.state);
    if (charge.answer === null) continue;
    const { status, headers, body } = charge.answer;
    db.prepare('INSERT INTO charge_answers VALUES (?, ?, ?, ?)').run(seq, status, JSON.stringify(headers), body);
  }
  db.exec(
    "DELETE FROM charges WHERE id = 'chg_test-99'; UPDATE charge_counts SET charges = 1 WHERE state = 'released'",
  );
  db.close();
}

describe.each(VERSIONS)('a file of version %i', (version) => {
  test('behaviour: every charge is what it was, whatever its state', async () => {
    writeOldFile(version, CHARGES);
    const migrated = open();
    for (const charge of CHARGES) {
      const found = await migrated.findByChargeId(charge.id);
      expect(found).toEqual(
        charge.answer === null ? charge : { ...charge, answer: { ...answer, body: expect.anything() } },
      );
      expect(await migrated.find(charge.payment)).toEqual(found);
      if (charge.answer !== null) expect(Buffer.from(found?.answer?.body ?? []).toString()).toBe('what was paid for');
    }
    const { charges } = await migrated.list({ limit: 10 });
    expect(charges.map(({ id }) => id)).toEqual(CHARGES.map(({ id }) => id).reverse());
    expect(said.map((line) => JSON.parse(line))).toMatchObject([
      { level: 'info', from: version, to: readdirSync(MIGRATIONS).length },
    ]);
    expect(await migrated.countByState()).toEqual(
      Object.fromEntries(
        ['claimed', 'settling', 'settled', 'delivered', 'released', 'failed'].map((state) => [state, 1]),
      ),
    );
  });

  test('attack: nothing that was used can be used again after it', async () => {
    writeOldFile(version, CHARGES);
    const migrated = open();
    expect(await migrated.claim(claimOf(4), OPTIONS)).toMatchObject({ kind: 'spent' });
    expect(await migrated.claim({ ...claimOf(7), id: claimOf(4).id }, OPTIONS)).toEqual({ kind: 'quote_already_used' });
    expect((await migrated.claim(claimOf(8), OPTIONS)).kind).toBe('claimed');
    await migrated.advance(claimOf(8).id, { kind: 'settle_started', leaseMs: 1000 }, OPTIONS);
    const { transaction, logIndex } = proofOf(claimOf(4), { logIndex: 7 });
    const proof = proofOf(claimOf(8), { transaction, logIndex });
    expect(await migrated.advance(claimOf(8).id, { kind: 'settled', proof, leaseMs: 1000 }, OPTIONS)).toMatchObject({
      because: 'proof_used',
    });
  });

  test('behaviour: a charge that was in work goes on: its credential is there until it is settled', async () => {
    writeOldFile(version, CHARGES);
    const migrated = open();
    const one = { owner: 'one' };
    await migrated.advance(claimOf(1).id, { kind: 'settle_started', leaseMs: 1000 }, one);
    expect((await migrated.findByChargeId(claimOf(1).id))?.credential).toBe(claimOf(1).credential);
    const settled = { kind: 'settled', proof: proofOf(claimOf(1)), leaseMs: 1000 } as const;
    expect(await migrated.advance(claimOf(1).id, settled, one)).toMatchObject({ charge: { credential: null } });
  });

  test.each([
    ['charges', CHARGES],
    ['a ledger whose charges are all gone', []],
  ])('behaviour: a number is not handed out again: %s', async (_what, charges) => {
    writeOldFile(version, charges);
    expect(migrateFile(file)).toContain(version + 1);
    expect((await open().claim(claimOf(8), OPTIONS)).kind).toBe('claimed');
    await ledger?.close();
    const db = new DatabaseSync(file);
    const { seq } = db.prepare("SELECT seq FROM charges WHERE id = 'chg_test-8'").get() ?? {};
    const broken = db.prepare('PRAGMA foreign_key_check').all();
    const integrity = db.prepare('PRAGMA integrity_check').all();
    db.close();
    // The one that is gone had the number after the last.
    expect(seq).toBe(charges.length + 2);
    expect([broken, integrity]).toEqual([[], [{ integrity_check: 'ok' }]]);
  });
});

test('behaviour: nothing is said of a file that is new or up to date', async () => {
  expect(await open().find(claimOf(1).payment)).toBeUndefined();
  await ledger?.close();
  expect(await open().find(claimOf(1).payment)).toBeUndefined();
  expect(said).toEqual([]);
});
