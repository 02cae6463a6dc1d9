// The audit log on SQLite, as people read it, and how old entries go.
import type { DatabaseSync } from 'node:sqlite';
import type { AuditFilter, StoredAudit } from '../audit-ports.ts';
import { AUDIT_COLUMNS, AUDIT_PRUNED, auditConditions, readAudit } from '../audit-values.ts';
import { integer } from '../rows.ts';
import { inTransaction } from './database.ts';

/** The port, without what waits: a statement of SQLite does not. */
type AuditRows = {
  readonly list: (filter: AuditFilter) => readonly StoredAudit[];
  readonly prune: (beforeMs: number, most: number) => boolean;
};

export function createAuditRows(db: DatabaseSync): AuditRows {
  const sql = {
    newest: db.prepare('SELECT coalesce(max(n), 0) AS n FROM audit'),
    old: db.prepare(
      `DELETE FROM audit WHERE n IN (SELECT n FROM audit WHERE at < ? ORDER BY at, n LIMIT ${AUDIT_PRUNED})`,
    ),
    beyond: db.prepare(
      `DELETE FROM audit WHERE n IN (SELECT n FROM audit WHERE n <= ? ORDER BY n LIMIT ${AUDIT_PRUNED})`,
    ),
  };
  return {
    list: (filter) => {
      const { where, values } = auditConditions(filter, () => '?');
      const asked = db.prepare(
        `SELECT n, ${AUDIT_COLUMNS.join(', ')} FROM audit ${where} ORDER BY at DESC, n DESC LIMIT ?`,
      );
      return asked.all(...values, filter.limit).map(readAudit);
    },
    prune: (beforeMs, most) =>
      inTransaction(db, () => {
        const old = sql.old.run(beforeMs).changes;
        const beyond = sql.beyond.run(integer(sql.newest.get() ?? {}, 'n') - most).changes;
        return Number(old) === AUDIT_PRUNED || Number(beyond) === AUDIT_PRUNED;
      }),
  };
}
