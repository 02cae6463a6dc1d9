// Sessions and tickets of the desk on PostgreSQL. Nothing is kept in memory: a session that another process ended is over
// with the next request. What is over is taken away whenever something is added.
import type { DeskStore } from '../desk-ports.ts';
import { readSession, SESSION_COLUMNS, sessionValues } from '../desk-values.ts';
import { integer, text } from '../rows.ts';
import { auditOfEnd, auditOfSession } from '../audit-entries.ts';
import { addAudit } from './audit-insert.ts';
import { inTransaction, type Session } from './connection.ts';
import type { Links } from './links.ts';
import { createAsk } from './route-store.ts';

const HOLDS = 'created_at > $1 AND seen_at > $2 AND (not_after IS NULL OR not_after > $3)';

export function createDeskStore(links: Links): DeskStore {
  const { schema, settings } = links;
  const ask = createAsk(links, 'read');
  const askToChange = createAsk(links, 'change');
  const sessions = `${schema}.desk_sessions`;
  const tickets = `${schema}.desk_tickets`;
  const values = SESSION_COLUMNS.map((_, index) => `$${index + 1}`).join(', ');
  const sql = {
    endTickets: `DELETE FROM ${tickets} WHERE ends_at <= $1`,
    countTickets: `SELECT count(*)::int AS rows FROM ${tickets} WHERE kind = $1`,
    addTicket: `INSERT INTO ${tickets} (digest, kind, holder, content, ends_at) VALUES ($1, $2, $3, $4, $5)`,
    takeTicket: `DELETE FROM ${tickets} WHERE digest = $1 AND kind = $2 AND holder = $3 AND ends_at > $4 RETURNING content`,
    endOld: `DELETE FROM ${sessions} WHERE NOT (${HOLDS})`,
    countSessions: `SELECT count(*)::int AS rows FROM ${sessions}`,
    addSession: `INSERT INTO ${sessions} (${SESSION_COLUMNS.join(', ')}) VALUES (${values})`,
    find: `SELECT * FROM ${sessions} WHERE digest = $1`,
    see: `UPDATE ${sessions} SET seen_at = $2 WHERE id = $1 AND seen_at < $2`,
    list: `SELECT * FROM ${sessions} WHERE ${HOLDS} ORDER BY created_at DESC, id`,
    end: `DELETE FROM ${sessions} WHERE id = $1`,
    endAll: `DELETE FROM ${sessions}`,
  };
  type Name = keyof typeof sql;
  const run = (session: Session, name: Name, given: readonly unknown[]): ReturnType<Session['query']> =>
    session.query({ name: `tollgate_desk_${name}`, text: sql[name] }, given);
  const change = <T>(work: (session: Session) => Promise<T>): Promise<T> =>
    askToChange((session) => inTransaction(session, settings(), () => work(session)));
  /** Two processes that count at once would both find room for the last one. */
  const alone = (session: Session, table: string): Promise<unknown> =>
    session.simple(`LOCK TABLE ${table} IN SHARE ROW EXCLUSIVE MODE`);
  const countOf = async (answer: ReturnType<typeof run>): Promise<number> =>
    integer((await answer).rows[0] ?? {}, 'rows');

  return {
    addTicket: ({ digest, kind, holder, content, endsAt }, most, now) =>
      change(async (session) => {
        await alone(session, tickets);
        await run(session, 'endTickets', [now]);
        if ((await countOf(run(session, 'countTickets', [kind]))) >= most) return 'full';
        await run(session, 'addTicket', [digest, kind, holder, content, endsAt]);
        return 'added';
      }),
    takeTicket: ({ digest, kind, holder }, now) =>
      change(async (session) => {
        const [row] = (await run(session, 'takeTicket', [digest, kind, holder, now])).rows;
        return row && text(row, 'content');
      }),
    addSession: (made, most, { createdAfter, seenAfter, now }) =>
      change(async (session) => {
        await alone(session, sessions);
        await run(session, 'endOld', [createdAfter, seenAfter, now]);
        if ((await countOf(run(session, 'countSessions', []))) >= most) return 'full';
        await run(session, 'addSession', sessionValues(made));
        await addAudit(session, schema, auditOfSession(made));
        return 'added';
      }),
    findSession: async (digest) => {
      const [row] = (await ask((session) => run(session, 'find', [digest]))).rows;
      return row && readSession(row);
    },
    seeSession: (id, at) => change(async (session) => void (await run(session, 'see', [id, at]))),
    listSessions: async ({ createdAfter, seenAfter, now }) =>
      (await ask((session) => run(session, 'list', [createdAfter, seenAfter, now]))).rows.map(readSession),
    endSession: (id, end) =>
      change(async (session) => {
        const ended = (await run(session, 'end', [id])).count > 0;
        if (ended) await addAudit(session, schema, auditOfEnd(end, id));
        return ended;
      }),
    endAllSessions: (end) =>
      change(async (session) => {
        const ended = (await run(session, 'endAll', [])).count;
        if (ended > 0) await addAudit(session, schema, auditOfEnd(end, ended));
        return ended;
      }),
  };
}
