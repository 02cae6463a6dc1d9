// Counters of requests on PostgreSQL, exact over all processes that share it: a transaction locks the windows that it counts
// in, reads what they hold, decides by the pure rule and writes it. The changes of one call share the transaction.
import {
  COUNTER_CHANGES_KEPT_MS,
  decideTake,
  type CounterChange,
  type CounterResult,
  type CounterStore,
} from '../../../domain/selling/counter.ts';
import { readResult, writeResult } from '../counter-values.ts';
import { integer, text } from '../rows.ts';
import { plain } from './charge-batch.ts';
import { inTransaction, type Session, type Statement } from './connection.ts';

type PostgresCountersDeps = {
  readonly schema: string;
  readonly named: (text: string) => Statement;
  readonly use: <T>(work: (session: Session) => Promise<T>) => Promise<T>;
  readonly now: () => number;
  /** Settings that a transaction makes for itself. */
  readonly settings: () => string;
};

export type PostgresCounters = CounterStore & {
  /** Removes windows that are over, and changes that nobody repeats any more; true if there may be more. */
  readonly prune: (limit: number) => Promise<boolean>;
};

export function createCounters(deps: PostgresCountersDeps): PostgresCounters {
  const { use, now, settings } = deps;
  const sql = createSql(deps);
  return {
    change: (changes) =>
      use((session) =>
        inTransaction(session, settings(), async () => {
          const counting = await read(session, sql, changes);
          const results = changes.map((each) => apply(counting, each));
          await write(session, sql, counting, now());
          return results;
        }),
      ),
    identities: () =>
      use(async (session) => {
        const { rows } = await session.query(sql.alive, [now()]);
        return new Map(rows.map((row) => [text(row, 'scope'), integer(row, 'identities')]));
      }),
    prune: (limit) =>
      use(async (session) => {
        const changes = await session.query(sql.removeChanges, [now() - COUNTER_CHANGES_KEPT_MS, limit]);
        const [over] = (await session.query(sql.over, [now()])).rows;
        if (over === undefined) return changes.count === limit;
        const place = [text(over, 'scope'), integer(over, 'window_start')];
        if ((await session.query(sql.removeCounters, [...place, limit])).count < limit) {
          await session.query(sql.removeGroups, place);
          await session.query(sql.removeWindow, place);
        }
        return true;
      }),
  };
}

/** What a transaction knows, and what it changes of it. */
type Counting = {
  readonly windows: Map<string, CountedIdentities & { readonly endMs: number }>;
  readonly groups: Map<string, CountedIdentities>;
  readonly counters: Map<string, { readonly place: Place; used: number | undefined; changed: boolean }>;
  readonly known: Map<string, CounterResult>;
  readonly noted: Map<string, CounterResult>;
};
type Place = { readonly scope: string; readonly startMs: number; readonly name: string };
type CountedIdentities = { readonly place: Place; identities: number; changed: boolean };

function nameOf({ scope, startMs, name }: Place): string {
  return JSON.stringify([scope, startMs, name]);
}

async function read(session: Session, sql: CounterSql, changes: readonly CounterChange[]): Promise<Counting> {
  const windows = places(changes, () => '');
  const ends = new Map(changes.map((each) => [nameOf({ ...each, name: '' }), each.endMs]));
  // In one order everywhere, so that no two wait for each other.
  const held = windows.toSorted((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1));
  const columns = (of: readonly Place[]): unknown[] => [
    of.map(({ scope }) => plain(scope)),
    of.map(({ startMs }) => startMs),
  ];
  await session.query(sql.makeWindows, [...columns(held), held.map((each) => ends.get(nameOf(each)) ?? 0)]);
  const locked = await session.query(sql.lockWindows, columns(held));
  const groups = places(changes, (each) => (each.kind === 'take' ? each.group : null));
  const counters = places(changes, ({ identity }) => identity);
  const [grouped, counted, known] = await Promise.all([
    session.query(sql.groups, [...columns(groups), groups.map(({ name }) => name)]),
    session.query(sql.counters, [...columns(counters), counters.map(({ name }) => name)]),
    session.query(sql.known, [changes.map(({ changeId }) => changeId)]),
  ]);
  const placed = (row: Record<string, unknown>, name: string): string =>
    nameOf({ scope: text(row, 'scope'), startMs: integer(row, 'window_start'), name });
  const inWindow = new Map(locked.rows.map((row) => [placed(row, ''), integer(row, 'identities')]));
  const inGroup = new Map(grouped.rows.map((row) => [placed(row, text(row, 'grp')), integer(row, 'identities')]));
  const used = new Map(counted.rows.map((row) => [placed(row, text(row, 'identity')), integer(row, 'used')]));
  return {
    windows: new Map(
      held.map((place) => {
        const name = nameOf(place);
        return [name, { place, endMs: ends.get(name) ?? 0, identities: inWindow.get(name) ?? 0, changed: false }];
      }),
    ),
    groups: new Map(
      groups.map((place) => [nameOf(place), { place, identities: inGroup.get(nameOf(place)) ?? 0, changed: false }]),
    ),
    counters: new Map(
      counters.map((place) => [nameOf(place), { place, used: used.get(nameOf(place)), changed: false }]),
    ),
    known: new Map(known.rows.map((row) => [text(row, 'change_id'), readResult(text(row, 'result'))])),
    noted: new Map(),
  };
}

/** Places of changes, each once; null: the change has none. */
function places(changes: readonly CounterChange[], nameIn: (change: CounterChange) => string | null): readonly Place[] {
  const found = new Map<string, Place>();
  for (const change of changes) {
    const name = nameIn(change);
    if (name === null) continue;
    const place = { scope: change.scope, startMs: change.startMs, name };
    found.set(nameOf(place), place);
  }
  return [...found.values()];
}

function apply(counting: Counting, change: CounterChange): CounterResult {
  const { scope, startMs, identity, changeId } = change;
  const counter = counting.counters.get(nameOf({ scope, startMs, name: identity }));
  const window = counting.windows.get(nameOf({ scope, startMs, name: '' }));
  if (counter === undefined || window === undefined) throw new Error('a change of a counter that was not read');
  const before = counting.noted.get(changeId) ?? counting.known.get(changeId);
  if (change.kind === 'give_back') {
    if (before?.kind === 'counted') {
      counter.used = Math.max(0, (counter.used ?? 0) - 1);
      counter.changed = true;
    }
    // One that comes before its take forbids it.
    const given: CounterResult = { kind: 'given_back' };
    counting.noted.set(changeId, given);
    return given;
  }
  if (before !== undefined) return before;
  const group = change.group === null ? undefined : counting.groups.get(nameOf({ scope, startMs, name: change.group }));
  const isNew = counter.used === undefined;
  const result = decideTake(change, {
    used: counter.used,
    identities: window.identities,
    groupIdentities: group?.identities ?? 0,
  });
  if (result.kind === 'counted') {
    counter.used = result.used;
    counter.changed = true;
    for (const each of isNew ? [window, ...(group === undefined ? [] : [group])] : []) {
      each.identities += 1;
      each.changed = true;
    }
  }
  counting.noted.set(changeId, result);
  return result;
}

async function write(session: Session, sql: CounterSql, counting: Counting, at: number): Promise<void> {
  const changed = <T extends { readonly place: Place; readonly changed: boolean }>(all: Map<string, T>): readonly T[] =>
    [...all.values()].filter((each) => each.changed);
  const columns = (of: readonly { readonly place: Place }[]): unknown[] => [
    of.map(({ place }) => plain(place.scope)),
    of.map(({ place }) => place.startMs),
  ];
  const [windows, groups, counters] = [changed(counting.windows), changed(counting.groups), changed(counting.counters)];
  const noted = [...counting.noted];
  await Promise.all([
    session.query(sql.putWindows, [...columns(windows), windows.map(({ identities }) => identities)]),
    session.query(sql.putGroups, [
      ...columns(groups),
      ...[groups.map(({ place }) => place.name), groups.map(({ identities }) => identities)],
    ]),
    session.query(sql.putCounters, [
      ...columns(counters),
      ...[counters.map(({ place }) => place.name), counters.map(({ used }) => used ?? 0)],
    ]),
    session.query(sql.note, [noted.map(([id]) => id), noted.map(([, result]) => writeResult(result)), at]),
  ]);
}

type CounterSql = ReturnType<typeof createSql>;

function createSql({ schema, named }: Pick<PostgresCountersDeps, 'schema' | 'named'>) {
  const keys = 'unnest($1::text[], $2::int8[])';
  const named3 = 'unnest($1::text[], $2::int8[], $3::text[])';
  return {
    makeWindows: named(
      `INSERT INTO ${schema}.counter_windows (scope, window_start, window_end, identities)
       SELECT k.scope, k.start, k.ends, 0 FROM unnest($1::text[], $2::int8[], $3::int8[]) AS k (scope, start, ends)
       ON CONFLICT DO NOTHING`,
    ),
    lockWindows: named(
      `SELECT w.scope, w.window_start, w.identities FROM ${schema}.counter_windows AS w
       WHERE (w.scope, w.window_start) IN (SELECT k.scope COLLATE "C", k.start FROM ${keys} AS k (scope, start))
       ORDER BY w.scope, w.window_start FOR UPDATE`,
    ),
    groups: named(
      `SELECT t.scope, t.window_start, t.grp, t.identities FROM ${named3} AS k (scope, start, grp)
       JOIN ${schema}.counter_groups AS t ON t.scope = k.scope AND t.window_start = k.start AND t.grp = k.grp`,
    ),
    counters: named(
      `SELECT t.scope, t.window_start, t.identity, t.used FROM ${named3} AS k (scope, start, identity)
       JOIN ${schema}.counters AS t ON t.scope = k.scope AND t.window_start = k.start AND t.identity = k.identity`,
    ),
    known: named(`SELECT change_id, result FROM ${schema}.counter_changes WHERE change_id = ANY ($1::text[])`),
    putWindows: named(
      `UPDATE ${schema}.counter_windows AS t SET identities = k.identities
       FROM unnest($1::text[], $2::int8[], $3::int8[]) AS k (scope, start, identities)
       WHERE t.scope = k.scope AND t.window_start = k.start`,
    ),
    putGroups: named(
      `INSERT INTO ${schema}.counter_groups (scope, window_start, grp, identities)
       SELECT * FROM unnest($1::text[], $2::int8[], $3::text[], $4::int8[])
       ON CONFLICT (scope, window_start, grp) DO UPDATE SET identities = excluded.identities`,
    ),
    putCounters: named(
      `INSERT INTO ${schema}.counters (scope, window_start, identity, used)
       SELECT * FROM unnest($1::text[], $2::int8[], $3::text[], $4::int8[])
       ON CONFLICT (scope, window_start, identity) DO UPDATE SET used = excluded.used`,
    ),
    note: named(
      `INSERT INTO ${schema}.counter_changes (change_id, at, result)
       SELECT k.id, $3, k.result FROM unnest($1::text[], $2::text[]) AS k (id, result)
       ON CONFLICT (change_id) DO UPDATE SET at = excluded.at, result = excluded.result`,
    ),
    alive: named(
      `SELECT scope, sum(identities)::int8 AS identities FROM ${schema}.counter_windows WHERE window_end > $1 GROUP BY scope`,
    ),
    over: named(`SELECT scope, window_start FROM ${schema}.counter_windows WHERE window_end <= $1 LIMIT 1`),
    removeCounters: named(
      `DELETE FROM ${schema}.counters WHERE (scope, window_start, identity) IN
         (SELECT scope, window_start, identity FROM ${schema}.counters WHERE scope = $1 AND window_start = $2 LIMIT $3)`,
    ),
    removeGroups: named(`DELETE FROM ${schema}.counter_groups WHERE scope = $1 AND window_start = $2`),
    removeWindow: named(`DELETE FROM ${schema}.counter_windows WHERE scope = $1 AND window_start = $2`),
    removeChanges: named(
      `DELETE FROM ${schema}.counter_changes WHERE change_id IN
         (SELECT change_id FROM ${schema}.counter_changes WHERE at < $1 LIMIT $2)`,
    ),
  };
}
