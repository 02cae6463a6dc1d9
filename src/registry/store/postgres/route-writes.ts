// Writes of routes on PostgreSQL, decided on the rows as they are. One transaction holds the row of the set's state
// from its first statement on. So revisions have no gaps and come in the order of commits. Each change raises the
// revision, draws a new stamp and is appended to the log.
import type { Random } from '../../../host/clock.ts';
import { writeDeclared } from '../declared-column.ts';
import type { Head, RouteStore, RouteWrite, StoredRoute, WriteOptions, WriteOutcome } from '../ports.ts';
import {
  isOther,
  readHead,
  readRoute,
  ROUTE_COLUMNS,
  routeJson,
  routeValues,
  type RecordedChange,
} from '../route-values.ts';
import { integer, type Row } from '../rows.ts';
import { auditOfRoute } from '../audit-entries.ts';
import { addAudit } from './audit-insert.ts';
import { plain } from './charge-batch.ts';
import { PostgresRefusal, type Answer, type Session } from './connection.ts';
import { isWanted, queueing } from './webhook-outbox.ts';

const COLUMNS = ROUTE_COLUMNS.join(', ');

type RouteSql = ReturnType<typeof createRouteSql>;
type QueryRunner = (text: string, values: readonly unknown[]) => Promise<Answer>;
type WriteDeps = {
  readonly sql: RouteSql;
  readonly schema: string;
  readonly random: Random;
  readonly changesKept: number;
};

export async function writeRoutes(
  deps: WriteDeps,
  session: Session,
  writes: readonly RouteWrite[],
  { maxRoutes, ifRevision }: WriteOptions,
): Promise<Awaited<ReturnType<RouteStore['write']>>> {
  const { sql } = deps;
  const run: QueryRunner = (text, values) => session.query(sql.named(text), values);
  let head = readHead((await run(sql.hold, [])).rows[0]);
  if (ifRevision !== undefined && head.revision !== ifRevision) return 'moved';
  const outcomes: WriteOutcome[] = [];
  for (const write of writes) {
    const audited = (change: RecordedChange): Promise<void> =>
      addAudit(session, deps.schema, auditOfRoute(change, write.cause));
    outcomes.push(await writeOne({ ...deps, run, audited }, write, maxRoutes, head));
    head = readHead((await run(sql.head, [])).rows[0]);
  }
  const failed = outcomes.find(({ kind }) => kind !== 'written');
  if (ifRevision !== undefined && failed !== undefined)
    throw new PostgresRefusal(`a route was not written with the others: ${failed.kind}`);
  await run(sql.notify, [sql.channel, String(head.revision)]);
  return { head, outcomes };
}

type OneWriteDeps = WriteDeps & {
  readonly run: QueryRunner;
  readonly audited: (change: RecordedChange) => Promise<void>;
};

async function writeOne(
  { sql, random, changesKept, run, audited }: OneWriteDeps,
  write: RouteWrite,
  maxRoutes: number,
  start: Head,
): Promise<WriteOutcome> {
  const read = async (text: string, values: readonly unknown[]): Promise<StoredRoute | undefined> => {
    const row = (await run(text, values)).rows[0];
    return row && readRoute(row);
  };
  const bump = async (): Promise<Head> => readHead((await run(sql.bump, [random(8).toString('base64url')])).rows[0]);
  const record = async (head: Head, recorded: RecordedChange): Promise<WriteOutcome> => {
    const { kind, route, at, by, before, after } = recorded;
    const said = writeDeclared(route.declared);
    const change = [
      head.revision,
      head.stamp,
      kind,
      route.id,
      route.seq,
      at,
      by,
      routeJson(before),
      routeJson(after),
      said,
    ];
    await run(sql.append, change);
    await Promise.all([
      run(sql.trim, [head.revision - changesKept]),
      run(sql.tell, [`route.${kind}`, Date.parse(at), route.id, routeJson(after ?? before)]),
      audited(recorded),
    ]);
    return { kind: 'written', revision: head.revision };
  };
  switch (write.kind) {
    case 'insert': {
      const { route, key } = write;
      const existing = await read(sql.byKey, [key, route.method]);
      // A duplicate is told before a full set: an SDK registers what is there at every start.
      if (existing) return { kind: 'conflict', existing };
      const isFull = async (): Promise<boolean> =>
        integer((await run(sql.count, [])).rows[0] ?? {}, 'routes') >= maxRoutes;
      // A count reads them all: not for each of 100,000 that may be there anyway.
      if (maxRoutes < Infinity && (await isFull())) return { kind: 'full', limit: maxRoutes };
      const next = await bump();
      await run(sql.insert, [next.revision, key, ...routeValues(route).map(bindable)]);
      const { updatedAt: at, writtenBy: by } = route;
      return record(next, { kind: 'created', route: { ...route, seq: next.revision }, at, by, after: route });
    }
    case 'update': {
      const { route, key, was } = write;
      const before = await read(sql.byId, [route.id]);
      if (before === undefined || isOther(before, was)) return { kind: 'stale' };
      const existing = await read(sql.byKey, [key, route.method]);
      if (existing && existing.id !== route.id) return { kind: 'conflict', existing };
      await run(sql.update, [route.id, key, ...routeValues(route).map(bindable)]);
      if (routeJson(route) === routeJson(before)) return { kind: 'written', revision: start.revision };
      const { updatedAt: at, writtenBy: by } = route;
      return record(await bump(), {
        kind: 'updated',
        route: { ...route, seq: before.seq },
        at,
        by,
        before,
        after: route,
      });
    }
    case 'delete': {
      const { was, by, at } = write;
      const before = await read(sql.byId, [was.id]);
      if (before === undefined || isOther(before, was)) return { kind: 'stale' };
      await run(sql.remove, [was.id]);
      return record(await bump(), { kind: 'deleted', route: before, at, by, before });
    }
    default:
      return write satisfies never;
  }
}

export function createRouteSql(schema: string) {
  const names = new Map<string, { readonly name: string; readonly text: string }>();
  return {
    channel: `${schema}_changes`,
    named: (text: string) => {
      let statement = names.get(text);
      if (statement === undefined) names.set(text, (statement = { name: `tollgate_routes_${names.size}`, text }));
      return statement;
    },
    hold: `SELECT revision, stamp FROM ${schema}.meta FOR UPDATE`,
    head: `SELECT revision, stamp FROM ${schema}.meta`,
    bump: `UPDATE ${schema}.meta SET revision = revision + 1, stamp = $1 RETURNING revision, stamp`,
    count: `SELECT count(*) AS routes FROM ${schema}.routes`,
    all: `SELECT seq, ${COLUMNS} FROM ${schema}.routes ORDER BY seq`,
    byId: `SELECT seq, ${COLUMNS} FROM ${schema}.routes WHERE id = $1`,
    byKey: `SELECT seq, ${COLUMNS} FROM ${schema}.routes WHERE pattern_key = $1 AND method = $2`,
    insert: `INSERT INTO ${schema}.routes (seq, pattern_key, ${COLUMNS})
      VALUES ($1, $2, ${ROUTE_COLUMNS.map((_, index) => `$${index + 3}`).join(', ')})`,
    update: `UPDATE ${schema}.routes SET pattern_key = $2,
      ${ROUTE_COLUMNS.map((name, index) => `${name} = $${index + 3}`).join(', ')} WHERE id = $1`,
    remove: `DELETE FROM ${schema}.routes WHERE id = $1`,
    append: `INSERT INTO ${schema}.changes (revision, stamp, kind, route_id, seq, at, written_by, before, after, declared)
      VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
    trim: `DELETE FROM ${schema}.changes WHERE revision <= $1`,
    tell: `WITH ${queueing(schema, `SELECT $1::text, $2::int8, $3::text, 0, $4::text WHERE ${isWanted(schema, '$1')}`)} SELECT 1`,
    stampOf: `SELECT stamp FROM ${schema}.changes WHERE revision = $1`,
    oldest: `SELECT min(revision) AS revision FROM ${schema}.changes`,
    after: `SELECT revision, stamp, kind, seq, written_by, before, after, declared FROM ${schema}.changes
      WHERE revision > $1 ORDER BY revision LIMIT $2`,
    history: `SELECT revision, at, written_by, before, after FROM ${schema}.changes
      WHERE route_id = $1 AND revision < $2 ORDER BY revision DESC LIMIT $3`,
    notify: 'SELECT pg_notify($1, $2)',
  } as const;
}

function bindable(value: Row[string]): unknown {
  return typeof value === 'string' ? plain(value) : value;
}
