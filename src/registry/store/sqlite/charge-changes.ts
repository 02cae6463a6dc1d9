// Changes of state on SQLite: written down in the transaction that makes them, while somebody watches, and read in order.
// Without anybody who watches, a payment costs nothing here.
import type { DatabaseSync } from 'node:sqlite';
import type { ChargeState } from '../../../domain/payment/charge.ts';
import { CHANGES_KEPT_MS, WATCHED_MS, type ChangeLog } from '../../../domain/payment/reports.ts';
import { integer } from '../rows.ts';
import type { SmallTables } from './small-tables.ts';

type ChangeWrites = {
  readonly moved: (id: string, before: ChargeState | undefined, after: ChargeState) => void;
  /** Writes what was gathered; called before the commit. */
  readonly write: (now: number) => void;
  /** Forgets what was gathered. */
  readonly clear: () => void;
  readonly watch: (now: number) => ChangeLog;
};

export function createChangeWrites(db: DatabaseSync, tables: SmallTables): ChangeWrites {
  const sql = {
    watched: db.prepare('SELECT watched_until FROM charge_watch'),
    tell: db.prepare('INSERT INTO charge_changes (charge_id, state, at) VALUES (?, ?, ?)'),
    log: db.prepare(
      `SELECT watched_until, told_after, max(told_after, coalesce((SELECT max(n) FROM charge_changes), 0)) AS last,
         coalesce((SELECT max(n) FROM charge_changes WHERE at < ?), 0) AS old FROM charge_watch`,
    ),
    forget: db.prepare('DELETE FROM charge_changes WHERE n <= ?'),
    watch: db.prepare('UPDATE charge_watch SET watched_until = ?, told_after = ?'),
  };
  const watchedUntil = tables.remember(() => integer(sql.watched.get() ?? {}, 'watched_until'));
  let gathered: (readonly [id: string, state: ChargeState])[] = [];
  return {
    moved: (id, before, after) => {
      if (before !== after) gathered.push([id, after]);
    },
    write: (now) => {
      if (gathered.length > 0 && watchedUntil() > now) for (const [id, state] of gathered) sql.tell.run(id, state, now);
      gathered = [];
    },
    clear: () => void (gathered = []),
    watch: (now) => {
      const row = sql.log.get(now - CHANGES_KEPT_MS) ?? {};
      const [last, old] = [integer(row, 'last'), integer(row, 'old')];
      const isWatched = integer(row, 'watched_until') > now;
      const after = Math.max(isWatched ? integer(row, 'told_after') : last, old);
      sql.forget.run(after);
      sql.watch.run(now + WATCHED_MS, after);
      tables.changed();
      return { after, last };
    },
  };
}
