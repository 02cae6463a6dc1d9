// Holds one connection to PostgreSQL, used by one caller at a time and made anew when it is lost. Statements of a
// caller go out without waiting for each other. It never assumes: a connection that timed out, was cut, turned
// read-only or spoke of doubt is destroyed, and what was sent on it is unknown (ConnectionLost). It sends no cancel
// requests: one that reaches a commit that waits for a standby makes it a success that only this server knows of.
import { Socket } from 'node:net';
import type { ConnectionOptions } from 'node:tls';
import { setTimeout as wait } from 'node:timers/promises';
import { Client, DatabaseError, type QueryResult } from 'pg';
import type { Random } from '../../../host/clock.ts';
import type { Log } from '../../../host/log.ts';
import type { Row } from '../rows.ts';

export type Address = {
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly database: string;
  /** Password, asked for each connection: passwords rotate. */
  readonly password: () => string | undefined;
  readonly tls: () => ConnectionOptions | false;
  /** Whether a pooler in transaction mode is in front: no statement is prepared, nothing is listened to. */
  readonly pooler: boolean;
};

/** Statement that is prepared under `name`, once a connection. */
export type Statement = { readonly name: string; readonly text: string };
/** Result of a statement. `count` has the rows that were written or read. */
export type Answer = { readonly command: string; readonly rows: readonly Row[]; readonly count: number };

export type Session = {
  readonly query: (statement: Statement, values: readonly unknown[]) => Promise<Answer>;
  /** Several statements, without values. */
  readonly simple: (text: string) => Promise<Answer>;
};

export type Link = {
  /** Waits for its turn and for the connection, until `deadline` (milliseconds of the monotonic clock). */
  readonly use: <T>(deadline: number, work: (session: Session) => Promise<T>) => Promise<T>;
  readonly isOpen: () => boolean;
  readonly isBusy: () => boolean;
  readonly close: () => Promise<void>;
};

type ConnectionOptionsOfStore = {
  readonly address: Address;
  /** Milliseconds that a statement may take. */
  readonly timeoutMs: number;
  readonly log: Log;
  readonly random: Random;
  /** Run on each new connection before anything else; what it throws ends that connection. */
  readonly greet?: (session: Session, opened: OpenedConnection) => Promise<void>;
};

/** The connection as events tell of it. */
export type OpenedConnection = {
  readonly onNotification: (hear: () => void) => void;
  readonly onLost: (hear: () => void) => void;
};

/** Whether what was asked happened is not known. */
export class ConnectionLost extends Error {
  override readonly name = 'ConnectionLost';
}

const FIRST_RETRY_MS = 50;
/** Longest pause between two tries while somebody waits, in milliseconds. */
const LAST_RETRY_MS = 1000;
const CONNECT_MS = 3000;

export function createConnection(options: ConnectionOptionsOfStore): Link {
  let client: OpenSession | undefined;
  let turn: Promise<unknown> = Promise.resolve();
  let closed = false;
  let users = 0;

  const opened = async (deadline: number): Promise<OpenSession> => {
    for (let retryMs = FIRST_RETRY_MS; ; retryMs = Math.min(2 * retryMs, LAST_RETRY_MS)) {
      if (closed) throw new ConnectionLost('The store is closed.');
      if (client?.isUsable() === true) return client;
      try {
        client = await open(options, Math.min(CONNECT_MS, deadline - performance.now()));
        return client;
      } catch (error) {
        client = undefined;
        // Waiting does not help.
        if (error instanceof PostgresRefusal) throw error;
        const pause = retryMs * (0.5 + byteOf(options.random) / 512);
        if (performance.now() + pause >= deadline) throw new ConnectionLost(messageOf(error), { cause: error });
        await wait(pause);
      }
    }
  };

  const use = async <T>(deadline: number, work: (session: Session) => Promise<T>): Promise<T> => {
    users++;
    const before = turn;
    const { promise: mine, resolve: done } = Promise.withResolvers<void>();
    turn = mine;
    await before;
    let using: OpenSession | undefined;
    try {
      if (performance.now() >= deadline) throw new ConnectionLost('There was no turn on the connection in time.');
      using = await opened(deadline);
      const result = await work(using.session);
      if (!using.isUsable()) throw new ConnectionLost(using.reason());
      return result;
    } catch (error) {
      if (using !== undefined && (isLosing(error) || !using.isUsable())) {
        const why = using.reason(error);
        using.destroy();
        throw new ConnectionLost(why, { cause: error });
      }
      throw error;
    } finally {
      users--;
      done();
    }
  };

  return {
    use,
    isOpen: () => client?.isUsable() === true,
    isBusy: () => client?.isUsable() === true && users > 0,
    close: async () => {
      await turn;
      closed = true;
      client?.destroy();
    },
  };
}

/** Random number from 0 to 255. */
export function byteOf(random: Random): number {
  return random(1).readUInt8();
}

type OpenSession = {
  readonly session: Session;
  readonly isUsable: () => boolean;
  readonly reason: (error?: unknown) => string;
  readonly destroy: () => void;
};

async function open({ address, timeoutMs, greet }: ConnectionOptionsOfStore, connectMs: number): Promise<OpenSession> {
  const { password, tls, pooler, ...where } = address;
  const socket = new Socket();
  // Batches are written in one go, and wait for nothing else.
  socket.setNoDelay(true);
  const client = new Client({
    ...where,
    // The password is set: undefined would be looked for in files and in the environment.
    password: () => password() ?? '',
    stream: () => socket,
    ssl: tls(),
    options: '',
    application_name: 'tollgate',
    pipeline: true,
    query_timeout: timeoutMs,
    connectionTimeoutMillis: Math.max(1, Math.trunc(connectMs)),
    types: { getTypeParser },
  });
  let lost: string | undefined;
  const hearLost: (() => void)[] = [];
  const lose = (why: string): void => {
    if (lost !== undefined) return;
    lost = why;
    socket.destroy();
    for (const hear of hearLost) hear();
  };
  client.on('error', (error) => lose(messageOf(error)));
  client.on('end', () => lose('the connection ended'));
  // A notice may say that a commit no longer waits for its standby: it stands here, and perhaps nowhere else.
  client.on('notice', ({ code, message }) => {
    if (code?.startsWith('01') === true) lose(message ?? code);
  });
  const session: Session = {
    query: async ({ name, text }, values) =>
      toAnswer(await client.query<Record<string, unknown>>({ text, values: [...values], ...(pooler ? {} : { name }) })),
    simple: async (text) => toAnswer(await client.query<Record<string, unknown>>(text)),
  };
  try {
    await client.connect();
    await greet?.(session, {
      onNotification: (hear) => void client.on('notification', hear),
      onLost: (hear) => void hearLost.push(hear),
    });
  } catch (error) {
    lose(messageOf(error));
    throw error;
  }
  return {
    session,
    isUsable: () => lost === undefined,
    reason: (error) => lost ?? messageOf(error),
    destroy: () => lose('the connection was given up'),
  };
}

/** Reads an answer; that of the last one if there were several statements. */
function toAnswer(result: QueryResult<Record<string, unknown>>): Answer {
  const last = Array.isArray(result) ? (result.at(-1) as typeof result) : result;
  return { command: last.command, rows: last.rows, count: last.rowCount ?? 0 };
}

/**
 * Codes that lose a connection. 08: the connection; 57P: the server ends; 25006: it is no primary; the rest: a
 * statement that was prepared for what is no more.
 */
const LOSING = /^(?:08...|57P..|25006|0A000|26000|42P05)$/;

function isLosing(error: unknown): boolean {
  if (error instanceof ConnectionLost) return true;
  if (error instanceof DatabaseError) return error.code === undefined || LOSING.test(error.code);
  return !OURS.some((kind) => error instanceof kind);
}

/** Our own word, not the connection's. */
export class PostgresRefusal extends Error {
  override readonly name: string = 'Refused';
}

/** Rights, the database, its schema; certificates. A password file that cannot be read is an error of `open`. */
const REFUSING =
  /^(?:28...|42501|3D000|3F000|42P01|42703|(?:ERR_TLS|ERR_SSL|CERT|UNABLE_TO|SELF_SIGNED|DEPTH_ZERO)_.*)$/;
/** Message of the driver for a server without TLS. */
const NO_TLS = 'The server does not support SSL connections';

/** Whether the database is there and says no: waiting does not help, and another process may be served. */
export function isRefusal(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if (error instanceof PostgresRefusal || error.message === NO_TLS) return true;
  const { code, syscall } = error as NodeJS.ErrnoException;
  return syscall === 'open' || (code !== undefined && REFUSING.test(code)) || isRefusal(error.cause);
}

/** The driver reports trouble of a connection as a plain Error. */
const OURS = [PostgresRefusal, TypeError, SyntaxError, RangeError];

export function codeOf(error: unknown): string | undefined {
  return error instanceof DatabaseError ? error.code : undefined;
}

export function constraintOf(error: unknown): string | undefined {
  return error instanceof DatabaseError ? error.constraint : undefined;
}

export function messageOf(error: unknown): string {
  if (error instanceof AggregateError && error.message === '') return error.errors.map(messageOf).join('; ');
  return error instanceof Error ? error.message : String(error);
}

const INT8 = 20;
const BYTEA = 17;
const BOOL = 16;
const INTS: ReadonlySet<number> = new Set([21, 23]);

/** Integers are exact numbers, and true is 1. Bytes come as \x and hexadecimal. Everything else is text. */
function getTypeParser(oid: number): (value: string) => unknown {
  if (oid === INT8) return toInteger;
  if (INTS.has(oid)) return Number;
  if (oid === BOOL) return (value) => (value === 't' ? 1 : 0);
  if (oid === BYTEA) return toBytes;
  return (value) => value;
}

function toBytes(value: string): Uint8Array {
  return Buffer.from(value.slice(2), 'hex');
}

function toInteger(value: string): number {
  const number = Number(value);
  if (!Number.isSafeInteger(number)) throw new TypeError('the store holds an integer that is too large');
  return number;
}

/** Runs `work` in one transaction, which is over when it resolves. An exception of `work` undoes everything. */
export async function inTransaction<T>(session: Session, settings: string, work: () => Promise<T>): Promise<T> {
  await session.simple(`BEGIN${settings}`);
  try {
    const result = await work();
    const { command } = await session.simple('COMMIT');
    if (command !== 'COMMIT') throw new PostgresRefusal(`the transaction ended with ${command}`);
    return result;
  } catch (error) {
    // A connection that is gone ends its transaction as well.
    await session.simple('ROLLBACK').catch(() => undefined);
    throw error;
  }
}
