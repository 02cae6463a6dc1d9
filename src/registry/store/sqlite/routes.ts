// Routes on disk. Every write raises the revision, draws a new stamp and appends to the change log in the transaction
// that makes it: a revision without its change, or a change that was not made, cannot be read. Keeps no copy in memory.
import type { DatabaseSync } from 'node:sqlite';
import type { Random } from '../../../host/clock.ts';
import { ROUTE_ROWS, routeOf, routeWire, toWire, type Route, type RouteWire } from '../../../domain/route.ts';
import type { RouteField } from '../../../domain/routing/route-fields.ts';
import { createTextPool } from '../../../domain/text-pool.ts';
import type { ChangeKind, Head, RouteChange, RouteStore, StoredChange, StoredRoute, Writer } from '../ports.ts';
import { inTransaction } from './database.ts';
import { integer, nullableText, text, type Row } from './rows.ts';

/** How many changes of the store are kept. */
export const CHANGES_KEPT = 10_000;

/** Sizes of SQLite's page cache in KiB, negative as it wants them: its default, and for reading everything once. */
const CACHE_KIB = -2000;
const ONCE_CACHE_KIB = -128;

const NAMES = [...ROUTE_ROWS.map(({ wire }) => wire), 'written_by'];
const COLUMNS = NAMES.join(', ');

export function createRouteStore(db: DatabaseSync, random: Random, changesKept = CHANGES_KEPT): RouteStore {
  const sql = {
    head: db.prepare('SELECT revision, stamp FROM meta'),
    bump: db.prepare('UPDATE meta SET revision = revision + 1, stamp = ? RETURNING revision, stamp'),
    all: db.prepare(`SELECT ${COLUMNS} FROM routes ORDER BY seq`),
    list: db.prepare(
      `SELECT seq, ${COLUMNS} FROM routes
       WHERE (:before IS NULL OR seq < :before) AND (:status IS NULL OR status = :status)
         AND (:method IS NULL OR method = :method) AND (:source IS NULL OR source = :source)
         AND (:like IS NULL OR route_pattern LIKE :like ESCAPE '\\' OR name LIKE :like ESCAPE '\\')
       ORDER BY seq DESC LIMIT :limit`,
    ),
    byId: db.prepare(`SELECT ${COLUMNS} FROM routes WHERE id = ?`),
    byKey: db.prepare(`SELECT ${COLUMNS} FROM routes WHERE pattern_key = ? AND method = ?`),
    insert: db.prepare(`INSERT INTO routes (pattern_key, ${COLUMNS}) VALUES (?, ${NAMES.map(() => '?').join(', ')})`),
    update: db.prepare(
      `UPDATE routes SET pattern_key = ?, ${NAMES.map((name) => `${name} = ?`).join(', ')} WHERE id = ?`,
    ),
    remove: db.prepare('DELETE FROM routes WHERE id = ?'),
    append: db.prepare(
      'INSERT INTO changes (revision, kind, route_id, at, written_by, before, after) VALUES (?, ?, ?, ?, ?, ?, ?)',
    ),
    trim: db.prepare('DELETE FROM changes WHERE revision <= ?'),
    oldest: db.prepare('SELECT min(revision) AS revision FROM changes'),
    after: db.prepare(
      'SELECT revision, kind, route_id, after FROM changes WHERE revision > ? ORDER BY revision LIMIT ?',
    ),
    history: db.prepare(
      `SELECT revision, at, written_by, before, after FROM changes
       WHERE route_id = ? AND revision < ? ORDER BY revision DESC LIMIT ?`,
    ),
  };

  const head = (): Head => readHead(sql.head.get());
  const byKey = (key: string, method: string): StoredRoute | undefined => {
    const row = sql.byKey.get(key, method);
    return row && readRoute(row, asItIs);
  };
  const byId = (id: string): StoredRoute | undefined => {
    const row = sql.byId.get(id);
    return row && readRoute(row, asItIs);
  };
  const record = ({ kind, id, at, by, before, after }: Recorded): Head => {
    const next = readHead(sql.bump.get(random(8).toString('base64url')));
    sql.append.run(next.revision, kind, id, at, by, jsonOf(before), jsonOf(after));
    sql.trim.run(next.revision - changesKept);
    return next;
  };

  return {
    head,
    all: () => {
      // One read transaction, so that the head belongs to the rows. Each page of them is read once: kept, they would fill
      // the cache with what is not read again, and stay.
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
    list: ({ limit, before, status, method, source, q }) => {
      const rows = sql.list.all({
        before: before ?? null,
        status: status ?? null,
        method: method ?? null,
        source: source ?? null,
        like: q === undefined ? null : `%${q.replace(/[\\%_]/g, '\\$&')}%`,
        limit: limit + 1,
      });
      const page = rows.slice(0, limit);
      const last = page.at(-1);
      return {
        routes: page.map((row) => readRoute(row, asItIs)),
        nextBefore: rows.length > limit && last ? integer(last, 'seq') : undefined,
      };
    },
    findByKey: byKey,
    insert: (route, key) =>
      inTransaction(db, () => {
        const existing = byKey(key, route.method);
        if (existing) return { kind: 'conflict', existing };
        sql.insert.run(key, ...values(route));
        const { id, updatedAt: at, writtenBy: by } = route;
        return { kind: 'written', head: record({ kind: 'created', id, at, by, after: route }), route };
      }),
    update: (route, key) =>
      inTransaction(db, () => {
        const existing = byKey(key, route.method);
        if (existing && existing.id !== route.id) return { kind: 'conflict', existing };
        const before = byId(route.id);
        if (before === undefined) return undefined;
        sql.update.run(key, ...values(route), route.id);
        const { id, updatedAt: at, writtenBy: by } = route;
        return { kind: 'written', head: record({ kind: 'updated', id, at, by, before, after: route }), route };
      }),
    remove: (id, by, at) =>
      inTransaction(db, () => {
        const before = byId(id);
        if (before === undefined) return undefined;
        sql.remove.run(id);
        return record({ kind: 'deleted', id, at, by, before });
      }),
    history: (id, before, limit) => {
      const rows = sql.history.all(id, before ?? Number.MAX_SAFE_INTEGER, limit + 1);
      const page = rows.slice(0, limit);
      const last = page.at(-1);
      return {
        changes: page.map(readHistory),
        nextBefore: rows.length > limit && last ? integer(last, 'revision') : undefined,
      };
    },
    changesAfter: (revision, limit) => {
      const { revision: newest } = head();
      if (revision === newest) return [];
      const oldest = sql.oldest.get()?.['revision'];
      if (revision > newest || typeof oldest !== 'number' || revision < oldest - 1) return undefined;
      return sql.after.all(revision, limit).map(readChange);
    },
    batch: (run) => inTransaction(db, run),
  };
}

type Recorded = {
  readonly kind: ChangeKind;
  readonly id: string;
  readonly at: string;
  readonly by: Writer;
  readonly before?: Route;
  readonly after?: Route;
};

function jsonOf(route: Route | undefined): string | null {
  return route === undefined ? null : JSON.stringify(toWire(route));
}

function values(route: StoredRoute): (string | number | null)[] {
  const columns = ROUTE_ROWS.map(({ name }) => route[name]);
  return [...columns, route.writtenBy].map((value) => (typeof value === 'boolean' ? Number(value) : value));
}

function asItIs(value: string): string {
  return value;
}

/** `pool`: gives one string for equal ones. */
function readRoute(row: Row, pool: (text: string) => string): StoredRoute {
  const route = routeOf((field) => {
    const value = readColumn(row, field);
    return field.interned && typeof value === 'string' ? pool(value) : value;
  });
  return { ...route, writtenBy: writerOf(pool(text(row, 'written_by'))) };
}

function readColumn(row: Row, { wire, column }: RouteField): string | boolean | null {
  if (column === 'flag') return integer(row, wire) === 1;
  return column === 'text' ? text(row, wire) : nullableText(row, wire);
}

function readHead(row: Row | undefined): Head {
  if (!row) throw new Error('the store has lost its meta row');
  return { revision: integer(row, 'revision'), stamp: text(row, 'stamp') };
}

function readChange(row: Row): StoredChange {
  const kind = text(row, 'kind');
  if (kind !== 'created' && kind !== 'updated' && kind !== 'deleted')
    throw new Error(`the store holds a change of kind ${kind}`);
  return { revision: integer(row, 'revision'), kind, data: nullableText(row, 'after') ?? deletedData(row) };
}

function deletedData(row: Row): string {
  return JSON.stringify({ id: text(row, 'route_id') });
}

function readHistory(row: Row): RouteChange {
  return {
    revision: integer(row, 'revision'),
    at: text(row, 'at'),
    by: writerOf(text(row, 'written_by')),
    before: readWire(nullableText(row, 'before')),
    after: readWire(nullableText(row, 'after')),
  };
}

function readWire(json: string | null): RouteWire | null {
  return json === null ? null : routeWire.parse(JSON.parse(json));
}

function writerOf(written: string): Writer {
  if (written === 'config' || isNamed(written)) return written;
  throw new TypeError(`the store holds a route written by ${written}`);
}

function isNamed(written: string): written is Exclude<Writer, 'config'> {
  return written.startsWith('dashboard:') || written.startsWith('api_key:');
}
