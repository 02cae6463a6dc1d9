// What the ledger's thread remembers of its SQLite file from one transaction to the next: rows of charges, rows of sums, and whether
// somebody listens. Another process may change the file beside it, and a transaction may be rolled back.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Charge, Claim } from '../../../src/domain/payment/charge.ts';
import { decideClaim } from '../../../src/domain/payment/claim-policy.ts';
import { transition, type ChargeEvent } from '../../../src/domain/payment/transition.ts';
import { toRowChange, toRowInsert } from '../../../src/registry/store/charge-values.ts';
import { createChargeWrites, type ChargeWrites } from '../../../src/registry/store/sqlite/charge-writes.ts';
import { openDatabase } from '../../../src/registry/store/sqlite/database.ts';
import { claimOf, OTHER_ROUTE, proofOf } from '../../cases/claims.ts';

const OWNER = 'run/request';
const OPTIONS = { leaseMs: 60_000, maxUnsettledPerPayer: 100, owner: OWNER, changeId: 'claim' };
const NOW = Date.UTC(2026, 2, 1, 12);

let folder = '';
let db: ReturnType<typeof openDatabase>;
/** Another process on the same file. */
let beside: ReturnType<typeof openDatabase>;
let writes: ChargeWrites;
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'tollgate-thread-'));
  db = openDatabase(path.join(folder, 'store.db'), 1_000);
  beside = openDatabase(path.join(folder, 'store.db'), 1_000);
  writes = createChargeWrites(db);
});
afterEach(() => {
  db.close();
  beside.close();
  rmSync(folder, { recursive: true });
});

/** A transaction as the thread makes it. */
function transact<T>(run: () => T, end: 'COMMIT' | 'ROLLBACK' = 'COMMIT'): T {
  db.exec('BEGIN IMMEDIATE');
  writes.begin();
  const result = run();
  writes.finish(NOW);
  db.exec(end);
  return result;
}

function insert(claim: Claim): Charge {
  const { charge } = decideClaim(undefined, claim, OPTIONS, NOW);
  expect(writes.insert(toRowInsert({ charge, claim, options: OPTIONS }, NOW))).toBeUndefined();
  return charge;
}

type Stored = { readonly charge: Charge; readonly version: number };

function change(
  { charge, version }: Stored,
  event: ChargeEvent,
): { refusal: ReturnType<ChargeWrites['update']>; next: Stored } {
  const actor = { owner: OWNER };
  const moved = transition(charge, event, actor, NOW);
  if (!moved.ok) throw new Error(moved.because);
  const before = { charge, version };
  const refusal = writes.update(toRowChange({ before, after: moved.charge, actor, because: { event } }, NOW));
  return { refusal, next: { charge: moved.charge, version: version + 1 } };
}

const STARTED: ChargeEvent = { kind: 'settle_started', via: 'facilitator', leaseMs: 60_000 };

/** Settles a new charge in two steps of one transaction. */
function settleIn(charge: Charge): void {
  const started = change({ charge, version: 1 }, STARTED);
  const settled = change(started.next, { kind: 'settled', proof: proofOf(charge), leaseMs: 60_000 });
  expect([started.refusal, settled.refusal]).toEqual([undefined, undefined]);
}

/** Claims and settles in two transactions. */
function settle(n: number, end: 'COMMIT' | 'ROLLBACK' = 'COMMIT'): void {
  const charge = transact(() => insert(claimOf(n)));
  transact(() => settleIn(charge), end);
}

const rows = (sql: string): object[] =>
  db
    .prepare(sql)
    .all()
    .map((row) => ({ ...row }));
const sums = (): object[] =>
  rows('SELECT charges, amount FROM charge_sums UNION ALL SELECT charges, amount FROM charge_totals');
const five = (charges: number): object[] =>
  Array.from({ length: 5 }, () => ({ charges, amount: `${charges * 100_000}` }));

test('behaviour: a sum whose row was taken away by another process begins anew, and others go on', () => {
  settle(1);
  settle(2);
  expect(sums()).toEqual(five(2));
  beside.exec("DELETE FROM charge_totals WHERE step = 'minute'; DELETE FROM charge_sums");
  settle(3);
  expect(sums().toSorted((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1))).toEqual([
    ...five(1).slice(3),
    ...five(3).slice(2),
  ]);
});

test('behaviour: a settlement that is rolled back adds nothing, and the next one counts once', () => {
  settle(1, 'ROLLBACK');
  expect(sums()).toEqual([]);
  settle(2);
  settle(3, 'ROLLBACK');
  settle(4);
  expect(sums()).toEqual(five(2));
});

test('behaviour: settlements of more routes than are remembered, in one transaction, are all in the sums', () => {
  const claims = Array.from({ length: 1_100 }, (_, n) =>
    claimOf(n + 1, { route: { id: `route-${n}`, method: 'GET', pattern: '/x' } }),
  );
  const again = Array.from({ length: 5 }, (_, n) =>
    claimOf(n + 2_000, { route: { id: `route-${n}`, method: 'GET', pattern: '/x' } }),
  );
  const all = [...claims, ...again];
  const charges = transact(() => all.map(insert));
  transact(() => charges.forEach(settleIn));
  const of = (table: string, where: string): object[] =>
    rows(`SELECT count(*) AS rows, sum(charges) AS charges, sum(amount) AS amount FROM ${table} WHERE ${where}`);
  const whole = { charges: 1_105, amount: 1_105 * 100_000 };
  expect(of('charge_sums', '1')).toEqual([{ rows: 1_100, ...whole }]);
  expect(of('charge_totals', "route_id <> ''")).toEqual([{ rows: 1_100, ...whole }]);
  for (const step of ['minute', 'hour', 'day'])
    expect(of('charge_totals', `route_id = '' AND step = '${step}'`)).toEqual([{ rows: 1, ...whole }]);
});

test('behaviour: an endpoint of webhooks that another process declares is told from the next charge on, and one that it forgets is not', () => {
  const told = (): object[] => rows('SELECT subject FROM webhook_events');
  transact(() => insert(claimOf(1)));
  beside.exec("INSERT INTO webhook_wants (type, endpoint_id) VALUES ('charge.claimed', 'books')");
  transact(() => insert(claimOf(2)));
  transact(() => insert(claimOf(3)));
  beside.exec('DELETE FROM webhook_wants');
  transact(() => insert(claimOf(4)));
  expect(told()).toEqual([{ subject: 'chg_test-2' }, { subject: 'chg_test-3' }]);
});

test('behaviour: an endpoint whose declaration is rolled back is told nothing', () => {
  const declare = (): void => writes.declareWebhooks([{ id: 'books', types: ['charge.claimed'] }], undefined, NOW);
  transact(() => {
    declare();
    insert(claimOf(1));
  }, 'ROLLBACK');
  transact(() => insert(claimOf(2)));
  expect(rows('SELECT subject FROM webhook_events')).toEqual([]);
  transact(declare);
  transact(() => insert(claimOf(3)));
  expect(rows('SELECT subject FROM webhook_events')).toEqual([{ subject: 'chg_test-3' }]);
});

test('behaviour: changes are written down as long as another process watches, from the next transaction on', () => {
  const told = (): object[] => rows('SELECT charge_id FROM charge_changes');
  transact(() => insert(claimOf(1)));
  beside.exec(`UPDATE charge_watch SET watched_until = ${NOW + 1}`);
  transact(() => insert(claimOf(2)));
  beside.exec(`UPDATE charge_watch SET watched_until = ${NOW}`);
  transact(() => insert(claimOf(3)));
  expect(told()).toEqual([{ charge_id: 'chg_test-2' }]);
});

test('behaviour: changes are written down for this process from when it watches, unless that is rolled back', () => {
  const watch = (): void => {
    writes.watchChanges(NOW);
    insert(claimOf(1));
  };
  transact(watch, 'ROLLBACK');
  transact(() => insert(claimOf(2)));
  transact(() => void writes.watchChanges(NOW));
  transact(() => insert(claimOf(3)));
  expect(rows('SELECT charge_id FROM charge_changes')).toEqual([{ charge_id: 'chg_test-3' }]);
});

test('attack: a charge that was rolled back is not another one that got its place in the file', () => {
  const lost = transact(() => insert(claimOf(1)), 'ROLLBACK');
  const kept = transact(() => insert(claimOf(2, { route: { id: OTHER_ROUTE, method: 'GET', pattern: '/x' } })));
  expect(transact(() => change({ charge: lost, version: 1 }, STARTED).refusal)).toEqual({
    kind: 'stale',
    charge: undefined,
  });
  expect(rows('SELECT id, state, version FROM charges')).toEqual([{ id: kept.id, state: 'claimed', version: 1 }]);
});

test('behaviour: a charge whose row stands elsewhere in the file is changed there, with its credential', () => {
  const charge = transact(() => insert(claimOf(1)));
  beside.exec('UPDATE charges SET seq = seq + 1000; UPDATE charge_credentials SET seq = seq + 1000');
  transact(() => insert(claimOf(2)));
  transact(() => settleIn(charge));
  expect(rows('SELECT id, state FROM charges ORDER BY id')).toEqual([
    { id: 'chg_test-1', state: 'settled' },
    { id: 'chg_test-2', state: 'claimed' },
  ]);
  expect(rows('SELECT id FROM charge_credentials JOIN charges USING (seq)')).toEqual([{ id: 'chg_test-2' }]);
});
