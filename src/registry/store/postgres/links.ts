// The connections of one process to one store, and what all of them share: where it is, the database's clock, what
// every transaction sets for itself. Each connection is looked at before it is used. A standby, an engine that does not
// keep what it confirms, or a schema that this program cannot use is refused.
import type { Random } from '../../../host/clock.ts';
import type { Log } from '../../../host/log.ts';
import {
  createConnection,
  PostgresRefusal,
  type Address,
  type Link,
  type OpenedConnection,
  type Session,
} from './connection.ts';
import { createDatabaseClock, type DatabaseClock } from './database-clock.ts';
import { timedLink } from './call-timing.ts';
import type { ObserveStore, StoreLoad } from '../ports.ts';
import { integer, text } from '../rows.ts';

export type PostgresPlace = {
  readonly address: Address;
  readonly schema: string;
  /** Number of connections for writes of charges; besides them there is one for reads and one for routes. */
  readonly connections: number;
  readonly timeoutMs: number;
};

export type Links = {
  readonly schema: string;
  readonly pooler: boolean;
  readonly timeoutMs: number;
  readonly log: Log;
  readonly random: Random;
  readonly clock: DatabaseClock;
  readonly writers: readonly Link[];
  /** Connection of reports. */
  readonly reader: Link;
  /** Connection of routes and API keys; it hears of changes. */
  readonly control: Link;
  /** Connection of `control` for operations that callers wait for. */
  readonly controlFor: Readonly<Record<'read' | 'change', Link>>;
  readonly observe: ObserveStore;
  /** Greets each connection of `control` once it is made; throws if there is one already, which would be left out. */
  readonly onControl: (greet: (session: Session, opened: OpenedConnection) => Promise<void>) => void;
  /** Settings that each transaction makes for itself: a pooler would hand settings of a session on to others. */
  readonly settings: () => string;
  /** Time by the database's clock when a connection that was lost was had again; -Infinity if none was. */
  readonly recoveredAt: () => number;
  readonly connections: () => Omit<StoreLoad, 'waiting'>;
  readonly close: () => Promise<void>;
};

const UNOBSERVED: ObserveStore = { call: () => undefined, batch: () => undefined };
const OLDEST = 15;
const NEWEST = 18;
/** Waits for another transaction; shorter than the database takes to find that two wait for each other. */
const LOCK_MS = 300;

type LinksOptions = {
  readonly now: () => number;
  readonly log: Log;
  readonly random: Random;
  readonly observe?: ObserveStore | undefined;
  /** Checks each new connection before it is used: that the schema fits. */
  readonly prepare: (session: Session) => Promise<void>;
};

export function openLinks(
  { address, schema, connections, timeoutMs }: PostgresPlace,
  { now, log, random, observe = UNOBSERVED, prepare }: LinksOptions,
): Links {
  const clock = createDatabaseClock(now);
  let synchronous = '';
  let warned = false;
  let wasLost = false;
  let recoveredAt = -Infinity;
  let greetControl: Parameters<Links['onControl']>[0] | undefined;

  const greet = async (session: Session, opened: OpenedConnection): Promise<void> => {
    const { rows } = await session.query(HELLO, []);
    const row = rows[0] ?? {};
    clock.hear(integer(row, 'now'));
    const version = Math.trunc(integer(row, 'version') / 10_000);
    if (integer(row, 'standby') === 1 || text(row, 'read_only') === 'on')
      throw new Error('the database takes no writes: it is a standby');
    if (version < OLDEST) throw new PostgresRefusal(`PostgreSQL ${version} is too old; take ${OLDEST} to ${NEWEST}`);
    if (text(row, 'fsync') !== 'on')
      throw new PostgresRefusal('the database has fsync off, and forgets what it confirmed; switch it on');
    if (version > NEWEST && !warned) log.warn('this version of PostgreSQL is not tested', { version });
    warned = true;
    // A confirmed commit must have been written, and if there is a synchronous standby, there as well.
    synchronous = ['off', 'local'].includes(text(row, 'synchronous_commit'))
      ? 'SET LOCAL synchronous_commit = on; '
      : '';
    await prepare(session);
    if (wasLost) [wasLost, recoveredAt] = [false, clock.now()];
    opened.onLost(() => void (wasLost = true));
  };
  const connection = (greeting = greet): Link => createConnection({ address, timeoutMs, log, random, greet: greeting });
  const idleLimit = `idle_in_transaction_session_timeout = '${IDLE_PER_STATEMENT * timeoutMs}ms'`;
  const setUp = async (session: Session): Promise<void> => {
    if (!address.pooler) await session.simple(`${BY_INDEX}; SET ${idleLimit}`);
  };
  const perTransaction = address.pooler ? `SET LOCAL ${idleLimit}; ` : '';
  const writers = Array.from({ length: connections }, () =>
    connection(async (session, opened) => {
      await greet(session, opened);
      await setUp(session);
    }),
  );
  const reader = connection();
  const control = connection(async (session, opened) => {
    await greet(session, opened);
    await setUp(session);
    await greetControl?.(session, opened);
  });
  const all = [...writers, reader, control];
  return {
    ...{ schema, pooler: address.pooler, timeoutMs, log, random, observe, clock, control },
    writers: writers.map((each) => timedLink(each, 'batch', observe)),
    reader: timedLink(reader, 'read', observe),
    controlFor: { read: timedLink(control, 'read', observe), change: timedLink(control, 'change', observe) },
    onControl: (greeting) => {
      if (control.isOpen()) throw new Error('the connection is open, and would not be greeted');
      greetControl = greeting;
    },
    settings: () => `; ${synchronous}${perTransaction}SET LOCAL lock_timeout = '${LOCK_MS}ms'`,
    recoveredAt: () => recoveredAt,
    connections: () => ({
      open: all.filter((each) => each.isOpen()).length,
      busy: all.filter((each) => each.isBusy()).length,
    }),
    close: async () => {
      await Promise.all(all.map((each) => each.close()));
    },
  };
}

/**
 * Times that a statement may take after which the database ends a transaction whose process says nothing. If the machine of a
 * process is gone nobody tells the database, and until TCP notices, which takes hours, its rows would be locked for all others.
 */
const IDLE_PER_STATEMENT = 3;

/**
 * A statement that was prepared on a small table keeps the plan of a small one. On a large table it would read all
 * rows: a charge cost 60 ms of the server instead of a fraction of one. Behind a pooler each is planned anew.
 */
const BY_INDEX = 'SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off';

const HELLO = {
  name: 'tollgate_hello',
  text: `SELECT current_setting('server_version_num')::int4 AS version, current_setting('fsync') AS fsync,
    current_setting('synchronous_commit') AS synchronous_commit, pg_is_in_recovery() AS standby,
    current_setting('transaction_read_only') AS read_only, floor(extract(epoch FROM clock_timestamp()) * 1000)::int8 AS now`,
};
