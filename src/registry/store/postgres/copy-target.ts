// A schema of PostgreSQL to copy into. All writes stand in one transaction, which holds the lock of migrating from its
// start. So of several copies one runs, and a server that would make the schema waits. Its commit is never assumed.
import { createLog } from '../../../host/log.ts';
import { createRandom, type Random } from '../../../host/clock.ts';
import { COPIED, TargetGone } from '../copy.ts';
import type { CopiedTable, CopyEnd, CopyRow, CopySession, CopyTarget, CopyValue } from '../copy-ports.ts';
import { integer, type Row } from '../rows.ts';
import { plain } from './charge-batch.ts';
import { codeOf, ConnectionLost, inTransaction, messageOf, PostgresRefusal, type Session } from './connection.ts';
import { openLinks, type PostgresPlace } from './links.ts';
import { bringUp, lacksRights, lockMigrations, readVersion } from './migrations.ts';

/** Time-out of one statement. */
const TIMEOUT_MS = 120_000;
const LOCK_MS = 3000;
const QUIET = createLog('error', () => undefined, Date.now);

export function openCopyTarget(place: PostgresPlace): CopyTarget {
  const { address, schema, timeoutMs } = place;
  const random = createRandom();
  const links = openLinks(
    { ...place, timeoutMs: TIMEOUT_MS },
    { now: Date.now, log: QUIET, random, prepare: async () => undefined },
  );
  return {
    name: `postgres://${address.host.startsWith('/') ? '' : `${address.host}:${address.port}`}/${address.database} (${schema})`,
    transact: async <T>(work: (session: CopySession) => Promise<CopyEnd<T>>) => {
      let undone: { readonly result: T } | undefined;
      try {
        return await links.control.use(performance.now() + timeoutMs, (session) =>
          inTransaction(session, `${links.settings()}; SET LOCAL lock_timeout = '${LOCK_MS}ms'`, async () => {
            await lockMigrations(session, schema);
            const { keeps, result } = await work(createSession(session, schema, random));
            if (keeps) return result;
            undone = { result };
            throw new PostgresRefusal('undone');
          }),
        );
      } catch (error) {
        if (undone !== undefined) return undone.result;
        throw sentenceOf(error, schema);
      }
    },
    close: links.close,
  };
}

function sentenceOf(error: unknown, schema: string): unknown {
  const cause = error instanceof Error ? error.cause : undefined;
  if (codeOf(cause) === '3D000') return new TargetGone(messageOf(cause), { cause: error });
  if (lacksRights(error))
    return new Error(`this user may not make or write the schema ${schema}: copy as the user who owns it`, {
      cause: error,
    });
  if (codeOf(error) === '55P03')
    return new Error(`the schema ${schema} is in use: another copy, or a server that was started on it`, {
      cause: error,
    });
  // The reason for giving up says more.
  return error instanceof ConnectionLost && cause !== undefined ? new Error(messageOf(cause), { cause: error }) : error;
}

function createSession(session: Session, schema: string, random: Random): CopySession {
  const run = (text: string, values: readonly unknown[] = []): ReturnType<Session['query']> =>
    session.query({ name: '', text }, values);
  return {
    state: async () => {
      if ((await readVersion(session, schema)) === 0) return 'gone';
      const anything = FILLED.map((table) => `EXISTS (SELECT FROM ${schema}.${table})`).join(' OR ');
      const { rows } = await run(`SELECT revision <> 0 OR ${anything} AS used FROM ${schema}.meta`);
      return integer(rows[0] ?? {}, 'used') === 1 ? 'used' : 'empty';
    },
    hold: async () => {
      if ((await readVersion(session, schema)) === 0) return;
      const all = ['meta', ...FILLED].map((table) => `${schema}.${table}`).join(', ');
      await session.simple(`LOCK TABLE ${all} IN ACCESS EXCLUSIVE MODE`);
    },
    make: async () => void (await bringUp(session, schema, random)),
    write: async (table, rows) => {
      const json = JSON.stringify(rows.map((row) => recordOf(TARGETS[table].columns, row)));
      await run(writing(schema, table), [json]);
    },
    finish: async (nextSeq) => {
      await session.simple(
        `INSERT INTO ${schema}.charges_undelivered (seq) SELECT seq FROM ${schema}.charges WHERE state = 'settled';
         ALTER TABLE ${schema}.charges ALTER COLUMN seq RESTART WITH ${nextSeq};
         SELECT setval(pg_get_serial_sequence('${schema}.passes', 'seq'), (SELECT coalesce(max(seq), 0) + 1 FROM ${schema}.passes), false);
         SELECT setval(pg_get_serial_sequence('${schema}.webhook_events', 'n'), (SELECT coalesce(max(n), 0) + 1 FROM ${schema}.webhook_events), false);
         SELECT setval(pg_get_serial_sequence('${schema}.audit', 'n'), (SELECT coalesce(max(n), 0) + 1 FROM ${schema}.audit), false)`,
      );
    },
    rows: async function* (table) {
      const { read, fetched } = TARGETS[table];
      await session.simple(`DECLARE copied NO SCROLL CURSOR FOR ${read(schema)}`);
      for (;;) {
        const { rows } = await session.simple(`FETCH ${fetched} FROM copied`);
        if (rows.length > 0) yield rows.map((row) => valuesOf(COPIED[table], row));
        if (rows.length < fetched) break;
      }
      await session.simple('CLOSE copied');
    },
    touch: async () => void (await session.simple(`UPDATE ${schema}.meta SET keys_revision = keys_revision`)),
  };
}

/** A row in any of them is one of a store that was used; `check` of a server that started leaves one. */
const FILLED = [
  ...['routes', 'changes', 'api_keys', 'charges', 'charges_undelivered', 'charge_counts', 'charge_sums', 'charge_work'],
  ...[
    'passes',
    'pass_draws',
    'charge_totals',
    'request_totals',
    'overhead_totals',
    'sale_totals',
    'totals_sources',
    'audit',
  ],
  ...['refund_proofs', 'refund_sums'],
  ...['webhook_endpoints', 'webhook_wants', 'webhook_events', 'webhook_deliveries'],
] as const;

type Target = {
  /** Place for rows, if not the table of this name. */
  readonly columns: readonly string[];
  readonly read: (schema: string) => string;
  /** Rows at a time. */
  readonly fetched: number;
};

const plainly = (table: CopiedTable, order: string): Target => ({
  columns: COPIED[table],
  read: (schema) => `SELECT ${COPIED[table].join(', ')} FROM ${schema}.${table} ${order}`,
  fetched: 1000,
});

const TARGETS: Readonly<Record<CopiedTable, Target>> = {
  meta: plainly('meta', ''),
  routes: plainly('routes', 'ORDER BY seq'),
  changes: plainly('changes', 'ORDER BY revision'),
  api_keys: plainly('api_keys', 'ORDER BY id'),
  api_key_uses: plainly('api_key_uses', 'ORDER BY holder'),
  audit: plainly('audit', 'ORDER BY n'),
  charges: plainly('charges', 'ORDER BY seq'),
  charge_answers: {
    columns: ['seq', 'answer_status', 'answer_headers', 'answer_body'],
    read: (schema) =>
      `SELECT seq, answer_status AS status, answer_headers AS headers, answer_body AS body
       FROM ${schema}.charges WHERE answer_status IS NOT NULL ORDER BY seq`,
    fetched: 8,
  },
  passes: plainly('passes', 'ORDER BY seq'),
  pass_draws: plainly('pass_draws', 'ORDER BY id'),
  // Shards are added up.
  charge_counts: {
    columns: [...COPIED.charge_counts, 'shard'],
    read: (schema) =>
      `SELECT state, sum(charges)::int8 AS charges FROM ${schema}.charge_counts GROUP BY state ORDER BY state COLLATE "C"`,
    fetched: 1000,
  },
  charge_sums: {
    columns: [...COPIED.charge_sums, 'shard'],
    read: (schema) =>
      `SELECT hour, route_id, currency, network, asset, asset_decimals, sum(charges)::int8 AS charges, sum(amount) AS amount
       FROM ${schema}.charge_sums GROUP BY 1, 2, 3, 4, 5, 6
       ORDER BY hour, route_id, currency COLLATE "C", network, asset, asset_decimals`,
    fetched: 1000,
  },
  charge_totals: {
    columns: [...COPIED.charge_totals, 'shard'],
    read: (schema) =>
      `SELECT step, start, route_id, currency, network, asset, asset_decimals, sum(charges)::int8 AS charges,
         sum(amount) AS amount
       FROM ${schema}.charge_totals GROUP BY 1, 2, 3, 4, 5, 6, 7
       ORDER BY step, start, route_id, currency COLLATE "C", network COLLATE "C", asset COLLATE "C", asset_decimals`,
    fetched: 1000,
  },
  refund_proofs: plainly('refund_proofs', 'ORDER BY network, transaction_id, log_index'),
  refund_sums: plainly('refund_sums', 'ORDER BY hour, route_id, currency, network, asset, asset_decimals'),
  request_totals: plainly('request_totals', 'ORDER BY step, start, route_id'),
  overhead_totals: plainly('overhead_totals', 'ORDER BY step, start, bucket'),
  sale_totals: plainly('sale_totals', 'ORDER BY step, start, kind, subject, detail, scale'),
  totals_sources: plainly('totals_sources', 'ORDER BY source'),
  webhook_endpoints: plainly('webhook_endpoints', 'ORDER BY id'),
  webhook_wants: plainly('webhook_wants', 'ORDER BY type, endpoint_id'),
  webhook_events: plainly('webhook_events', 'ORDER BY n'),
  webhook_deliveries: plainly('webhook_deliveries', 'ORDER BY endpoint_id, n'),
};

/** Binds rows as JSON, whose members are named as columns: their types are the table's own. */
function writing(schema: string, table: CopiedTable): string {
  const { columns } = TARGETS[table];
  const named = columns.join(', ');
  const rows = (of: string): string => `json_populate_recordset(NULL::${schema}.${of}, $1::json)`;
  if (table === 'meta')
    return `UPDATE ${schema}.meta AS m SET registry_id = v.registry_id, revision = v.revision, stamp = v.stamp,
      keys_revision = m.keys_revision + 1 FROM ${rows('meta')} AS v`;
  if (table === 'charge_answers') {
    const sets = columns.filter((name) => name !== 'seq').map((name) => `${name} = v.${name}`);
    return `UPDATE ${schema}.charges AS c SET ${sets.join(', ')} FROM ${rows('charges')} AS v WHERE c.seq = v.seq`;
  }
  const asGiven = table === 'charges' || table === 'audit' || table === 'passes' ? 'OVERRIDING SYSTEM VALUE' : '';
  return `INSERT INTO ${schema}.${table} (${named}) ${asGiven} SELECT ${named} FROM ${rows(table)}`;
}

/** Counts that came from no shard are in the first one. */
function recordOf(columns: readonly string[], row: CopyRow): Record<string, unknown> {
  return Object.fromEntries(columns.map((name, index) => [name, name === 'shard' ? 0 : bindable(row[index] ?? null)]));
}

function bindable(value: CopyValue): unknown {
  if (value instanceof Uint8Array)
    return `\\x${Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('hex')}`;
  return typeof value === 'string' ? plain(value) : value;
}

function valuesOf(columns: readonly string[], row: Row): CopyRow {
  return columns.map((name) => row[name] as CopyValue);
}
