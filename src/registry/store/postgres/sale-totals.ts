// Counts of what plans did on PostgreSQL, in the transaction of a batch of counts. The database adds money itself.
import type { CountedRow, TotalsStore } from '../../../domain/totals/totals-store.ts';
import { readSale, salesToAdd, saleStepsOf, type SaleRow } from '../sale-rows.ts';
import { integer, text } from '../rows.ts';
import { plain } from './charge-batch.ts';
import type { ChargeSql } from './charge-sql.ts';
import type { Answer, Session } from './connection.ts';

/** Adds what `rows` say of plans. */
export function createSaleWrites({
  schema,
  named,
}: Pick<ChargeSql, 'schema' | 'named'>): (session: Session, rows: readonly CountedRow[]) => Promise<void> {
  const customers = named(
    `SELECT t.* FROM unnest($1::text[], $2::int4[]) AS k (step, start)
     JOIN ${schema}.sale_totals AS t ON t.step = k.step AND t.start = k.start AND t.kind = 'customer'`,
  );
  const add = named(
    `INSERT INTO ${schema}.sale_totals AS t (step, start, kind, subject, detail, scale, requests, amount)
     SELECT * FROM unnest($1::text[], $2::int4[], $3::text[], $4::text[], $5::text[], $6::int2[], $7::int8[], $8::numeric[])
     ON CONFLICT (step, start, kind, subject, detail, scale)
       DO UPDATE SET requests = t.requests + excluded.requests, amount = t.amount + excluded.amount`,
  );
  return async (session, rows) => {
    const steps = saleStepsOf(rows);
    const known =
      steps.length === 0
        ? []
        : (await session.query(customers, [steps.map(({ step }) => step), steps.map(({ start }) => start)])).rows;
    const added = salesToAdd(rows, (of) =>
      known.flatMap((row) =>
        text(row, 'step') === of.step && integer(row, 'start') === of.start ? [readSale(row)] : [],
      ),
    );
    if (added.length === 0) return;
    const column = <T>(valueOf: (row: SaleRow) => T): T[] => added.map(valueOf);
    await session.query(add, [
      ...[column(({ step }) => step), column(({ start }) => start), column(({ sale }) => sale.kind)],
      ...[column(({ sale }) => plain(sale.subject)), column(({ sale }) => plain(sale.detail))],
      ...[column(({ sale }) => sale.scale), column(({ sale }) => sale.requests), column(({ sale }) => sale.amount)],
    ]);
  };
}

export function createSaleReads(
  schema: string,
  ask: (text: string, values: readonly unknown[]) => Promise<Answer>,
): TotalsStore['sales'] {
  const sums = `SELECT kind, subject, detail, scale, sum(requests)::int8 AS requests, sum(amount) AS amount
    FROM ${schema}.sale_totals WHERE step = $1 AND start >= $2 AND start < $3 GROUP BY kind, subject, detail, scale`;
  return async ({ spans }) => {
    const all = await Promise.all(spans.map(({ step, from, to }) => ask(sums, [step, from, to])));
    return all.flatMap(({ rows }) => rows.map(readSale));
  };
}
