// Copies a store into another one, whole or not at all. All numbers in it stay. The source is marked before the first
// row leaves it, and no process serves it from then on. So at most one of the two is served, wherever a copy ends. The
// copy is read back before its commit and compared: how many rows, and the SHA-256 of one spelling of them.
import { createHash } from 'node:crypto';
import { REQUEST_OUTCOMES } from '../../domain/totals/request-counts.ts';
import { AUDIT_COLUMNS } from './audit-values.ts';
import { ALL } from './charge-values.ts';
import type {
  CopiedTable,
  CopyEnd,
  CopyMark,
  CopyRow,
  CopySession,
  CopySource,
  CopyTarget,
  CopyValue,
} from './copy-ports.ts';
import { DRAW_COLUMNS, PASS_COLUMNS } from './pass-values.ts';
import { ROUTE_COLUMNS } from './route-values.ts';

/** Tables that are copied, in this order, and their columns. An answer is a row of its own: it may be large. */
export const COPIED = {
  meta: ['registry_id', 'revision', 'stamp'],
  routes: ['seq', 'pattern_key', ...ROUTE_COLUMNS],
  changes: ['revision', 'stamp', 'kind', 'route_id', 'seq', 'at', 'written_by', 'before', 'after', 'declared'],
  api_keys: ['id', 'name', 'digest', 'scopes', 'created_at', 'created_by', 'revoked_at'],
  api_key_uses: ['holder', 'used_at'],
  audit: ['n', ...AUDIT_COLUMNS],
  charges: ['seq', 'version', ...ALL, 'credential', 'event_sequence'],
  charge_answers: ['seq', 'status', 'headers', 'body'],
  passes: ['seq', ...PASS_COLUMNS],
  pass_draws: DRAW_COLUMNS,
  charge_counts: ['state', 'charges'],
  charge_sums: ['hour', 'route_id', 'currency', 'network', 'asset', 'asset_decimals', 'charges', 'amount'],
  charge_totals: ['step', 'start', 'route_id', 'currency', 'network', 'asset', 'asset_decimals', 'charges', 'amount'],
  refund_proofs: ['network', 'transaction_id', 'log_index', 'charge_id'],
  refund_sums: ['hour', 'route_id', 'currency', 'network', 'asset', 'asset_decimals', 'refunds', 'amount'],
  request_totals: ['step', 'start', 'route_id', ...REQUEST_OUTCOMES],
  overhead_totals: ['step', 'start', 'bucket', 'requests'],
  sale_totals: ['step', 'start', 'kind', 'subject', 'detail', 'scale', 'requests', 'amount'],
  totals_sources: ['source', 'seq', 'first_at', 'last_at', 'lost', 'status'],
  webhook_endpoints: [
    ...['id', 'seen_at', 'forgotten_at', 'disabled_at', 'enabled_at', 'failing_since', 'rest_until', 'hurried_at'],
    ...['last_success_at', 'last_error'],
  ],
  webhook_wants: ['type', 'endpoint_id'],
  webhook_events: ['n', 'id', 'type', 'at', 'subject', 'sequence', 'content'],
  webhook_deliveries: [
    ...[
      'endpoint_id',
      'n',
      'subject',
      'at',
      'state',
      'attempts',
      'due_at',
      'resume_at',
      'tried_at',
      'closed_at',
      'tries',
    ],
  ],
} as const satisfies Readonly<Record<CopiedTable, readonly string[]>>;

/** Tables that stay behind: people sign in again where the copy is served, streams of charges and counters begin anew. */
export const LEFT_BEHIND: readonly string[] = [
  'desk_sessions',
  'desk_tickets',
  'charge_changes',
  'charge_watch',
  'attention',
  'counters',
  'counter_windows',
  'counter_groups',
  'counter_changes',
];

type CopyDigest = { readonly rows: number; readonly sha256: string };
type CopyDigests = ReadonlyMap<CopiedTable, CopyDigest>;
export type CopyResult =
  /** The copy is there. `found`: an earlier run had made it. `rehearsed`: all was done, and undone. */
  | { readonly kind: 'copied' | 'found' | 'rehearsed'; readonly tables: CopyDigests }
  /** The target is in use: nothing was written. */
  | { readonly kind: 'occupied' }
  /** The source is marked for another target. */
  | { readonly kind: 'elsewhere'; readonly mark: CopyMark }
  /** The copies differ. `written`: by this run, and undone; else the source is no longer what an earlier run copied. */
  | { readonly kind: 'differs'; readonly table: CopiedTable; readonly written: boolean };

export type CopyProgress = { readonly doing: 'written' | 'read back'; readonly rows: number; readonly of: number };
type CopyOptions = {
  /** Time in milliseconds since the epoch. */
  readonly now: () => number;
  /** Marks nothing and undoes what it wrote. */
  readonly rehearses: boolean;
  readonly onProgress: (progress: CopyProgress) => void;
};

const PAGE_ROWS = 1000;
const PAGE_BYTES = 4 * 1024 * 1024;

/** Rejects if it does not know how it ended: the source stays marked then, and the same call finishes. */
export async function copyStore(source: CopySource, target: CopyTarget, options: CopyOptions): Promise<CopyResult> {
  const { now, rehearses } = options;
  const mark = source.mark();
  if (mark !== undefined && mark.target !== target.name) return { kind: 'elsewhere', mark };
  const told = { target: target.name, since: mark?.since ?? timeOf(now()) };
  const result = await target.transact(async (session): Promise<CopyEnd<CopyResult>> => {
    if ((await session.state()) === 'used')
      return mark === undefined ? OCCUPIED : { keeps: !rehearses, result: await findWhole(source, session, options) };
    await session.hold();
    // A server may have come before the lock.
    if ((await session.state()) === 'used') return OCCUPIED;
    if (!rehearses) source.setMark({ ...told, copiedAt: null });
    await session.make();
    const tables = await writeAll(source, session, options);
    await session.finish(source.nextSeq());
    const table = await differing(tables, session, options);
    if (table !== undefined) return { keeps: false, result: { kind: 'differs', table, written: true } };
    return { keeps: !rehearses, result: { kind: rehearses ? 'rehearsed' : 'copied', tables } };
  });
  if (!rehearses && (result.kind === 'copied' || (result.kind === 'found' && mark?.copiedAt === null)))
    source.setMark({ ...told, copiedAt: timeOf(now()) });
  return result;
}

const OCCUPIED: CopyEnd<CopyResult> = { keeps: false, result: { kind: 'occupied' } };

type ThawResult =
  | { readonly kind: 'thawed' | 'unmarked' | 'used' }
  | { readonly kind: 'elsewhere'; readonly mark: CopyMark };

/** Takes the mark away unless the target holds anything: a copy whose commit is still under way is waited for. */
export async function thawStore(source: CopySource, target: CopyTarget): Promise<ThawResult> {
  const mark = source.mark();
  if (mark === undefined) return { kind: 'unmarked' };
  if (mark.target !== target.name) return { kind: 'elsewhere', mark };
  const isUsed = await target
    .transact(async (session) => ({ keeps: false, result: (await session.state()) === 'used' }))
    .catch(isThere);
  if (isUsed) return { kind: 'used' };
  source.setMark(undefined);
  return { kind: 'thawed' };
}

/** Error that says that there is no such database. */
export class TargetGone extends Error {
  override readonly name = 'TargetGone';
}

function isThere(error: unknown): boolean {
  if (error instanceof TargetGone) return false;
  throw error;
}

async function findWhole(source: CopySource, session: CopySession, options: CopyOptions): Promise<CopyResult> {
  const tables = new Map(tablesOf(source).map((table) => [table, digestOf(source.rows(table))]));
  const table = await differing(tables, session, options);
  if (table !== undefined) return { kind: 'differs', table, written: false };
  await session.touch();
  return { kind: 'found', tables };
}

/** A ledger of a sidecar is of no registry: what is in `meta` is then the target's own. */
function tablesOf(source: CopySource): CopiedTable[] {
  const all = Object.keys(COPIED) as CopiedTable[];
  return all.filter((table) => table !== 'meta' || source.count(table) > 0);
}

async function writeAll(source: CopySource, session: CopySession, { onProgress }: CopyOptions): Promise<CopyDigests> {
  const tables = tablesOf(source);
  const of = tables.reduce((sum, table) => sum + source.count(table), 0);
  const digests = new Map<CopiedTable, CopyDigest>();
  let rows = 0;
  for (const table of tables) {
    const digest = createDigest();
    let sent = Promise.resolve();
    for (const page of pagesOf(source.rows(table))) {
      // Read while the page before it is written.
      await sent;
      sent = session.write(table, page);
      sent.catch(() => undefined);
      for (const row of page) digest.add(row);
      rows += page.length;
      onProgress({ doing: 'written', rows, of });
    }
    await sent;
    digests.set(table, digest.end());
  }
  return digests;
}

/** Finds the first table of the target that holds something else. */
async function differing(
  tables: CopyDigests,
  session: CopySession,
  { onProgress }: CopyOptions,
): Promise<CopiedTable | undefined> {
  const of = [...tables.values()].reduce((sum, { rows }) => sum + rows, 0);
  let rows = 0;
  for (const [table, wanted] of tables) {
    const digest = createDigest();
    for await (const page of session.rows(table)) {
      for (const row of page) digest.add(row);
      rows += page.length;
      onProgress({ doing: 'read back', rows, of });
    }
    const found = digest.end();
    if (found.rows !== wanted.rows || found.sha256 !== wanted.sha256) return table;
  }
  return undefined;
}

function* pagesOf(rows: Iterable<CopyRow>): Generator<readonly CopyRow[]> {
  let page: CopyRow[] = [];
  let bytes = 0;
  for (const row of rows) {
    page.push(row);
    for (const value of row) bytes += typeof value === 'object' || typeof value === 'string' ? (value?.length ?? 0) : 8;
    if (page.length < PAGE_ROWS && bytes < PAGE_BYTES) continue;
    yield page;
    [page, bytes] = [[], 0];
  }
  if (page.length > 0) yield page;
}

function digestOf(rows: Iterable<CopyRow>): CopyDigest {
  const digest = createDigest();
  for (const row of rows) digest.add(row);
  return digest.end();
}

function createDigest(): { readonly add: (row: CopyRow) => void; readonly end: () => CopyDigest } {
  const hash = createHash('sha256');
  let rows = 0;
  return {
    add: (row) => {
      rows += 1;
      hash.update(`${JSON.stringify(row.map(spelled))}\n`);
    },
    end: () => ({ rows, sha256: hash.digest('hex') }),
  };
}

/** Spells bytes as hexadecimal; a text of PostgreSQL holds no NUL. */
function spelled(value: CopyValue): string | number | null {
  if (typeof value === 'string') return value.replaceAll('\0', '\uFFFD');
  if (!(value instanceof Uint8Array)) return value;
  return Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('hex');
}

function timeOf(ms: number): string {
  return new Date(ms).toISOString();
}
