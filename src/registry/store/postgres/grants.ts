// What a database user needs for charges alone, as statements for somebody who may grant it: a sidecar that is broken into then
// changes no price and reads no key.

/** Of postgres.sql and what follows it. */
const CHARGE_TABLES = ['charges', 'charges_undelivered', 'charge_counts', 'charge_sums', 'charge_work'];
const MAX_NAME_BYTES = 63;
/** A role that is granted to is everybody under one of these names, or nobody; quotes do not help. */
const RESERVED: ReadonlySet<string> = new Set(['public', 'none']);

/** `schema` is an identifier that needs no quotes. Throws a sentence if no user has the name `user`. */
export function chargeGrants(schema: string, user: string): readonly string[] {
  if (RESERVED.has(user) || user === '' || user.includes('\0')) throw new Error('is no name of a user');
  // The database would cut it, and grant to another one.
  if (Buffer.byteLength(user) > MAX_NAME_BYTES) throw new Error(`is longer than ${MAX_NAME_BYTES} bytes`);
  const name = `"${user.replaceAll('"', '""')}"`;
  const tables = CHARGE_TABLES.map((table) => `${schema}.${table}`).join(', ');
  return [
    `GRANT USAGE ON SCHEMA ${schema} TO ${name};`,
    `GRANT SELECT, INSERT, UPDATE, DELETE ON ${tables} TO ${name};`,
    `GRANT SELECT (schema_version, least_reader) ON ${schema}.meta TO ${name};`,
  ];
}
