// A SQLite file to copy from. A copy has the file to itself: any other process that has it open, server or command,
// would write what is not copied. A rehearsal reads it as it stands, beside a process that serves it.
import { existsSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { COPIED } from '../copy.ts';
import type { CopiedTable, CopyRow, CopySource } from '../copy-ports.ts';
import type { Holder } from '../ports.ts';
import { integer } from '../rows.ts';
import { readMark, writeMark } from './copy-mark.ts';
import { inTransaction, isBusy, isMigrated } from './database.ts';
import { lockStore } from './lock.ts';

const BUSY_MS = 300;

/** Opens the source; `holder` undefined: for a rehearsal. Throws a sentence. */
export function openCopySource(file: string, holder: Holder | undefined): CopySource {
  if (!existsSync(file)) throw new Error(`There is no store in ${file}.`);
  const lock = holder && lockStore(file, holder);
  let db: DatabaseSync | undefined;
  try {
    if (!isMigrated(file))
      throw new Error(
        `The store ${file} was written by an older version of Tollgate: run \`tollgate migrate\` on it first.`,
      );
    db = holder === undefined ? openSnapshot(file) : openAlone(file);
  } catch (error) {
    lock?.release();
    throw error;
  }
  return sourceOf(db, () => lock?.release());
}

function openSnapshot(file: string): DatabaseSync {
  const db = new DatabaseSync(file, { readOnly: true });
  db.exec('BEGIN');
  return db;
}

/** Opens the file alone. The lock keeps out other servers; this keeps out everything that opens the file. */
function openAlone(file: string): DatabaseSync {
  const db = new DatabaseSync(file, { timeout: BUSY_MS });
  try {
    db.exec('PRAGMA locking_mode = EXCLUSIVE; PRAGMA synchronous = FULL; BEGIN IMMEDIATE; COMMIT');
    return db;
  } catch (error) {
    db.close();
    if (!isBusy(error)) throw error;
    throw new Error(`The store ${file} is open elsewhere: end the command or program that uses it.`, { cause: error });
  }
}

function sourceOf(db: DatabaseSync, release: () => void): CopySource {
  return {
    mark: () => readMark(db),
    setMark: (mark) => inTransaction(db, () => writeMark(db, mark)),
    count: (table) => integer(db.prepare(`SELECT count(*) AS rows FROM ${table}`).get() ?? {}, 'rows'),
    rows: (table) => {
      const statement = db.prepare(`SELECT ${selected(table)} FROM ${FROM[table]}`);
      statement.setReturnArrays(true);
      return statement.iterate() as unknown as Iterable<CopyRow>;
    },
    nextSeq: () =>
      integer(
        db
          .prepare(
            `SELECT 1 + max(coalesce((SELECT max(seq) FROM charges), 0),
               coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'charges'), 0)) AS next`,
          )
          .get() ?? {},
        'next',
      ),
    close: () => {
      db.close();
      release();
    },
  };
}

function selected(table: CopiedTable): string {
  return COPIED[table].map((column) => (column === 'seq' ? `${table}.seq` : column)).join(', ');
}

const FROM: Readonly<Record<CopiedTable, string>> = {
  meta: 'meta',
  routes: 'routes ORDER BY seq',
  changes: 'changes ORDER BY revision',
  api_keys: 'api_keys ORDER BY id',
  api_key_uses: 'api_key_uses ORDER BY holder',
  audit: 'audit ORDER BY n',
  charges: 'charges LEFT JOIN charge_credentials ON charge_credentials.seq = charges.seq ORDER BY charges.seq',
  charge_answers: 'charge_answers ORDER BY seq',
  passes: 'passes ORDER BY seq',
  pass_draws: 'pass_draws ORDER BY id',
  charge_counts: 'charge_counts ORDER BY state',
  charge_sums: 'charge_sums ORDER BY hour, route_id, currency, network, asset, asset_decimals',
  charge_totals: 'charge_totals ORDER BY step, start, route_id, currency, network, asset, asset_decimals',
  refund_proofs: 'refund_proofs ORDER BY network, transaction_id, log_index',
  refund_sums: 'refund_sums ORDER BY hour, route_id, currency, network, asset, asset_decimals',
  request_totals: 'request_totals ORDER BY step, start, route_id',
  overhead_totals: 'overhead_totals ORDER BY step, start, bucket',
  sale_totals: 'sale_totals ORDER BY step, start, kind, subject, detail, scale',
  totals_sources: 'totals_sources ORDER BY source',
  webhook_endpoints: 'webhook_endpoints ORDER BY id',
  webhook_wants: 'webhook_wants ORDER BY type, endpoint_id',
  webhook_events: 'webhook_events ORDER BY n',
  webhook_deliveries: 'webhook_deliveries ORDER BY endpoint_id, n',
};
