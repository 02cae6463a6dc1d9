// Changes of state on PostgreSQL are written down by the statements that make them (charge-sql.ts) while somebody watches.
// Here stands who watches: one row that all replicas keep alive.
import { CHANGES_KEPT_MS, WATCHED_MS, type ChangeLog } from '../../../domain/payment/reports.ts';
import { integer } from '../rows.ts';
import { inTransaction, type Session } from './connection.ts';

type WatchOptions = { readonly schema: string; readonly settings: string; readonly now: number };

export function watchChanges(session: Session, { schema, settings, now }: WatchOptions): Promise<ChangeLog> {
  return inTransaction(session, settings, async () => {
    const run = (text: string, values: readonly unknown[]): ReturnType<Session['query']> =>
      session.query({ name: '', text }, values);
    const { rows } = await run(
      `SELECT watched_until, told_after,
         greatest(told_after, (SELECT coalesce(max(n), 0) FROM ${schema}.charge_changes)) AS last,
         (SELECT coalesce(max(n), 0) FROM ${schema}.charge_changes WHERE at < $1) AS old
       FROM ${schema}.charge_watch WHERE one = 1 FOR UPDATE`,
      [now - CHANGES_KEPT_MS],
    );
    const row = rows[0] ?? {};
    const [last, old] = [integer(row, 'last'), integer(row, 'old')];
    const isWatched = integer(row, 'watched_until') > now;
    const after = Math.max(isWatched ? integer(row, 'told_after') : last, old);
    await run(`DELETE FROM ${schema}.charge_changes WHERE n <= $1`, [after]);
    await run(`UPDATE ${schema}.charge_watch SET watched_until = $1, told_after = $2 WHERE one = 1`, [
      now + WATCHED_MS,
      after,
    ]);
    return { after, last };
  });
}
