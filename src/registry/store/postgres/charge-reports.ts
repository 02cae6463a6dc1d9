// Reports on the ledger's store: lists, sums and counts. Reads only, on a connection of their own, so that a dashboard that
// looks through a million charges delays no claim.
import { UNKNOWN_MS } from '../../../domain/attention/judgements.ts';
import { NO_DEADLINE_MS, type ChargeState } from '../../../domain/payment/charge.ts';
import { CHARGE_STATES } from '../../../domain/payment/charge-fields.ts';
import type { Fault } from '../../../domain/payment/claim-policy.ts';
import type {
  ChargeFilter,
  ChargePage,
  ChargeReports,
  ChargeSearch,
  ListedCharge,
} from '../../../domain/payment/reports.ts';
import { addUp, HOUR_MS, sumOwed, sumRefunds } from '../charge-sums.ts';
import { readChange, readHistory, readListed } from '../charge-values.ts';
import { integer, nullableInteger, text, type Row } from '../rows.ts';
import { conditionsOf, readPage, whereOf, type AskReader } from './charge-lists.ts';
import { LISTED, type ChargeSql } from './charge-sql.ts';

/** `once`: for statements that are planned anew for what they bind. */
export type Readers = { readonly ask: AskReader; readonly once: AskReader };

export function createReports(
  sql: ChargeSql,
  { ask, once }: Readers,
  now: () => number,
): Omit<ChargeReports, 'watchChanges'> {
  const { schema, charges } = sql;
  const select = `SELECT ${LISTED} FROM ${charges} AS c`;
  const readOwed = async (filter: Partial<ChargeFilter>): Promise<readonly OwedRow[]> => {
    const { where, values } = await conditionsOf(once, charges, filter);
    const maybe = whereOf([...where, "c.state = 'settled'", 'c.refunded_at IS NULL']);
    const { rows } = await once(
      `${select} JOIN ${schema}.charges_undelivered USING (seq) ${maybe} ORDER BY c.seq DESC`,
      values,
    );
    const at = now();
    return rows.flatMap((row) => {
      const charge = readListed(row, at);
      return charge.owed === null ? [] : [{ seq: integer(row, 'seq'), charge, owed: charge.owed }];
    });
  };

  return {
    list: async (filter) => {
      if (filter.owed === true) return listOwed(filter, readOwed);
      const rows = await readPage(once, sql, filter);
      const page = rows.slice(0, filter.limit);
      const last = page.at(-1);
      return {
        charges: page.map((row) => readListed(row, now())),
        nextBefore: rows.length > filter.limit && last ? integer(last, 'seq') : undefined,
      };
    },
    get: async (id) => {
      const { rows } = await ask(`${select} WHERE c.id = $1`, [id]);
      return rows[0] && readListed(rows[0], now());
    },
    history: async (id) => {
      const { rows } = await ask(`SELECT c.events, ${LISTED} FROM ${charges} AS c WHERE c.id = $1`, [id]);
      return rows[0] && readHistory(rows[0], now());
    },
    changesAfter: async (n, limit) => {
      const { rows } = await ask(
        `SELECT w.n, w.charge_id, c.route_id, w.state, w.at FROM ${schema}.charge_changes AS w
         JOIN ${charges} AS c ON c.id = w.charge_id WHERE w.n > $1 ORDER BY w.n LIMIT $2`,
        [n, limit],
      );
      return rows.map(readChange);
    },
    search: async (search, limit) =>
      (await searchRows(select, ask, search, limit)).map((row) => readListed(row, now())),
    alarms: async () => {
      const { rows } = await ask(
        `SELECT min(CASE WHEN deadline IS NULL THEN claimed_at + ${NO_DEADLINE_MS} ELSE deadline * 1000 END) AS ends_at,
           count(*) FILTER (WHERE claimed_at < $1) AS unknown, min(claimed_at) FILTER (WHERE claimed_at < $1) AS unknown_since
         FROM ${charges} WHERE is_open AND state = 'settling'`,
        [now() - UNKNOWN_MS],
      );
      const owed = sumOwed(await readOwed({}));
      const row = rows[0] ?? { ends_at: null, unknown: 0, unknown_since: null };
      const unknown = { count: integer(row, 'unknown'), since: nullableInteger(row, 'unknown_since') };
      return { owed, settlingEndsAt: nullableInteger(row, 'ends_at'), unknown };
    },
    summary: async (query) => {
      const { fromMs, toMs, routeId, currency } = query;
      const { rows } = await ask(
        `SELECT hour, route_id, currency, network, asset, asset_decimals, sum(charges)::int8 AS charges, sum(amount) AS amount,
           sum(refunded) AS refunded
         FROM (
           SELECT hour, route_id, currency, network, asset, asset_decimals, charges, amount, 0 AS refunded FROM ${schema}.charge_sums
           UNION ALL
           SELECT hour, route_id, currency, network, asset, asset_decimals, 0, 0, amount FROM ${schema}.refund_sums
         ) AS sums WHERE hour >= $1 AND hour < $2 AND ($3::text IS NULL OR route_id = $3)
           AND ($4::text IS NULL OR currency = $4)
         GROUP BY hour, route_id, currency, network, asset, asset_decimals ORDER BY hour`,
        [Math.floor(fromMs / HOUR_MS), Math.ceil(toMs / HOUR_MS), routeId ?? null, currency ?? null],
      );
      return addUp(rows, query);
    },
    refunded: async () => {
      const { rows } = await ask(
        `SELECT currency, asset_decimals, sum(amount) AS amount FROM ${schema}.refund_sums GROUP BY currency, asset_decimals`,
        [],
      );
      return sumRefunds(rows);
    },
    countByState: async () => {
      const { rows } = await ask(
        `SELECT state, sum(charges)::int8 AS charges FROM ${schema}.charge_counts GROUP BY state`,
        [],
      );
      const counts = new Map(rows.map((row) => [text(row, 'state'), integer(row, 'charges')]));
      const count = (state: ChargeState): [ChargeState, number] => [state, counts.get(state) ?? 0];
      return Object.fromEntries(CHARGE_STATES.map(count)) as Record<ChargeState, number>;
    },
  };
}

type OwedRow = { readonly seq: number; readonly charge: ListedCharge; readonly owed: Fault };

async function listOwed(
  filter: ChargeFilter,
  readOwed: (filter: ChargeFilter) => Promise<readonly OwedRow[]>,
): Promise<ChargePage> {
  if (filter.states?.includes('settled') === false) return { charges: [], nextBefore: undefined };
  const rows = await readOwed({ ...filter, states: undefined });
  const page = rows.slice(0, filter.limit);
  return {
    charges: page.map(({ charge }) => charge),
    nextBefore: rows.length > filter.limit ? page.at(-1)?.seq : undefined,
  };
}

/** Length of the `chg_` that begins every id. */
const LEAST_START = 4;

/** Searches by the index of ids first; if that holds nothing every charge is looked at. */
async function searchRows(
  select: string,
  ask: AskReader,
  { idPart, requestId, transaction }: ChargeSearch,
  limit: number,
): Promise<readonly Row[]> {
  const { start, end } = { start: idPart?.start ?? '', end: idPart?.end ?? '' };
  const order = 'ORDER BY c.seq DESC LIMIT';
  if (start.length > LEAST_START) {
    const endsSo = "($2::text = '' OR right(c.id, length($2)) = $2)";
    const found = await ask(`${select} WHERE c.id >= $1 AND c.id < $1 || '~' AND ${endsSo} ${order} $3`, [
      start,
      end,
      limit,
    ]);
    if (found.rows.length > 0) return found.rows;
  }
  const named =
    start.length <= LEAST_START && end !== '' ? 'OR right(c.id, length($2)) = $2' : 'AND $2::text IS NOT NULL';
  const sql = `${select} WHERE c.request_id = $1 OR c.settled_transaction = $3 ${named} ${order} $4`;
  return (await ask(sql, [requestId ?? null, end, transaction ?? null, limit])).rows;
}
