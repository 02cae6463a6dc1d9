// The deliveries of webhooks on PostgreSQL. Of several processes one sends: who takes a turn holds the row of that work, so that
// what another one finds out after its time is over is not written.
import {
  DISABLED_AFTER_MS,
  KEPT_MS,
  OLDEST_EVERY_MS,
  SENDER_LEASE_MS,
  type AttemptResult,
  type DueDelivery,
  type SenderRoom,
  type WebhookStore,
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
import { addAudit } from './audit-insert.ts';
import { plain } from './charge-batch.ts';
import type { ChargeSql } from './charge-sql.ts';
import { inTransaction, type Answer, type Session } from './connection.ts';
import { queueing } from './webhook-outbox.ts';

type WebhookDeps = {
  readonly sql: Pick<ChargeSql, 'schema' | 'named'>;
  /** Lends a connection that writes. */
  readonly use: <T>(work: (session: Session) => Promise<T>) => Promise<T>;
  /** Asks one statement of the connection that reads. */
  readonly ask: (text: string, values: readonly unknown[]) => Promise<Answer>;
  readonly now: () => number;
  /** What a transaction sets for itself. */
  readonly settings: () => string;
};

const LEASE = 'webhooks';

export function createWebhooks({ sql: { schema, named }, use, ask, now, settings }: WebhookDeps): WebhookStore {
  const [endpoints, wants] = [`${schema}.webhook_endpoints`, `${schema}.webhook_wants`];
  const [deliveries, events] = [`${schema}.webhook_deliveries`, `${schema}.webhook_events`];
  const statements = {
    name: named(
      `INSERT INTO ${endpoints} AS p (id, seen_at, enabled_at) SELECT id, $2, $2 FROM unnest($1::text[]) AS id ORDER BY id
       ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at, forgotten_at = NULL`,
    ),
    forgetWants: named(`DELETE FROM ${wants} WHERE endpoint_id = ANY ($1::text[])`),
    want: named(
      `INSERT INTO ${wants} (type, endpoint_id) SELECT * FROM unnest($1::text[], $2::text[]) ON CONFLICT DO NOTHING`,
    ),
    forget: named(
      `WITH gone AS (UPDATE ${endpoints} SET forgotten_at = $2 WHERE seen_at < $1 AND forgotten_at IS NULL RETURNING id)
       DELETE FROM ${wants} WHERE endpoint_id IN (SELECT id FROM gone)`,
    ),
    tell: named(`WITH ${queueing(schema, 'SELECT $1::text, $2::int8, $3::text, 0, $4::text')} SELECT id FROM hooked`),
    tellOne: named(
      `WITH ${queueing(schema, 'SELECT $1::text, $2::int8, $3::text, 0, $4::text', '$5')} SELECT id FROM hooked`,
    ),
    resign: named(`DELETE FROM ${schema}.charge_work WHERE name = '${LEASE}' AND run = $1`),
    disabled: named(`SELECT disabled_at FROM ${endpoints} WHERE id = $1 AND forgotten_at IS NULL FOR UPDATE`),
    enable: named(
      `UPDATE ${endpoints} SET disabled_at = NULL, failing_since = NULL, rest_until = 0, enabled_at = $2, hurried_at = $2
       WHERE id = $1 AND forgotten_at IS NULL`,
    ),
    retry: named(
      `UPDATE ${deliveries} SET state = 'waiting', attempts = 0, due_at = $3, resume_at = NULL, closed_at = NULL
       WHERE endpoint_id = $1 AND n = (SELECT n FROM ${events} WHERE id = $2)`,
    ),
  };
  const turn = createTurns(schema, named);
  const prune = createWebhookPrune(schema, named);
  const change = <T>(work: (session: Session) => Promise<T>): Promise<T> =>
    use((session) => inTransaction(session, settings(), () => work(session)));

  return {
    now,
    declare: (declared, forgetBefore) =>
      change(async (session) => {
        const ids = declared.map(({ id }) => id);
        const pairs = declared.flatMap(({ id, types }) => types.map((type) => [type, id] as const));
        await Promise.all([
          session.query(statements.name, [ids, now()]),
          session.query(statements.forgetWants, [ids]),
          session.query(statements.want, [pairs.map(([type]) => type), pairs.map(([, id]) => id)]),
          ...(forgetBefore === undefined ? [] : [session.query(statements.forget, [forgetBefore, now()])]),
        ]);
      }),
    tell: ({ type, subject, content, endpointId }, cause) =>
      change(async (session) => {
        const at = now();
        const values = [type, at, plain(subject), plain(content)];
        const asked =
          endpointId === undefined
            ? session.query(statements.tell, values)
            : session.query(statements.tellOne, [...values, endpointId]);
        const id = text((await asked).rows[0] ?? {}, 'id');
        if (type === 'test')
          await addAudit(
            session,
            schema,
            auditOfEvent('webhook.tested', id, { endpointId: endpointId ?? '', at, cause }),
          );
        return id;
      }),
    turn: (asked) => change((session) => turn(session, asked, now())),
    resign: (sender) => use(async (session) => void (await session.query(statements.resign, [sender]))),
    endpoints: async () => {
      const waiting = `FROM ${deliveries} AS d WHERE d.endpoint_id = p.id AND d.state = 'waiting'`;
      const { rows } = await ask(
        `SELECT p.*, (SELECT count(*)::int8 ${waiting}) AS waiting, (SELECT d.at ${waiting} ORDER BY d.n LIMIT 1) AS oldest_at
         FROM ${endpoints} AS p WHERE p.forgotten_at IS NULL ORDER BY p.id`,
        [],
      );
      return rows.map(readEndpoint);
    },
    deliveries: async ({ endpointId, state, limit, before }) => {
      const { rows } = await ask(
        `SELECT ${DELIVERY_COLUMNS} FROM ${deliveries} AS d JOIN ${events} AS e ON e.n = d.n
         WHERE d.endpoint_id = $1 AND ($2::text IS NULL OR d.state = $2) AND d.n < $3 ORDER BY d.n DESC LIMIT $4`,
        [endpointId, state ?? null, before ?? PARKED, limit],
      );
      return rows.map(readDelivery);
    },
    enable: (endpointId, cause) =>
      change(async (session) => {
        const at = now();
        const [endpoint] = (await session.query(statements.disabled, [plain(endpointId)])).rows;
        if (endpoint === undefined) return false;
        await session.query(statements.enable, [plain(endpointId), at]);
        const before = nullableInteger(endpoint, 'disabled_at') === null ? 'ok' : 'disabled';
        await addAudit(session, schema, auditOfEnabling(before, { endpointId, at, cause }));
        return true;
      }),
    retry: (endpointId, eventId, cause) =>
      change(async (session) => {
        const at = now();
        const { count } = await session.query(statements.retry, [plain(endpointId), plain(eventId), at]);
        if (count === 1)
          await addAudit(session, schema, auditOfEvent('webhook.retried', eventId, { endpointId, at, cause }));
        return count === 1;
      }),
    prune: () => change((session) => prune(session, now())),
  };
}

type Named = ChargeSql['named'];

function createTurns(schema: string, named: Named) {
  const [endpoints, deliveries] = [`${schema}.webhook_endpoints`, `${schema}.webhook_deliveries`];
  const statements = {
    /** Binds the sender, the end of its lease and the time. */
    take: named(
      `INSERT INTO ${schema}.charge_work AS w (name, run, lease_until) VALUES ('${LEASE}', $1, $2)
       ON CONFLICT (name) DO UPDATE SET run = excluded.run, lease_until = excluded.lease_until
         WHERE w.run = excluded.run OR w.lease_until <= $3`,
    ),
    endpoints: named(
      `SELECT p.id, p.enabled_at, p.failing_since, p.hurried_at, o.n, o.due_at, o.tried_at FROM ${endpoints} AS p
       LEFT JOIN LATERAL (SELECT d.n, d.due_at, d.tried_at FROM ${deliveries} AS d
         WHERE d.endpoint_id = p.id AND d.state = 'waiting' ORDER BY d.n LIMIT 1) AS o ON true
       WHERE p.id = ANY ($1::text[]) AND p.disabled_at IS NULL AND p.forgotten_at IS NULL AND p.rest_until <= $2`,
    ),
  };
  const write = createResultWrites(schema, named);
  const pick = createPicks(schema, named);

  return async (
    session: Session,
    { sender, results, rooms }: Parameters<WebhookStore['turn']>[0],
    now: number,
  ): ReturnType<WebhookStore['turn']> => {
    const { count } = await session.query(statements.take, [sender, now + SENDER_LEASE_MS, now]);
    if (count === 0) return { kind: 'other' };
    await Promise.all(results.flatMap((result) => write(session, result)));
    const open = rooms.filter(({ free }) => free > 0);
    const asked = [open.map(({ endpointId }) => endpointId), now];
    const found = open.length === 0 ? [] : (await session.query(statements.endpoints, asked)).rows;
    const due: DueDelivery[] = [];
    let more = false;
    for (const room of open) {
      const endpoint = found.find((row) => row['id'] === room.endpointId);
      if (endpoint === undefined) continue;
      const picked = await pick(session, room, endpoint, now);
      due.push(...picked.due);
      more ||= picked.more;
    }
    return { kind: 'ours', due, more };
  };
}

/** Writes what became of an attempt. */
function createResultWrites(schema: string, named: Named) {
  const [endpoints, deliveries] = [`${schema}.webhook_endpoints`, `${schema}.webhook_deliveries`];
  const waiting = (of: string): string => `${of}.endpoint_id = $1 AND ${of}.state = 'waiting'`;
  const statements = {
    ended: named(
      `UPDATE ${deliveries} SET state = $3, attempts = coalesce($4, attempts), due_at = $5, resume_at = $6, tried_at = $7,
         closed_at = $8, tries = $9
       WHERE endpoint_id = $1 AND n = $2 AND state = 'waiting' AND tried_at IS NOT DISTINCT FROM $10::int8`,
    ),
    next: named(
      `UPDATE ${deliveries} AS d SET due_at = $3 WHERE ${waiting('d')} AND d.due_at = ${PARKED}
         AND d.n = (SELECT min(o.n) FROM ${deliveries} AS o WHERE ${waiting('o')} AND o.subject = $2)`,
    ),
    took: named(
      `UPDATE ${endpoints} SET last_success_at = $2, failing_since = NULL,
         hurried_at = CASE WHEN failing_since IS NULL THEN hurried_at ELSE $2 END WHERE id = $1`,
    ),
    failed: named(
      `UPDATE ${endpoints} SET failing_since = coalesce(failing_since, $2), last_error = $3,
         rest_until = greatest(rest_until, $4::int8)
       WHERE id = $1`,
    ),
    disable: named(
      `UPDATE ${endpoints} SET disabled_at = $2
       WHERE id = $1 AND disabled_at IS NULL AND ($3::boolean OR failing_since <= $2::int8 - ${DISABLED_AFTER_MS})`,
    ),
  };

  const disable = async (session: Session, { delivery, endedAt: at, error, isGone }: AttemptResult): Promise<void> => {
    const { endpointId } = delivery;
    const { count } = await session.query(statements.disable, [endpointId, at, isGone]);
    if (count === 1) await addAudit(session, schema, auditOfDisabling(error ?? '', { endpointId, at }));
  };
  return (session: Session, result: AttemptResult): readonly Promise<unknown>[] => {
    const { endpointId, n, triedAt: before, subject } = result.delivery;
    const { state, attempts, dueAt, resumeAt, triedAt, closedAt, tries } = deliveryAfter(result);
    const { endedAt: at, error, restUntil } = result;
    const ended = [endpointId, n, state, attempts, dueAt, resumeAt, triedAt, closedAt, plain(tries), before];
    return [
      session.query(statements.ended, ended),
      ...(closedAt !== null && subject !== '' ? [session.query(statements.next, [endpointId, subject, closedAt])] : []),
      ...(error === null
        ? [session.query(statements.took, [endpointId, at])]
        : [session.query(statements.failed, [endpointId, at, plain(error), restUntil ?? 0]), disable(session, result)]),
    ];
  };
}

/**
 * Deliveries that may begin, earliest due first; those that an earlier one of their subject holds back are parked. What a success
 * made due once in a step of its schedule, and what failed all the same, the next success makes due a while after that attempt:
 * an event that its endpoint never takes is not sent again and again beside others that it does.
 */
function createPicks(schema: string, named: Named) {
  const [endpoints, deliveries] = [`${schema}.webhook_endpoints`, `${schema}.webhook_deliveries`];
  const waiting = (of: string): string => `${of}.endpoint_id = $1 AND ${of}.state = 'waiting'`;
  const statements = {
    hurry: named(
      `UPDATE ${deliveries} AS d SET resume_at = coalesce(d.resume_at, d.due_at), due_at = CASE
           WHEN d.resume_at IS NULL OR d.tried_at < $4 THEN $3 ELSE greatest($3, d.tried_at + ${OLDEST_EVERY_MS}) END
       WHERE ${waiting('d')} AND d.n IN (
         SELECT o.n FROM ${deliveries} AS o WHERE ${waiting('o')} AND o.due_at > $3 AND o.due_at < ${PARKED}
           AND o.tried_at < $2 AND (o.resume_at IS NULL OR o.tried_at < $4 OR o.due_at > o.tried_at + ${OLDEST_EVERY_MS})
         LIMIT ${AT_ONCE})`,
    ),
    hurried: named(`UPDATE ${endpoints} SET hurried_at = NULL WHERE id = $1`),
    due: named(
      `SELECT d.n, d.subject <> '' AND EXISTS (SELECT 1 FROM ${deliveries} AS o
           WHERE ${waiting('o')} AND o.subject = d.subject AND o.n < d.n) AS is_held
       FROM ${deliveries} AS d WHERE ${waiting('d')} AND d.due_at <= $2 AND d.n <> ALL ($3::int8[])
       ORDER BY d.due_at, d.n LIMIT ${AT_ONCE}`,
    ),
    move: named(`UPDATE ${deliveries} SET due_at = $2 WHERE endpoint_id = $1 AND n = ANY ($3::int8[])`),
    whole: named(
      `SELECT ${DELIVERY_COLUMNS} FROM ${deliveries} AS d JOIN ${schema}.webhook_events AS e ON e.n = d.n
       WHERE d.endpoint_id = $1 AND d.n = ANY ($2::int8[])`,
    ),
  };

  return async (
    session: Session,
    { endpointId, free, busy }: SenderRoom,
    endpoint: Row,
    now: number,
  ): Promise<{ readonly due: readonly DueDelivery[]; readonly more: boolean }> => {
    const picked: number[] = [];
    let more = false;
    const hurriedAt = nullableInteger(endpoint, 'hurried_at');
    if (hurriedAt !== null) {
      const enabledAt = integer(endpoint, 'enabled_at');
      more = (await session.query(statements.hurry, [endpointId, hurriedAt, now, enabledAt])).count > 0;
      if (!more) await session.query(statements.hurried, [endpointId]);
    }
    const oldest = nullableInteger(endpoint, 'n');
    if (oldest !== null && !busy.includes(oldest)) {
      const [dueAt, triedAt] = [integer(endpoint, 'due_at'), nullableInteger(endpoint, 'tried_at')];
      if (dueAt === PARKED) await session.query(statements.move, [endpointId, now, [oldest]]);
      else if (dueAt > now && endpoint['failing_since'] !== null && (triedAt ?? 0) <= now - OLDEST_EVERY_MS)
        picked.push(oldest);
    }
    const { rows } = await session.query(statements.due, [endpointId, now, [...busy, ...picked]]);
    const held: number[] = [];
    for (const row of rows) {
      if (picked.length >= free) break;
      (integer(row, 'is_held') === 1 ? held : picked).push(integer(row, 'n'));
    }
    if (held.length > 0) await session.query(statements.move, [endpointId, PARKED, held]);
    const found = (await session.query(statements.whole, [endpointId, picked])).rows.map(readDue);
    const enabledAt = integer(endpoint, 'enabled_at');
    const due = found
      .toSorted((a, b) => picked.indexOf(a.n) - picked.indexOf(b.n))
      .map((each) =>
        each.triedAt !== null && each.triedAt < enabledAt
          ? { ...each, attempts: 0, scheduledAt: Math.min(each.scheduledAt, now) }
          : each,
      );
    return { due, more: more || (picked.length < free && rows.length === AT_ONCE) };
  };
}

function createWebhookPrune(schema: string, named: Named) {
  const [endpoints, deliveries] = [`${schema}.webhook_endpoints`, `${schema}.webhook_deliveries`];
  const statements = {
    /** Binds the times before which taken ones, those given up and those of disabled endpoints are over. */
    remove: named(
      `WITH over AS (
         (SELECT endpoint_id, n FROM ${deliveries} WHERE state = 'taken' AND closed_at < $1 LIMIT ${AT_ONCE})
         UNION ALL (SELECT endpoint_id, n FROM ${deliveries} WHERE state = 'given_up' AND closed_at < $2 LIMIT ${AT_ONCE})
         UNION ALL SELECT d.endpoint_id, d.n FROM ${endpoints} AS p CROSS JOIN LATERAL (
           SELECT * FROM ${deliveries} WHERE endpoint_id = p.id AND state = 'waiting' ORDER BY n LIMIT ${AT_ONCE}) AS d
           WHERE p.disabled_at IS NOT NULL AND d.at < $3
         UNION ALL SELECT d.endpoint_id, d.n FROM ${endpoints} AS p CROSS JOIN LATERAL (
           SELECT * FROM ${deliveries} WHERE endpoint_id = p.id LIMIT ${AT_ONCE}) AS d WHERE p.forgotten_at IS NOT NULL
       ) DELETE FROM ${deliveries} AS d USING over WHERE d.endpoint_id = over.endpoint_id AND d.n = over.n RETURNING d.n`,
    ),
    removeEvents: named(
      `DELETE FROM ${schema}.webhook_events AS e WHERE e.n = ANY ($1::int8[]) AND NOT EXISTS (
         SELECT 1 FROM ${endpoints} AS p JOIN ${deliveries} AS d ON d.endpoint_id = p.id WHERE d.n = e.n)`,
    ),
    removeEndpoints: named(
      `DELETE FROM ${endpoints} AS p WHERE forgotten_at IS NOT NULL
         AND NOT EXISTS (SELECT 1 FROM ${deliveries} AS d WHERE d.endpoint_id = p.id)`,
    ),
  };
  return async (session: Session, now: number): Promise<boolean> => {
    const before = [now - KEPT_MS.taken, now - KEPT_MS.givenUp, now - KEPT_MS.disabled];
    const { rows } = await session.query(statements.remove, before);
    await session.query(statements.removeEvents, [rows.map((row) => integer(row, 'n'))]);
    await session.query(statements.removeEndpoints, []);
    return rows.length >= AT_ONCE;
  };
}
