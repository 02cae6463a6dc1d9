// Passes and draws on them on PostgreSQL, exact over all processes that share it: a transaction locks the books of its passes,
// reads the draws that it needs, decides by the pure rules and writes what changed. Changes that come while one is under way
// share the next one.
import {
  changeDraws,
  CREDIT_SCALE,
  endLost,
  type DrawChange,
  type DrawResult,
  type DrawRows,
  type PassBook,
  type PassDraw,
} from '../../../domain/selling/pass-book.ts';
import { MOST_OF_PAYER, type PassFilter, type PassStore } from '../../../domain/selling/pass-store.ts';
import { batched } from '../../../host/batches.ts';
import { AUDIT_COLUMNS } from '../audit-values.ts';
import {
  BOOK_COLUMNS,
  bookValues,
  DRAW_COLUMNS,
  drawValues,
  PASS_COLUMNS,
  readBook,
  readDraw,
  readPass,
  readRevoked,
  revocationValues,
  typeOf,
} from '../pass-values.ts';
import { text } from '../rows.ts';
import { plain } from './charge-batch.ts';
import type { AskReader } from './charge-lists.ts';
import { inTransaction, type Session, type Statement } from './connection.ts';

type PostgresPassesDeps = {
  readonly schema: string;
  readonly run: string;
  readonly named: (text: string) => Statement;
  readonly use: <T>(work: (session: Session) => Promise<T>) => Promise<T>;
  /** Reads, for lists; each is planned for what it binds. */
  readonly ask: AskReader;
  readonly now: () => number;
  /** Settings that a transaction makes for itself. */
  readonly settings: () => string;
};

export type PostgresPasses = PassStore & {
  /** Removes passes that ended before then (undefined: none), and draws that nobody asks for any more; true if there may be more. */
  readonly prune: (endedMs: number | undefined, limit: number) => Promise<boolean>;
};

/** Changes of one transaction at most. */
const MOST_CHANGES = 256;
/** Draws that are removed for each pass that may be. */
const DRAWS_FOR_EACH = 20;

export function createPasses(deps: PostgresPassesDeps): PostgresPasses {
  const { run, use, ask, now, settings } = deps;
  const sql = createSql(deps);
  const changeAll = (changes: readonly DrawChange[]): Promise<readonly DrawResult[]> =>
    use((session) =>
      inTransaction(session, settings(), async () => {
        const at = now();
        const drawing = await read(session, sql, changes, at);
        const results = changes.map((change) => changeDraws(drawing.rows, change, at));
        await write(session, sql, drawing);
        return results;
      }),
    );
  const live = `ends_at > $1::int8 AND revoked_at IS NULL AND is_used_up = 0`;
  return {
    run,
    change: batched(MOST_CHANGES, changeAll),
    renew: (owner, ids, leaseMs) =>
      use(async (session) => {
        const { rows } = await session.query(sql.renew, [now() + leaseMs, ids.map(plain), plain(owner)]);
        const ours = new Set(rows.map((row) => text(row, 'id')));
        return ids.filter((id) => ours.has(id));
      }),
    ofPayer: (payer) =>
      use(async (session) => (await session.query(sql.ofPayer, [plain(payer), now()])).rows.map(readPass)),
    revoked: (after, limit) =>
      use(async (session) => (await session.query(sql.revoked, [after, now(), limit])).rows.map(readRevoked)),
    list: async (filter) => {
      const { where, values } = conditionsOf(filter, now(), live);
      const { rows } = await ask(
        `${sql.select} ${where} ORDER BY p.seq DESC LIMIT ${Math.trunc(filter.limit)}`,
        values,
      );
      return rows.map(readPass);
    },
    get: async (id) => {
      const { rows } = await ask(`${sql.select} WHERE p.id = $1`, [id]);
      return rows[0] && readPass(rows[0]);
    },
    revoke: (id, cause) =>
      use((session) =>
        inTransaction(session, settings(), async () => {
          const at = now();
          const { count } = await session.query(sql.revoke, [at, plain(id)]);
          const audit = count === 1 ? revocationValues(id, at, cause) : null;
          if (audit !== null) await session.query(sql.audit, [...audit]);
          const { rows } = await session.query(sql.get, [plain(id)]);
          return rows[0] && readPass(rows[0]);
        }),
      ),
    outstanding: async () => {
      const { rows } = await ask(sql.outstanding(live), [now()]);
      return rows.map((row) => ({ currency: text(row, 'currency'), units: BigInt(text(row, 'units')) }));
    },
    endLost: (limit) =>
      use((session) =>
        inTransaction(session, settings(), async () => {
          const at = now();
          const found = (await session.query(sql.lostPasses, [at, limit])).rows.map((row) => text(row, 'pass_id'));
          if (found.length === 0) return false;
          const drawing = await readPasses(session, sql, { passIds: found, useIds: [], keys: [] }, at);
          for (const id of new Set(found))
            for (const draw of drawing.rows.lost(id, at)) endLost(drawing.rows, draw, at);
          await write(session, sql, drawing);
          return found.length === limit;
        }),
      ),
    prune: (endedMs, limit) =>
      use(async (session) => {
        const most = DRAWS_FOR_EACH * limit;
        const draws = (await session.query(sql.removeDraws, [now(), most])).count === most;
        if (endedMs === undefined) return draws;
        return (await session.query(sql.removePasses, [endedMs, limit])).count === limit || draws;
      }),
  };
}

function conditionsOf(
  { plan, terms, payer, live, before }: PassFilter,
  now: number,
  isLive: string,
): { readonly where: string; readonly values: readonly (string | number)[] } {
  const values: (string | number)[] = [];
  const conditions: string[] = [];
  // The time is bound first.
  if (live !== undefined) {
    values.push(now);
    conditions.push(live ? isLive : `NOT (${isLive})`);
  }
  const bind = (value: string | number): string => `$${values.push(value)}`;
  if (plan !== undefined) conditions.push(`p.plan = ${bind(plan)}`);
  if (terms !== undefined) conditions.push(`p.terms_id = ${bind(terms)}`);
  if (payer !== undefined) conditions.push(`p.payer = ${bind(payer)}`);
  if (before !== undefined) conditions.push(`p.seq < ${bind(before)}`);
  return { where: conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`, values };
}

/** What a transaction knows, and what it changes of it. */
type Drawing = {
  readonly rows: DrawRows;
  readonly books: Set<PassBook>;
  readonly draws: Set<PassDraw>;
  readonly dropped: Set<string>;
};

type Wanted = {
  readonly passIds: readonly string[];
  readonly useIds: readonly string[];
  /** Passes and keys, at the same places. */
  readonly keys: readonly { readonly passId: string; readonly sha256: string }[];
};

function read(session: Session, sql: PassSql, changes: readonly DrawChange[], now: number): Promise<Drawing> {
  const keys = changes.flatMap((change) => {
    const sha256 = keyOf(change);
    return sha256 === undefined ? [] : [{ passId: change.passId, sha256 }];
  });
  const [passIds, useIds] = [changes.map(({ passId }) => passId), changes.map(({ useId }) => useId)];
  return readPasses(session, sql, { passIds, useIds, keys }, now);
}

function keyOf(change: DrawChange): string | undefined {
  switch (change.kind) {
    case 'reserve':
      return change.key?.sha256;
    case 'give_back':
      return change.keySha256;
    case 'take':
      return undefined;
    default:
      return change satisfies never;
  }
}

async function readPasses(session: Session, sql: PassSql, wanted: Wanted, now: number): Promise<Drawing> {
  // In one order everywhere, so that no two wait for each other.
  const ids = [...new Set(wanted.passIds)].map(plain).toSorted();
  const locked = await session.query(sql.lock, [ids]);
  const [named, keyed, lost] = await Promise.all([
    session.query(sql.draws, [wanted.useIds.map(plain)]),
    session.query(sql.byKeys, [
      wanted.keys.map(({ passId }) => plain(passId)),
      wanted.keys.map(({ sha256 }) => sha256),
    ]),
    session.query(sql.lost, [ids, now]),
  ]);
  const books = new Map(locked.rows.map(readBook).map((book) => [book.id, book]));
  const draws = new Map([...named.rows, ...keyed.rows, ...lost.rows].map(readDraw).map((draw) => [draw.id, draw]));
  const changed = {
    books: new Map<string, PassBook>(),
    draws: new Map<string, PassDraw>(),
    dropped: new Set<string>(),
  };
  const rows: DrawRows = {
    book: (id) => books.get(id),
    draw: (id) => draws.get(id),
    drawByKey: (passId, sha256) => draws.values().find((draw) => draw.passId === passId && draw.key?.sha256 === sha256),
    lost: (passId, at) =>
      [...draws.values()].filter(
        (draw) => draw.passId === passId && draw.state === 'reserved' && draw.leaseUntil <= at,
      ),
    putBook: (book) => {
      books.set(book.id, book);
      changed.books.set(book.id, book);
    },
    putDraw: (draw) => {
      draws.set(draw.id, draw);
      changed.draws.set(draw.id, draw);
      changed.dropped.delete(draw.id);
    },
    dropDraw: (id) => {
      draws.delete(id);
      changed.draws.delete(id);
      changed.dropped.add(id);
    },
  };
  return {
    rows,
    get books() {
      return new Set(changed.books.values());
    },
    get draws() {
      return new Set(changed.draws.values());
    },
    dropped: changed.dropped,
  };
}

async function write(session: Session, sql: PassSql, { books, draws, dropped }: Drawing): Promise<void> {
  const columns = (rows: readonly (readonly unknown[])[], width: number): unknown[] =>
    Array.from({ length: width }, (_, column) =>
      rows.map((row) => (typeof row[column] === 'string' ? plain(row[column]) : row[column])),
    );
  // A draw that is dropped gives its key to another one.
  if (dropped.size > 0) await session.query(sql.drop, [[...dropped]]);
  await Promise.all([
    books.size === 0
      ? undefined
      : session.query(
          sql.putBooks,
          columns(
            [...books].map((book) => [book.id, ...bookValues(book)]),
            BOOK_COLUMNS.length + 1,
          ),
        ),
    draws.size === 0
      ? undefined
      : session.query(sql.putDraws, columns([...draws].map(drawValues), DRAW_COLUMNS.length)),
  ]);
}

type PassSql = ReturnType<typeof createSql>;

function createSql({ schema, named }: Pick<PostgresPassesDeps, 'schema' | 'named'>) {
  const [passes, draws] = [`${schema}.passes`, `${schema}.pass_draws`];
  const select = `SELECT p.seq, ${PASS_COLUMNS.map((name) => `p.${name}`).join(', ')} FROM ${passes} AS p`;
  const selectDraws = `SELECT ${DRAW_COLUMNS.map((name) => `d.${name}`).join(', ')} FROM ${draws} AS d`;
  const arrays = (columns: readonly string[]): string =>
    columns.map((name, index) => `$${index + 1}::${typeOf(name)}[]`).join(', ');
  const set = (columns: readonly string[], from: string): string =>
    columns.map((name) => `${name} = ${from}.${name}`).join(', ');
  const book = ['id', ...BOOK_COLUMNS];
  return {
    select,
    get: named(`${select} WHERE p.id = $1`),
    lock: named(`${select} WHERE p.id = ANY ($1::text[]) ORDER BY p.id FOR UPDATE`),
    draws: named(`${selectDraws} WHERE d.id = ANY ($1::text[])`),
    byKeys: named(
      `${selectDraws} JOIN unnest($1::text[], $2::text[]) AS k (pass_id, key_sha256)
       ON d.pass_id = k.pass_id AND d.key_sha256 = k.key_sha256`,
    ),
    lost: named(`${selectDraws} WHERE d.pass_id = ANY ($1::text[]) AND d.state = 'reserved' AND d.lease_until <= $2`),
    lostPasses: named(
      `SELECT d.pass_id FROM ${draws} AS d WHERE d.state = 'reserved' AND d.lease_until <= $1 LIMIT $2`,
    ),
    putBooks: named(
      `UPDATE ${passes} AS p SET ${set(BOOK_COLUMNS, 'v')} FROM unnest(${arrays(book)}) AS v (${book.join(', ')})
       WHERE p.id = v.id`,
    ),
    putDraws: named(
      `INSERT INTO ${draws} (${DRAW_COLUMNS.join(', ')}) SELECT * FROM unnest(${arrays(DRAW_COLUMNS)})
       ON CONFLICT (id) DO UPDATE SET ${set(DRAW_COLUMNS.slice(1), 'excluded')}`,
    ),
    drop: named(`DELETE FROM ${draws} WHERE id = ANY ($1::text[])`),
    /** Binds the end of the lease, ids and the run. */
    renew: named(
      `UPDATE ${draws} SET lease_until = $1 WHERE id = ANY ($2::text[]) AND left(owner, length($3) + 1) = $3 || '/'
         AND state = 'reserved' RETURNING id`,
    ),
    ofPayer: named(
      `${select} WHERE p.payer = $1 AND p.ends_at > $2 AND p.revoked_at IS NULL
       ORDER BY p.is_used_up, p.ends_at, p.seq LIMIT ${MOST_OF_PAYER}`,
    ),
    revoked: named(
      `SELECT p.id, p.revoked_at, p.ends_at FROM ${passes} AS p WHERE p.revoked_at > $1 AND p.ends_at > $2
       ORDER BY p.revoked_at LIMIT $3`,
    ),
    revoke: named(`UPDATE ${passes} SET revoked_at = $1 WHERE id = $2 AND revoked_at IS NULL`),
    audit: named(
      `INSERT INTO ${schema}.audit (${AUDIT_COLUMNS.join(', ')})
       VALUES (${AUDIT_COLUMNS.map((_, index) => `$${index + 1}`).join(', ')})`,
    ),
    // Many passes are alike, and numbers of any size are slow to divide.
    outstanding: (live: string) =>
      `SELECT currency, sum(count * div(amount::numeric * 1e${CREDIT_SCALE} * (sold::numeric - drawn::numeric), sold::numeric))::text AS units
       FROM (SELECT currency, amount, sold, drawn, count(*) AS count FROM ${passes}
         WHERE ${live} AND kind <> 'seconds' GROUP BY currency, amount, sold, drawn) AS alike GROUP BY currency`,
    removeDraws: named(`DELETE FROM ${draws} WHERE id IN (SELECT id FROM ${draws} WHERE kept_until < $1 LIMIT $2)`),
    removePasses: named(
      `DELETE FROM ${passes} WHERE seq IN (SELECT seq FROM ${passes} WHERE ends_at < $1 AND reserved = '0' LIMIT $2)`,
    ),
  };
}
