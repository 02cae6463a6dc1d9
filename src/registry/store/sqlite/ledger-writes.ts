// The ledger's calls on its SQLite file. What they decide is decided by domain/payment/claim-policy and domain/payment/transition; here it is
// read and written. The caller holds a transaction with the write lock around all of it, so that nothing that was read
// changes before it is decided, and commits before anybody is told.
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import {
  canonicalHex,
  LOCAL_RUN,
  NO_DEADLINE_MS,
  type Charge,
  type Claim,
  type PaymentKey,
} from '../../../domain/charge.ts';
import type { Advanced } from '../../../domain/payment/ledger.ts';
import {
  decideClaim,
  OVERDUE_MS,
  REDEEM_MS,
  type Claimed,
  type ClaimOptions,
} from '../../../domain/payment/claim-policy.ts';
import { transition, type Actor, type ChargeEvent } from '../../../domain/payment/transition.ts';
import {
  allValues,
  changingValues,
  INSERT,
  readCharge,
  REWRITE,
  SELECT_BY_ID,
  SELECT_BY_PAYMENT,
  SELECT_PROOF_USED,
  swapOf,
  stateOf,
  UPDATE,
} from './ledger-rows.ts';
import { hasSettled, settledOf, type Insert, type Swap } from './ledger-swaps.ts';
import { createTallies } from './ledger-tallies.ts';
import { integer, text } from './rows.ts';
import { isConstraint } from './database.ts';

/** Synchronous; `now` is the ledger's clock at the call. */
export type LedgerWrites = {
  readonly find: (payment: PaymentKey) => Charge | undefined;
  readonly findByChargeId: (id: string) => Charge | undefined;
  readonly claim: (claim: Claim, options: ClaimOptions, now: number) => Claimed;
  readonly advance: (id: string, event: ChargeEvent, actor: Actor, now: number) => Advanced;
  /** The number of the new row; undefined where there is no room for it, or something of it is there already. */
  readonly insert: (insert: Insert) => number | undefined;
  /** Whether it was done: nothing is, where the row is not as described or the change breaks a rule of the store. */
  readonly swap: (swap: Swap) => boolean;
  readonly due: (limit: number, now: number) => Charge[];
  readonly renew: (run: string, ids: readonly string[], leaseMs: number, now: number) => readonly string[];
  /** Changes a row: throws where a write would. */
  readonly check: () => void;
  /** Takes away what nobody can ask for any more, a bounded part of it at a time; true where there may be more of it. */
  readonly prune: (now: number, retentionMs: number | undefined) => boolean;
  /** Leases of earlier runs of processes that held this file alone are over. */
  readonly endRunsBut: (run: string, now: number) => void;
  /** The clock was set by `stepMs` since `then`: leases that ran then run as long as before. */
  readonly moveLeases: (then: number, stepMs: number) => void;
  /** Writes the counts and sums of what was done since `begin`: before the commit. */
  readonly finish: () => void;
  /** A new transaction: what was not finished did not happen. */
  readonly begin: () => void;
};

/** A released charge is kept as long as the credential behind it may come again: longer than any quote lives. */
const RELEASED_KEPT_MS = 48 * 3_600_000;
const PRUNED_AT_ONCE = 100;
/** Charges that are looked at for each part that is taken away. */
const WALKED_AT_ONCE = 500;
/** From so long after its claim on, a payment without a deadline is over. */
const NO_DEADLINE_KEPT_MS = 24 * 3_600_000;
const DUE_AT = 'max(lease_until, coalesce(look_at, 0))';
const OF_EARLIER_RUN = `AND substr(owner, 1, ${LOCAL_RUN.length}) = '${LOCAL_RUN}'
  AND substr(owner, 1, length(?2) + 1) <> ?2 || '/'`;
/** Binds the time and a limit; earliest first. */
const DUE = `INDEXED BY charges_due
  WHERE state IN ('claimed', 'settling') AND ${DUE_AT} <= ? ORDER BY ${DUE_AT} LIMIT ?`;

export function createLedgerWrites(db: DatabaseSync): LedgerWrites {
  const sql = {
    byPayment: db.prepare(SELECT_BY_PAYMENT),
    byId: db.prepare(SELECT_BY_ID),
    idTaken: db.prepare('SELECT 1 AS taken FROM charges WHERE id = ?'),
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
    proofUsed: db.prepare(SELECT_PROOF_USED),
    insert: db.prepare(INSERT),
    rewrite: db.prepare(REWRITE),
    update: db.prepare(UPDATE),
    keepCredential: db.prepare('INSERT OR REPLACE INTO charge_credentials (seq, credential) VALUES (?, ?)'),
    keepCredentialOf: db.prepare(
      'INSERT OR REPLACE INTO charge_credentials (seq, credential) SELECT seq, ? FROM charges WHERE id = ?',
    ),
    dropCredential: db.prepare('DELETE FROM charge_credentials WHERE seq = ?'),
    dropCredentialOf: db.prepare('DELETE FROM charge_credentials WHERE seq = (SELECT seq FROM charges WHERE id = ?)'),
    keepAnswer: db.prepare(
      'INSERT OR REPLACE INTO charge_answers (seq, status, headers, body) SELECT seq, ?, ?, ? FROM charges WHERE id = ?',
    ),
    dropAnswer: db.prepare('DELETE FROM charge_answers WHERE seq = (SELECT seq FROM charges WHERE id = ?)'),
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
      `SELECT id FROM charges WHERE state = 'settled' AND head_sent = 1 AND lease_until <= ?1 AND settled_at <= ?1 - ${REDEEM_MS}
       LIMIT ${PRUNED_AT_ONCE}`,
    ),
    walk: db.prepare(
      `SELECT seq, state, created_at, updated_at <= ?2 AND
           CASE WHEN deadline IS NULL THEN claimed_at + ${NO_DEADLINE_KEPT_MS} ELSE deadline * 1000 END <= ?3
           AND (state IN ('delivered', 'failed', 'released') OR state = 'settled' AND refunded_at IS NOT NULL) AS over
       FROM charges WHERE seq > ?1 ORDER BY seq LIMIT ${WALKED_AT_ONCE}`,
    ),
    remove: db.prepare('DELETE FROM charges WHERE seq = ?'),
    pruneAnswers: db.prepare(
      `DELETE FROM charge_answers WHERE seq IN (
         SELECT charge_answers.seq FROM charge_answers JOIN charges ON charges.seq = charge_answers.seq
         WHERE charges.state NOT IN ('settling', 'settled')
           OR charges.state = 'settled' AND lease_until <= :now AND settled_at + :window <= :now
         LIMIT :limit)`,
    ),
    pruneReleased: db.prepare(
      `DELETE FROM charges WHERE seq IN (
         SELECT seq FROM charges INDEXED BY charges_released WHERE state = 'released' AND updated_at < ? LIMIT ?)`,
    ),
  };

  const find = ({ network, asset, payer, nonce }: PaymentKey): Charge | undefined => {
    const row = sql.byPayment.get(network, asset, payer, nonce);
    return row && readCharge(row);
  };
  const findByChargeId = (id: string): Charge | undefined => {
    const row = sql.byId.get(id);
    return row && readCharge(row);
  };

  const tallies = createTallies(db);
  // One for each kind of change, by the columns that it touches: no more than there are events.
  const swaps = new Map<string, StatementSync>();
  const swapping = (columns: readonly number[]): StatementSync => {
    const name = columns.join(' ');
    let statement = swaps.get(name);
    if (statement === undefined) swaps.set(name, (statement = db.prepare(swapOf(columns))));
    return statement;
  };

  const write = (before: Charge, after: Charge): void => {
    tallies.moved(before.state, after.state);
    sql.update.run(...changingValues(after), after.id);
    if (before.credential !== null && after.credential === null) sql.dropCredentialOf.run(after.id);
    if (after.answer !== before.answer) {
      if (after.answer === null) sql.dropAnswer.run(after.id);
      else {
        const { status, headers, body } = after.answer;
        sql.keepAnswer.run(status, JSON.stringify(headers), body, after.id);
      }
    }
    if (hasSettled(before, after)) tallies.settled(settledOf(after));
  };

  const isProofUsed = (charge: Charge, event: ChargeEvent): boolean => {
    if (event.kind !== 'settled') return false;
    const { transaction, logIndex } = event.proof;
    if (logIndex === null) return false;
    return sql.proofUsed.get(charge.payment.network, canonicalHex(transaction), logIndex) !== undefined;
  };

  const deliverPartly = (id: string, now: number): void => {
    const charge = findByChargeId(id);
    const moved = charge && transition(charge, { kind: 'delivered', partial: true }, { owner: 'store' }, now);
    if (charge !== undefined && moved?.ok) write(charge, moved.charge);
  };

  // Walks the table from its oldest charge on, again and again: an index for it would cost every payment something.
  let walkedTo = 0;
  const pruneOver = (now: number, before: number): boolean => {
    const rows = sql.walk.all(walkedTo, before, now);
    let removed = 0;
    for (const row of rows) {
      if (integer(row, 'created_at') > before || removed === PRUNED_AT_ONCE) {
        if (removed < PRUNED_AT_ONCE) walkedTo = 0;
        return removed === PRUNED_AT_ONCE;
      }
      walkedTo = integer(row, 'seq');
      if (integer(row, 'over') !== 1) continue;
      sql.remove.run(walkedTo);
      tallies.moved(stateOf(row), undefined);
      removed += 1;
    }
    if (rows.length < WALKED_AT_ONCE) walkedTo = 0;
    return rows.length === WALKED_AT_ONCE;
  };

  return {
    find,
    findByChargeId,
    claim: (claim, options, now) => {
      const existing = find(claim.payment);
      const { unsettled } = sql.unsettled.get(claim.payment.payer, now) ?? {};
      const idTaken = existing === undefined && sql.idTaken.get(claim.id) !== undefined;
      const claimed = decideClaim({ existing, idTaken, unsettled: Number(unsettled) }, claim, options, now);
      if (claimed.kind !== 'claimed' || claimed.charge === existing) return claimed;
      if (existing === undefined) sql.insert.run(...allValues(claimed.charge));
      else sql.rewrite.run(...allValues(claimed.charge), existing.id);
      sql.keepCredentialOf.run(claim.credential, claimed.charge.id);
      tallies.moved(existing?.state, claimed.charge.state);
      return claimed;
    },
    advance: (id, event, actor, now) => {
      const charge = findByChargeId(id);
      if (charge === undefined) return { kind: 'conflict', because: 'unknown_charge', charge };
      const moved = transition(charge, event, actor, now);
      if (!moved.ok) return { kind: 'conflict', because: moved.because, charge };
      if (moved.charge === charge) return { kind: 'ok', charge };
      if (isProofUsed(charge, event)) return { kind: 'conflict', because: 'proof_used', charge };
      write(charge, moved.charge);
      return { kind: 'ok', charge: moved.charge };
    },
    insert: ({ payer, maxUnsettledPerPayer, now, state, values, credential }) => {
      const { unsettled } = sql.unsettled.get(payer, now) ?? {};
      if (Number(unsettled) >= maxUnsettledPerPayer) return undefined;
      const inserted = unlessConstrained(() => sql.insert.run(...values));
      if (inserted === undefined) return undefined;
      const seq = Number(inserted.lastInsertRowid);
      sql.keepCredential.run(seq, credential);
      tallies.moved(undefined, state);
      return seq;
    },
    swap: ({ seq, version, before, after, columns, values, dropsCredential, settled }) => {
      const run = () => swapping(columns).run(...values, seq, version);
      if (unlessConstrained(run)?.changes !== 1) return false;
      if (dropsCredential) sql.dropCredential.run(seq);
      tallies.moved(before, after);
      if (settled !== null) tallies.settled(settled);
      return true;
    },
    due: (limit, now) => sql.due.all(now, limit).flatMap((row) => findByChargeId(text(row, 'id')) ?? []),
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
    prune: (now, retentionMs) => {
      sql.pruneAnswers.run({ now, window: REDEEM_MS, limit: PRUNED_AT_ONCE });
      const { changes } = sql.pruneReleased.run(now - RELEASED_KEPT_MS, PRUNED_AT_ONCE);
      tallies.moved('released', undefined, Number(changes));
      const partly = sql.headSent.all(now);
      for (const row of partly) deliverPartly(text(row, 'id'), now);
      const walked = retentionMs !== undefined && pruneOver(now, now - retentionMs);
      return walked || changes === PRUNED_AT_ONCE || partly.length === PRUNED_AT_ONCE;
    },
    finish: tallies.write,
    begin: tallies.clear,
  };
}

/** Undefined where the statement broke a rule of the store: then it changed nothing, and the transaction goes on. */
function unlessConstrained<T>(run: () => T): T | undefined {
  try {
    return run();
  } catch (error) {
    if (isConstraint(error)) return undefined;
    throw error;
  }
}
