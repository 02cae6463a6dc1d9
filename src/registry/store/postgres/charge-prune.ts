// Takes charges away that can be asked for no more, a bounded part of them at a time. Of several processes one does it: the
// first to come, which goes on with it as long as it comes back in time.
import { transition, type ChargeEvent } from '../../../domain/payment/transition.ts';
import type { PruneTimes, StoredCharge } from '../../../domain/payment/ledger.ts';
import { toRowChange, type UpdateRefusal, type RowChange, stateOf } from '../charge-values.ts';
import { integer, text, type Row } from '../rows.ts';
import type { ChargeSql } from './charge-sql.ts';
import { inTransaction, type Answer, type Session } from './connection.ts';

/** Charges that are looked at for each that may be taken away. */
const WALKED_FOR_EACH = 5;
/** Milliseconds after its claim from which a payment without a deadline is over. */
const NO_DEADLINE_KEPT_MS = 24 * 3_600_000;
/** Longer than the pause in which there is nothing to do. */
export const PRUNE_LEASE_MS = 150_000;

type PruneDeps = {
  readonly sql: ChargeSql;
  /** Run of this process. */
  readonly run: string;
  readonly use: <T>(work: (session: Session, shard: number) => Promise<T>) => Promise<T>;
  readonly find: (id: string) => Promise<StoredCharge | undefined>;
  readonly update: (change: RowChange) => Promise<UpdateRefusal | undefined>;
  readonly now: () => number;
  /** Settings that a transaction makes for itself. */
  readonly settings: () => string;
};

/** True if there may be more to take away. */
export function createPrune({ sql, run, use, find, update, now, settings }: PruneDeps) {
  const { charges, schema, named } = sql;
  const statements = {
    /** Binds the run, the end of its lease and the time. */
    take: named(
      `INSERT INTO ${schema}.charge_work AS w (name, run, lease_until) VALUES ('prune', $1, $2)
       ON CONFLICT (name) DO UPDATE SET run = excluded.run, lease_until = excluded.lease_until
         WHERE w.run = excluded.run OR w.lease_until <= $3`,
    ),
    answers: named(
      `UPDATE ${charges} SET answer_status = NULL, answer_headers = NULL, answer_body = NULL WHERE seq IN (
         SELECT seq FROM ${schema}.charges_undelivered JOIN ${charges} USING (seq)
         WHERE answer_status IS NOT NULL AND lease_until <= $1 AND settled_at <= $2 LIMIT $3)`,
    ),
    released: named(
      `DELETE FROM ${charges} WHERE state = 'released' AND seq IN (
         SELECT seq FROM ${charges} WHERE unpaid_at < $1 AND state = 'released' LIMIT $2)`,
    ),
    headSent: named(
      `SELECT id FROM ${schema}.charges_undelivered JOIN ${charges} USING (seq)
       WHERE state = 'settled' AND head_sent = 1 AND lease_until <= $1 AND settled_at <= $2 LIMIT $3`,
    ),
    walk: named(
      `SELECT seq, state, created_at, updated_at <= $2 AND
           CASE WHEN deadline IS NULL THEN claimed_at + ${NO_DEADLINE_KEPT_MS} ELSE deadline * 1000 END <= $3
           AND (state IN ('delivered', 'failed', 'released') OR state = 'settled' AND refunded_at IS NOT NULL)
           AND (pass IS NULL OR NOT EXISTS (
             SELECT 1 FROM ${schema}.passes AS p WHERE p.id = 'pass_' || substr(${charges}.id, 5) AND p.ends_at > $2))
           AS over
       FROM ${charges} WHERE seq > $1 ORDER BY seq LIMIT $4`,
    ),
    remove: named(`DELETE FROM ${charges} WHERE seq = ANY ($1::int8[])`),
    removeUndelivered: named(`DELETE FROM ${schema}.charges_undelivered WHERE seq = ANY ($1::int8[])`),
  };

  const deliverPartly = async (id: string, at: number): Promise<void> => {
    const before = await find(id);
    const event: ChargeEvent = { kind: 'delivered', partial: true };
    const actor = { owner: 'store' };
    const moved = before && transition(before.charge, event, actor, at);
    if (before !== undefined && moved?.ok)
      await update(toRowChange({ before, after: moved.charge, actor, because: { event } }, at));
  };

  // Walks the table from its oldest charge on, again and again: an index for it would cost every payment something.
  let walkedTo = 0;
  const pickClosed = (
    rows: readonly Row[],
    before: number,
    limit: number,
  ): { picked: readonly Row[]; more: boolean } => {
    const picked: Row[] = [];
    for (const row of rows) {
      if (integer(row, 'created_at') > before || picked.length === limit) {
        if (picked.length < limit) walkedTo = 0;
        return { picked, more: picked.length === limit };
      }
      walkedTo = integer(row, 'seq');
      if (integer(row, 'over') === 1) picked.push(row);
    }
    const more = rows.length === limit * WALKED_FOR_EACH;
    if (!more) walkedTo = 0;
    return { picked, more };
  };

  return async ({ closedMs, releasedMs, answersMs }: PruneTimes, limit: number): Promise<boolean> => {
    const at = now();
    let more = false;
    let partly: readonly Row[] = [];
    await use(async (session, shard) => {
      const { count: ours } = await session.query(statements.take, [run, at + PRUNE_LEASE_MS, at]);
      if (ours === 0) return;
      await inTransaction(session, settings(), async () => {
        const count = (row: { state: string; by: number }): Promise<Answer> =>
          session.query(sql.addCounts, [row.state, shard, row.by]);
        await session.query(statements.answers, [at, answersMs, limit]);
        const released = (await session.query(statements.released, [releasedMs, limit])).count;
        if (released > 0) await count({ state: 'released', by: -released });
        partly = (await session.query(statements.headSent, [at, answersMs, limit])).rows;
        more = released === limit || partly.length === limit;
        if (closedMs === undefined) return;
        const walked = await session.query(statements.walk, [walkedTo, closedMs, at, limit * WALKED_FOR_EACH]);
        const closed = pickClosed(walked.rows, closedMs, limit);
        more ||= closed.more;
        const seqs = closed.picked.map((row) => integer(row, 'seq'));
        await session.query(statements.remove, [seqs]);
        await session.query(statements.removeUndelivered, [seqs]);
        for (const [state, rows] of Map.groupBy(closed.picked, stateOf)) await count({ state, by: -rows.length });
      });
    });
    for (const row of partly) await deliverPartly(text(row, 'id'), at);
    return more;
  };
}
