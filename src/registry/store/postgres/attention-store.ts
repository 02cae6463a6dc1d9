// What needs somebody on PostgreSQL, of all processes, with the events that webhooks are told of it in the same transaction. Of two
// processes that find the same at once one raises it: the table is locked while a change is decided.
import { planAttention, type AttentionPlan } from '../../../domain/attention/attention.ts';
import type { AttentionStore } from '../attention-ports.ts';
import { ATTENTION_COLUMNS, attentionEvents, attentionValues, readAttention } from '../attention-values.ts';
import { bindableText } from './audit-insert.ts';
import { inTransaction, type Session } from './connection.ts';
import type { Links } from './links.ts';
import { createAsk } from './route-store.ts';
import { isWanted, queueing } from './webhook-outbox.ts';

export function createAttentionStore(links: Links): AttentionStore {
  const { schema, settings } = links;
  const ask = createAsk(links, 'read');
  const askToChange = createAsk(links, 'change');
  const table = `${schema}.attention`;
  const [source, code, subject, ...rest] = ATTENTION_COLUMNS;
  const sql = {
    all: `SELECT ${ATTENTION_COLUMNS.join(', ')} FROM ${table}`,
    write: `INSERT INTO ${table} (${ATTENTION_COLUMNS.join(', ')}) VALUES (${ATTENTION_COLUMNS.map((_, at) => `$${at + 1}`).join(', ')})
      ON CONFLICT (${source}, ${code}, ${subject}) DO UPDATE SET ${rest.map((name) => `${name} = excluded.${name}`).join(', ')}`,
    remove: `DELETE FROM ${table} WHERE source = $1 AND code = $2 AND subject = $3`,
    tell: `WITH ${queueing(
      schema,
      `SELECT $1::text AS type, $2::int8 AS at, $3::text AS subject, 0::int8 AS sequence, $4::text AS content WHERE ${isWanted(schema, '$1::text')}`,
    )} SELECT 1`,
  };
  const run = (session: Session, name: keyof typeof sql, given: readonly unknown[]): ReturnType<Session['query']> =>
    session.query({ name: `tollgate_attention_${name}`, text: sql[name] }, given.map(bound));
  const planIn = async (session: Session, ...given: Parameters<AttentionStore['publish']>): Promise<AttentionPlan> =>
    planAttention(readAttention((await run(session, 'all', [])).rows), ...given);

  return {
    publish: async (...given) => {
      const first = await ask((session) => planIn(session, ...given));
      if (first.write.length === 0 && first.remove.length === 0) return first;
      return askToChange((session) =>
        inTransaction(session, settings(), async () => {
          await session.simple(`LOCK TABLE ${table} IN SHARE ROW EXCLUSIVE MODE`);
          const plan = await planIn(session, ...given);
          for (const row of plan.remove) await run(session, 'remove', [row.source, row.code, row.subject]);
          for (const row of plan.write) await run(session, 'write', attentionValues(row));
          const [, , now] = given;
          for (const told of attentionEvents(plan))
            await run(session, 'tell', [told.type, now, told.subject, told.content]);
          return plan;
        }),
      );
    },
  };
}

function bound(value: unknown): unknown {
  return typeof value === 'string' ? bindableText(value) : value;
}
