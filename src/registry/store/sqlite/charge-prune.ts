// Takes charges away that can be asked for no more, a bounded part of them at a time. It runs in the ledger's transactions.
import type { DatabaseSync } from 'node:sqlite';
import { transition, type ChargeEvent } from '../../../domain/payment/transition.ts';
import type { PruneTimes, StoredCharge } from '../../../domain/payment/ledger.ts';
import { toRowChange, type RowChange, stateOf } from '../charge-values.ts';
import type { Totals } from './charge-totals.ts';
import { integer, text } from '../rows.ts';

/** Charges that are looked at for each that may be taken away. */
const WALKED_FOR_EACH = 5;
/** Milliseconds after its claim from which a payment without a deadline is over. */
const NO_DEADLINE_KEPT_MS = 24 * 3_600_000;

/** True if there may be more to take away. */
export type ChargePruner = (before: PruneTimes, limit: number, now: number) => boolean;

type Rows = {
  readonly find: (by: { readonly id: string }) => StoredCharge | undefined;
  readonly update: (change: RowChange) => unknown;
};

export function createPrune(db: DatabaseSync, totals: Pick<Totals, 'moved'>, { find, update }: Rows): ChargePruner {
  const sql = {
    headSent: db.prepare(
      "SELECT id FROM charges WHERE state = 'settled' AND head_sent = 1 AND lease_until <= ? AND settled_at <= ? LIMIT ?",
    ),
    walk: db.prepare(
      `SELECT seq, state, created_at, updated_at <= ?2 AND
           CASE WHEN deadline IS NULL THEN claimed_at + ${NO_DEADLINE_KEPT_MS} ELSE deadline * 1000 END <= ?3
           AND (state IN ('delivered', 'failed', 'released') OR state = 'settled' AND refunded_at IS NOT NULL)
           AND (pass IS NULL OR NOT EXISTS (SELECT 1 FROM passes WHERE id = 'pass_' || substr(charges.id, 5) AND ends_at > ?2))
           AS over
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

  return ({ closedMs, releasedMs, answersMs }, limit, now) => {
    sql.pruneAnswers.run({ now, before: answersMs, limit });
    const { changes } = sql.pruneReleased.run(releasedMs, limit);
    totals.moved('released', undefined, Number(changes));
    const partly = sql.headSent.all(now, answersMs, limit);
    for (const row of partly) deliverPartly(text(row, 'id'), now);
    const walked = closedMs !== undefined && pruneClosed(now, closedMs, limit);
    return walked || changes === limit || partly.length === limit;
  };
}
