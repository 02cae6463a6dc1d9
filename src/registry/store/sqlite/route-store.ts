// Routes on disk. Every write raises the revision, draws a new stamp and appends to the change log, all in one
// transaction. So every revision that is read has its change, and every change was made. Keeps no copy in memory.
import type { DatabaseSync } from 'node:sqlite';
import { createTextPool } from '../../../domain/text-pool.ts';
import type { Random } from '../../../host/clock.ts';
import { writeDeclared } from '../declared-column.ts';
import type { Head, RouteChange, RouteStore, RouteWrite, StoredRoute, WriteOptions, WriteOutcome } from '../ports.ts';
import {
  isOther,
  readChange,
  readHead,
  readHistory,
  readRoute,
  ROUTE_COLUMNS,
  routeJson,
  routeValues,
  type RecordedChange,
} from '../route-values.ts';
import { integer, type Row } from '../rows.ts';
import type { AddAudit } from './audit-insert.ts';
import { auditOfRoute } from '../audit-entries.ts';
import { inTransaction } from './database.ts';
import { createOutbox, type Outbox } from './webhook-outbox.ts';

/** The port, without what waits: a transaction of SQLite does not. */
type RouteRows = {
  readonly load: () => Awaited<ReturnType<RouteStore['load']>>;
  readonly write: (writes: readonly RouteWrite[], options: WriteOptions) => Awaited<ReturnType<RouteStore['write']>>;
  readonly changesAfter: (revision: number, limit: number) => Awaited<ReturnType<RouteStore['changesAfter']>>;
  readonly history: (id: string, before: number | undefined, limit: number) => readonly RouteChange[];
};

/** Number of changes of the store that are kept. */
export const CHANGES_KEPT = 10_000;

/** Sizes of SQLite's page cache in KiB, negative as it wants them: its default, and for reading everything once. */
const CACHE_KIB = -2000;
const ONCE_CACHE_KIB = -128;

const COLUMNS = ROUTE_COLUMNS.join(', ');

type RouteRowsOptions = { readonly addAudit: AddAudit; readonly changesKept?: number | undefined };

export function createRouteRows(
  db: DatabaseSync,
  random: Random,
  { addAudit, changesKept = CHANGES_KEPT }: RouteRowsOptions,
): RouteRows {
  const sql = prepareRoutes(db);

  // Only writes need it: routes are also read from a file that an older version wrote.
  let prepared: Outbox | undefined;
  const outbox = (): Outbox => (prepared ??= createOutbox(db));
  const head = (): Head => readHead(sql.head.get());
  const byKey = (key: string, method: string): StoredRoute | undefined => readOrNot(sql.byKey.get(key, method));
  const byId = (id: string): StoredRoute | undefined => readOrNot(sql.byId.get(id));
  const bump = (): Head => readHead(sql.bump.get(random(8).toString('base64url')));
  const record = ({ revision, stamp }: Head, change: RecordedChange): WriteOutcome => {
    const { kind, route, at, by, before, after, cause } = change;
    const { id, seq, declared } = route;
    const said = writeDeclared(declared);
    sql.append.run(revision, stamp, kind, id, seq, at, by, routeJson(before), routeJson(after), said);
    sql.trim.run(revision - changesKept);
    outbox().data(`route.${kind}`, id, Date.parse(at), routeJson(after ?? before) ?? '');
    addAudit(auditOfRoute(change, cause));
    return { kind: 'written', revision };
  };

  const writeOne = (write: RouteWrite, maxRoutes: number): WriteOutcome => {
    const { cause } = write;
    switch (write.kind) {
      case 'insert': {
        const { route, key } = write;
        const existing = byKey(key, route.method);
        // A duplicate is told before a full set: an SDK registers what is there at every start.
        if (existing) return { kind: 'conflict', existing };
        // A count reads them all: not for each of 100,000 that may be there anyway.
        if (maxRoutes < Infinity && integer(sql.count.get() ?? {}, 'routes') >= maxRoutes)
          return { kind: 'full', limit: maxRoutes };
        const next = bump();
        const stored = { ...route, seq: next.revision };
        sql.insert.run(next.revision, key, ...routeValues(route));
        const { updatedAt: at, writtenBy: by } = route;
        return record(next, { kind: 'created', route: stored, at, by, after: route, cause });
      }
      case 'update': {
        const { route, key, was } = write;
        const before = byId(route.id);
        if (before === undefined || isOther(before, was)) return { kind: 'stale' };
        const existing = byKey(key, route.method);
        if (existing && existing.id !== route.id) return { kind: 'conflict', existing };
        sql.update.run(key, ...routeValues(route), route.id);
        if (routeJson(route) === routeJson(before)) return { kind: 'written', revision: head().revision };
        const { updatedAt: at, writtenBy: by } = route;
        const updated = { ...route, seq: before.seq };
        return record(bump(), { kind: 'updated', route: updated, at, by, before, after: route, cause });
      }
      case 'delete': {
        const { was, by, at } = write;
        const before = byId(was.id);
        if (before === undefined || isOther(before, was)) return { kind: 'stale' };
        sql.remove.run(was.id);
        return record(bump(), { kind: 'deleted', route: before, at, by, before, cause });
      }
      default:
        return write satisfies never;
    }
  };

  return {
    load: () => {
      // The set is read in one transaction, so that the head belongs to the rows. Each page of them is read once: kept,
      // they would fill the cache with what is not read again, and stay.
      db.exec(`PRAGMA cache_size = ${ONCE_CACHE_KIB}; BEGIN`);
      try {
        const pool = createTextPool();
        const routes: StoredRoute[] = [];
        // Row by row: all rows at once would take as much again as the routes themselves.
        for (const row of sql.all.iterate()) routes.push(readRoute(row, pool));
        return { head: head(), routes };
      } finally {
        db.exec(`COMMIT; PRAGMA cache_size = ${CACHE_KIB}`);
      }
    },
    write: (writes, { maxRoutes, ifRevision }) =>
      inTransaction(db, () => {
        outbox().begin();
        if (ifRevision !== undefined && head().revision !== ifRevision) return 'moved';
        const outcomes = writes.map((write) => writeOne(write, maxRoutes));
        const failed = outcomes.find(({ kind }) => kind !== 'written');
        if (ifRevision !== undefined && failed !== undefined)
          throw new Error(`a route was not written with the others: ${failed.kind}`);
        return { head: head(), outcomes };
      }),
    history: (id, before, limit) => sql.history.all(id, before ?? Number.MAX_SAFE_INTEGER, limit).map(readHistory),
    changesAfter: (revision, limit) => {
      const { revision: newest } = head();
      if (revision === newest) return [];
      const oldest = sql.oldest.get()?.['revision'];
      if (revision > newest || typeof oldest !== 'number' || revision < oldest - 1) return 'too_old';
      return sql.after.all(revision, limit).map(readChange);
    },
  };
}

function prepareRoutes(db: DatabaseSync) {
  return {
    head: db.prepare('SELECT revision, stamp FROM meta'),
    bump: db.prepare('UPDATE meta SET revision = revision + 1, stamp = ? RETURNING revision, stamp'),
    count: db.prepare('SELECT count(*) AS routes FROM routes'),
    all: db.prepare(`SELECT seq, ${COLUMNS} FROM routes ORDER BY seq`),
    byId: db.prepare(`SELECT seq, ${COLUMNS} FROM routes WHERE id = ?`),
    byKey: db.prepare(`SELECT seq, ${COLUMNS} FROM routes WHERE pattern_key = ? AND method = ?`),
    insert: db.prepare(
      `INSERT INTO routes (seq, pattern_key, ${COLUMNS}) VALUES (?, ?, ${ROUTE_COLUMNS.map(() => '?').join(', ')})`,
    ),
    update: db.prepare(
      `UPDATE routes SET pattern_key = ?, ${ROUTE_COLUMNS.map((name) => `${name} = ?`).join(', ')} WHERE id = ?`,
    ),
    remove: db.prepare('DELETE FROM routes WHERE id = ?'),
    append: db.prepare(
      `INSERT INTO changes (revision, stamp, kind, route_id, seq, at, written_by, before, after, declared)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    ),
    trim: db.prepare('DELETE FROM changes WHERE revision <= ?'),
    oldest: db.prepare('SELECT min(revision) AS revision FROM changes'),
    after: db.prepare(
      `SELECT revision, stamp, kind, seq, written_by, before, after, declared FROM changes
       WHERE revision > ? ORDER BY revision LIMIT ?`,
    ),
    history: db.prepare(
      `SELECT revision, at, written_by, before, after FROM changes
       WHERE route_id = ? AND revision < ? ORDER BY revision DESC LIMIT ?`,
    ),
  };
}

function readOrNot(row: Row | undefined): StoredRoute | undefined {
  return row && readRoute(row);
}
