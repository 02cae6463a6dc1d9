// A real PostgreSQL with the passes of `node bench/passes.ts`.
import { Client } from 'pg';
import { freshDatabase, openTestStore, stopSharedPostgres } from '../test/postgres/store.ts';
import { DRAWS_MADE, drawColumns, PASSES, passColumns, type FilledPasses } from './passes-shape.ts';

export async function fillPostgres(): Promise<FilledPasses> {
  const url = await freshDatabase();
  const store = await openTestStore(url);
  await store.charges.check();
  const client = new Client(url);
  await client.connect();
  const text = (sql: string): string => `(${sql})::text`;
  for (const [table, rows, columns] of [
    ['passes', PASSES, passColumns(Date.now(), text)],
    ['pass_draws', DRAWS_MADE, drawColumns(Date.now(), text)],
  ] as const) {
    const [names, values] = [columns.map(([name]) => name), columns.map(([, value]) => value)];
    await client.query(
      `INSERT INTO tollgate.${table} (${names.join(', ')}) SELECT ${values.join(', ')} FROM generate_series(1::int8, ${rows}) AS n`,
    );
  }
  // As autovacuum leaves them.
  await client.query('VACUUM ANALYZE');
  await client.end();
  const close = async (): Promise<void> => {
    await store.close();
    await stopSharedPostgres();
  };
  return { store, close };
}
