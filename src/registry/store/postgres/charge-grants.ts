// Lists what a database user needs for charges alone, as statements for an operator who may grant it. A sidecar that is
// broken into then changes no price and reads no key.

/** Tables of charges in postgres.sql and its later versions. */
const CHARGE_TABLES = [
  ...['charges', 'charges_undelivered', 'charge_counts', 'charge_sums', 'charge_totals', 'charge_work'],
  ...['request_totals', 'overhead_totals', 'sale_totals', 'totals_sources'],
  ...['charge_changes', 'charge_watch', 'refund_proofs', 'refund_sums'],
  ...['counters', 'counter_windows', 'counter_groups', 'counter_changes', 'passes', 'pass_draws'],
  ...['webhook_endpoints', 'webhook_wants', 'webhook_events', 'webhook_deliveries'],
];
const MAX_NAME_BYTES = 63;
/** A grant to one of these names goes to all users or to none, also in quotes. */
const RESERVED: ReadonlySet<string> = new Set(['public', 'none']);

/** Statements to grant; `schema` is an identifier that needs no quotes. Throws a sentence if no user has the name `user`. */
export function chargeGrants(schema: string, user: string): readonly string[] {
  if (RESERVED.has(user) || user === '' || user.includes('\0')) throw new Error('is no name of a user');
  // The database would cut it, and grant to another one.
  if (Buffer.byteLength(user) > MAX_NAME_BYTES) throw new Error(`is longer than ${MAX_NAME_BYTES} bytes`);
  const name = `"${user.replaceAll('"', '""')}"`;
  const tables = CHARGE_TABLES.map((table) => `${schema}.${table}`).join(', ');
  return [
    `GRANT USAGE ON SCHEMA ${schema} TO ${name};`,
    `GRANT SELECT, INSERT, UPDATE, DELETE ON ${tables} TO ${name};`,
    // What an operator says about a charge is written into the audit log, and not read there.
    `GRANT INSERT ON ${schema}.audit TO ${name};`,
    `GRANT SELECT (schema_version, least_reader) ON ${schema}.meta TO ${name};`,
  ];
}
