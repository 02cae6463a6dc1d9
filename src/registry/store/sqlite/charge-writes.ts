// The statements of the ledger's thread on its SQLite file. What they write was decided by the ledger on the other side
// of the thread. The caller holds a transaction with the write lock around all of it and commits before anybody is told.
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { LOCAL_RUN, NO_DEADLINE_MS, type KeptAnswer } from '../../../domain/charge.ts';
import { OVERDUE_MS } from '../../../domain/payment/claim-policy.ts';
import type { ChargeName, Inserted, PruneBefore, StoredCharge, Updated } from '../../../domain/payment/ledger.ts';
import { transition, type ChargeEvent } from '../../../domain/payment/transition.ts';
import { toRowChange, type Room, type RowChange, type RowInsert } from './charge-changes.ts';
import { INSERT, readStored, SELECT_BY_ID, SELECT_BY_PAYMENT, stateOf, updateOf } from './charge-rows.ts';
import { createTotals } from './charge-totals.ts';
import { isConstraint } from './database.ts';
import { integer, text, type Row } from './rows.ts';

export type NotInserted = Exclude<Inserted, { readonly kind: 'written' }>;
export type NotUpdated = Exclude<Updated, { readonly kind: 'written' }>;

/** Synchronous; `now` is the ledger's clock at the call. */
export type ChargeWrites = {
  readonly find: (by: ChargeName) => StoredCharge | undefined;
  /** Undefined: it was done. */
  readonly insert: (insert: RowInsert) => NotInserted | undefined;
  readonly update: (change: RowChange) => NotUpdated | undefined;
  readonly updateKeeping: (change: RowChange, kept: KeptAnswer) => NotUpdated | undefined;
  readonly due: (limit: number, now: number) => StoredCharge[];
  readonly renew: (run: string, ids: readonly string[], leaseMs: number, now: number) => readonly string[];
  /** Changes a row: throws if a write would. */
  readonly check: () => void;
  /** Takes away what can be asked for no more, a bounded part of it at a time; true if there may be more of it. */
  readonly prune: (before: PruneBefore, limit: number, now: number) => boolean;
  /** Leases of earlier runs of processes that held this file alone are over. */
  readonly endRunsBut: (run: string, now: number) => void;
  /** The clock was set by `stepMs` since `then`: leases that ran then run as long as before. */
  readonly moveLeases: (then: number, stepMs: number) => void;
  /** Writes the counts and sums of what was done since `begin`: before the commit. */
  readonly finish: () => void;
  /** A new transaction: what was not finished did not happen. */
  readonly begin: () => void;
};

const PROOF_INDEX = 'charges_proof';
/** Charges that are looked at for each that may be taken away. */
const WALKED_FOR_EACH = 5;
/** From so long after its claim on, a payment without a deadline is over. */
const NO_DEADLINE_KEPT_MS = 24 * 3_600_000;
const DUE_AT = 'max(lease_until, coalesce(look_at, 0))';
const OF_EARLIER_RUN = `AND substr(owner, 1, ${LOCAL_RUN.length}) = '${LOCAL_RUN}'
  AND substr(owner, 1, length(?2) + 1) <> ?2 || '/'`;
/** Binds the time and a limit; earliest first. */
const DUE = `INDEXED BY charges_due
  WHERE state IN ('claimed', 'settling') AND ${DUE_AT} <= ? ORDER BY ${DUE_AT} LIMIT ?`;

export function createChargeWrites(db: DatabaseSync): ChargeWrites {
  const sql = {
    byPayment: db.prepare(SELECT_BY_PAYMENT),
    byId: db.prepare(SELECT_BY_ID),
    seqById: db.prepare('SELECT seq FROM charges WHERE id = ?'),
    // Not cut off by a LIMIT: as a parameter it makes SQLite prepare the statement anew for every call. There are no more
    // of them than may be, but for claims whose owner died, and those are taken over within seconds.
    unsettled: db.prepare(
      `SELECT count(*) AS unsettled FROM charges INDEXED BY charges_unsettled
       WHERE state IN ('claimed', 'settling') AND payer = ?1
         AND CASE state WHEN 'claimed' THEN lease_until > ?2
             ELSE coalesce(deadline * 1000, claimed_at + ${NO_DEADLINE_MS}) > ?2 - ${OVERDUE_MS} END`,
    ),
    renew: db.prepare(
      `UPDATE charges SET lease_until = ?1 WHERE id = ?2 AND substr(owner, 1, length(?3) + 1) = ?3 || '/'
         AND state IN ('claimed', 'settling', 'settled')`,
    ),
    due: db.prepare(`SELECT id FROM charges ${DUE}`),
    insert: db.prepare(INSERT),
    keepCredential: db.prepare('INSERT OR REPLACE INTO charge_credentials (seq, credential) VALUES (?, ?)'),
    dropCredential: db.prepare('DELETE FROM charge_credentials WHERE seq = ?'),
    keepAnswer: db.prepare('INSERT OR REPLACE INTO charge_answers (seq, status, headers, body) VALUES (?, ?, ?, ?)'),
    dropAnswer: db.prepare('DELETE FROM charge_answers WHERE seq = ?'),
    // There and back: SQLite writes nothing for a row that is what it was.
    touch: db.prepare("UPDATE charge_counts SET charges = charges + ? WHERE state = 'claimed'"),
    endRunsUnsettled: db.prepare(
      `UPDATE charges SET lease_until = ?1 WHERE state IN ('claimed', 'settling') AND lease_until > ?1 ${OF_EARLIER_RUN}`,
    ),
    endRunsSettled: db.prepare(
      `UPDATE charges SET lease_until = ?1 WHERE state = 'settled' AND lease_until > ?1 ${OF_EARLIER_RUN}`,
    ),
    moveUnsettled: db.prepare(
      "UPDATE charges SET lease_until = lease_until + ?2 WHERE state IN ('claimed', 'settling') AND lease_until > ?1",
    ),
    moveSettled: db.prepare(
      "UPDATE charges SET lease_until = lease_until + ?2 WHERE state = 'settled' AND lease_until > ?1",
    ),
    headSent: db.prepare(
      "SELECT id FROM charges WHERE state = 'settled' AND head_sent = 1 AND lease_until <= ? AND settled_at <= ? LIMIT ?",
    ),
    walk: db.prepare(
      `SELECT seq, state, created_at, updated_at <= ?2 AND
           CASE WHEN deadline IS NULL THEN claimed_at + ${NO_DEADLINE_KEPT_MS} ELSE deadline * 1000 END <= ?3
           AND (state IN ('delivered', 'failed', 'released') OR state = 'settled' AND refunded_at IS NOT NULL) AS over
       FROM charges WHERE seq > ?1 ORDER BY seq LIMIT ?4`,
    ),
    remove: db.prepare('DELETE FROM charges WHERE seq = ?'),
    pruneAnswers: db.prepare(
      `DELETE FROM charge_answers WHERE seq IN (
         SELECT charge_answers.seq FROM charge_answers JOIN charges ON charges.seq = charge_answers.seq
         WHERE charges.state NOT IN ('settling', 'settled')
           OR charges.state = 'settled' AND lease_until <= :now AND settled_at <= :before
         LIMIT :limit)`,
    ),
    pruneReleased: db.prepare(
      `DELETE FROM charges WHERE seq IN (
         SELECT seq FROM charges INDEXED BY charges_released WHERE state = 'released' AND updated_at < ? LIMIT ?)`,
    ),
  };

  const find = (by: ChargeName): StoredCharge | undefined => {
    if ('id' in by) return readOrNot(sql.byId.get(by.id));
    const { network, asset, payer, unique } = by.payment;
    return readOrNot(sql.byPayment.get(network, asset, payer, unique));
  };
  const isFull = ({ payer, maxUnsettled, now }: Room): boolean =>
    Number(sql.unsettled.get(payer, now)?.['unsettled']) >= maxUnsettled;

  const totals = createTotals(db);
  // One for each kind of change, by the columns that it touches: no more than there are events.
  const updates = new Map<string, StatementSync>();
  const updating = (columns: readonly number[], withLease: boolean): StatementSync => {
    const name = `${columns.join(' ')} ${withLease}`;
    let statement = updates.get(name);
    if (statement === undefined) updates.set(name, (statement = db.prepare(updateOf(columns, withLease))));
    return statement;
  };

  const update = (change: RowChange, kept?: KeptAnswer): NotUpdated | undefined => {
    const { id, version, leaseUntil, room, before, after, columns, values, credential, settled } = change;
    const lease = leaseUntil === null ? [] : [leaseUntil];
    if (room !== null && isFull(room)) {
      const charge = find({ id });
      const same = charge?.version === version && (leaseUntil === null || charge.charge.leaseUntil === leaseUntil);
      return same ? { kind: 'too_many_unsettled' } : { kind: 'stale', charge };
    }
    let written: boolean;
    try {
      written = updating(columns, lease.length > 0).run(...values, id, version, ...lease).changes === 1;
    } catch (error) {
      // The statement changed nothing, and its transaction goes on.
      if (isConstraint(error) && error.message.includes(PROOF_INDEX)) return { kind: 'proof_used' };
      throw error;
    }
    if (!written) return { kind: 'stale', charge: find({ id }) };
    const { dropsAnswer } = change;
    // Looked up only when it is needed: RETURNING would cost every update half as much again.
    if (credential !== undefined || kept !== undefined || dropsAnswer) {
      const seq = integer(sql.seqById.get(id) ?? {}, 'seq');
      if (credential === null) sql.dropCredential.run(seq);
      else if (credential !== undefined) sql.keepCredential.run(seq, credential);
      if (kept !== undefined) sql.keepAnswer.run(seq, kept.status, JSON.stringify(kept.headers), kept.body);
      else if (dropsAnswer) sql.dropAnswer.run(seq);
    }
    totals.moved(before, after);
    if (settled !== null) totals.settled(settled);
    return undefined;
  };

  const deliverPartly = (id: string, now: number): void => {
    const before = find({ id });
    const event: ChargeEvent = { kind: 'delivered', partial: true };
    const actor = { owner: 'store' };
    const moved = before && transition(before.charge, event, actor, now);
    if (before !== undefined && moved?.ok)
      update(toRowChange({ before, after: moved.charge, actor, because: { event } }, now));
  };

  // Walks the table from its oldest charge on, again and again: an index for it would cost every payment something.
  let walkedTo = 0;
  const pruneClosed = (now: number, before: number, limit: number): boolean => {
    const walked = limit * WALKED_FOR_EACH;
    const rows = sql.walk.all(walkedTo, before, now, walked);
    let removed = 0;
    for (const row of rows) {
      if (integer(row, 'created_at') > before || removed === limit) {
        if (removed < limit) walkedTo = 0;
        return removed === limit;
      }
      walkedTo = integer(row, 'seq');
      if (integer(row, 'over') !== 1) continue;
      sql.remove.run(walkedTo);
      totals.moved(stateOf(row), undefined);
      removed += 1;
    }
    if (rows.length < walked) walkedTo = 0;
    return rows.length === walked;
  };

  return {
    find,
    insert: ({ payment, id, room, state, values, credential }) => {
      const full = isFull(room);
      let broken: Error | undefined;
      if (!full) {
        try {
          const seq = Number(sql.insert.run(...values).lastInsertRowid);
          sql.keepCredential.run(seq, credential);
          totals.moved(undefined, state);
          return undefined;
        } catch (error) {
          if (!isConstraint(error)) throw error;
          broken = error;
        }
      }
      const charge = find({ payment });
      if (charge !== undefined) return { kind: 'payment_known', charge };
      if (sql.seqById.get(id) !== undefined) return { kind: 'id_taken' };
      if (broken === undefined) return { kind: 'too_many_unsettled' };
      throw broken;
    },
    update: (change) => update(change),
    updateKeeping: update,
    due: (limit, now) => sql.due.all(now, limit).flatMap((row) => find({ id: text(row, 'id') }) ?? []),
    renew: (run, ids, leaseMs, now) => ids.filter((id) => sql.renew.run(now + leaseMs, id, run).changes === 1),
    check: () => {
      sql.touch.run(1);
      sql.touch.run(-1);
    },
    endRunsBut: (run, now) => {
      sql.endRunsUnsettled.run(now, run);
      sql.endRunsSettled.run(now, run);
    },
    moveLeases: (then, stepMs) => {
      sql.moveUnsettled.run(then, stepMs);
      sql.moveSettled.run(then, stepMs);
    },
    prune: ({ closedMs, releasedMs, answersMs }, limit, now) => {
      sql.pruneAnswers.run({ now, before: answersMs, limit });
      const { changes } = sql.pruneReleased.run(releasedMs, limit);
      totals.moved('released', undefined, Number(changes));
      const partly = sql.headSent.all(now, answersMs, limit);
      for (const row of partly) deliverPartly(text(row, 'id'), now);
      const walked = closedMs !== undefined && pruneClosed(now, closedMs, limit);
      return walked || changes === limit || partly.length === limit;
    },
    finish: totals.write,
    begin: totals.clear,
  };
}

function readOrNot(row: Row | undefined): StoredCharge | undefined {
  return row && readStored(row);
}
