// The statements of charges on PostgreSQL. Each carries a batch as one array a column. A change of a charge writes its totals in
// the same statement, so that they count exactly what was written; every statement says which of its rows were.
import { NO_DEADLINE_MS } from '../../../domain/payment/charge.ts';
import { CHARGE_ROWS, type ChargeRow } from '../../../domain/payment/charge-fields.ts';
import { OVERDUE_MS } from '../../../domain/payment/claim-policy.ts';
import type { ChargeState } from '../../../domain/payment/charge.ts';
import type { ChargeEventType } from '../../../domain/webhooks/event-types.ts';
import { AUDIT_COLUMNS } from '../audit-values.ts';
import { PASSES_OF_A_PAYER } from '../../../domain/selling/pass-store.ts';
import { ALL, DIGESTS, UNLISTED } from '../charge-values.ts';
import { DRAW_COLUMNS, PASS_COLUMNS, typeOf } from '../pass-values.ts';
import type { Statement } from './connection.ts';
import { isWanted, queueing } from './webhook-outbox.ts';

export type ChargeSql = ReturnType<typeof createChargeSql>;

/** Kind of a change: what changes with the same columns have in common. */
export type ChangeKindOfRow = {
  /** Positions of ALL. */
  readonly columns: readonly number[];
  readonly before: ChargeState;
  readonly after: ChargeState;
  readonly isOwner: boolean;
  readonly hasRoom: boolean;
  readonly buysPass: boolean;
  readonly setsCredential: boolean;
  readonly setsAnswer: boolean;
  readonly isSettled: boolean;
  readonly opensPass: boolean;
  readonly revokesPass: boolean;
  /** Whether it says that money was given back, and whether a transfer proves that. */
  readonly isRefund: boolean;
  readonly isProvenRefund: boolean;
  readonly tells: ChargeEventType | null;
  readonly isAudited: boolean;
};

/** Types of parameters for the kinds of a charge's values. */
const PARAMETERS: Readonly<Record<ChargeRow['kind'], string>> = {
  text: 'text',
  'charge id': 'text',
  digest: 'text',
  integer: 'int8',
  flag: 'int8',
  units: 'numeric',
  seconds: 'int8',
  texts: 'text',
  headers: 'text',
  bytes: 'bytea',
};
/** The type of each column of a charge, as a parameter has it. */
const TYPES: ReadonlyMap<string, string> = new Map(CHARGE_ROWS.map(({ column, kind }) => [column, PARAMETERS[kind]]));
const ANSWER = CHARGE_ROWS.filter(({ part }) => part === 'answer').map(({ column }) => column);
/** Clock in milliseconds; `shift` moves it in tests. */
const CLOCK = 'floor(extract(epoch FROM clock_timestamp()) * 1000)::int8';
/** ASCII of a name: locks of other programs on this database have other numbers. */
const LOCKS = 0x54474154;
const DUE_AT = 'greatest(lease_until, coalesce(look_at, 0))';

/** Writes the statements. `schema` is an identifier that needs no quotes. */
export function createChargeSql(schema: string) {
  const charges = `${schema}.charges`;
  const names = new Map<string, Statement>();
  const named = (text: string): Statement => {
    let statement = names.get(text);
    if (statement === undefined) names.set(text, (statement = { name: `tollgate_${names.size}`, text }));
    return statement;
  };
  const kinds = new Map<string, Statement>();

  return {
    named,
    charges,
    schema,
    /** Binds a number for each payer and network, sorted; says the time. A later statement counts what the ones before it wrote. */
    lock: named(
      `SELECT count(pg_advisory_xact_lock(${LOCKS}, k)::text) AS locks, ${CLOCK} AS now FROM unnest($1::int4[]) AS k`,
    ),
    clock: named(`SELECT ${CLOCK} AS now`),
    insert: named(insertSql(schema)),
    update: (kind: ChangeKindOfRow): Statement => {
      const name = Object.values(kind).join(' ');
      let statement = kinds.get(name);
      if (statement === undefined) kinds.set(name, (statement = named(updateSql(schema, kind))));
      return statement;
    },
    /** Binds payers, unique keys, networks and assets. */
    findByPayments: named(
      `SELECT k.n, ${STORED} FROM unnest($1::text[], $2::text[], $3::text[], $4::text[])
         WITH ORDINALITY AS k (payer, unique_key, network, asset, n)
       JOIN ${charges} AS c USING (payer, unique_key, network, asset)`,
    ),
    findByIds: named(
      `SELECT k.n, ${STORED} FROM unnest($1::text[]) WITH ORDINALITY AS k (id, n) JOIN ${charges} AS c USING (id)`,
    ),
    /** Binds the time and a limit. */
    due: named(`SELECT ${STORED} FROM ${charges} AS c WHERE is_open AND ${DUE_AT} <= $1 ORDER BY ${DUE_AT} LIMIT $2`),
    /** Binds the end of the lease, ids and the run. */
    renew: named(
      `UPDATE ${charges} SET lease_until = $1 WHERE id = ANY ($2::text[]) AND left(owner, length($3) + 1) = $3 || '/'
         AND state IN ('claimed', 'settling', 'settled') RETURNING id`,
    ),
    /** Binds the time and a run. */
    endRunDraws: named(
      `UPDATE ${schema}.pass_draws SET lease_until = $1
       WHERE state = 'reserved' AND lease_until > $1 AND left(owner, length($2) + 1) = $2 || '/'`,
    ),
    /** Binds payers, plans, ids of charges and the time: those that have as many passes as there may be. */
    full: named(
      `SELECT k.n FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY AS k (payer, plan, id, n)
       WHERE ${passesOf(schema, 'k', 'k.id', '$4')} >= ${PASSES_OF_A_PAYER}`,
    ),
    /** Binds the time and a run. */
    endRun: named(
      `UPDATE ${charges} SET lease_until = $1 WHERE lease_until > $1 AND left(owner, length($2) + 1) = $2 || '/'
         AND seq IN (SELECT seq FROM ${charges} WHERE is_open UNION ALL SELECT seq FROM ${schema}.charges_undelivered)`,
    ),
    /** Binds the shard. Touches a row that nothing else reads. */
    touch: named(
      `INSERT INTO ${schema}.charge_counts (state, shard, charges) VALUES ('claimed', $1, 0)
       ON CONFLICT (state, shard) DO UPDATE SET charges = charge_counts.charges`,
    ),
    addCounts: named(
      `INSERT INTO ${schema}.charge_counts (state, shard, charges) VALUES ($1, $2, $3)
       ON CONFLICT (state, shard) DO UPDATE SET charges = charge_counts.charges + excluded.charges`,
    ),
  };
}

/** Selects columns, also under other names than the table's: `c` is the charge. */
const selected = (columns: readonly string[]): string =>
  columns.map((column) => (DIGESTS.has(column) ? `encode(c.${column}, 'hex') AS ${column}` : `c.${column}`)).join(', ');
const STORED = `c.seq, c.version, ${selected([...ALL, 'credential', ...ANSWER])}`;
/** `readListed` reads it; it names neither credentials nor answers. */
export const LISTED = `c.seq, ${selected(ALL.filter((name) => !UNLISTED.has(name)))},
  c.answer_status IS NOT NULL AS has_answer`;

function typed(column: string): readonly [name: string, type: string] {
  return [column, TYPES.get(column) ?? 'text'];
}

function written(column: string): string {
  return DIGESTS.has(column) ? `decode(v.${column}, 'hex')` : `v.${column}`;
}

/** An array for each, as a row `v` each. */
function rowsOf(columns: readonly (readonly [name: string, type: string])[], from: number): string {
  const arrays = columns.map(([, type], index) => `$${from + index}::${type}[]`).join(', ');
  return `unnest(${arrays}) AS v (${columns.map(([name]) => name).join(', ')})`;
}

/** Counts unsettled charges of the payer of `row` on its network, up to its limit. Binds the time at `$1`. */
function unsettled(schema: string, row: string): string {
  return `(SELECT count(*) FROM (
    SELECT 1 FROM ${schema}.charges AS o WHERE o.is_open AND o.payer = ${row}.payer AND o.network = ${row}.network
      AND CASE o.state WHEN 'claimed' THEN o.lease_until > $1::int8
          ELSE coalesce(o.deadline * 1000, o.claimed_at + ${NO_DEADLINE_MS}) > $1::int8 - ${OVERDUE_MS} END
    LIMIT ${row}.room) AS few)`;
}

/**
 * Counts the passes of a payer and plan of `row` that are good, and the purchases that may open one, but the charge with `id`, which
 * is an expression.
 */
function passesOf(schema: string, row: string, id: string, now: string): string {
  return `((SELECT count(*) FROM ${schema}.passes AS p WHERE p.payer = ${row}.payer AND p.plan = ${row}.plan
        AND p.ends_at > ${now}::int8 AND p.revoked_at IS NULL AND p.is_used_up = 0)
    + (SELECT count(*) FROM ${schema}.charges AS o WHERE o.is_open AND o.payer = ${row}.payer AND o.id <> ${id}
        AND o.pass IS NOT NULL AND o.pass::json ->> 'plan' = ${row}.plan
        AND (o.state = 'settling' OR o.lease_until > ${now}::int8)))`;
}

/** Counts `moves`: rows of (state, by). Binds the shard at `$2`. */
function counting(schema: string, moves: string): string {
  return `INSERT INTO ${schema}.charge_counts AS t (state, shard, charges)
    SELECT state, $2::int2, sum(by) FROM (${moves}) AS moves (state, by) GROUP BY state HAVING sum(by) <> 0 ORDER BY state
    ON CONFLICT (state, shard) DO UPDATE SET charges = t.charges + excluded.charges`;
}

/** Columns of a charge that an event holds. */
const TOLD = ALL.filter((name) => !UNLISTED.has(name));
/** Columns of the charge `of` that `TOLD_JSON` reads. */
const toldColumns = (of: string): string =>
  `${of}.seq, ${of}.event_sequence, ${TOLD.map((name) => `${of}.${name}`).join(', ')}, (${of}.answer_status IS NOT NULL)::int AS has_answer`;
/** The columns of the charge `x` as lists read them, in JSON: `readListed` reads it. An amount may be no number of JSON. */
const TOLD_JSON = `(SELECT row_to_json(r) FROM (SELECT x.seq, ${TOLD.map((name) =>
  DIGESTS.has(name)
    ? `encode(x.${name}, 'hex') AS ${name}`
    : `x.${name}${TYPES.get(name) === 'numeric' ? '::text' : ''} AS ${name}`,
).join(', ')}, x.has_answer) AS r)::text`;

/** Writes the event `type` of the charges that `from` has, with a delivery for each endpoint that wants it. */
function hooking(schema: string, type: ChargeEventType, from: string): string {
  const values = `'${type}', x.updated_at, x.id, x.event_sequence, ${TOLD_JSON}`;
  return queueing(schema, `SELECT ${values} FROM ${from} AS x WHERE ${isWanted(schema, `'${type}'`)}`);
}

/** Counts one more event of a charge if an endpoint wants it. */
function oneMore(schema: string, type: ChargeEventType): string {
  return `${isWanted(schema, `'${type}'`)}::int`;
}

/** Writes changes of state down while somebody watches. Binds the time at `$1`. */
function telling(schema: string, values: string, from: string): string {
  return `INSERT INTO ${schema}.charge_changes (charge_id, state, at) SELECT ${values}, $1::int8 FROM ${from}
    WHERE EXISTS (SELECT 1 FROM ${schema}.charge_watch WHERE one = 1 AND watched_until > $1::int8)`;
}

/**
 * Binds the time, the shard, then for each charge its place, its payer's limit, the plan of the pass that it buys, its
 * credential and `allValues`. Known
 * payments and taken ids do not count against the limit. New ones count after those in the table and those before them
 * in the batch.
 */
function insertSql(schema: string): string {
  const columns = [
    ...([
      ['n', 'int8'],
      ['room', 'int8'],
      ['plan', 'text'],
      ['credential', 'text'],
    ] as const),
    ...ALL.map(typed),
  ] as const;
  const targets = [...ALL, 'credential'];
  return `WITH fresh AS (
    SELECT v.*, row_number() OVER (PARTITION BY v.payer, v.network ORDER BY v.n) AS place,
      row_number() OVER (PARTITION BY v.payer, v.plan ORDER BY v.n) AS pass_place FROM ${rowsOf(columns, 3)}
    WHERE NOT EXISTS (SELECT 1 FROM ${schema}.charges AS k WHERE k.payer = v.payer AND k.unique_key = v.unique_key
        AND k.network = v.network AND k.asset = v.asset)
      AND NOT EXISTS (SELECT 1 FROM ${schema}.charges AS k WHERE k.id = v.id)
  ), made AS (
    INSERT INTO ${schema}.charges AS c (${targets.join(', ')}, event_sequence)
    SELECT ${targets.map(written).join(', ')}, ${oneMore(schema, 'charge.claimed')} FROM fresh AS v
    WHERE v.place + ${unsettled(schema, 'v')} <= v.room
      AND CASE WHEN v.plan IS NULL THEN true ELSE v.pass_place + ${passesOf(schema, 'v', 'v.id', '$1')} <= ${PASSES_OF_A_PAYER} END
    ORDER BY v.payer, v.unique_key, v.network, v.asset
    ON CONFLICT DO NOTHING RETURNING ${toldColumns('c')}
  ), counted AS (${counting(schema, 'SELECT state, count(*) FROM made GROUP BY state')}),
  told AS (${telling(schema, 'made.id, made.state', 'made')}),
  ${hooking(schema, 'charge.claimed', 'made')}
  SELECT id FROM made`;
}

/** Condition that the transfer of a refund paid for no charge. A payment whose place is not known may be any of its transaction. */
function provesNoPayment(schema: string): string {
  return `NOT EXISTS (SELECT 1 FROM ${schema}.charges AS k WHERE k.settled_transaction = v.refund_transaction
    AND k.network = c.network AND (k.settled_log_index IS NULL OR k.settled_log_index = v.refund_log_index))`;
}

/** Condition that the transfer of a payment proves no refund. */
function provesNoRefund(schema: string): string {
  return `NOT EXISTS (SELECT 1 FROM ${schema}.refund_proofs AS r WHERE r.network = c.network
    AND r.transaction_id = v.settled_transaction AND r.log_index = v.settled_log_index)`;
}

/** Columns of a changed charge that counts and sums are made of. */
const SUMMED =
  'c.id, c.seq, c.route_id, c.price_currency, c.network, c.asset, c.asset_decimals, c.amount, c.settled_at';

/** Columns of the pass that a change opens, and of its first draw, by their names among those of the change. */
const OPENED = [
  ...PASS_COLUMNS.map((name) => [`pass_${name}`, name] as const),
  ...DRAW_COLUMNS.map((name) => [`draw_${name}`, name] as const),
];

/** Writes the rows of `done` that have an id under `prefix`. */
function opening(schema: string, table: string, prefix: string, columns: readonly string[]): string {
  const values = columns.map((name) => `${prefix}${name}`).join(', ');
  return `${table}_opened AS (INSERT INTO ${schema}.${table} (${columns.join(', ')}) SELECT ${values} FROM done
    WHERE ${prefix}id IS NOT NULL ON CONFLICT DO NOTHING)`;
}

/**
 * Binds the time, the shard, the shift of the clock, and until when nothing is taken from an owner. Then for each
 * change its place, id and version, and the values that it sets. A claim also has its payer's limit, and a change by
 * another than the owner the lease. A change that takes from another owner compares the lease with the database's
 * clock.
 */
function updateSql(schema: string, kind: ChangeKindOfRow): string {
  const changed = kind.columns.flatMap((index) => ALL[index] ?? []);
  const answer = kind.setsAnswer ? ANSWER : [];
  const audited = kind.isAudited ? AUDIT_COLUMNS.map((name) => `audit_${name}`) : [];
  const opened = kind.opensPass ? OPENED : [];
  const columns: (readonly [string, string])[] = [
    ['n', 'int8'],
    ['of_id', 'text'],
    ['of_version', 'int8'],
    ...(kind.isOwner ? [] : [['of_lease', 'int8'] as const]),
    ...(kind.hasRoom ? [['room', 'int8'] as const] : []),
    ...(kind.buysPass ? [['plan', 'text'] as const] : []),
    ...(kind.setsCredential ? [['credential', 'text'] as const] : []),
    ...answer.map(typed),
    ...changed.map(typed),
    ...audited.map((name): [string, string] => [name, name === 'audit_at' ? 'int8' : 'text']),
    ...opened.map(([name, column]): [string, string] => [name, typeOf(column)]),
    ...(kind.isRefund ? [['refund_amount', 'numeric'] as const, ['refund_at', 'int8'] as const] : []),
    ...(kind.isProvenRefund ? [['refund_transaction', 'text'] as const, ['refund_log_index', 'int8'] as const] : []),
  ];
  const refund = [
    ...(kind.isRefund ? ['refund_amount', 'refund_at'] : []),
    ...(kind.isProvenRefund ? ['refund_transaction', 'refund_log_index'] : []),
  ];
  const sets = [...(kind.setsCredential ? ['credential'] : []), ...answer, ...changed];
  const parts = [
    `done AS (UPDATE ${schema}.charges AS c SET ${[
      'version = c.version + 1',
      ...(kind.tells === null ? [] : [`event_sequence = c.event_sequence + ${oneMore(schema, kind.tells)}`]),
      ...sets.map((name) => `${name} = ${written(name)}`),
    ].join(', ')}
      FROM ${rowsOf(columns, 5)} WHERE c.id = v.of_id AND c.version = v.of_version
      ${
        kind.isOwner
          ? ''
          : `AND c.lease_until = v.of_lease
          AND CASE WHEN c.owner IS NULL THEN c.lease_until ELSE greatest(c.lease_until, $4::int8) END <= ${CLOCK} + $3::int8`
      }
      ${kind.hasRoom ? `AND ${unsettled(schema, 'v')} < v.room` : ''}
      ${kind.buysPass ? `AND ${passesOf(schema, 'v', 'v.of_id', '$1')} < ${PASSES_OF_A_PAYER}` : ''}
      ${kind.isProvenRefund ? `AND ${provesNoPayment(schema)}` : ''}
      ${changed.includes('settled_log_index') ? `AND ${provesNoRefund(schema)}` : ''}
      AND $4::int8 IS NOT NULL AND $3::int8 IS NOT NULL AND $1::int8 IS NOT NULL
      RETURNING v.n, ${kind.tells === null ? SUMMED : toldColumns('c')}
        ${[...audited, ...opened.map(([name]) => name), ...refund].map((name) => `, v.${name}`).join('')})`,
  ];
  if (kind.opensPass)
    parts.push(opening(schema, 'passes', 'pass_', PASS_COLUMNS), opening(schema, 'pass_draws', 'draw_', DRAW_COLUMNS));
  // The time of the change is that of the refund.
  if (kind.revokesPass)
    parts.push(
      `revoked AS (UPDATE ${schema}.passes AS p SET revoked_at = $1::int8 FROM done
        WHERE p.id = 'pass_' || substr(done.id, 5) AND p.revoked_at IS NULL)`,
    );
  if (kind.isAudited)
    parts.push(
      `noted AS (INSERT INTO ${schema}.audit (${AUDIT_COLUMNS.join(', ')}) SELECT ${audited.join(', ')} FROM done)`,
    );
  if (kind.before !== kind.after) {
    const moves = `SELECT '${kind.before}', -count(*) FROM done UNION ALL SELECT '${kind.after}', count(*) FROM done`;
    parts.push(`counted AS (${counting(schema, moves)})`);
    parts.push(`told AS (${telling(schema, `done.id, '${kind.after}'`, 'done')})`);
    if (kind.after === 'settled')
      parts.push(
        `waits AS (INSERT INTO ${schema}.charges_undelivered (seq) SELECT seq FROM done ON CONFLICT DO NOTHING)`,
      );
    if (kind.before === 'settled')
      parts.push(`over AS (DELETE FROM ${schema}.charges_undelivered WHERE seq IN (SELECT seq FROM done))`);
  } else parts.push('shard AS (SELECT $2::int2)');
  if (kind.tells !== null) parts.push(hooking(schema, kind.tells, 'done'));
  if (kind.isProvenRefund)
    parts.push(
      `proven AS (INSERT INTO ${schema}.refund_proofs (network, transaction_id, log_index, charge_id)
        SELECT network, refund_transaction, refund_log_index, id FROM done)`,
    );
  if (kind.isRefund)
    parts.push(
      `refunded AS (INSERT INTO ${schema}.refund_sums AS t
        (hour, route_id, currency, network, asset, asset_decimals, refunds, amount)
      SELECT refund_at / 3600000 AS hour, route_id, price_currency, network, asset, asset_decimals, count(*), sum(refund_amount)
      FROM done GROUP BY 1, 2, 3, 4, 5, 6 ORDER BY 1, 2, 3, 4, 5, 6
      ON CONFLICT (hour, route_id, currency, network, asset, asset_decimals)
      DO UPDATE SET refunds = t.refunds + excluded.refunds, amount = t.amount + excluded.amount)`,
    );
  if (kind.isSettled)
    parts.push(
      `summed AS (INSERT INTO ${schema}.charge_sums AS t
        (hour, route_id, currency, network, asset, asset_decimals, shard, charges, amount)
      SELECT settled_at / 3600000 AS hour, route_id, price_currency, network, asset, asset_decimals, $2::int2, count(*), sum(amount)
      FROM done GROUP BY 1, 2, 3, 4, 5, 6 ORDER BY 1, 2, 3, 4, 5, 6
      ON CONFLICT (hour, route_id, currency, network, asset, asset_decimals, shard)
      DO UPDATE SET charges = t.charges + excluded.charges, amount = t.amount + excluded.amount)`,
      `totalled AS (INSERT INTO ${schema}.charge_totals AS t
        (step, start, route_id, currency, network, asset, asset_decimals, shard, charges, amount)
      SELECT k.step, k.start, k.route_id, price_currency, k.network, k.asset, asset_decimals, $2::int2, count(*), sum(amount)
      FROM done CROSS JOIN LATERAL (VALUES ('minute', settled_at / 60000, '', network, asset),
        ('hour', settled_at / 3600000, '', network, asset), ('day', settled_at / 86400000, '', network, asset),
        ('day', settled_at / 86400000, route_id, '', '')) AS k (step, start, route_id, network, asset)
      GROUP BY 1, 2, 3, 4, 5, 6, 7 ORDER BY 1, 2, 3, 4, 5, 6, 7
      ON CONFLICT (step, start, route_id, currency, network, asset, asset_decimals, shard)
      DO UPDATE SET charges = t.charges + excluded.charges, amount = t.amount + excluded.amount)`,
    );
  return `WITH ${parts.join(', ')} SELECT n FROM done`;
}
