// What load that is worth nothing may leave in the store: no row and no file but the counts of requests, which a process adds
// every ten seconds, and a few findings that need somebody. They grow with time, by a few rows and pages, never with requests.
import type { Notes } from './report.ts';
import type { Stored } from './stage.ts';

/** Tables that hold counts of requests by minute, hour and day. */
const COUNTS: ReadonlySet<string> = new Set(['request_totals', 'overhead_totals', 'totals_sources']);
/** Findings that need somebody, such as a facilitator that fails: a few at most, whatever is sent. */
const FINDINGS: ReadonlySet<string> = new Set(['attention']);
const CHANGING: ReadonlySet<string> = new Set([...COUNTS, ...FINDINGS]);
const MOST_FINDINGS = 20;
/** Files that grow when counts are added. */
const GROWING: ReadonlySet<string> = new Set(['tollgate.db', 'tollgate.db-wal']);
const BATCH_MS = 10_000;
/** A row for every bucket of the overhead and for every route that was asked for, by minute, hour and day. */
const MOST_ROWS_A_MINUTE = 200;
/** Sixteen pages; three are usual. */
const MOST_BYTES_A_BATCH = 64 * 1024;

export function expectSameStore(notes: Notes, before: Stored, after: Stored): void {
  const passedMs = after.atMs - before.atMs;
  const rows = without(after.rows, CHANGING);
  const stored = Object.values(rows).reduce((sum, count) => sum + count, 0);
  const what = `the store's ${stored} rows in ${Object.keys(rows).length} tables are the same`;
  notes.equal(what, changed(without(before.rows, CHANGING), rows), []);
  notes.atMost('findings that need somebody', sumOf(after.rows, FINDINGS), MOST_FINDINGS);
  notes.atMost(
    'rows of counts more than before',
    sumOf(after.rows, COUNTS) - sumOf(before.rows, COUNTS),
    MOST_ROWS_A_MINUTE * (1 + Math.ceil(passedMs / 60_000)),
  );
  notes.equal(
    'other files, and bytes in each, as before',
    without(after.files, GROWING),
    without(before.files, GROWING),
  );
  notes.atMost(
    'bytes of the store more than before',
    sumOf(after.files, GROWING) - sumOf(before.files, GROWING),
    MOST_BYTES_A_BATCH * (1 + Math.ceil(passedMs / BATCH_MS)),
  );
}

type Sizes = Readonly<Record<string, number>>;

const without = (sizes: Sizes, names: ReadonlySet<string>): Sizes =>
  Object.fromEntries(Object.entries(sizes).filter(([name]) => !names.has(name)));

const sumOf = (sizes: Sizes, names: ReadonlySet<string>): number =>
  Object.entries(sizes).reduce((sum, [name, size]) => (names.has(name) ? sum + size : sum), 0);

/** Names under which there is another size than before. */
const changed = (before: Sizes, after: Sizes): readonly string[] =>
  [...new Set([...Object.keys(before), ...Object.keys(after)])].filter((name) => before[name] !== after[name]);
