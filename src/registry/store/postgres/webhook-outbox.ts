// The outbox of webhooks on PostgreSQL, as parts of statements: who changes a charge or a route writes the event in the same
// statement or transaction. While no endpoint wants its type that is one look at an empty table.

/** Condition that an endpoint wants `type`, an expression. */
export function isWanted(schema: string, type: string): string {
  return `EXISTS (SELECT 1 FROM ${schema}.webhook_wants WHERE type = ${type})`;
}

/**
 * Parts of a WITH that write events, each with its deliveries. `events` selects type, time, subject, sequence and content.
 * `endpointId`, an expression: for this endpoint alone, whatever it wants.
 */
export function queueing(schema: string, events: string, endpointId?: string): string {
  const takers =
    endpointId === undefined
      ? `JOIN ${schema}.webhook_wants AS w ON w.type = h.type`
      : `CROSS JOIN (VALUES (${endpointId}::text)) AS w (endpoint_id)`;
  return `hooked AS (
    INSERT INTO ${schema}.webhook_events (id, type, at, subject, sequence, content)
    SELECT 'evt_' || replace(gen_random_uuid()::text, '-', ''), k.* FROM (${events}) AS k
    RETURNING n, id, type, at, subject
  ), queued AS (
    INSERT INTO ${schema}.webhook_deliveries (endpoint_id, n, subject, at, due_at)
    SELECT w.endpoint_id, h.n, h.subject, h.at, h.at FROM hooked AS h ${takers}
  )`;
}
