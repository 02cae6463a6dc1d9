// A real PostgreSQL with the sums of `node bench/sums.ts`, behind a registry. Three processes have written them, each its own
// shard, as replicas do; the hours and days that are over were folded since, as a registry does it beside its other work.
import { Client } from 'pg';
import { SPELLING } from '../src/gateway/rails/rails.ts';
import { ledgerOf } from '../src/registry/store/stored-ledger.ts';
import { startRegistry } from '../test/registry/kit.ts';
import { freshDatabase, openTestStore, stopSharedPostgres } from '../test/postgres/store.ts';
import { CHARGES, HOURS, ROUTES, ROWS, WAYS, type FilledSums } from './sums-shape.ts';

const SHARDS = 3;
const COUNTED = '(step, start, route_id, free, paid, payment_required, refused, error, released, discovery)';

export async function fillPostgres(): Promise<FilledSums> {
  const url = await freshDatabase();
  const store = await openTestStore(url);
  await store.charges.check();
  const client = new Client(url);
  await client.connect();
  await fill(client, Math.floor(Date.now() / 3_600_000));
  // Nothing is old enough to be forgotten.
  while (await store.charges.totals.prune({ minute: 0, hour: 0, day: 0, sourcesMs: 0 }));
  // As autovacuum leaves them.
  await client.query('VACUUM ANALYZE');
  const { rows } = await client.query<{ sums: string }>('SELECT count(*) AS sums FROM charge_sums');
  const sums = Number(rows[0]?.sums);
  await client.end();
  const reports = ledgerOf(store.charges, SPELLING);
  const kit = await startRegistry({ store, reports, sums: store.charges });
  const close = async (): Promise<void> => {
    await kit.close();
    await store.close();
    await stopSharedPostgres();
  };
  return { port: kit.port, sums, close };
}

/** Fills the store with what was counted and settled in the 90 days up to `now`, an hour since the epoch. */
async function fill(client: Client, now: number): Promise<void> {
  await client.query(`SET search_path TO tollgate; SET synchronous_commit = off; BEGIN;
      CREATE TEMP TABLE made_routes AS SELECT n, lpad(to_hex(n), 8, '0') || '-0000-4000-8000-000000000000' AS id, 1 + (n * 7919) % 37 AS weight
        FROM generate_series(1, ${ROUTES}) AS n;
      CREATE TEMP TABLE hours AS SELECT hour FROM generate_series(${now - HOURS + 1}, ${now}) AS hour;
      CREATE TEMP TABLE networks (network text, asset text);
      INSERT INTO networks VALUES ${WAYS.map(([network, asset]) => `('${network}', '${asset}')`).join(', ')};
      CREATE TEMP TABLE shards AS SELECT shard FROM generate_series(0, ${SHARDS - 1}) AS shard;
      INSERT INTO charge_sums SELECT hour, id, 'USD', network, asset, 6, shard,
          greatest(1, weight::bigint * ${CHARGES} / ${HOURS * ROUTES * WAYS.length} / 19 / ${SHARDS}), weight * 100000
        FROM hours CROSS JOIN made_routes CROSS JOIN networks CROSS JOIN shards WHERE (n + hour) % 12 < 5;
      INSERT INTO charge_totals SELECT 'hour', hour, '', currency, network, asset, 6, shard, sum(charges), sum(amount)
        FROM charge_sums GROUP BY hour, currency, network, asset, shard;
      INSERT INTO charge_totals SELECT 'day', hour / 24, '', currency, network, asset, 6, shard, sum(charges), sum(amount)
        FROM charge_sums GROUP BY hour / 24, currency, network, asset, shard;
      INSERT INTO charge_totals SELECT 'day', hour / 24, route_id, currency, '', '', 6, shard, sum(charges), sum(amount)
        FROM charge_sums GROUP BY hour / 24, route_id, currency, shard;
      INSERT INTO charge_totals SELECT 'minute', minute, '', 'USD', network, asset, 6, shard, 26, 2600000
        FROM networks CROSS JOIN shards CROSS JOIN generate_series(${(now - 48) * 60}, ${now * 60 + 59}) AS minute;
      INSERT INTO request_totals ${COUNTED} SELECT 'hour', hour, id, weight * 10, weight, weight * 3, 1, 0, 0, 0
        FROM hours CROSS JOIN made_routes;
      INSERT INTO request_totals ${COUNTED}
        SELECT 'day', start / 24, route_id, sum(free), sum(paid), sum(payment_required), sum(refused), 0, 0, 0
        FROM request_totals WHERE step = 'hour' GROUP BY start / 24, route_id;
      INSERT INTO request_totals ${COUNTED} SELECT step, start, '', sum(free), sum(paid), sum(payment_required), sum(refused), 0, 0, 0
        FROM request_totals GROUP BY step, start;
      INSERT INTO request_totals ${COUNTED} SELECT 'minute', start, '', 80, 77, 200, 3, 0, 0, 0
        FROM (SELECT DISTINCT start FROM charge_totals WHERE step = 'minute') AS minutes;
      INSERT INTO overhead_totals SELECT step, start, bucket, free / 8
        FROM request_totals CROSS JOIN generate_series(1, 8) AS bucket WHERE route_id = '';
      COMMIT`);
  await fillCharges(client);
}

/** Values of columns that a row of a charge has to have, by their names; the others by their types. */
const VALUES: Readonly<Record<string, string>> = {
  ...{ version: '3', id: "'chg_' || n", state: "'delivered'", settled_transaction: "'0x' || lpad(to_hex(n), 64, '0')" },
  ...{ payer: "'0x' || lpad(to_hex(n % 5000), 40, '0')", unique_key: "'0x' || lpad(to_hex(n), 64, '0')" },
  ...{ network: "'eip155:8453'", asset: "'0xa'", amount: '100000', x402_version: '2', claims: '1' },
  ...{ credential_sha256: "decode(repeat('00', 32), 'hex')", target_sha256: "decode(repeat('00', 32), 'hex')" },
  ...{ settle: "'before_response'", price_amount: "'0.10'", price_currency: "'USD'", terms: "'{}'" },
};

async function fillCharges(client: Client): Promise<void> {
  const { rows } = await client.query<{ name: string; type: string }>(
    `SELECT column_name AS name, data_type AS type FROM information_schema.columns
     WHERE table_schema = 'tollgate' AND table_name = 'charges' AND is_generated = 'NEVER' AND is_identity = 'NO'
       AND (is_nullable = 'NO' OR column_name = 'settled_transaction')`,
  );
  const columns = rows.map(({ name }) => name).join(', ');
  const values = rows.map(({ name, type }) => VALUES[name] ?? (type === 'text' ? "'x'" : '0')).join(', ');
  await client.query(`INSERT INTO charges (${columns}) SELECT ${values} FROM generate_series(1, ${ROWS}) AS n`);
  await client.query(
    `INSERT INTO charge_counts VALUES ('delivered', 0, ${CHARGES}) ON CONFLICT (state, shard) DO UPDATE SET charges = ${CHARGES}`,
  );
}
