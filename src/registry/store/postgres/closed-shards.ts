// Sums of money by hour and day stand in shards, one for each process that writes, so that processes do not wait for one another.
// Once a step is over nobody writes it any more: its shards become one row, or a question about months would read as many times
// more rows as there are processes. Who settles late all the same adds a row of its shard again: no sum depends on the folding.
import { stepOf, STEP_MS } from '../../../domain/totals/steps.ts';
import { nullableInteger } from '../rows.ts';
import type { ChargeSql } from './charge-sql.ts';
import type { Session } from './connection.ts';

/** Milliseconds after its end from which a step is closed: nobody's settlement is written so late. */
const CLOSED_AFTER_MS = STEP_MS.hour;
/** Steps of a kind that one call folds: a step holds a thousand routes at most. */
const AT_ONCE = 4;

const KEY = ['route_id', 'currency', 'network', 'asset', 'asset_decimals'];
const FOLDED = [
  { step: 'day', table: 'charge_totals', key: ['step', 'start', ...KEY], at: 'start', where: "step = 'day' AND" },
  { step: 'hour', table: 'charge_sums', key: ['hour', ...KEY], at: 'hour', where: '' },
] as const;

/** Folds shards of steps that are over, a bounded part at a time; true if there may be more. */
export function createShardFolding({ schema, named }: Pick<ChargeSql, 'schema' | 'named'>) {
  const kinds = FOLDED.map(({ step, table, key, at, where }) => {
    const columns = key.join(', ');
    return {
      step,
      /** Number of the step before which nothing is left to fold, as far as this process has seen. */
      from: 0,
      next: named(
        `SELECT min(${at}) AS start FROM ${schema}.${table} WHERE ${where} ${at} >= $1 AND ${at} < $2 AND shard > 0`,
      ),
      fold: named(
        `WITH gone AS (DELETE FROM ${schema}.${table} WHERE ${where} ${at} = $1 AND shard > 0 RETURNING ${columns}, charges, amount)
         INSERT INTO ${schema}.${table} AS t (${columns}, shard, charges, amount)
         SELECT ${columns}, 0, sum(charges), sum(amount) FROM gone GROUP BY ${columns} ORDER BY ${columns}
         ON CONFLICT (${columns}, shard) DO UPDATE SET charges = t.charges + excluded.charges, amount = t.amount + excluded.amount`,
      ),
    };
  });
  return async (session: Session, now: number): Promise<boolean> => {
    let more = false;
    for (const kind of kinds) {
      const closed = stepOf(now - CLOSED_AFTER_MS, kind.step);
      let left = AT_ONCE;
      for (; left > 0 && kind.from < closed; left--) {
        const [row] = (await session.query(kind.next, [kind.from, closed])).rows;
        const start = row === undefined ? null : nullableInteger(row, 'start');
        if (start !== null) await session.query(kind.fold, [start]);
        kind.from = start === null ? closed : start + 1;
      }
      more ||= left === 0;
    }
    return more;
  };
}
