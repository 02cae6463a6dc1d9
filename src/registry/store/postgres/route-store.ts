// Routes on PostgreSQL. Other processes hear of a write by a notification, which is a hint: they read the revision
// themselves every half second. Reads that belong together see one snapshot.
import { createTextPool } from '../../../domain/text-pool.ts';
import type { Random } from '../../../host/clock.ts';
import { StoreUnavailable, type Head, type RouteStore } from '../ports.ts';
import { readChange, readHead, readHistory, readRoute } from '../route-values.ts';
import { plain } from './charge-batch.ts';
import { inTransaction, messageOf, PostgresRefusal, type Session } from './connection.ts';
import { insist } from './contention.ts';
import type { Links } from './links.ts';
import { createRouteSql, writeRoutes } from './route-writes.ts';
import type { ChangeWatch } from './change-watch.ts';

const CHANGES_KEPT = 10_000;

type RouteRowsOptions = {
  readonly links: Links;
  readonly watch: ChangeWatch;
  readonly random: Random;
  readonly registryId: string;
  readonly changesKept?: number;
};

export function createRoutes({
  links,
  watch,
  random,
  registryId,
  changesKept = CHANGES_KEPT,
}: RouteRowsOptions): RouteStore {
  const { schema } = links;
  const sql = createRouteSql(schema);
  const deps = { sql, schema, random, changesKept };
  const ask = createAsk(links, 'read');
  const askToChange = createAsk(links, 'change');
  /** Head that was told last: a restored or promoted database may tell the same revision of another set. */
  let told: Head | undefined;
  const tell = <T extends Head>(head: T): T => {
    told = { revision: head.revision, stamp: head.stamp };
    return head;
  };
  const isOther = async (session: Session, revision: number, newest: Head): Promise<boolean> => {
    if (told?.revision !== revision || revision === 0) return false;
    if (newest.revision === revision) return newest.stamp !== told.stamp;
    const { rows } = await session.query(sql.named(sql.stampOf), [revision]);
    return rows[0] !== undefined && rows[0]['stamp'] !== told.stamp;
  };

  return {
    registryId,
    load: () =>
      ask((session) =>
        // Both are read in one snapshot, so that the head belongs to the rows.
        inTransaction(session, ' ISOLATION LEVEL REPEATABLE READ READ ONLY', async () => {
          const pool = createTextPool();
          const head = tell(readHead((await session.query(sql.named(sql.head), [])).rows[0]));
          const { rows } = await session.query(sql.named(sql.all), []);
          return { head, routes: rows.map((row) => readRoute(row, pool)) };
        }),
      ),
    write: async (writes, options) => {
      const written = await askToChange((session) =>
        inTransaction(session, links.settings(), () => writeRoutes(deps, session, writes, options)),
      );
      if (written !== 'moved') watch.seen(tell(written.head));
      return written;
    },
    changesAfter: (revision, limit) =>
      ask((session) =>
        inTransaction(session, ' ISOLATION LEVEL REPEATABLE READ READ ONLY', async () => {
          const head = readHead((await session.query(sql.named(sql.head), [])).rows[0]);
          const { revision: newest } = head;
          if (await isOther(session, revision, head)) return 'too_old';
          if (revision === newest) return [];
          const oldest = (await session.query(sql.named(sql.oldest), [])).rows[0]?.['revision'];
          if (revision > newest || typeof oldest !== 'number' || revision < oldest - 1) return 'too_old';
          const changes = (await session.query(sql.named(sql.after), [revision, limit])).rows.map(readChange);
          const last = changes.at(-1);
          if (last !== undefined && told?.revision === revision) tell(last);
          return changes;
        }),
      ),
    history: async (id, before, limit) => {
      const asked = [plain(id), before ?? Number.MAX_SAFE_INTEGER, limit];
      return (await ask((session) => session.query(sql.named(sql.history), asked))).rows.map(readHistory);
    },
    watch: (hint) => watch.routes(hint),
  };
}

/**
 * Asks the database; again, from the beginning of `work`, if it waited too long for another transaction. An error of the
 * database or its connection goes out as StoreUnavailable.
 */
export function createAsk(
  { controlFor, timeoutMs }: Links,
  operation: 'read' | 'change',
): <T>(work: (session: Session) => Promise<T>) => Promise<T> {
  return async (work) => {
    const deadline = performance.now() + timeoutMs;
    try {
      return await insist(deadline, () => controlFor[operation].use(deadline, work));
    } catch (error) {
      if (error instanceof TypeError || error instanceof PostgresRefusal) throw error;
      throw new StoreUnavailable(messageOf(error), { cause: error });
    }
  };
}
