// Sessions and tickets of the desk on SQLite. What is over is taken away whenever something is added.
import type { DatabaseSync } from 'node:sqlite';
import type { DeskStore, SessionWindow, NewSession, NewTicket, StoredSession } from '../desk-ports.ts';
import { readSession, SESSION_COLUMNS, sessionValues } from '../desk-values.ts';
import { integer, text } from '../rows.ts';
import { auditOfEnd, auditOfSession } from '../audit-entries.ts';
import type { AddAudit } from './audit-insert.ts';
import { inTransaction } from './database.ts';

/** The port, without what waits: a statement of SQLite does not. */
type DeskRows = {
  readonly [Name in keyof DeskStore]: (...args: Parameters<DeskStore[Name]>) => Awaited<ReturnType<DeskStore[Name]>>;
};

const HOLDS = 'created_at > ? AND seen_at > ? AND (not_after IS NULL OR not_after > ?)';

export function createDeskRows(db: DatabaseSync, addAudit: AddAudit): DeskRows {
  const sql = {
    endTickets: db.prepare('DELETE FROM desk_tickets WHERE ends_at <= ?'),
    countTickets: db.prepare('SELECT count(*) AS rows FROM desk_tickets WHERE kind = ?'),
    addTicket: db.prepare('INSERT INTO desk_tickets (digest, kind, holder, content, ends_at) VALUES (?, ?, ?, ?, ?)'),
    takeTicket: db.prepare(
      'DELETE FROM desk_tickets WHERE digest = ? AND kind = ? AND holder = ? AND ends_at > ? RETURNING content',
    ),
    endOld: db.prepare(`DELETE FROM desk_sessions WHERE NOT (${HOLDS})`),
    countSessions: db.prepare('SELECT count(*) AS rows FROM desk_sessions'),
    addSession: db.prepare(
      `INSERT INTO desk_sessions (${SESSION_COLUMNS.join(', ')}) VALUES (${SESSION_COLUMNS.map(() => '?').join(', ')})`,
    ),
    find: db.prepare('SELECT * FROM desk_sessions WHERE digest = ?'),
    see: db.prepare('UPDATE desk_sessions SET seen_at = ? WHERE id = ? AND seen_at < ?'),
    list: db.prepare(`SELECT * FROM desk_sessions WHERE ${HOLDS} ORDER BY created_at DESC, id`),
    end: db.prepare('DELETE FROM desk_sessions WHERE id = ?'),
    endAll: db.prepare('DELETE FROM desk_sessions'),
  };
  return {
    addTicket: ({ digest, kind, holder, content, endsAt }: NewTicket, most, now) =>
      inTransaction(db, () => {
        sql.endTickets.run(now);
        if (integer(sql.countTickets.get(kind) ?? {}, 'rows') >= most) return 'full';
        sql.addTicket.run(digest, kind, holder, content, endsAt);
        return 'added';
      }),
    takeTicket: ({ digest, kind, holder }, now) => {
      const row = sql.takeTicket.get(digest, kind, holder, now);
      return row && text(row, 'content');
    },
    addSession: (session: NewSession, most, { createdAfter, seenAfter, now }) =>
      inTransaction(db, () => {
        sql.endOld.run(createdAfter, seenAfter, now);
        if (integer(sql.countSessions.get() ?? {}, 'rows') >= most) return 'full';
        sql.addSession.run(...sessionValues(session));
        addAudit(auditOfSession(session));
        return 'added';
      }),
    findSession: (digest): StoredSession | undefined => {
      const row = sql.find.get(digest);
      return row && readSession(row);
    },
    seeSession: (id, at) => void sql.see.run(at, id, at),
    listSessions: ({ createdAfter, seenAfter, now }: SessionWindow) =>
      sql.list.all(createdAfter, seenAfter, now).map(readSession),
    endSession: (id, end) =>
      inTransaction(db, () => {
        const ended = sql.end.run(id).changes > 0;
        if (ended) addAudit(auditOfEnd(end, id));
        return ended;
      }),
    endAllSessions: (end) =>
      inTransaction(db, () => {
        const ended = Number(sql.endAll.run().changes);
        if (ended > 0) addAudit(auditOfEnd(end, ended));
        return ended;
      }),
  };
}
