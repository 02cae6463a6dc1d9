// Counts by state and sums by the hour, kept beside the charges so that neither a scrape nor a dashboard adds up rows.
// They are gathered while a transaction runs and written once before its commit: a batch of a hundred charges changes a
// few rows of them. They count exactly the charges that the transaction wrote.
import type { DatabaseSync } from 'node:sqlite';
import type { ChargeState } from '../../../domain/payment/charge.ts';
import type { Settled } from '../charge-values.ts';
import { integer, text } from '../rows.ts';

export type Totals = {
  /** Counts a charge. `before` undefined: the charge is new; `after` undefined: it is gone. */
  readonly moved: (before: ChargeState | undefined, after: ChargeState | undefined, charges?: number) => void;
  readonly settled: (settled: Settled) => void;
  readonly write: () => void;
  /** Forgets what was gathered. */
  readonly clear: () => void;
};

type Sum = { readonly key: readonly (string | number)[]; charges: number; amount: bigint };

const HOUR_MS = 3_600_000;

export function createTotals(db: DatabaseSync): Totals {
  const sql = {
    count: db.prepare('UPDATE charge_counts SET charges = charges + ? WHERE state = ?'),
    sum: db.prepare(
      `SELECT charges, amount FROM charge_sums
       WHERE hour = ? AND route_id = ? AND currency = ? AND network = ? AND asset = ? AND asset_decimals = ?`,
    ),
    putSum: db.prepare('INSERT OR REPLACE INTO charge_sums VALUES (?, ?, ?, ?, ?, ?, ?, ?)'),
  };
  const counts = new Map<ChargeState, number>();
  const sums = new Map<string, Sum>();
  const count = (state: ChargeState, by: number): void => void counts.set(state, (counts.get(state) ?? 0) + by);
  const clear = (): void => {
    counts.clear();
    sums.clear();
  };

  return {
    moved: (before, after, charges = 1) => {
      if (before !== undefined) count(before, -charges);
      if (after !== undefined) count(after, charges);
    },
    settled: ({ routeId, currency, network, asset, assetDecimals, settledAt, amount }) => {
      const key = [Math.floor(settledAt / HOUR_MS), routeId, currency, network, asset, assetDecimals];
      const name = key.join(' ');
      const known = sums.get(name);
      sums.set(name, { key, charges: (known?.charges ?? 0) + 1, amount: (known?.amount ?? 0n) + BigInt(amount) });
    },
    write: () => {
      for (const [state, by] of counts) if (by !== 0) sql.count.run(by, state);
      for (const { key, charges, amount } of sums.values()) {
        const row = sql.sum.get(...key);
        const before = row && { charges: integer(row, 'charges'), amount: BigInt(text(row, 'amount')) };
        sql.putSum.run(...key, (before?.charges ?? 0) + charges, ((before?.amount ?? 0n) + amount).toString());
      }
      clear();
    },
    clear,
  };
}
