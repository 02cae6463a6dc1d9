// Counts of what plans did as the rows of a store's table, the same for every kind of store: an hour is added to its day, and a
// step that names enough customers counts the others together.
import {
  createSaleCounts,
  OTHER_CUSTOMERS,
  SALE_KINDS,
  saleKey,
  type SaleCount,
  type SaleCounts,
} from '../../domain/totals/sale-counts.ts';
import { stepOf } from '../../domain/totals/steps.ts';
import type { CountedRow } from '../../domain/totals/totals-store.ts';
import { integer, text, type Row } from './rows.ts';

export const SALE_STEPS = ['hour', 'day'] as const;
export type SaleStep = { readonly step: (typeof SALE_STEPS)[number]; readonly start: number };
export type SaleRow = SaleStep & { readonly sale: SaleCount };

/** Every hour and day that `rows` count customers by name in. */
export function saleStepsOf(rows: readonly CountedRow[]): readonly SaleStep[] {
  const steps = new Map<string, SaleStep>();
  for (const row of rows) {
    if (row.step !== 'sale' || row.sale.kind !== 'customer') continue;
    for (const step of SALE_STEPS) {
      const start = stepOf(row.startMs, step);
      steps.set(`${step} ${start}`, { step, start });
    }
  }
  return [...steps.values()];
}

/** Rows to add to those of the same key; no key stands twice. `named` tells the customers who have a row in an hour or a day. */
export function salesToAdd(rows: readonly CountedRow[], named: (of: SaleStep) => Iterable<SaleCount>): SaleRow[] {
  const counts = new Map<string, SaleStep & { readonly sales: SaleCounts }>();
  for (const of of saleStepsOf(rows)) {
    const known = [...named(of)].filter(({ detail }) => detail !== OTHER_CUSTOMERS);
    counts.set(`${of.step} ${of.start}`, { ...of, sales: createSaleCounts(new Set(known.map(saleKey))) });
  }
  for (const row of rows) {
    if (row.step !== 'sale') continue;
    for (const step of SALE_STEPS) {
      const start = stepOf(row.startMs, step);
      let at = counts.get(`${step} ${start}`);
      if (at === undefined) counts.set(`${step} ${start}`, (at = { step, start, sales: createSaleCounts() }));
      at.sales.add(row.sale);
    }
  }
  return [...counts.values()].flatMap(({ step, start, sales }) =>
    sales.take(Infinity).map((sale) => ({ step, start, sale })),
  );
}

export function readSale(row: Row): SaleCount {
  const given = text(row, 'kind');
  const kind = SALE_KINDS.find((each) => each === given);
  if (kind === undefined) throw new Error(`the store holds counts of a kind that is not known here: ${given}`);
  return {
    ...{ kind, subject: text(row, 'subject'), detail: text(row, 'detail'), scale: integer(row, 'scale') },
    ...{ requests: integer(row, 'requests'), amount: text(row, 'amount') },
  };
}
