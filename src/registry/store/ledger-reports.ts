// What people ask of the ledger's store: lists, sums and counts. Reads only, on a connection of their own in a thread of
// their own, so that a dashboard that looks through a million charges delays no claim.
import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite';
import { CHARGE_STATES, isUnsettled, type ChargeState } from '../../domain/charge.ts';
import type {
  Bucket,
  ChargeFilter,
  ChargePage,
  ListedCharge,
  Sum,
  Summary,
  SummaryQuery,
} from '../../domain/ledger.ts';
import { readListed, SELECT_LISTED, SEQS_OF_PAYER } from './ledger-rows.ts';
import { DUE } from './ledger-writes.ts';
import { integer, text, type Row } from './rows.ts';

export type LedgerReports = {
  readonly list: (filter: ChargeFilter) => ChargePage;
  readonly get: (id: string) => ListedCharge | undefined;
  readonly due: (limit: number, now: number) => ListedCharge[];
  readonly summary: (query: SummaryQuery) => Summary;
  readonly countByState: () => Record<ChargeState, number>;
};

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** Charges that are looked through for a payer before the index is. */
const PAYER_WALK = 20_000;

export function createLedgerReports(db: DatabaseSync, payerWalk = PAYER_WALK): LedgerReports {
  const prepare = remember((sql) => db.prepare(sql));
  return {
    list: (filter) => {
      const rows = readRows(prepare, filter, payerWalk);
      const page = rows.slice(0, filter.limit);
      const last = page.at(-1);
      return {
        charges: page.map(readListed),
        nextBefore: rows.length > filter.limit && last ? integer(last, 'seq') : undefined,
      };
    },
    get: (id) => {
      const row = prepare(`${SELECT_LISTED} WHERE id = ?`).get(id);
      return row && readListed(row);
    },
    due: (limit, now) => prepare(`${SELECT_LISTED} ${DUE}`).all(now, limit).map(readListed),
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

/** Newest first, one more than the page holds where there is one. */
function readRows(prepare: Prepare, filter: ChargeFilter, payerWalk: number): Row[] {
  const { where, values } = conditions(filter);
  const limit = filter.limit + 1;
  const open = filter.state !== undefined && isUnsettled(filter.state);
  if (filter.payer === undefined || open) {
    // The few that are open among the many that are not: without the hint the whole table is walked for them.
    const hint = open ? 'INDEXED BY charges_unsettled' : '';
    return prepare(`${SELECT_LISTED} ${hint} ${where} ORDER BY seq DESC LIMIT ?`).all(...values, limit);
  }
  // The index of payments has a payer's together and in no order, so that nothing is written for this list when somebody
  // pays. Who pays often is met among the newest; of everybody else the index holds few enough to be sorted.
  const newest =
    filter.before ?? integer(prepare('SELECT coalesce(max(seq), 0) + 1 AS next FROM charges').get() ?? {}, 'next');
  const floor = newest - payerWalk;
  const near = prepare(`${SELECT_LISTED} NOT INDEXED ${where} AND seq >= ? ORDER BY seq DESC LIMIT ?`);
  const rows = near.all(...values, floor, limit);
  if (rows.length === limit || floor <= 1) return rows;
  const one = prepare(`${SELECT_LISTED} ${where} AND seq = ?`);
  for (const { seq } of prepare(SEQS_OF_PAYER).iterate(filter.payer.toLowerCase(), floor)) {
    const row = one.get(...values, seq ?? null);
    if (row !== undefined && rows.push(row) === limit) break;
  }
  return rows;
}

function conditions(filter: ChargeFilter): { where: string; values: SQLInputValue[] } {
  const asked: readonly [string, SQLInputValue | undefined][] = [
    ['seq < ?', filter.before],
    [inState(filter.state), filter.state],
    ['route_id = ?', filter.routeId],
    ['payer = ?', filter.payer?.toLowerCase()],
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

/** Sums are kept by the hour; integers of money are added here, because they may be larger than SQL can add. */
function summarise(prepare: Prepare, { fromMs, toMs, bucket, routeId, currency, limit }: SummaryQuery): Summary {
  const rows = prepare(
    `SELECT hour, route_id, currency, network, asset, asset_decimals, charges, amount FROM charge_sums
     WHERE hour >= ? AND hour < ? AND (?3 IS NULL OR route_id = ?3) AND (?4 IS NULL OR currency = ?4) ORDER BY hour`,
  ).iterate(Math.floor(fromMs / HOUR_MS), Math.ceil(toMs / HOUR_MS), routeId ?? null, currency ?? null);
  const sums = new Map<string, Sum>();
  for (const row of rows) {
    const sum: Sum = {
      start: bucketStart(bucket, integer(row, 'hour') * HOUR_MS, fromMs),
      routeId: text(row, 'route_id'),
      currency: text(row, 'currency'),
      network: text(row, 'network'),
      asset: text(row, 'asset'),
      assetDecimals: integer(row, 'asset_decimals'),
      charges: integer(row, 'charges'),
      amount: BigInt(text(row, 'amount')),
    };
    const key = JSON.stringify([sum.start, sum.routeId, sum.currency, sum.network, sum.asset, sum.assetDecimals]);
    const known = sums.get(key);
    if (known === undefined && sums.size >= limit) return { kind: 'too_long' };
    sums.set(
      key,
      known === undefined ? sum : { ...known, charges: known.charges + sum.charges, amount: known.amount + sum.amount },
    );
  }
  return { kind: 'sums', sums: [...sums.values()] };
}

export function bucketStart(bucket: Bucket, at: number, from: number): number {
  switch (bucket) {
    case 'hour':
      return at - (at % HOUR_MS);
    case 'day':
      return at - (at % DAY_MS);
    case 'month': {
      const date = new Date(at);
      return Date.UTC(date.getUTCFullYear(), date.getUTCMonth());
    }
    case 'total':
      return from;
    default:
      return bucket satisfies never;
  }
}
