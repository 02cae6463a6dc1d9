// The migrations of the schema: brings it up to date in one transaction under a lock, so that of many processes at once one
// does it and the others find it done. A schema is only added to, so that a program of the version before works on beside it.
import { readFileSync } from 'node:fs';
import type { Random } from '../../../host/clock.ts';
import { makeUuid } from '../../../host/identifiers.ts';
import { integer } from '../rows.ts';
import { codeOf, inTransaction, PostgresRefusal, type Session } from './connection.ts';

/** The schema, then what brings each version to the next: SQL files beside this one, and the least version that may use it. */
const SCHEMA: readonly { readonly file: string; readonly leastReader: number }[] = [
  { file: 'postgres.sql', leastReader: 1 },
  { file: 'postgres-2.sql', leastReader: 1 },
  { file: 'postgres-3.sql', leastReader: 1 },
  { file: 'postgres-4.sql', leastReader: 1 },
  { file: 'postgres-5.sql', leastReader: 1 },
  { file: 'postgres-6.sql', leastReader: 1 },
  { file: 'postgres-7.sql', leastReader: 1 },
  { file: 'postgres-8.sql', leastReader: 1 },
  { file: 'postgres-9.sql', leastReader: 1 },
  { file: 'postgres-10.sql', leastReader: 1 },
  { file: 'postgres-11.sql', leastReader: 1 },
  { file: 'postgres-12.sql', leastReader: 1 },
  { file: 'postgres-13.sql', leastReader: 1 },
  { file: 'postgres-14.sql', leastReader: 1 },
  { file: 'postgres-15.sql', leastReader: 1 },
  { file: 'postgres-16.sql', leastReader: 1 },
  { file: 'postgres-17.sql', leastReader: 1 },
  { file: 'postgres-18.sql', leastReader: 1 },
  { file: 'postgres-19.sql', leastReader: 1 },
  { file: 'postgres-20.sql', leastReader: 1 },
  { file: 'postgres-21.sql', leastReader: 1 },
];
const LOCK = 0x4d494752;
const LOCK_MS = 3000;

/** Reads the version of the schema; 0 if there is none. Refuses one that this program cannot use. */
export async function readVersion(session: Session, schema: string): Promise<number> {
  const there = await session.query(
    { name: 'tollgate_meta', text: `SELECT to_regclass('${schema}.meta') IS NOT NULL AS there` },
    [],
  );
  if (integer(there.rows[0] ?? {}, 'there') !== 1) return 0;
  const { rows } = await session.query(
    { name: 'tollgate_version', text: `SELECT schema_version, least_reader FROM ${schema}.meta` },
    [],
  );
  const [version, least] = [integer(rows[0] ?? {}, 'schema_version'), integer(rows[0] ?? {}, 'least_reader')];
  if (least > SCHEMA.length)
    throw new PostgresRefusal(
      `The schema ${schema} was written by a newer version of Tollgate (schema ${version}, this version knows ${SCHEMA.length}): run that version.`,
    );
  return version;
}

export function isCurrent(version: number): boolean {
  return version >= SCHEMA.length;
}

/** Brings the schema up to date. Resolves to the versions that were applied; none if there was nothing to do. */
export function migrateSchema(session: Session, schema: string, random: Random): Promise<readonly number[]> {
  return inTransaction(session, `; SET LOCAL lock_timeout = '${LOCK_MS}ms'`, async () => {
    await lockMigrations(session, schema);
    return bringUp(session, schema, random);
  });
}

/** Takes the lock of migrations until the transaction ends. */
export async function lockMigrations(session: Session, schema: string): Promise<void> {
  await session.query(
    { name: 'tollgate_migrate', text: `SELECT pg_advisory_xact_lock(${LOCK}, hashtext('${schema}'))::text` },
    [],
  );
}

/** Brings the schema up to date in a transaction that holds the lock. Resolves to the versions that were applied. */
export async function bringUp(session: Session, schema: string, random: Random): Promise<readonly number[]> {
  const applied: number[] = [];
  const from = await readVersion(session, schema);
  if (isCurrent(from)) return applied;
  await session.simple(`CREATE SCHEMA IF NOT EXISTS ${schema}; SET LOCAL search_path = ${schema}`);
  for (const [index, { file, leastReader }] of SCHEMA.entries()) {
    const version = index + 1;
    if (version <= from) continue;
    await session.simple(readFileSync(new URL(file, import.meta.url), 'utf8'));
    await session.query(
      { name: '', text: version === 1 ? FIRST : NEXT },
      version === 1 ? [version, leastReader, makeUuid(random)] : [version, leastReader],
    );
    applied.push(version);
  }
  return applied;
}

const FIRST = `INSERT INTO meta (one, schema_version, least_reader, registry_id, revision, stamp, keys_revision)
  VALUES (1, $1, $2, $3, 0, '', 0)`;
const NEXT = 'UPDATE meta SET schema_version = $1, least_reader = $2';

/** Whether the database refused for want of rights: this user may not make what is missing. */
export function lacksRights(error: unknown): boolean {
  return codeOf(error) === '42501';
}
