// Counts of what plans did on SQLite. Money is added up here and not in SQL: it may exceed 64 bits.
import type { DatabaseSync } from 'node:sqlite';
import type { SaleCount } from '../../../domain/totals/sale-counts.ts';
import type { Span } from '../../../domain/totals/steps.ts';
import type { CountedRow } from '../../../domain/totals/totals-store.ts';
import { readSale, salesToAdd } from '../sale-rows.ts';
import { text } from '../rows.ts';

export function createSaleWrites(db: DatabaseSync): (rows: readonly CountedRow[]) => void {
  const sql = {
    named: db.prepare("SELECT * FROM sale_totals WHERE step = ? AND start = ? AND kind = 'customer'"),
    amount: db.prepare(
      'SELECT amount FROM sale_totals WHERE step = ? AND start = ? AND kind = ? AND subject = ? AND detail = ? AND scale = ?',
    ),
    put: db.prepare(
      `INSERT INTO sale_totals (step, start, kind, subject, detail, scale, requests, amount) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
       ON CONFLICT DO UPDATE SET requests = requests + excluded.requests, amount = excluded.amount`,
    ),
  };
  return (rows) => {
    for (const { step, start, sale } of salesToAdd(rows, (of) => sql.named.all(of.step, of.start).map(readSale))) {
      const { kind, subject, detail, scale, requests, amount } = sale;
      const key = [step, start, kind, subject, detail, scale] as const;
      const known = sql.amount.get(...key);
      const sum = BigInt(amount) + (known === undefined ? 0n : BigInt(text(known, 'amount')));
      sql.put.run(...key, requests, String(sum));
    }
  };
}

export function createSaleReads(db: DatabaseSync): (spans: readonly Span[]) => SaleCount[] {
  const counts = db.prepare(
    `SELECT kind, subject, detail, 0 AS scale, sum(requests) AS requests, '0' AS amount FROM sale_totals
     WHERE step = ? AND start >= ? AND start < ? AND kind <> 'would_charge' GROUP BY kind, subject, detail`,
  );
  const money = db.prepare(
    `SELECT kind, subject, detail, scale, requests, amount FROM sale_totals
     WHERE step = ? AND start >= ? AND start < ? AND kind = 'would_charge'`,
  );
  return (spans) =>
    spans.flatMap(({ step, from, to }) => [...counts.all(step, from, to), ...money.all(step, from, to)].map(readSale));
}
