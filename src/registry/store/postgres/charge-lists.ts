// Lists of charges on PostgreSQL, newest first, by whatever people look for. The database knows which charges are few and
// which are many, and plans each list anew for what it binds. Named here is only what it cannot know: which part of the
// table holds a state, and which numbers a range of times has.
import { isUnsettled, type ChargeState } from '../../../domain/payment/charge.ts';
import type { ChargeFilter } from '../../../domain/payment/reports.ts';
import { searchSeqRange, type SeqRange } from '../seq-search.ts';
import { integer, type Row } from '../rows.ts';
import { LISTED, type ChargeSql } from './charge-sql.ts';
import type { Answer } from './connection.ts';

/** Asks one statement by itself. A NUL in a value, which no text of the database holds, is found nowhere. */
export type AskReader = (text: string, values: readonly unknown[]) => Promise<Answer>;

type Conditions = { readonly where: readonly string[]; readonly values: readonly unknown[] };

/** Charges that are few enough to be sorted. */
const FEW = 1_000;
/** A character that sorts after every character of an id, so that it ends a range of ids with the same beginning. */
const AFTER_IDS = '~';

/** Rows of a page, and one more if there is one. */
export async function readPage(
  once: AskReader,
  { schema, charges }: Pick<ChargeSql, 'schema' | 'charges'>,
  filter: ChargeFilter,
): Promise<readonly Row[]> {
  const { where, values } = await conditionsOf(once, charges, filter);
  const count = filter.limit + 1;
  const ask = async (more: readonly string[]): Promise<readonly Row[]> => {
    const sql = `SELECT ${LISTED} FROM ${charges} AS c ${whereOf([...where, ...more])}`;
    return (await once(`${sql} ORDER BY c.seq DESC LIMIT ${count}`, values)).rows;
  };
  const { idStart, states } = filter;
  if (idStart !== undefined) return ask(await fewWithStart(once, charges, idStart));
  if (states === undefined || states.includes('delivered')) return ask([]);
  const parts = [...new Set(states.map((state) => partOf(schema, state)))];
  const pages: Row[] = [];
  // The newest of all are among the newest of each.
  for (const part of parts) pages.push(...(await ask([part])));
  return pages.toSorted((a, b) => integer(b, 'seq') - integer(a, 'seq')).slice(0, count);
}

/** All of a filter as conditions on a row. */
export async function conditionsOf(
  once: AskReader,
  charges: string,
  filter: Partial<ChargeFilter>,
): Promise<Conditions> {
  const { from, before } = await seqRangeOf(once, charges, filter);
  const values: unknown[] = [];
  const asked: readonly (readonly [string, unknown])[] = [
    ['c.seq < ?', filter.before],
    ['c.seq >= ?', from],
    ['c.seq < ?', before],
    ['c.state = ANY (?::text[])', filter.states],
    ['c.route_id = ?', filter.routeId],
    ['c.network = ?', filter.network],
    ['c.payer = ?', filter.payer],
    ['c.customer_id = ?', filter.customerId],
    ['c.request_id = ?', filter.requestId],
    ['c.settled_transaction = ?', filter.transaction],
    ['c.price_currency = ?', filter.currency],
    ['c.receiver_id = ?', filter.receiverId],
    [`c.id >= ? AND c.id < ? || '${AFTER_IDS}'`, filter.idStart],
    ['c.created_at >= ?', filter.fromMs],
    ['c.created_at < ?', filter.toMs],
  ];
  const where = asked.flatMap(([condition, value]) => {
    if (value === undefined) return [];
    values.push(value);
    return [condition.replaceAll('?', `$${values.length}`)];
  });
  return { where, values };
}

export function whereOf(conditions: readonly string[]): string {
  return conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`;
}

/** Names what an index or a table holds of the few among the many. */
function partOf(schema: string, state: ChargeState): string {
  if (isUnsettled(state)) return 'c.is_open';
  return state === 'settled' ? `c.seq IN (SELECT seq FROM ${schema}.charges_undelivered)` : 'c.unpaid_at IS NOT NULL';
}

/** Ids of one route share their beginning. If those with this one are few, they are named; else they are among the newest. */
async function fewWithStart(once: AskReader, charges: string, idStart: string): Promise<string[]> {
  const { rows } = await once(
    `SELECT seq FROM ${charges} WHERE id >= $1 AND id < $1 || '${AFTER_IDS}' LIMIT ${FEW + 1}`,
    [idStart],
  );
  if (rows.length > FEW) return [];
  return [`c.seq = ANY ('{${rows.map((row) => integer(row, 'seq')).join(',')}}'::int8[])`];
}

async function seqRangeOf(once: AskReader, charges: string, filter: Partial<ChargeFilter>): Promise<SeqRange> {
  if (filter.fromMs === undefined && filter.toMs === undefined) return { from: undefined, before: undefined };
  const { rows } = await once(`SELECT coalesce(max(seq), 0) AS last FROM ${charges}`, []);
  const search = searchSeqRange(filter, integer(rows[0] ?? {}, 'last'));
  for (let step = search.next(); ;) {
    if (step.done === true) return step.value;
    const found = await once(`SELECT seq, created_at FROM ${charges} WHERE seq >= $1 ORDER BY seq LIMIT 1`, [
      step.value,
    ]);
    const [row] = found.rows;
    step = search.next(row && { seq: integer(row, 'seq'), createdAt: integer(row, 'created_at') });
  }
}
