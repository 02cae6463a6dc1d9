// A SQLite file with the sums of `node bench/sums.ts`, behind a registry.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { startRegistry } from '../test/registry/kit.ts';
import { CHARGES, HOURS, ROUTES, ROWS, WAYS, type FilledSums } from './sums-shape.ts';

const COUNTED = '(step, start, route_id, free, paid, payment_required, refused, error, released, discovery)';

export async function fillSqlite(): Promise<FilledSums> {
  const folder = mkdtempSync(path.join(tmpdir(), 'tollgate-sums-'));
  const file = path.join(folder, 'tollgate.db');
  const kit = await startRegistry({ file });
  await kit.ledger.check();
  const sums = fill(file, Math.floor(Date.now() / 3_600_000));
  const close = async (): Promise<void> => {
    await kit.close();
    rmSync(folder, { recursive: true, force: true });
  };
  return { port: kit.port, sums, close };
}

/** Fills the store with what was counted and settled in the 90 days up to `now`, an hour since the epoch. */
function fill(file: string, now: number): number {
  const db = new DatabaseSync(file);
  db.exec('PRAGMA synchronous = OFF; PRAGMA cache_size = -200000; PRAGMA busy_timeout = 60000');
  db.exec(`BEGIN;
    CREATE TEMP TABLE routes AS WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ${ROUTES})
      SELECT n, printf('%08x-0000-4000-8000-000000000000', n) AS id, 1 + (n * 7919) % 37 AS weight FROM n;
    CREATE TEMP TABLE hours AS WITH RECURSIVE h (hour) AS (SELECT ${now - HOURS + 1} UNION ALL SELECT hour + 1 FROM h WHERE hour < ${now})
      SELECT hour FROM h;
    CREATE TEMP TABLE networks (network, asset);
    INSERT INTO networks VALUES ${WAYS.map(([network, asset]) => `('${network}', '${asset}')`).join(', ')};
    INSERT INTO charge_sums SELECT hour, id, 'USD', network, asset, 6, max(1, weight * ${CHARGES} / ${HOURS * ROUTES * 3} / 19) AS charges,
      weight * 100000 AS amount FROM hours CROSS JOIN routes CROSS JOIN networks WHERE (n + hour) % 12 < 5;
    INSERT INTO charge_totals SELECT 'hour', hour, '', currency, network, asset, 6, sum(charges), sum(amount) FROM charge_sums GROUP BY hour, network;
    INSERT INTO charge_totals SELECT 'day', hour / 24, '', currency, network, asset, 6, sum(charges), sum(amount) FROM charge_sums GROUP BY hour / 24, network;
    INSERT INTO charge_totals SELECT 'day', hour / 24, route_id, currency, '', '', 6, sum(charges), sum(amount) FROM charge_sums GROUP BY hour / 24, route_id;
    INSERT INTO charge_totals SELECT 'minute', minute, '', 'USD', network, asset, 6, 77, 7700000 FROM networks CROSS JOIN (
      WITH RECURSIVE m (minute) AS (SELECT ${(now - 48) * 60} UNION ALL SELECT minute + 1 FROM m WHERE minute < ${now * 60 + 59}) SELECT minute FROM m);
    INSERT INTO request_totals ${COUNTED} SELECT 'hour', hour, id, weight * 10, weight, weight * 3, 1, 0, 0, 0 FROM hours CROSS JOIN routes;
    INSERT INTO request_totals ${COUNTED} SELECT 'day', start / 24, route_id, sum(free), sum(paid), sum(payment_required), sum(refused), 0, 0, 0
      FROM request_totals WHERE step = 'hour' GROUP BY start / 24, route_id;
    INSERT INTO request_totals ${COUNTED} SELECT step, start, '', sum(free), sum(paid), sum(payment_required), sum(refused), 0, 0, 0
      FROM request_totals GROUP BY step, start;
    INSERT INTO request_totals ${COUNTED} SELECT 'minute', start, '', 80, 77, 200, 3, 0, 0, 0 FROM charge_totals WHERE step = 'minute' GROUP BY start;
    INSERT INTO overhead_totals SELECT step, start, b.value, free / 8 FROM request_totals CROSS JOIN json_each('[1,2,3,4,5,6,7,8]') AS b WHERE route_id = '';
    COMMIT`);
  fillCharges(db);
  const { sums = 0 } = db.prepare('SELECT count(*) AS sums FROM charge_sums').get() ?? {};
  db.close();
  return Number(sums);
}

/** A million rows that no question may read; the counts beside them say ten million. */
function fillCharges(db: DatabaseSync): void {
  const columns = db.prepare('PRAGMA table_info(charges)').all();
  const value = (name: string, type: string): string => {
    const special: Readonly<Record<string, string>> = {
      ...{
        seq: 'n',
        version: '3',
        id: "printf('chg_%032x', n)",
        state: "'delivered'",
        settled_transaction: "printf('0x%064x', n)",
      },
      ...{
        payer: "printf('0x%040x', n % 5000)",
        unique_key: "printf('0x%064x', n)",
        asset: "'0xa'",
        network: "'eip155:8453'",
      },
      ...{
        amount: "'100000'",
        credential_sha256: 'zeroblob(32)',
        target_sha256: 'zeroblob(32)',
        x402_version: '2',
        claims: '1',
      },
      ...{ settle: "'before_response'", price_amount: "'0.10'", price_currency: "'USD'", route_method: "'GET'" },
      ...{ route_pattern: "'/x'", request_method: "'GET'", request_path: "'/x'", terms: "'{}'" },
    };
    return special[name] ?? (type === 'INTEGER' ? '0' : 'NULL');
  };
  const named = columns.filter(
    ({ notnull, name }) => notnull === 1 || ['seq', 'settled_transaction'].includes(String(name)),
  );
  const list = named.map(({ name }) => String(name)).join(', ');
  const values = named.map(({ name, type }) => {
    const made = value(String(name), String(type));
    return made === 'NULL' ? "'x'" : made;
  });
  db.exec(`BEGIN; WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < ${ROWS})
    INSERT INTO charges (${list}) SELECT ${values.join(', ')} FROM r;
    UPDATE charge_counts SET charges = ${CHARGES} WHERE state = 'delivered'; COMMIT`);
}
