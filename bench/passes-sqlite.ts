// A SQLite file with the passes of `node bench/passes.ts`.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { openSqlite } from '../test/postgres/full-store.ts';
import { DRAWS_MADE, drawColumns, PASSES, passColumns, type FilledPasses } from './passes-shape.ts';

export async function fillSqlite(): Promise<FilledPasses> {
  const folder = mkdtempSync(path.join(tmpdir(), 'tollgate-passes-'));
  const file = path.join(folder, 'tollgate.db');
  const store = await openSqlite(file);
  await store.charges.check();
  const db = new DatabaseSync(file);
  const text = (sql: string): string => `CAST(${sql} AS TEXT)`;
  db.exec('PRAGMA synchronous = OFF; PRAGMA cache_size = -200000; PRAGMA busy_timeout = 60000');
  for (const [table, rows, columns] of [
    ['passes', PASSES, passColumns(Date.now(), text)],
    ['pass_draws', DRAWS_MADE, drawColumns(Date.now(), text)],
  ] as const) {
    const [names, values] = [columns.map(([name]) => name), columns.map(([, value]) => value)];
    db.exec(`WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < ${rows})
      INSERT INTO ${table} (${names.join(', ')}) SELECT ${values.join(', ')} FROM r`);
  }
  db.close();
  const close = async (): Promise<void> => {
    await store.close();
    rmSync(folder, { recursive: true, force: true });
  };
  return { store, close };
}
