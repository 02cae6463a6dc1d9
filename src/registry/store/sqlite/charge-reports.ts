// Reports on the ledger's store: lists, sums and counts. Reads only, on a connection of their own in a thread of their
// own, so that a dashboard that looks through a million charges delays no claim.
import type { DatabaseSync } from 'node:sqlite';
import { UNKNOWN_MS } from '../../../domain/attention/judgements.ts';
import { NO_DEADLINE_MS, type ChargeState } from '../../../domain/payment/charge.ts';
import { CHARGE_STATES } from '../../../domain/payment/charge-fields.ts';
import type { ChargeHistoryEntry } from '../../../domain/payment/charge-history.ts';
import type { Fault } from '../../../domain/payment/claim-policy.ts';
import type {
  Alarms,
  ChargeChange,
  ChargeFilter,
  ChargePage,
  ChargeSearch,
  ListedCharge,
  RefundedSum,
  Summary,
  SummaryQuery,
} from '../../../domain/payment/reports.ts';
import { addUp, HOUR_MS, sumOwed, sumRefunds } from '../charge-sums.ts';
import { readChange, readHistory, readListed } from '../charge-values.ts';
import { conditionsOf, readPage, rememberStatements, whereOf, type StatementPreparer } from './charge-lists.ts';
import { SELECT_HISTORY, SELECT_LISTED } from './charge-rows.ts';
import { integer, nullableInteger, text, type Row } from '../rows.ts';

export type ChargeReads = {
  readonly list: (filter: ChargeFilter, now: number) => ChargePage;
  readonly get: (id: string, now: number) => ListedCharge | undefined;
  readonly history: (id: string, now: number) => readonly ChargeHistoryEntry[] | undefined;
  readonly changesAfter: (n: number, limit: number) => ChargeChange[];
  readonly search: (search: ChargeSearch, limit: number, now: number) => ListedCharge[];
  readonly alarms: (now: number) => Alarms;
  readonly summary: (query: SummaryQuery) => Summary;
  readonly refunded: () => readonly RefundedSum[];
  readonly countByState: () => Record<ChargeState, number>;
};

export function createChargeReads(db: DatabaseSync, newestWalk?: number): ChargeReads {
  const prepare = rememberStatements(db);
  return {
    list: (filter, now) => {
      if (filter.owed === true) return listOwed(prepare, filter, now);
      const rows = readPage(prepare, filter, newestWalk);
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
    history: (id, now) => {
      const row = prepare(SELECT_HISTORY).get(id);
      return row && readHistory(row, now);
    },
    changesAfter: (n, limit) =>
      prepare(`SELECT n, charge_id, route_id, charge_changes.state, at FROM charge_changes
        JOIN charges ON charges.id = charge_id WHERE n > ? ORDER BY n LIMIT ?`)
        .all(n, limit)
        .map(readChange),
    alarms: (now) => {
      const row = prepare(
        `SELECT min(CASE WHEN deadline IS NULL THEN claimed_at + ${NO_DEADLINE_MS} ELSE deadline * 1000 END) AS ends_at,
           count(CASE WHEN claimed_at < ?1 THEN 1 END) AS unknown, min(CASE WHEN claimed_at < ?1 THEN claimed_at END) AS unknown_since
         FROM charges INDEXED BY charges_unsettled WHERE state IN ('claimed', 'settling') AND state = 'settling'`,
      ).get(now - UNKNOWN_MS);
      return {
        owed: sumOwed(iterateOwed(prepare, {}, now)),
        settlingEndsAt: row ? nullableInteger(row, 'ends_at') : null,
        unknown: {
          count: row ? integer(row, 'unknown') : 0,
          since: row ? nullableInteger(row, 'unknown_since') : null,
        },
      };
    },
    summary: (query) => summarise(prepare, query),
    refunded: () => sumRefunds(prepare('SELECT currency, asset_decimals, amount FROM refund_sums').iterate()),
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

const MAYBE_OWED =
  "(state = 'settled' OR state = 'released' OR state = 'failed') AND state = 'settled' AND refunded_at IS NULL";

/** Yields charges that are owed. Few are settled and not delivered: the usual rule decides which of them are owed. */
function* iterateOwed(prepare: StatementPreparer, filter: Partial<ChargeFilter>, now: number): Generator<ListedRow> {
  const { where, values } = conditionsOf(prepare, filter);
  const sql = `${SELECT_LISTED} INDEXED BY charges_ended ${whereOf({ where: [...where, MAYBE_OWED] })}`;
  for (const row of prepare(`${sql} ORDER BY seq DESC`).iterate(values)) {
    const charge = readListed(row, now);
    if (charge.owed !== null) yield { seq: integer(row, 'seq'), charge, owed: charge.owed };
  }
}
type ListedRow = { readonly seq: number; readonly charge: ListedCharge; readonly owed: Fault };

function listOwed(prepare: StatementPreparer, filter: ChargeFilter, now: number): ChargePage {
  if (filter.states?.includes('settled') === false) return { charges: [], nextBefore: undefined };
  const rows: ListedRow[] = [];
  for (const row of iterateOwed(prepare, { ...filter, states: undefined }, now)) {
    rows.push(row);
    if (rows.length > filter.limit) break;
  }
  const page = rows.slice(0, filter.limit);
  return {
    charges: page.map(({ charge }) => charge),
    nextBefore: rows.length > filter.limit ? page.at(-1)?.seq : undefined,
  };
}

/** Searches by the index of ids first; if that holds nothing every charge is looked at. */
function searchRows(
  prepare: StatementPreparer,
  { idPart, requestId, transaction }: ChargeSearch,
  limit: number,
): Row[] {
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

/** Length of the `chg_` that begins every id. */
const LEAST_START = 4;

function summarise(prepare: StatementPreparer, query: SummaryQuery): Summary {
  const { fromMs, toMs, routeId, currency } = query;
  const rows = prepare(
    `SELECT hour, route_id, currency, network, asset, asset_decimals, charges, amount, '0' AS refunded FROM charge_sums
     WHERE hour >= ?1 AND hour < ?2 AND (?3 IS NULL OR route_id = ?3) AND (?4 IS NULL OR currency = ?4)
     UNION ALL SELECT hour, route_id, currency, network, asset, asset_decimals, 0, '0', amount FROM refund_sums
     WHERE hour >= ?1 AND hour < ?2 AND (?3 IS NULL OR route_id = ?3) AND (?4 IS NULL OR currency = ?4) ORDER BY hour`,
  ).iterate(Math.floor(fromMs / HOUR_MS), Math.ceil(toMs / HOUR_MS), routeId ?? null, currency ?? null);
  return addUp(rows, query);
}
