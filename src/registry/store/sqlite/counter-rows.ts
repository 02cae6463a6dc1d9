// Counters of requests on SQLite. The ledger's thread holds a transaction around each batch of calls, so that what is read
// here is what is written: the pure rule decides, and the rows keep it.
import type { DatabaseSync } from 'node:sqlite';
import {
  COUNTER_CHANGES_KEPT_MS,
  decideTake,
  type CounterChange,
  type CounterResult,
} from '../../../domain/selling/counter.ts';
import { readResult, writeResult } from '../counter-values.ts';
import { integer, text } from '../rows.ts';

export type CounterRows = {
  readonly changeCounters: (changes: readonly CounterChange[], now: number) => readonly CounterResult[];
  /** Scopes with the number of their identities in the windows that go on. */
  readonly counterIdentities: (now: number) => readonly (readonly [scope: string, identities: number])[];
  /** Removes windows that are over, and changes that nobody repeats any more; true if there may be more. */
  readonly pruneCounters: (limit: number, now: number) => boolean;
};

export function createCounterRows(db: DatabaseSync): CounterRows {
  const sql = {
    known: db.prepare('SELECT result FROM counter_changes WHERE change_id = ?'),
    note: db.prepare('INSERT OR REPLACE INTO counter_changes (change_id, at, result) VALUES (?, ?, ?)'),
    used: db.prepare('SELECT used FROM counters WHERE scope = ? AND window_start = ? AND identity = ?'),
    put: db.prepare(
      `INSERT INTO counters (scope, window_start, identity, used) VALUES (?, ?, ?, ?)
       ON CONFLICT DO UPDATE SET used = excluded.used`,
    ),
    window: db.prepare('SELECT identities FROM counter_windows WHERE scope = ? AND window_start = ?'),
    addToWindow: db.prepare(
      `INSERT INTO counter_windows (scope, window_start, window_end, identities) VALUES (?, ?, ?, 1)
       ON CONFLICT DO UPDATE SET identities = identities + 1`,
    ),
    group: db.prepare('SELECT identities FROM counter_groups WHERE scope = ? AND window_start = ? AND grp = ?'),
    addToGroup: db.prepare(
      `INSERT INTO counter_groups (scope, window_start, grp, identities) VALUES (?, ?, ?, 1)
       ON CONFLICT DO UPDATE SET identities = identities + 1`,
    ),
    alive: db.prepare(
      'SELECT scope, sum(identities) AS identities FROM counter_windows WHERE window_end > ? GROUP BY scope',
    ),
    over: db.prepare('SELECT scope, window_start FROM counter_windows WHERE window_end <= ? LIMIT 1'),
    removeCounters: db.prepare(
      `DELETE FROM counters WHERE (scope, window_start, identity) IN
         (SELECT scope, window_start, identity FROM counters WHERE scope = ? AND window_start = ? LIMIT ?)`,
    ),
    removeGroups: db.prepare('DELETE FROM counter_groups WHERE scope = ? AND window_start = ?'),
    removeWindow: db.prepare('DELETE FROM counter_windows WHERE scope = ? AND window_start = ?'),
    removeChanges: db.prepare(
      'DELETE FROM counter_changes WHERE change_id IN (SELECT change_id FROM counter_changes WHERE at < ? LIMIT ?)',
    ),
  };

  const countOf = (row: Record<string, unknown> | undefined, name: string): number | undefined => {
    const value = row?.[name];
    return value === undefined ? undefined : Number(value);
  };

  const change = (wanted: CounterChange, now: number): CounterResult => {
    const { scope, startMs, endMs, identity, changeId } = wanted;
    const before = sql.known.get(changeId);
    const known = before && readResult(text(before, 'result'));
    const used = countOf(sql.used.get(scope, startMs, identity), 'used');
    if (wanted.kind === 'give_back') {
      const given: CounterResult = { kind: 'given_back' };
      if (known?.kind === 'counted') sql.put.run(scope, startMs, identity, Math.max(0, (used ?? 0) - 1));
      // One that comes before its take forbids it.
      sql.note.run(changeId, now, writeResult(given));
      return given;
    }
    if (known !== undefined) return known;
    const { group } = wanted;
    const result = decideTake(wanted, {
      used,
      identities: countOf(sql.window.get(scope, startMs), 'identities') ?? 0,
      groupIdentities: group === null ? 0 : (countOf(sql.group.get(scope, startMs, group), 'identities') ?? 0),
    });
    if (result.kind === 'counted') {
      sql.put.run(scope, startMs, identity, result.used);
      if (used === undefined) sql.addToWindow.run(scope, startMs, endMs);
      if (used === undefined && group !== null) sql.addToGroup.run(scope, startMs, group);
    }
    sql.note.run(changeId, now, writeResult(result));
    return result;
  };

  return {
    changeCounters: (changes, now) => changes.map((each) => change(each, now)),
    counterIdentities: (now) =>
      sql.alive.all(now).map((row) => [text(row, 'scope'), integer(row, 'identities')] as const),
    pruneCounters: (limit, now) => {
      let more = Number(sql.removeChanges.run(now - COUNTER_CHANGES_KEPT_MS, limit).changes) === limit;
      const over = sql.over.get(now);
      if (over === undefined) return more;
      const place = [text(over, 'scope'), integer(over, 'window_start')] as const;
      more = true;
      if (Number(sql.removeCounters.run(...place, limit).changes) < limit) {
        sql.removeGroups.run(...place);
        sql.removeWindow.run(...place);
      }
      return more;
    },
  };
}
