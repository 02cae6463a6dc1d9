// The deliveries of webhooks on SQLite, in the ledger's thread and its transactions. One process serves the file, so its sender
// is the only one. Every statement is bounded: no payment waits for a long one.
import type { DatabaseSync } from 'node:sqlite';
import type { AuditCause } from '../../../domain/audit.ts';
import {
  DISABLED_AFTER_MS,
  KEPT_MS,
  OLDEST_EVERY_MS,
  type AttemptResult,
  type DeclaredEndpoint,
  type DeliveryQuery,
  type DueDelivery,
  type EndpointState,
  type SenderRoom,
  type SenderTurn,
  type StoredDelivery,
  type ToldEvent,
  type SenderTurnOutcome,
} from '../../../domain/webhooks/webhook-store.ts';
import {
  AT_ONCE,
  deliveryAfter,
  DELIVERY_COLUMNS,
  PARKED,
  readDelivery,
  readDue,
  readEndpoint,
} from '../webhook-values.ts';
import { auditOfDisabling, auditOfEnabling, auditOfEvent } from '../webhook-audit.ts';
import { integer, nullableInteger, text, type Row } from '../rows.ts';
import type { AddAudit } from './audit-insert.ts';
import type { SmallTables } from './small-tables.ts';
import type { Outbox } from './webhook-outbox.ts';

/** Calls of the thread that writes. */
export type WebhookWrites = {
  readonly declareWebhooks: (
    endpoints: readonly DeclaredEndpoint[],
    forgetBefore: number | undefined,
    now: number,
  ) => void;
  readonly tellWebhooks: (event: ToldEvent, now: number, cause: AuditCause | undefined) => string;
  readonly takeTurn: (turn: SenderTurn, now: number) => SenderTurnOutcome;
  readonly enableWebhook: (endpointId: string, now: number, cause: AuditCause | undefined) => boolean;
  readonly retryDelivery: (asked: AskedRetry, now: number) => boolean;
  readonly pruneDeliveries: (now: number) => boolean;
};
type AskedRetry = { readonly endpointId: string; readonly eventId: string; readonly cause: AuditCause | undefined };
/** Calls of the thread that reads. */
export type WebhookReads = {
  readonly webhookEndpoints: () => readonly EndpointState[];
  readonly webhookDeliveries: (query: DeliveryQuery) => readonly StoredDelivery[];
};

export function createWebhookWrites(
  db: DatabaseSync,
  outbox: Pick<Outbox, 'tell'>,
  { tables, addAudit }: { readonly tables: SmallTables; readonly addAudit: AddAudit },
): WebhookWrites {
  const sql = {
    name: db.prepare(
      `INSERT INTO webhook_endpoints (id, seen_at, enabled_at) VALUES (?1, ?2, ?2)
       ON CONFLICT DO UPDATE SET seen_at = excluded.seen_at, forgotten_at = NULL`,
    ),
    forgetWants: db.prepare('DELETE FROM webhook_wants WHERE endpoint_id = ?'),
    want: db.prepare('INSERT INTO webhook_wants (type, endpoint_id) VALUES (?, ?)'),
    forget: db.prepare(
      'UPDATE webhook_endpoints SET forgotten_at = ?2 WHERE seen_at < ?1 AND forgotten_at IS NULL RETURNING id',
    ),
    disabled: db.prepare('SELECT disabled_at FROM webhook_endpoints WHERE id = ? AND forgotten_at IS NULL'),
    enable: db.prepare(
      `UPDATE webhook_endpoints SET disabled_at = NULL, failing_since = NULL, rest_until = 0, enabled_at = ?2, hurried_at = ?2
       WHERE id = ?1 AND forgotten_at IS NULL`,
    ),
    retry: db.prepare(
      `UPDATE webhook_deliveries SET state = 'waiting', attempts = 0, due_at = ?3, resume_at = NULL, closed_at = NULL
       WHERE endpoint_id = ?1 AND n = (SELECT n FROM webhook_events WHERE id = ?2)`,
    ),
  };
  const turns = createTurns(db, addAudit);
  const prune = createWebhookPrune(db);
  return {
    declareWebhooks: (endpoints, forgetBefore, now) => {
      for (const { id, types } of endpoints) {
        sql.name.run(id, now);
        sql.forgetWants.run(id);
        for (const type of types) sql.want.run(type, id);
      }
      const forgotten = forgetBefore === undefined ? [] : sql.forget.all(forgetBefore, now);
      for (const row of forgotten) sql.forgetWants.run(text(row, 'id'));
      tables.changed();
    },
    tellWebhooks: (event, at, cause) => {
      const id = outbox.tell(event, at);
      const { type, endpointId = '' } = event;
      if (type === 'test') addAudit(auditOfEvent('webhook.tested', id, { endpointId, at, cause }));
      return id;
    },
    takeTurn: turns,
    enableWebhook: (endpointId, at, cause) => {
      const endpoint = sql.disabled.get(endpointId);
      if (endpoint === undefined) return false;
      sql.enable.run(endpointId, at);
      const before = nullableInteger(endpoint, 'disabled_at') === null ? 'ok' : 'disabled';
      addAudit(auditOfEnabling(before, { endpointId, at, cause }));
      return true;
    },
    retryDelivery: ({ endpointId, eventId, cause }, at) => {
      const isKept = sql.retry.run(endpointId, eventId, at).changes === 1;
      if (isKept) addAudit(auditOfEvent('webhook.retried', eventId, { endpointId, at, cause }));
      return isKept;
    },
    pruneDeliveries: prune,
  };
}

function createTurns(db: DatabaseSync, addAudit: AddAudit): WebhookWrites['takeTurn'] {
  const sql = {
    endpoint: db.prepare(
      'SELECT enabled_at, failing_since, hurried_at FROM webhook_endpoints WHERE id = ? AND disabled_at IS NULL AND forgotten_at IS NULL AND rest_until <= ?',
    ),
    whole: db.prepare(
      `SELECT ${DELIVERY_COLUMNS} FROM webhook_deliveries AS d JOIN webhook_events AS e ON e.n = d.n
       WHERE d.endpoint_id = ? AND d.n = ?`,
    ),
  };
  const write = createResultWrites(db, addAudit);
  const pick = createPicks(db);
  return ({ results, rooms }, now) => {
    for (const result of results) write(result);
    const due: DueDelivery[] = [];
    let more = false;
    for (const room of rooms) {
      const endpoint = room.free > 0 ? sql.endpoint.get(room.endpointId, now) : undefined;
      if (endpoint === undefined) continue;
      const { picked, more: further } = pick(room, endpoint, now);
      more ||= further;
      for (const n of picked) {
        const found = readDue(sql.whole.get(room.endpointId, n) ?? {});
        const isAnew = found.triedAt !== null && found.triedAt < integer(endpoint, 'enabled_at');
        due.push(isAnew ? { ...found, attempts: 0, scheduledAt: Math.min(found.scheduledAt, now) } : found);
      }
    }
    return { kind: 'ours', due, more };
  };
}

/** Writes what became of an attempt. */
function createResultWrites(db: DatabaseSync, addAudit: AddAudit): (result: AttemptResult) => void {
  const sql = {
    ended: db.prepare(
      `UPDATE webhook_deliveries SET state = ?3, attempts = coalesce(?4, attempts), due_at = ?5, resume_at = ?6,
         tried_at = ?7, closed_at = ?8, tries = ?9
       WHERE endpoint_id = ?1 AND n = ?2 AND state = 'waiting' AND tried_at IS ?10`,
    ),
    next: db.prepare(
      `UPDATE webhook_deliveries SET due_at = ?3 WHERE endpoint_id = ?1 AND due_at = ${PARKED} AND state = 'waiting'
         AND n = (SELECT min(n) FROM webhook_deliveries INDEXED BY webhook_order
           WHERE endpoint_id = ?1 AND state = 'waiting' AND subject = ?2)`,
    ),
    took: db.prepare(
      `UPDATE webhook_endpoints SET last_success_at = ?2, failing_since = NULL,
         hurried_at = CASE WHEN failing_since IS NULL THEN hurried_at ELSE ?2 END WHERE id = ?1`,
    ),
    failed: db.prepare(
      `UPDATE webhook_endpoints SET failing_since = coalesce(failing_since, ?2), last_error = ?3,
         rest_until = max(rest_until, ?4)
       WHERE id = ?1`,
    ),
    disable: db.prepare(
      `UPDATE webhook_endpoints SET disabled_at = ?2
       WHERE id = ?1 AND disabled_at IS NULL AND (?3 OR failing_since <= ?2 - ${DISABLED_AFTER_MS})`,
    ),
  };
  return (result) => {
    const { endpointId, n, triedAt: before, subject } = result.delivery;
    const { state, attempts, dueAt, resumeAt, triedAt, closedAt, tries } = deliveryAfter(result);
    const { endedAt: at, error, restUntil, isGone } = result;
    sql.ended.run(endpointId, n, state, attempts, dueAt, resumeAt, triedAt, closedAt, tries, before);
    if (closedAt !== null && subject !== '') sql.next.run(endpointId, subject, closedAt);
    if (error === null) {
      sql.took.run(endpointId, at);
      return;
    }
    sql.failed.run(endpointId, at, error, restUntil ?? 0);
    if (sql.disable.run(endpointId, at, Number(isGone)).changes === 1)
      addAudit(auditOfDisabling(error, { endpointId, at }));
  };
}

type DeliveryPick = (
  room: SenderRoom,
  endpoint: Row,
  now: number,
) => { readonly picked: readonly number[]; readonly more: boolean };

/**
 * Deliveries that may begin, earliest due first; those that an earlier one of their subject holds back are parked. What a success
 * made due once in a step of its schedule, and what failed all the same, the next success makes due a while after that attempt:
 * an event that its endpoint never takes is not sent again and again beside others that it does.
 */
function createPicks(db: DatabaseSync): DeliveryPick {
  const sql = {
    hurry: db.prepare(
      `UPDATE webhook_deliveries SET resume_at = coalesce(resume_at, due_at),
         due_at = CASE WHEN resume_at IS NULL OR tried_at < ?4 THEN ?3 ELSE max(?3, tried_at + ${OLDEST_EVERY_MS}) END
       WHERE endpoint_id = ?1 AND n IN (
         SELECT n FROM webhook_deliveries INDEXED BY webhook_due WHERE endpoint_id = ?1 AND state = 'waiting'
           AND due_at > ?3 AND due_at < ${PARKED} AND tried_at < ?2
           AND (resume_at IS NULL OR tried_at < ?4 OR due_at > tried_at + ${OLDEST_EVERY_MS}) LIMIT ${AT_ONCE})`,
    ),
    hurried: db.prepare('UPDATE webhook_endpoints SET hurried_at = NULL WHERE id = ?'),
    oldest: db.prepare(
      `SELECT n, due_at, tried_at FROM webhook_deliveries INDEXED BY webhook_oldest
       WHERE endpoint_id = ? AND state = 'waiting' ORDER BY n LIMIT 1`,
    ),
    due: db.prepare(
      `SELECT n, subject FROM webhook_deliveries INDEXED BY webhook_due
       WHERE endpoint_id = ?1 AND state = 'waiting' AND due_at <= ?2 AND n NOT IN (SELECT value FROM json_each(?3))
       ORDER BY due_at, n LIMIT ${AT_ONCE}`,
    ),
    earlier: db.prepare(
      `SELECT 1 FROM webhook_deliveries INDEXED BY webhook_order
       WHERE endpoint_id = ? AND state = 'waiting' AND subject = ? AND n < ? LIMIT 1`,
    ),
    move: db.prepare('UPDATE webhook_deliveries SET due_at = ? WHERE endpoint_id = ? AND n = ?'),
  };
  return ({ endpointId, free, busy }, endpoint, now) => {
    const picked: number[] = [];
    let more = false;
    const hurriedAt = nullableInteger(endpoint, 'hurried_at');
    if (hurriedAt !== null) {
      more = Number(sql.hurry.run(endpointId, hurriedAt, now, integer(endpoint, 'enabled_at')).changes) > 0;
      if (!more) sql.hurried.run(endpointId);
    }
    const oldest = sql.oldest.get(endpointId);
    if (oldest !== undefined && !busy.includes(integer(oldest, 'n'))) {
      const [n, dueAt, triedAt] = [
        integer(oldest, 'n'),
        integer(oldest, 'due_at'),
        nullableInteger(oldest, 'tried_at'),
      ];
      if (dueAt === PARKED) sql.move.run(now, endpointId, n);
      else if (dueAt > now && endpoint['failing_since'] !== null && (triedAt ?? 0) <= now - OLDEST_EVERY_MS)
        picked.push(n);
    }
    const candidates = sql.due.all(endpointId, now, JSON.stringify([...busy, ...picked]));
    for (const row of candidates) {
      if (picked.length >= free) return { picked, more };
      const [n, subject] = [integer(row, 'n'), text(row, 'subject')];
      if (subject !== '' && sql.earlier.get(endpointId, subject, n) !== undefined) sql.move.run(PARKED, endpointId, n);
      else picked.push(n);
    }
    return { picked, more: more || candidates.length === AT_ONCE };
  };
}

function createWebhookPrune(db: DatabaseSync): WebhookWrites['pruneDeliveries'] {
  const closed = (state: 'taken' | 'given_up'): string =>
    `SELECT endpoint_id, n FROM webhook_deliveries INDEXED BY webhook_closed
     WHERE state = '${state}' AND closed_at < ? LIMIT ${AT_ONCE}`;
  const sql = {
    taken: db.prepare(closed('taken')),
    givenUp: db.prepare(closed('given_up')),
    disabled: db.prepare('SELECT id FROM webhook_endpoints WHERE disabled_at IS NOT NULL'),
    oldest: db.prepare(
      `SELECT endpoint_id, n, at FROM webhook_deliveries INDEXED BY webhook_oldest
       WHERE endpoint_id = ? AND state = 'waiting' ORDER BY n LIMIT ${AT_ONCE}`,
    ),
    forgotten: db.prepare('SELECT id FROM webhook_endpoints WHERE forgotten_at IS NOT NULL'),
    any: db.prepare(`SELECT endpoint_id, n FROM webhook_deliveries WHERE endpoint_id = ? LIMIT ${AT_ONCE}`),
    remove: db.prepare('DELETE FROM webhook_deliveries WHERE endpoint_id = ? AND n = ?'),
    // An event is some endpoint's as long as there is a delivery of it.
    removeEvent: db.prepare(
      `DELETE FROM webhook_events WHERE n = ?1 AND NOT EXISTS (
         SELECT 1 FROM webhook_endpoints AS p CROSS JOIN webhook_deliveries AS d ON d.endpoint_id = p.id AND d.n = ?1)`,
    ),
    removeEndpoint: db.prepare('DELETE FROM webhook_endpoints WHERE id = ?'),
  };
  return (now) => {
    const rows = [
      ...sql.taken.all(now - KEPT_MS.taken),
      ...sql.givenUp.all(now - KEPT_MS.givenUp),
      ...sql.disabled
        .all()
        .flatMap((row) =>
          sql.oldest.all(text(row, 'id')).filter((each) => integer(each, 'at') < now - KEPT_MS.disabled),
        ),
    ];
    for (const row of sql.forgotten.all()) {
      const left = sql.any.all(text(row, 'id'));
      rows.push(...left);
      if (left.length === 0) sql.removeEndpoint.run(text(row, 'id'));
    }
    for (const row of rows) {
      sql.remove.run(text(row, 'endpoint_id'), integer(row, 'n'));
      sql.removeEvent.run(integer(row, 'n'));
    }
    return rows.length >= AT_ONCE;
  };
}

export function createWebhookReads(db: DatabaseSync): WebhookReads {
  const sql = {
    endpoints: db.prepare(
      `SELECT p.*, (SELECT count(*) FROM webhook_deliveries AS d WHERE d.endpoint_id = p.id AND d.state = 'waiting') AS waiting,
         (SELECT d.at FROM webhook_deliveries AS d WHERE d.endpoint_id = p.id AND d.state = 'waiting' ORDER BY d.n LIMIT 1)
           AS oldest_at
       FROM webhook_endpoints AS p WHERE p.forgotten_at IS NULL ORDER BY p.id`,
    ),
    deliveries: db.prepare(
      `SELECT ${DELIVERY_COLUMNS} FROM webhook_deliveries AS d JOIN webhook_events AS e ON e.n = d.n
       WHERE d.endpoint_id = ?1 AND (?2 IS NULL OR d.state = ?2) AND d.n < ?3 ORDER BY d.n DESC LIMIT ?4`,
    ),
  };
  return {
    webhookEndpoints: () => sql.endpoints.all().map(readEndpoint),
    webhookDeliveries: ({ endpointId, state, limit, before }) =>
      sql.deliveries.all(endpointId, state ?? null, before ?? PARKED, limit).map(readDelivery),
  };
}
