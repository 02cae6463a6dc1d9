// The statements of the ledger's thread on its SQLite file. The ledger, in the main thread, decides what they write.
// The caller holds a transaction with the write lock around all of it, and commits before it answers.
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { NO_DEADLINE_MS, type KeptAnswer } from '../../../domain/payment/charge.ts';
import { OVERDUE_MS } from '../../../domain/payment/claim-policy.ts';
import type { ChargeName, StoredCharge } from '../../../domain/payment/ledger.ts';
import { LOCAL_RUN, WORKER_RUN, workersOfRun } from '../../../domain/payment/run-names.ts';
import type { ChangeLog } from '../../../domain/payment/reports.ts';
import {
  type InsertRefusal,
  type UpdateRefusal,
  type Room,
  type RowChange,
  type RowInsert,
  readStored,
} from '../charge-values.ts';
import { INSERT, SELECT_BY_ID, SELECT_BY_PAYMENT, updateOf } from './charge-rows.ts';
import { createPrune, type ChargePruner } from './charge-prune.ts';
import { createChangeWrites } from './charge-changes.ts';
import { createTotals } from './charge-totals.ts';
import { createPassOpener, type PassOpener } from './pass-rows.ts';
import { createProofs } from './refund-proofs.ts';
import { createSmallTables } from './small-tables.ts';
import { createOutbox } from './webhook-outbox.ts';
import { createWebhookWrites, type WebhookWrites } from './webhook-rows.ts';
import { createAddAudit, createAuditInsert } from './audit-insert.ts';
import { isConstraint } from './database.ts';
import { integer, text, type Row } from '../rows.ts';

/** Synchronous; `now` is the ledger's clock at the call. */
export type ChargeWrites = WebhookWrites & {
  readonly find: (by: ChargeName) => StoredCharge | undefined;
  /** Inserts a charge; undefined: it was done. */
  readonly insert: (insert: RowInsert) => InsertRefusal | undefined;
  readonly update: (change: RowChange) => UpdateRefusal | undefined;
  readonly updateKeeping: (change: RowChange, kept: KeptAnswer) => UpdateRefusal | undefined;
  readonly due: (limit: number, now: number) => StoredCharge[];
  readonly renew: (run: string, ids: readonly string[], leaseMs: number, now: number) => readonly string[];
  /** Changes a row: throws if a write would. */
  readonly check: () => void;
  readonly prune: ChargePruner;
  /** Leases of earlier runs of processes that held this file alone are over. */
  readonly endRunsBut: (run: string, now: number) => void;
  /** Leases of this run are over. */
  readonly endRun: (run: string, now: number) => void;
  /** The clock was set by `stepMs` since `then`: leases that ran then run as long as before. */
  readonly moveLeases: (then: number, stepMs: number) => void;
  /** Writes the counts and sums of what was done since `begin`: before the commit. */
  readonly finish: (now: number) => void;
  readonly watchChanges: (now: number) => ChangeLog;
  /** A new transaction: what was not finished did not happen. */
  readonly begin: () => void;
};

/** Number of charges whose rows are remembered: those in work. */
const REMEMBERED = 4096;
const PROOF_INDEX = 'charges_proof';
const DUE_AT = 'max(lease_until, coalesce(look_at, 0))';
/** Binds the time and a limit; earliest first. */
const DUE = `INDEXED BY charges_due
  WHERE state IN ('claimed', 'settling') AND ${DUE_AT} <= ? ORDER BY ${DUE_AT} LIMIT ?`;

export function createChargeWrites(db: DatabaseSync): ChargeWrites {
  const sql = {
    byPayment: db.prepare(SELECT_BY_PAYMENT),
    byId: db.prepare(SELECT_BY_ID),
    due: db.prepare(`SELECT id FROM charges ${DUE}`),
    insert: db.prepare(INSERT),
    keepCredential: db.prepare('INSERT OR REPLACE INTO charge_credentials (seq, credential) VALUES (?, ?)'),
    dropCredential: db.prepare('DELETE FROM charge_credentials WHERE seq = ?'),
    keepAnswer: db.prepare('INSERT OR REPLACE INTO charge_answers (seq, status, headers, body) VALUES (?, ?, ?, ?)'),
    dropAnswer: db.prepare('DELETE FROM charge_answers WHERE seq = ?'),
    // The update goes there and back: SQLite writes nothing for a row that is what it was.
    touch: db.prepare("UPDATE charge_counts SET charges = charges + ? WHERE state = 'claimed'"),
  };

  const passes = createPassOpener(db);
  const find = (by: ChargeName): StoredCharge | undefined => {
    if ('id' in by) return readOrNot(sql.byId.get(by.id));
    const { network, asset, payer, unique } = by.payment;
    return readOrNot(sql.byPayment.get(network, asset, payer, unique));
  };
  const refusalOf = createRoomRule(db, passes);

  const tables = createSmallTables(db);
  const totals = createTotals(db);
  const proofs = createProofs(db);
  const changes = createChangeWrites(db, tables);
  const outbox = createOutbox(db, tables);
  const chargeRows = createRowWriter(db);
  const addAudit = createAuditInsert(db);
  const update = (change: RowChange, kept?: KeptAnswer): UpdateRefusal | undefined => {
    const { id, version, leaseUntil, room, before, after, credential, settled, refunded } = change;
    const refused = room === null ? undefined : refusalOf(room);
    if (refused !== undefined) {
      const charge = find({ id });
      const same = charge?.version === version && (leaseUntil === null || charge.charge.leaseUntil === leaseUntil);
      return same ? { kind: refused } : { kind: 'stale', charge };
    }
    if (change.proof !== null && proofs.isUsed(change.proof, settled === null ? 'refund' : 'payment')) {
      const charge = find({ id });
      return charge?.version === version ? { kind: 'proof_used' } : { kind: 'stale', charge };
    }
    let written: boolean;
    try {
      written = chargeRows.write(change);
    } catch (error) {
      // The statement changed nothing, and its transaction goes on.
      if (isConstraint(error) && error.message.includes(PROOF_INDEX)) return { kind: 'proof_used' };
      throw error;
    }
    if (!written) return { kind: 'stale', charge: find({ id }) };
    const { dropsAnswer } = change;
    // The number is looked up only when it is needed: RETURNING would cost every update half as much again.
    if (credential !== undefined || kept !== undefined || dropsAnswer) {
      const seq = chargeRows.seqOf(id);
      if (credential === null) sql.dropCredential.run(seq);
      else if (credential !== undefined) sql.keepCredential.run(seq, credential);
      if (kept !== undefined) sql.keepAnswer.run(seq, kept.status, JSON.stringify(kept.headers), kept.body);
      else if (dropsAnswer) sql.dropAnswer.run(seq);
    }
    totals.moved(before, after);
    changes.moved(id, before, after);
    outbox.charge(id, change.tells);
    if (settled !== null) totals.settled(settled);
    if (change.opens !== null) passes.open(change.opens);
    if (change.revokesPassAt !== null) passes.revoke(id, change.revokesPassAt);
    if (refunded !== null) totals.refunded(refunded);
    if (change.proof !== null && settled === null) proofs.use(change.proof, id);
    if (change.audit !== null) addAudit(change.audit);
    return undefined;
  };

  return {
    find,
    insert: ({ payment, id, room, state, values, credential }) => {
      const refused = refusalOf(room);
      let broken: Error | undefined;
      if (refused === undefined) {
        try {
          const seq = Number(sql.insert.run(...values).lastInsertRowid);
          chargeRows.inserted(id, seq);
          sql.keepCredential.run(seq, credential);
          totals.moved(undefined, state);
          changes.moved(id, undefined, state);
          outbox.charge(id, 'charge.claimed');
          return undefined;
        } catch (error) {
          if (!isConstraint(error)) throw error;
          broken = error;
        }
      }
      const charge = find({ payment });
      if (charge !== undefined) return { kind: 'payment_known', charge };
      if (chargeRows.find(id) !== undefined) return { kind: 'id_taken' };
      if (refused !== undefined) return { kind: refused };
      throw broken ?? new Error('a charge was not written');
    },
    update: (change) => update(change),
    updateKeeping: update,
    due: (limit, now) => sql.due.all(now, limit).flatMap((row) => find({ id: text(row, 'id') }) ?? []),
    check: () => {
      sql.touch.run(1);
      sql.touch.run(-1);
    },
    ...createLeases(db),
    prune: createPrune(db, totals, { find, update }),
    watchChanges: changes.watch,
    ...createWebhookWrites(db, outbox, { tables, addAudit: createAddAudit(db) }),
    finish: (now) => {
      totals.write();
      changes.write(now);
    },
    begin: () => {
      totals.clear();
      changes.clear();
      tables.begin();
    },
  };
}

/** Says which limit of its payer a claim would pass; undefined: none. */
function createRoomRule(
  db: DatabaseSync,
  passes: Pick<PassOpener, 'isFull'>,
): (room: Room) => 'too_many_unsettled' | 'too_many_passes' | undefined {
  // The rows are not cut off by a LIMIT: as a parameter it makes SQLite prepare the statement anew for every call.
  // Their number is at most the limit, and claims whose owner died, which are taken over within seconds.
  const unsettled = db.prepare(
    `SELECT count(*) AS unsettled FROM charges INDEXED BY charges_unsettled
     WHERE state IN ('claimed', 'settling') AND payer = ?1 AND network = ?3
       AND CASE state WHEN 'claimed' THEN lease_until > ?2
           ELSE coalesce(deadline * 1000, claimed_at + ${NO_DEADLINE_MS}) > ?2 - ${OVERDUE_MS} END`,
  );
  return ({ network, payer, maxUnsettled, now, plan, charge }) => {
    if (Number(unsettled.get(payer, now, network)?.['unsettled']) >= maxUnsettled) return 'too_many_unsettled';
    return plan !== null && passes.isFull({ payer, plan, charge }, now) ? 'too_many_passes' : undefined;
  };
}

type RowWriter = {
  /** Writes the row of a charge if it still has its version, and its lease if one is given. */
  readonly write: (change: RowChange) => boolean;
  readonly inserted: (id: string, seq: number) => void;
  /** Number of the row of a charge that was just written. */
  readonly seqOf: (id: string) => number;
  /** The row that has this id now. */
  readonly find: (id: string) => Row | undefined;
};

/** Charges in work are changed by the number of their row: to look a row up by its id costs as much as to change it. */
function createRowWriter(db: DatabaseSync): RowWriter {
  const seqById = db.prepare('SELECT seq FROM charges WHERE id = ?');
  // No package: it would be loaded by each thread.
  const seqs = new Map<string, number>();
  /** Statements for each kind of change, by the columns that it touches: no more than there are events. */
  const updates = new Map<string, StatementSync>();
  const updating = (columns: readonly number[], bySeq: boolean, withLease: boolean): StatementSync => {
    const name = `${columns.join(' ')} ${bySeq} ${withLease}`;
    let statement = updates.get(name);
    if (statement === undefined) updates.set(name, (statement = db.prepare(updateOf(columns, bySeq, withLease))));
    return statement;
  };
  return {
    write: ({ id, version, leaseUntil, columns, values }) => {
      const lease = leaseUntil === null ? [] : [leaseUntil];
      const seq = seqs.get(id);
      if (seq !== undefined) {
        const { changes } = updating(columns, true, lease.length > 0).run(...values, seq, id, version, ...lease);
        if (changes === 1) return true;
        // A roll-back gave its number to another charge, or it has changed: its id tells.
        seqs.delete(id);
      }
      return updating(columns, false, lease.length > 0).run(...values, id, version, ...lease).changes === 1;
    },
    inserted: (id, seq) => {
      if (seqs.size >= REMEMBERED) seqs.delete(seqs.keys().next().value ?? id);
      seqs.set(id, seq);
    },
    seqOf: (id) => seqs.get(id) ?? integer(seqById.get(id) ?? {}, 'seq'),
    find: (id) => seqById.get(id),
  };
}

type Leases = Pick<ChargeWrites, 'renew' | 'endRun' | 'endRunsBut' | 'moveLeases'>;

/** Binds its own run and how those of its workers begin. */
const OF_EARLIER_RUN = `AND (
  substr(owner, 1, ${LOCAL_RUN.length}) = '${LOCAL_RUN}' AND substr(owner, 1, length(?2) + 1) <> ?2 || '/'
  OR substr(owner, 1, ${WORKER_RUN.length}) = '${WORKER_RUN}' AND substr(owner, 1, length(?3)) <> ?3)`;
const OF_RUN = "AND substr(owner, 1, length(?2) + 1) = ?2 || '/'";
const END_UNSETTLED = "UPDATE charges SET lease_until = ?1 WHERE state IN ('claimed', 'settling') AND lease_until > ?1";
const END_SETTLED = "UPDATE charges SET lease_until = ?1 WHERE state = 'settled' AND lease_until > ?1";
const END_DRAWS = "UPDATE pass_draws SET lease_until = ?1 WHERE state = 'reserved' AND lease_until > ?1";

function createLeases(db: DatabaseSync): Leases {
  const sql = {
    renew: db.prepare(
      `UPDATE charges SET lease_until = ?1 WHERE id = ?2 AND substr(owner, 1, length(?3) + 1) = ?3 || '/'
         AND state IN ('claimed', 'settling', 'settled')`,
    ),
    endRunsUnsettled: db.prepare(`${END_UNSETTLED} ${OF_EARLIER_RUN}`),
    endRunsSettled: db.prepare(`${END_SETTLED} ${OF_EARLIER_RUN}`),
    endRunsDraws: db.prepare(`${END_DRAWS} ${OF_EARLIER_RUN}`),
    endRunUnsettled: db.prepare(`${END_UNSETTLED} ${OF_RUN}`),
    endRunSettled: db.prepare(`${END_SETTLED} ${OF_RUN}`),
    endRunDraws: db.prepare(`${END_DRAWS} ${OF_RUN}`),
    moveUnsettled: db.prepare(
      "UPDATE charges SET lease_until = lease_until + ?2 WHERE state IN ('claimed', 'settling') AND lease_until > ?1",
    ),
    moveSettled: db.prepare(
      "UPDATE charges SET lease_until = lease_until + ?2 WHERE state = 'settled' AND lease_until > ?1",
    ),
    moveDraws: db.prepare(
      "UPDATE pass_draws SET lease_until = lease_until + ?2 WHERE state = 'reserved' AND lease_until > ?1",
    ),
  };
  return {
    renew: (run, ids, leaseMs, now) => ids.filter((id) => sql.renew.run(now + leaseMs, id, run).changes === 1),
    endRunsBut: (run, now) => {
      const workers = workersOfRun(run);
      sql.endRunsUnsettled.run(now, run, workers);
      sql.endRunsSettled.run(now, run, workers);
      sql.endRunsDraws.run(now, run, workers);
    },
    endRun: (run, now) => {
      sql.endRunUnsettled.run(now, run);
      sql.endRunSettled.run(now, run);
      sql.endRunDraws.run(now, run);
    },
    moveLeases: (then, stepMs) => {
      sql.moveUnsettled.run(then, stepMs);
      sql.moveSettled.run(then, stepMs);
      sql.moveDraws.run(then, stepMs);
    },
  };
}

function readOrNot(row: Row | undefined): StoredCharge | undefined {
  return row && readStored(row);
}
