// The ledger's calls on its SQLite file. What they decide is decided by domain/standing and domain/transition; here it is
// read and written. The caller holds a transaction with the write lock around all of it, so that nothing that was read
// changes before it is decided, and commits before anybody is told.
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { canonicalTransaction, type Charge, type Claim, type PaymentKey } from '../../domain/charge.ts';
import type { Advanced, TakeOver } from '../../domain/ledger.ts';
import { decideClaim, REDEEM_MS, type Claimed, type ClaimOptions } from '../../domain/standing.ts';
import { transition, type Actor, type ChargeEvent } from '../../domain/transition.ts';
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
  UPDATE,
} from './ledger-rows.ts';
import { settledOf, type Insert, type Swap } from './ledger-swaps.ts';
import { createTallies } from './ledger-tallies.ts';
import { text } from './rows.ts';
import { isConstraint } from './sqlite.ts';

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
  readonly unfinished: (options: TakeOver, now: number) => Charge[];
  /** Writes without changing anything: throws where a write would. */
  readonly check: () => void;
  /** Takes away what nobody can ask for any more, a bounded part of it at a time. */
  readonly prune: (now: number) => void;
  /** Writes the counts and sums of what was done since `begin`: before the commit. */
  readonly finish: () => void;
  /** A new transaction: what was not finished did not happen. */
  readonly begin: () => void;
};

/** A released charge is kept as long as the credential behind it may come again: longer than any quote lives. */
const RELEASED_KEPT_MS = 48 * 3_600_000;
const PRUNED_AT_ONCE = 500;
const DUE_AT = 'max(lease_until, coalesce(next_try_at, 0))';
/** Binds the time and a limit; earliest first. */
export const DUE = `INDEXED BY charges_due
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
       WHERE state IN ('claimed', 'settling') AND payer = ? AND (state = 'settling' OR lease_until > ?)`,
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
    touch: db.prepare("UPDATE charge_counts SET charges = charges WHERE state = 'claimed'"),
    pruneAnswers: db.prepare(
      `DELETE FROM charge_answers WHERE seq IN (
         SELECT charge_answers.seq FROM charge_answers JOIN charges ON charges.seq = charge_answers.seq
         WHERE charges.state NOT IN ('settling', 'settled')
           OR charges.state = 'settled' AND lease_until <= :now AND coalesce(undelivered_at, lease_until) + :window <= :now
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
  const swaps = new Map<number, StatementSync>();
  const swapping = (columns: number): StatementSync => {
    let statement = swaps.get(columns);
    if (statement === undefined) swaps.set(columns, (statement = db.prepare(swapOf(columns))));
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
    if (before.state === 'settling' && after.state === 'settled') tallies.settled(settledOf(after));
  };

  const isProofUsed = (charge: Charge, event: ChargeEvent): boolean => {
    if (event.kind !== 'settled') return false;
    const { transaction, logIndex } = event.proof;
    return sql.proofUsed.get(charge.payment.network, canonicalTransaction(transaction), logIndex ?? -1) !== undefined;
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
    swap: ({ seq, changeId, updatedAt, leaseUntil, before, after, columns, values, dropsCredential, settled }) => {
      const run = () => swapping(columns).run(...values, seq, changeId, updatedAt, leaseUntil);
      if (unlessConstrained(run)?.changes !== 1) return false;
      if (dropsCredential) sql.dropCredential.run(seq);
      tallies.moved(before, after);
      if (settled !== null) tallies.settled(settled);
      return true;
    },
    unfinished: ({ owner, leaseMs, limit }, now) =>
      sql.due.all(now, limit).flatMap((row) => {
        const charge = findByChargeId(text(row, 'id'));
        const moved = charge && transition(charge, { kind: 'taken_over', leaseMs, early: false }, { owner }, now);
        if (!charge || !moved?.ok) return [];
        write(charge, moved.charge);
        return [moved.charge];
      }),
    check: () => void sql.touch.run(),
    prune: (now) => {
      sql.pruneAnswers.run({ now, window: REDEEM_MS, limit: PRUNED_AT_ONCE });
      const { changes } = sql.pruneReleased.run(now - RELEASED_KEPT_MS, PRUNED_AT_ONCE);
      tallies.moved('released', undefined, Number(changes));
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
