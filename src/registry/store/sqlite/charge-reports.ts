// Reports on the ledger's store: lists, sums and counts. Reads only, on a connection of their own in a thread of their
// own, so that a dashboard that looks through a million charges delays no claim.
import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite';
import { isUnsettled, NO_DEADLINE_MS, type ChargeState } from '../../../domain/payment/charge.ts';
import { CHARGE_STATES } from '../../../domain/payment/charge-fields.ts';
import type { Fault } from '../../../domain/payment/claim-policy.ts';
import type {
  Alarms,
  ChargeFilter,
  ChargePage,
  ChargeSearch,
  ListedCharge,
  Summary,
  SummaryQuery,
} from '../../../domain/payment/reports.ts';
import { addUp, HOUR_MS, sumOwed } from '../charge-sums.ts';
import { readListed } from '../charge-values.ts';
import { SELECT_LISTED, SEQS_OF_PAYER } from './charge-rows.ts';
import { integer, nullableInteger, text, type Row } from '../rows.ts';

export type ChargeReads = {
  readonly list: (filter: ChargeFilter, now: number) => ChargePage;
  readonly get: (id: string, now: number) => ListedCharge | undefined;
  readonly search: (search: ChargeSearch, limit: number, now: number) => ListedCharge[];
  readonly alarms: (now: number) => Alarms;
  readonly summary: (query: SummaryQuery) => Summary;
  readonly countByState: () => Record<ChargeState, number>;
};

/** Charges that are looked through for a payer before the index is. */
const PAYER_WALK = 20_000;

export function createChargeReads(db: DatabaseSync, payerWalk = PAYER_WALK): ChargeReads {
  const prepare = remember((sql) => db.prepare(sql));
  return {
    list: (filter, now) => {
      if (filter.owed === true) return listOwed(prepare, filter, now);
      const rows = readRows(prepare, filter, payerWalk);
      const page = rows.slice(0, filter.limit);
      const last = page.at(-1);
      return {
        charges: page.map((row) => readListed(row, now)),
        nextBefore: rows.length > filter.limit && last ? integer(last, 'seq') : undefined,
      };
    },
    search: (search, limit, now) => searchRows(prepare, search, limit).map((row) => readListed(row, now)),
    get: (id, now) => {
      const row = prepare(`${SELECT_LISTED} WHERE id = ?`).get(id);
      return row && readListed(row, now);
    },
    alarms: (now) => {
      const row = prepare(
        `SELECT min(CASE WHEN deadline IS NULL THEN claimed_at + ${NO_DEADLINE_MS} ELSE deadline * 1000 END) AS ends_at
         FROM charges INDEXED BY charges_unsettled WHERE state IN ('claimed', 'settling') AND state = 'settling'`,
      ).get();
      return {
        owed: sumOwed(iterateOwed(prepare, { limit: 0 }, now)),
        settlingEndsAt: row ? nullableInteger(row, 'ends_at') : null,
      };
    },
    summary: (query) => summarise(prepare, query),
    countByState: () => {
      const counts = new Map(
        prepare('SELECT state, charges FROM charge_counts')
          .all()
          .map((row) => [text(row, 'state'), integer(row, 'charges')]),
      );
      const count = (state: ChargeState): [ChargeState, number] => [state, counts.get(state) ?? 0];
      return Object.fromEntries(CHARGE_STATES.map(count)) as Record<ChargeState, number>;
    },
  };
}

type Prepare = (sql: string) => StatementSync;

/** The texts are made from the fixed parts below: there are few of them. */
function remember(prepare: Prepare): Prepare {
  const known = new Map<string, StatementSync>();
  return (sql) => {
    let statement = known.get(sql);
    if (statement === undefined) known.set(sql, (statement = prepare(sql)));
    return statement;
  };
}

const MAYBE_OWED =
  "(state = 'settled' OR state = 'released' OR state = 'failed') AND state = 'settled' AND refunded_at IS NULL";

/** Of charges that are settled and not delivered there are few: whether one is owed is decided where it always is. */
function* iterateOwed(prepare: Prepare, filter: Pick<ChargeFilter, 'limit'>, now: number): Generator<ListedRow> {
  const { where, values } = conditions(filter);
  const sql = `${SELECT_LISTED} INDEXED BY charges_ended ${where === '' ? 'WHERE' : `${where} AND`} ${MAYBE_OWED}`;
  for (const row of prepare(`${sql} ORDER BY seq DESC`).iterate(...values)) {
    const charge = readListed(row, now);
    if (charge.owed !== null) yield { seq: integer(row, 'seq'), charge, owed: charge.owed };
  }
}
type ListedRow = { readonly seq: number; readonly charge: ListedCharge; readonly owed: Fault };

function listOwed(prepare: Prepare, filter: ChargeFilter, now: number): ChargePage {
  if (filter.state !== undefined && filter.state !== 'settled') return { charges: [], nextBefore: undefined };
  const rows: ListedRow[] = [];
  for (const row of iterateOwed(prepare, { ...filter, state: undefined } as ChargeFilter, now)) {
    rows.push(row);
    if (rows.length > filter.limit) break;
  }
  const page = rows.slice(0, filter.limit);
  return {
    charges: page.map(({ charge }) => charge),
    nextBefore: rows.length > filter.limit ? page.at(-1)?.seq : undefined,
  };
}

/** Newest first, one more than the page holds if there is one. */
function readRows(prepare: Prepare, filter: ChargeFilter, payerWalk: number): Row[] {
  const { where, values } = conditions(filter);
  const limit = filter.limit + 1;
  const open = filter.state !== undefined && isUnsettled(filter.state);
  if (filter.payer === undefined || open) {
    // The few that are open among the many that are not: without the hint the whole table is walked for them.
    const hint = open ? 'INDEXED BY charges_unsettled' : '';
    return prepare(`${SELECT_LISTED} ${hint} ${where} ORDER BY seq DESC LIMIT ?`).all(...values, limit);
  }
  // The index of payments has a payer's together and in no order, so that a payment writes nothing for this
  // list. A frequent payer is found among the newest; of any other the index holds few enough to be sorted.
  const newest =
    filter.before ?? integer(prepare('SELECT coalesce(max(seq), 0) + 1 AS next FROM charges').get() ?? {}, 'next');
  const floor = newest - payerWalk;
  const near = prepare(`${SELECT_LISTED} NOT INDEXED ${where} AND seq >= ? ORDER BY seq DESC LIMIT ?`);
  const rows = near.all(...values, floor, limit);
  if (rows.length === limit || floor <= 1) return rows;
  const one = prepare(`${SELECT_LISTED} ${where} AND seq = ?`);
  for (const { seq } of prepare(SEQS_OF_PAYER).iterate(filter.payer, floor)) {
    const row = one.get(...values, seq ?? null);
    if (row !== undefined && rows.push(row) === limit) break;
  }
  return rows;
}

/** By the index of ids first; if that holds nothing every charge is looked at. */
function searchRows(prepare: Prepare, { idPart, requestId, transaction }: ChargeSearch, limit: number): Row[] {
  const { start, end } = idPart ?? { start: '', end: '' };
  const endsSo = "(?2 = '' OR substr(id, -length(?2)) = ?2)";
  if (start.length > LEAST_START) {
    const sql = `${SELECT_LISTED} WHERE id >= ?1 AND id < ?1 || '~' AND ${endsSo} ORDER BY seq DESC LIMIT ?3`;
    const rows = prepare(sql).all(start, end, limit);
    if (rows.length > 0) return rows;
  }
  const named = start.length <= LEAST_START && end !== '' ? 'OR substr(id, -length(?2)) = ?2' : '';
  const sql = `${SELECT_LISTED} WHERE request_id = ?1 OR settled_transaction = ?3 ${named} ORDER BY seq DESC LIMIT ?4`;
  return prepare(sql).all(requestId ?? null, end, transaction ?? null, limit);
}

/** `chg_` begins every id. */
const LEAST_START = 4;

function conditions(filter: ChargeFilter): { where: string; values: SQLInputValue[] } {
  const asked: readonly [string, SQLInputValue | undefined][] = [
    ['seq < ?', filter.before],
    [inState(filter.state), filter.state],
    ['route_id = ?', filter.routeId],
    ['network = ?', filter.network],
    ['payer = ?', filter.payer],
    ['customer_id = ?', filter.customerId],
    ['created_at >= ?', filter.fromMs],
    ['created_at < ?', filter.toMs],
  ];
  const given = asked.flatMap(([condition, value]) => (value === undefined ? [] : [{ condition, value }]));
  return {
    where: given.length === 0 ? '' : `WHERE ${given.map(({ condition }) => condition).join(' AND ')}`,
    values: given.map(({ value }) => value),
  };
}

/** Names the condition of the partial index that holds the state; delivered charges are the many, and need none. */
function inState(state: ChargeState | undefined): string {
  if (state !== undefined && isUnsettled(state)) return "state IN ('claimed', 'settling') AND state = ?";
  return state === 'delivered'
    ? 'state = ?'
    : "(state = 'settled' OR state = 'released' OR state = 'failed') AND state = ?";
}

function summarise(prepare: Prepare, query: SummaryQuery): Summary {
  const { fromMs, toMs, routeId, currency } = query;
  const rows = prepare(
    `SELECT hour, route_id, currency, network, asset, asset_decimals, charges, amount FROM charge_sums
     WHERE hour >= ? AND hour < ? AND (?3 IS NULL OR route_id = ?3) AND (?4 IS NULL OR currency = ?4) ORDER BY hour`,
  ).iterate(Math.floor(fromMs / HOUR_MS), Math.ceil(toMs / HOUR_MS), routeId ?? null, currency ?? null);
  return addUp(rows, query);
}
