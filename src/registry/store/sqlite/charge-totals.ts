// Counts by state and sums of money by minute, hour and day, kept beside the charges so that neither a scrape nor a dashboard
// adds up charges.
// They are gathered while a transaction runs and written once before its commit: a batch of a hundred charges changes a
// few rows of them. They count exactly the charges that the transaction wrote.
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { ChargeState } from '../../../domain/payment/charge.ts';
import type { SumFacts } from '../charge-values.ts';
import { ALL_ROUTES } from '../../../domain/totals/totals-store.ts';
import { stepOf, TOTALS_STEPS } from '../../../domain/totals/steps.ts';
import { integer, text } from '../rows.ts';

export type Totals = {
  /** Counts a charge. `before` undefined: the charge is new; `after` undefined: it is gone. */
  readonly moved: (before: ChargeState | undefined, after: ChargeState | undefined, charges?: number) => void;
  readonly settled: (settled: SumFacts) => void;
  /** Adds money that was given back. */
  readonly refunded: (refunded: SumFacts) => void;
  readonly write: () => void;
  /** Forgets what was gathered. */
  readonly clear: () => void;
};

/** Row of one table, and what this transaction adds to it. */
type Sum = { readonly table: SumTable; readonly key: readonly (string | number)[]; charges: number; amount: bigint };
/** Rows of one table: added to, read and put by the same key. `add` changes no row if it could not hold the sum. */
type SumTable = {
  readonly add: StatementSync;
  readonly read: StatementSync;
  readonly put: StatementSync;
  /** Rows that were added to, by their keys. */
  readonly sums: Map<string, Sum>;
};

/** Digits of two numbers whose sum SQLite holds exactly, as an integer of 64 bits. */
const ADDED_DIGITS = 18;
/** Kinds of settlement whose rows are remembered: those of one route and way within a minute are of one kind. */
const REMEMBERED = 1000;
const COLUMNS = 'route_id = ? AND currency = ? AND network = ? AND asset = ? AND asset_decimals = ?';
const AT_HOUR = `hour = ? AND ${COLUMNS}`;
const AT_STEP = `step = ? AND start = ? AND ${COLUMNS}`;

export function createTotals(db: DatabaseSync): Totals {
  const sql = {
    count: db.prepare('UPDATE charge_counts SET charges = charges + ? WHERE state = ?'),
  };
  const byRouteAndHour = tableOf(db, 'charge_sums', 'charges', AT_HOUR);
  const refunds = tableOf(db, 'refund_sums', 'refunds', AT_HOUR);
  const bySteps = tableOf(db, 'charge_totals', 'charges', AT_STEP);
  const counts = new Map<ChargeState, number>();
  const count = (state: ChargeState, by: number): void => void counts.set(state, (counts.get(state) ?? 0) + by);
  /** Rows that a settlement adds to. To find them by one name costs a third of naming each. */
  let rowsOfSettlements = new Map<string, readonly Sum[]>();
  let changed: Sum[] = [];
  const add = (sum: Sum, amount: bigint): void => {
    if (sum.charges === 0) changed.push(sum);
    sum.charges += 1;
    sum.amount += amount;
  };
  const rowsOf = (settled: SumFacts): readonly Sum[] => {
    const { routeId, currency, network, asset, assetDecimals, at } = settled;
    const name = `${stepOf(at, 'minute')} ${routeId} ${currency} ${network} ${asset} ${assetDecimals}`;
    const known = rowsOfSettlements.get(name);
    if (known !== undefined) return known;
    if (rowsOfSettlements.size >= REMEMBERED) {
      rowsOfSettlements = new Map();
      for (const { sums } of [byRouteAndHour, bySteps]) sums.clear();
    }
    const what = [currency, network, asset, assetDecimals];
    const rows = [
      rowOf(byRouteAndHour, [stepOf(at, 'hour'), routeId, ...what]),
      ...TOTALS_STEPS.map((step) => rowOf(bySteps, [step, stepOf(at, step), ALL_ROUTES, ...what])),
      rowOf(bySteps, ['day', stepOf(at, 'day'), routeId, currency, '', '', assetDecimals]),
    ];
    rowsOfSettlements.set(name, rows);
    return rows;
  };
  const clear = (): void => {
    counts.clear();
    for (const sum of changed) [sum.charges, sum.amount] = [0, 0n];
    changed = [];
    refunds.sums.clear();
  };

  return {
    moved: (before, after, charges = 1) => {
      if (before !== undefined) count(before, -charges);
      if (after !== undefined) count(after, charges);
    },
    settled: (settled) => {
      const amount = BigInt(settled.amount);
      for (const sum of rowsOf(settled)) add(sum, amount);
    },
    refunded: ({ routeId, currency, network, asset, assetDecimals, at, amount }) =>
      add(rowOf(refunds, [stepOf(at, 'hour'), routeId, currency, network, asset, assetDecimals]), BigInt(amount)),
    write: () => {
      for (const [state, by] of counts) if (by !== 0) sql.count.run(by, state);
      for (const sum of changed) writeSum(sum);
      clear();
    },
    clear,
  };
}

/** The row with this key; of a transaction the same one each time. */
function rowOf(table: SumTable, key: Sum['key']): Sum {
  const name = key.join(' ');
  let sum = table.sums.get(name);
  if (sum === undefined) table.sums.set(name, (sum = { table, key, charges: 0, amount: 0n }));
  return sum;
}

/**
 * A row that is there is updated by its key, in half the time of an upsert. What SQL cannot add is added in code: the first of a
 * row, and amounts that may exceed 64 bits.
 */
function writeSum({ table: { add, read, put }, key, charges, amount }: Sum): void {
  const digits = amount.toString();
  if (digits.length <= ADDED_DIGITS && add.run(charges, digits, ...key).changes === 1) return;
  const row = read.get(...key);
  const before = row && { charges: integer(row, 'charges'), amount: BigInt(text(row, 'amount')) };
  put.run(...key, (before?.charges ?? 0) + charges, ((before?.amount ?? 0n) + amount).toString());
}

/** `where` binds the key, in the order of the table's columns. */
function tableOf(db: DatabaseSync, table: string, counted: string, where: string): SumTable {
  const values = Array<string>(where.split('?').length + 1).fill('?');
  return {
    add: db.prepare(
      `UPDATE ${table} SET ${counted} = ${counted} + ?, amount = CAST(amount + ? AS TEXT)
       WHERE ${where} AND length(amount) <= ${ADDED_DIGITS}`,
    ),
    read: db.prepare(`SELECT ${counted} AS charges, amount FROM ${table} WHERE ${where}`),
    put: db.prepare(`INSERT OR REPLACE INTO ${table} VALUES (${values.join(', ')})`),
    sums: new Map(),
  };
}
