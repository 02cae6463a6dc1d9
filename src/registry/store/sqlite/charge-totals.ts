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

type Sum = { readonly key: readonly (string | number)[]; charges: number; amount: bigint };
/** Rows of one table: added to, read and put by the same key. `add` changes no row if it could not hold the sum. */
type SumTable = {
  readonly add: StatementSync;
  readonly read: StatementSync;
  readonly put: StatementSync;
  readonly sums: Map<string, Sum>;
};

/** Digits of two numbers whose sum SQLite holds exactly, as an integer of 64 bits. */
const ADDED_DIGITS = 18;
const COLUMNS = 'route_id = ? AND currency = ? AND network = ? AND asset = ? AND asset_decimals = ?';

export function createTotals(db: DatabaseSync): Totals {
  const sql = {
    count: db.prepare('UPDATE charge_counts SET charges = charges + ? WHERE state = ?'),
  };
  const byRouteAndHour: SumTable = {
    add: db.prepare(addTo('charge_sums', 8, 'charges')),
    read: db.prepare(`SELECT charges, amount FROM charge_sums WHERE hour = ? AND ${COLUMNS}`),
    put: db.prepare('INSERT OR REPLACE INTO charge_sums VALUES (?, ?, ?, ?, ?, ?, ?, ?)'),
    sums: new Map(),
  };
  const refunds: SumTable = {
    add: db.prepare(addTo('refund_sums', 8, 'refunds')),
    read: db.prepare(`SELECT refunds AS charges, amount FROM refund_sums WHERE hour = ? AND ${COLUMNS}`),
    put: db.prepare('INSERT OR REPLACE INTO refund_sums VALUES (?, ?, ?, ?, ?, ?, ?, ?)'),
    sums: new Map(),
  };
  const bySteps: SumTable = {
    add: db.prepare(addTo('charge_totals', 9, 'charges')),
    read: db.prepare(`SELECT charges, amount FROM charge_totals WHERE step = ? AND start = ? AND ${COLUMNS}`),
    put: db.prepare('INSERT OR REPLACE INTO charge_totals VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)'),
    sums: new Map(),
  };
  const counts = new Map<ChargeState, number>();
  const count = (state: ChargeState, by: number): void => void counts.set(state, (counts.get(state) ?? 0) + by);
  const clear = (): void => {
    counts.clear();
    for (const { sums } of [byRouteAndHour, bySteps, refunds]) sums.clear();
  };

  return {
    moved: (before, after, charges = 1) => {
      if (before !== undefined) count(before, -charges);
      if (after !== undefined) count(after, charges);
    },
    settled: ({ routeId, currency, network, asset, assetDecimals, at, amount }) => {
      const what = [currency, network, asset, assetDecimals];
      gather(byRouteAndHour, [stepOf(at, 'hour'), routeId, ...what], amount);
      for (const step of TOTALS_STEPS) gather(bySteps, [step, stepOf(at, step), ALL_ROUTES, ...what], amount);
      gather(bySteps, ['day', stepOf(at, 'day'), routeId, currency, '', '', assetDecimals], amount);
    },
    refunded: ({ routeId, currency, network, asset, assetDecimals, at, amount }) =>
      gather(refunds, [stepOf(at, 'hour'), routeId, currency, network, asset, assetDecimals], amount),
    write: () => {
      for (const [state, by] of counts) if (by !== 0) sql.count.run(by, state);
      writeSums(byRouteAndHour);
      writeSums(bySteps);
      writeSums(refunds);
      clear();
    },
    clear,
  };
}

function gather({ sums }: SumTable, key: Sum['key'], amount: string): void {
  const name = key.join(' ');
  const sum = sums.get(name);
  if (sum === undefined) {
    sums.set(name, { key, charges: 1, amount: BigInt(amount) });
    return;
  }
  sum.charges += 1;
  sum.amount += BigInt(amount);
}

/** Adds in code what SQL cannot: an amount may exceed 64 bits. */
function writeSums({ add, read, put, sums }: SumTable): void {
  for (const { key, charges, amount } of sums.values()) {
    if (add.run(...key, charges, amount.toString()).changes === 1) continue;
    const row = read.get(...key);
    const before = row && { charges: integer(row, 'charges'), amount: BigInt(text(row, 'amount')) };
    put.run(...key, (before?.charges ?? 0) + charges, ((before?.amount ?? 0n) + amount).toString());
  }
}

function addTo(table: string, columns: number, counted: string): string {
  const values = Array<string>(columns).fill('?').join(', ');
  const isShort = `length(amount) <= ${ADDED_DIGITS} AND length(excluded.amount) <= ${ADDED_DIGITS}`;
  return `INSERT INTO ${table} VALUES (${values}) ON CONFLICT DO UPDATE
    SET ${counted} = ${counted} + excluded.${counted}, amount = CAST(amount + excluded.amount AS TEXT) WHERE ${isShort}`;
}
