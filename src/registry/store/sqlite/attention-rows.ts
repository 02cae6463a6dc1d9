// What needs somebody on SQLite, with the events that webhooks are told of it in the same transaction.
import type { DatabaseSync } from 'node:sqlite';
import { planAttention } from '../../../domain/attention/attention.ts';
import type { AttentionStore, PublishedAttention } from '../attention-ports.ts';
import { ATTENTION_COLUMNS, attentionEvents, attentionValues, readAttention } from '../attention-values.ts';
import { inTransaction } from './database.ts';
import { createOutbox } from './webhook-outbox.ts';

/** The port, without what waits: a statement of SQLite does not. */
type AttentionRows = {
  readonly publish: (...given: Parameters<AttentionStore['publish']>) => PublishedAttention;
};

export function createAttentionRows(db: DatabaseSync): AttentionRows {
  const sql = {
    all: db.prepare(`SELECT ${ATTENTION_COLUMNS.join(', ')} FROM attention`),
    write: db.prepare(
      `INSERT OR REPLACE INTO attention (${ATTENTION_COLUMNS.join(', ')}) VALUES (${ATTENTION_COLUMNS.map(() => '?').join(', ')})`,
    ),
    remove: db.prepare('DELETE FROM attention WHERE source = ? AND code = ? AND subject = ?'),
  };
  const outbox = createOutbox(db);
  return {
    publish: (source, findings, now) => {
      const plan = planAttention(readAttention(sql.all.all()), source, findings, now);
      if (plan.write.length > 0 || plan.remove.length > 0)
        inTransaction(db, () => {
          for (const row of plan.remove) sql.remove.run(row.source, row.code, row.subject);
          for (const row of plan.write) sql.write.run(...attentionValues(row));
          outbox.begin();
          for (const { type, subject, content } of attentionEvents(plan)) outbox.data(type, subject, now, content);
        });
      return plan;
    },
  };
}
