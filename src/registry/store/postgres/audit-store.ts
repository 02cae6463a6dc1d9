// The audit log on PostgreSQL, as people read it, and how old entries go.
import type { AuditStore } from '../audit-ports.ts';
import { AUDIT_COLUMNS, AUDIT_PRUNED, auditConditions, readAudit } from '../audit-values.ts';
import { integer } from '../rows.ts';
import { addAudit, bindableText } from './audit-insert.ts';
import { inTransaction, type Session } from './connection.ts';
import type { Links } from './links.ts';
import { createAsk } from './route-store.ts';

export function createAudit(links: Links): AuditStore {
  const { schema, settings } = links;
  const ask = createAsk(links, 'read');
  const askToChange = createAsk(links, 'change');
  const sql = {
    newest: `SELECT coalesce(max(n), 0) AS n FROM ${schema}.audit`,
    old: `DELETE FROM ${schema}.audit WHERE n IN
      (SELECT n FROM ${schema}.audit WHERE at < $1 ORDER BY at, n LIMIT ${AUDIT_PRUNED})`,
    beyond: `DELETE FROM ${schema}.audit WHERE n IN
      (SELECT n FROM ${schema}.audit WHERE n <= $1 ORDER BY n LIMIT ${AUDIT_PRUNED})`,
  };
  return {
    add: (entry) =>
      askToChange((session) => inTransaction(session, settings(), () => addAudit(session, schema, entry))),
    list: async (filter) => {
      const { where, values } = auditConditions(filter, (index) => `$${index}`);
      const text = `SELECT n, ${AUDIT_COLUMNS.join(', ')} FROM ${schema}.audit ${where} ORDER BY at DESC, n DESC LIMIT $${values.length + 1}`;
      const bound = [...values.map(bindableText), filter.limit];
      // Planned anew each time: how many entries somebody has decides which index is read.
      return (await ask((session) => session.query({ name: '', text }, bound))).rows.map(readAudit);
    },
    prune: (beforeMs, most) =>
      askToChange((session) =>
        inTransaction(session, settings(), async () => {
          const run = async (name: keyof typeof sql, given: readonly number[]): ReturnType<Session['query']> =>
            session.query({ name: `tollgate_audit_${name}`, text: sql[name] }, given);
          const old = await run('old', [beforeMs]);
          const newest = integer((await run('newest', [])).rows[0] ?? {}, 'n');
          const beyond = await run('beyond', [newest - most]);
          return old.count === AUDIT_PRUNED || beyond.count === AUDIT_PRUNED;
        }),
      ),
  };
}
