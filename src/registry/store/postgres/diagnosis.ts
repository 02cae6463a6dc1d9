// The diagnosis of a database for `check --online`: whether it serves this program, takes the connections of one process
// more, and keeps what it confirmed in a failover. Changes nothing.
import type { StoreRemark, StoreUse } from '../ports.ts';
import { integer, text } from '../rows.ts';
import { isRefusal, messageOf, type Session } from './connection.ts';
import type { PostgresPlace } from './links.ts';
import { isCurrent, readVersion } from './migrations.ts';

/** Examines the database. `ask` opens a connection as a server does, which refuses what cannot be served. */
export async function diagnose(
  place: PostgresPlace,
  use: StoreUse,
  ask: <T>(work: (session: Session) => Promise<T>) => Promise<T>,
): Promise<readonly StoreRemark[]> {
  try {
    return await ask(async (session) => {
      const made = isCurrent(await readVersion(session, place.schema))
        ? 'its schema is up to date'
        : 'its schema is made by the first start, or by `tollgate migrate`';
      const { rows } = await session.query({ name: 'tollgate_examine', text: DIAGNOSIS }, []);
      const row = rows[0] ?? {};
      const remarks: StoreRemark[] = [{ level: 'ok', detail: `it takes writes; ${made}` }];
      const needed = use.processes * (place.connections + 1) + (use.isRegistry ? 1 : 0);
      const [most, used] = [integer(row, 'most'), integer(row, 'used') - 1];
      // A pooler has connections of its own.
      if (!place.address.pooler)
        remarks.push(
          used + needed > most
            ? { level: 'warning', detail: tooMany(needed, used, most) }
            : { level: 'ok', detail: `one more of these takes ${needed} of ${most - used} connections that are free` },
        );
      if (integer(row, 'standbys') > 0 && text(row, 'synchronous') === '')
        remarks.push({ level: 'warning', detail: ASYNCHRONOUS });
      return remarks;
    });
  } catch (error) {
    return [{ level: isRefusal(error) ? 'cannot_serve' : 'away', detail: messageOf(error) }];
  }
}

function tooMany(needed: number, used: number, most: number): string {
  return `one more of these takes ${needed} connections, and ${used} of ${most} are in use: raise max_connections, write fewer connections, or put a pooler in between`;
}

const ASYNCHRONOUS =
  'its standbys follow later (synchronous_standby_names is empty): what was confirmed last is lost in a failover, and an answer may then be delivered twice';

/** Query that every user may make: whose connections there are, only some may read. */
const DIAGNOSIS = `SELECT current_setting('max_connections')::int4 - current_setting('superuser_reserved_connections')::int4
    - coalesce(current_setting('reserved_connections', true), '0')::int4 AS most,
  (SELECT sum(numbackends)::int4 FROM pg_stat_database) AS used,
  (SELECT count(*)::int4 FROM pg_stat_replication) AS standbys,
  current_setting('synchronous_standby_names') AS synchronous`;
