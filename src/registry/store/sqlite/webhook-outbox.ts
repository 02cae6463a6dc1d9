// The outbox of webhooks on SQLite: events are written by the transaction of what they tell, each with a delivery for every
// endpoint that wants it. Without an endpoint a payment costs nothing here.
import type { DatabaseSync } from 'node:sqlite';
import type { ChargeEventType, WebhookType } from '../../../domain/webhooks/event-types.ts';
import type { ToldEvent } from '../../../domain/webhooks/webhook-store.ts';
import { integer, text } from '../rows.ts';
import { SELECT_LISTED } from './charge-rows.ts';
import { createSmallTables } from './small-tables.ts';

export type Outbox = {
  /** Tells of a charge as the transaction has it now. `type` null: there is nothing to tell. */
  readonly charge: (id: string, type: ChargeEventType | null) => void;
  /** Tells of anything else if an endpoint wants it. */
  readonly data: (type: WebhookType, subject: string, at: number, content: string) => void;
  /** Tells whoever wants it, or one endpoint alone; the event's id. */
  readonly tell: (event: ToldEvent, at: number) => string;
  /** A new transaction: endpoints may have changed. */
  readonly begin: () => void;
};

export function createOutbox(db: DatabaseSync, tables = createSmallTables(db)): Outbox {
  const sql = {
    wanted: db.prepare('SELECT DISTINCT type FROM webhook_wants'),
    number: db.prepare('UPDATE charges SET event_sequence = event_sequence + 1 WHERE id = ? RETURNING event_sequence'),
    charge: db.prepare(`${SELECT_LISTED} WHERE id = ?`),
    event: db.prepare(
      `INSERT INTO webhook_events (id, type, at, subject, sequence, content)
       VALUES ('evt_' || lower(hex(randomblob(16))), ?, ?, ?, ?, ?) RETURNING n, id`,
    ),
    queue: db.prepare(
      `INSERT INTO webhook_deliveries (endpoint_id, n, subject, at, due_at)
       SELECT endpoint_id, ?1, ?2, ?3, ?3 FROM webhook_wants WHERE type = ?4`,
    ),
    queueFor: db.prepare(
      'INSERT INTO webhook_deliveries (endpoint_id, n, subject, at, due_at) VALUES (?1, ?2, ?3, ?4, ?4)',
    ),
  };
  const wanted = tables.remember((): ReadonlySet<unknown> => new Set(sql.wanted.all().map((row) => row['type'])));
  const wants = (type: WebhookType): boolean => wanted().has(type);
  const write = ({ type, subject, content, endpointId }: ToldEvent, at: number, sequence: number): string => {
    const row = sql.event.get(type, at, subject, sequence, content) ?? {};
    const n = integer(row, 'n');
    if (endpointId === undefined) sql.queue.run(n, subject, at, type);
    else sql.queueFor.run(endpointId, n, subject, at);
    return text(row, 'id');
  };
  return {
    charge: (id, type) => {
      if (type === null || !wants(type)) return;
      const sequence = integer(sql.number.get(id) ?? {}, 'event_sequence');
      const row = sql.charge.get(id) ?? {};
      write({ type, subject: id, content: JSON.stringify(row) }, integer(row, 'updated_at'), sequence);
    },
    data: (type, subject, at, content) => {
      if (wants(type)) write({ type, subject, content }, at, 0);
    },
    tell: (event, at) => write(event, at, 0),
    begin: tables.begin,
  };
}
