// Passes and draws on them on SQLite. The ledger's thread holds a transaction around each batch of calls, so that what is read
// here is what is written: the pure rules decide, and the rows keep it.
import { passIdOf } from '../../../domain/selling/pass.ts';
import type { DatabaseSync } from 'node:sqlite';
import { changeFromText, type DrawChangeText } from '../../../domain/selling/draw-text.ts';
import {
  changeDraws,
  creditUnits,
  endLost,
  type DrawResult,
  type DrawRows,
} from '../../../domain/selling/pass-book.ts';
import type { KeptPass } from '../../../domain/selling/pass-opening.ts';
import {
  MOST_LIVE_PASSES,
  MOST_OF_PAYER,
  PASSES_OF_A_PAYER,
  type ListedPass,
  type OutstandingSum,
  type PassFilter,
  type RevokedPass,
} from '../../../domain/selling/pass-store.ts';
import type { AuditValues } from '../audit-values.ts';
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
  type PassOpening,
} from '../pass-values.ts';
import { integer, text } from '../rows.ts';
import { createAuditInsert } from './audit-insert.ts';

export type PassWrites = {
  readonly changeDraws: (change: DrawChangeText, now: number) => DrawResult;
  readonly renewDraws: (run: string, ids: readonly string[], leaseMs: number, now: number) => readonly string[];
  readonly endLostDraws: (limit: number, now: number) => boolean;
  readonly revokePass: (id: string, audit: AuditValues | null, now: number) => ListedPass | undefined;
  /** Removes passes that ended before `endedMs` (undefined: none), and draws that nobody asks for any more; true if there may be more. */
  readonly prunePasses: (endedMs: number | undefined, limit: number, now: number) => boolean;
};

export type PassReads = {
  readonly listPasses: (filter: PassFilter, now: number) => readonly ListedPass[];
  readonly getPass: (id: string) => ListedPass | undefined;
  readonly passesOfPayer: (payer: string, now: number) => readonly KeptPass[];
  readonly revokedPasses: (after: number, limit: number, now: number) => readonly RevokedPass[];
  readonly outstandingPasses: (now: number) => readonly OutstandingSum[];
};

const SELECT = `SELECT seq, ${PASS_COLUMNS.join(', ')} FROM passes`;
const SELECT_DRAW = `SELECT ${DRAW_COLUMNS.join(', ')} FROM pass_draws`;
/** Binds the time. */
const LIVE = 'ends_at > ? AND revoked_at IS NULL AND is_used_up = 0';
const places = (columns: readonly string[]): string => columns.map(() => '?').join(', ');

export function createPassWrites(db: DatabaseSync): PassWrites {
  const rows = createDrawRows(db);
  const addAudit = createAuditInsert(db);
  const sql = {
    renew: db.prepare(
      `UPDATE pass_draws SET lease_until = ?1 WHERE id = ?2 AND substr(owner, 1, length(?3) + 1) = ?3 || '/'
         AND state = 'reserved'`,
    ),
    lost: db.prepare(`${SELECT_DRAW} WHERE state = 'reserved' AND lease_until <= ? LIMIT ?`),
    revoke: db.prepare('UPDATE passes SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL'),
    get: db.prepare(`${SELECT} WHERE id = ?`),
    removeDraws: db.prepare(
      'DELETE FROM pass_draws WHERE id IN (SELECT id FROM pass_draws WHERE kept_until < ? LIMIT ?)',
    ),
    removePasses: db.prepare(
      "DELETE FROM passes WHERE seq IN (SELECT seq FROM passes WHERE ends_at < ? AND reserved = '0' LIMIT ?)",
    ),
  };
  return {
    changeDraws: (change, now) => changeDraws(rows, changeFromText(change), now),
    renewDraws: (run, ids, leaseMs, now) => ids.filter((id) => sql.renew.run(now + leaseMs, id, run).changes === 1),
    endLostDraws: (limit, now) => {
      const lost = sql.lost.all(now, limit).map(readDraw);
      for (const draw of lost) endLost(rows, draw, now);
      return lost.length === limit;
    },
    revokePass: (id, audit, now) => {
      const { changes } = sql.revoke.run(now, id);
      if (changes === 1 && audit !== null) addAudit(audit);
      const row = sql.get.get(id);
      return row && readPass(row);
    },
    prunePasses: (endedMs, limit, now) => {
      const draws = sql.removeDraws.run(now, DRAWS_FOR_EACH * limit).changes === DRAWS_FOR_EACH * limit;
      return (endedMs !== undefined && sql.removePasses.run(endedMs, limit).changes === limit) || draws;
    },
  };
}

/** Draws that are removed for each pass that may be. */
const DRAWS_FOR_EACH = 20;

function createDrawRows(db: DatabaseSync): DrawRows {
  const sql = {
    book: db.prepare(`${SELECT} WHERE id = ?`),
    putBook: db.prepare(`UPDATE passes SET ${BOOK_COLUMNS.map((name) => `${name} = ?`).join(', ')} WHERE id = ?`),
    draw: db.prepare(`${SELECT_DRAW} WHERE id = ?`),
    byKey: db.prepare(`${SELECT_DRAW} WHERE pass_id = ? AND key_sha256 = ?`),
    lost: db.prepare(`${SELECT_DRAW} WHERE pass_id = ? AND state = 'reserved' AND lease_until <= ?`),
    put: db.prepare(
      `INSERT INTO pass_draws (${DRAW_COLUMNS.join(', ')}) VALUES (${places(DRAW_COLUMNS)})
       ON CONFLICT (id) DO UPDATE SET ${DRAW_COLUMNS.slice(1)
         .map((name) => `${name} = excluded.${name}`)
         .join(', ')}`,
    ),
    drop: db.prepare('DELETE FROM pass_draws WHERE id = ?'),
  };
  return {
    book: (id) => {
      const row = sql.book.get(id);
      return row && readBook(row);
    },
    draw: (id) => {
      const row = sql.draw.get(id);
      return row && readDraw(row);
    },
    drawByKey: (passId, key) => {
      const row = sql.byKey.get(passId, key);
      return row && readDraw(row);
    },
    lost: (passId, now) => sql.lost.all(passId, now).map(readDraw),
    putBook: (book) => void sql.putBook.run(...bookValues(book), book.id),
    putDraw: (draw) => void sql.put.run(...drawValues(draw)),
    dropDraw: (id) => void sql.drop.run(id),
  };
}

/** Opens passes in the transaction that settles their charges, and says whether a payer may buy one more. */
export type PassOpener = {
  readonly open: (opening: PassOpening) => void;
  /** Revokes the pass that a charge sold. */
  readonly revoke: (chargeId: string, now: number) => void;
  /** `charge`: of the one that buys, which does not count itself. */
  readonly isFull: (
    buyer: { readonly payer: string; readonly plan: string; readonly charge: string },
    now: number,
  ) => boolean;
};

/** `most`: passes that may be good at a time. */
export function createPassOpener(db: DatabaseSync, most = MOST_LIVE_PASSES): PassOpener {
  const sql = {
    open: db.prepare(
      `INSERT INTO passes (${PASS_COLUMNS.join(', ')}) VALUES (${places(PASS_COLUMNS)}) ON CONFLICT DO NOTHING`,
    ),
    draw: db.prepare(
      `INSERT INTO pass_draws (${DRAW_COLUMNS.join(', ')}) VALUES (${places(DRAW_COLUMNS)}) ON CONFLICT DO NOTHING`,
    ),
    revoke: db.prepare('UPDATE passes SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL'),
    live: db.prepare(`SELECT count(*) AS passes FROM passes WHERE payer = ? AND plan = ? AND ${LIVE}`),
    // A purchase that is not settled may still open one.
    pending: db.prepare(
      `SELECT count(*) AS passes FROM charges INDEXED BY charges_unsettled
       WHERE state IN ('claimed', 'settling') AND payer = ?1 AND id <> ?3 AND pass IS NOT NULL
         AND json_extract(pass, '$.plan') = ?2 AND (state = 'settling' OR lease_until > ?4)`,
    ),
    // There are no more than numbers from the first to the last one: only if these are so many, passes are counted.
    all: db.prepare(
      `SELECT CASE WHEN numbers < ?2 THEN numbers ELSE (SELECT count(*) FROM passes WHERE ${LIVE.replace('?', '?1')}) END AS passes
       FROM (SELECT coalesce((SELECT max(seq) FROM passes) - (SELECT min(seq) FROM passes) + 1, 0) AS numbers)`,
    ),
  };
  let all = 0;
  let countedAt = -Infinity;
  return {
    open: ({ pass, first }) => {
      sql.open.run(...pass);
      if (first !== null) sql.draw.run(...first);
      all += 1;
    },
    revoke: (chargeId, now) => void sql.revoke.run(now, passIdOf(chargeId)),
    isFull: ({ payer, plan, charge }, now) => {
      if (now - countedAt > COUNTED_MS || now < countedAt) {
        all = integer(sql.all.get(now, most) ?? {}, 'passes');
        countedAt = now;
      }
      if (all >= most) return true;
      const live = integer(sql.live.get(payer, plan, now) ?? {}, 'passes');
      if (live >= PASSES_OF_A_PAYER) return true;
      return live + integer(sql.pending.get(payer, plan, charge, now) ?? {}, 'passes') >= PASSES_OF_A_PAYER;
    },
  };
}

/** Milliseconds after which live passes are counted anew; in between, those that open are added. */
const COUNTED_MS = 60_000;

export function createPassReads(db: DatabaseSync): PassReads {
  const sql = {
    get: db.prepare(`${SELECT} WHERE id = ?`),
    ofPayer: db.prepare(
      `${SELECT} WHERE payer = ? AND ends_at > ? AND revoked_at IS NULL ORDER BY is_used_up, ends_at, seq
       LIMIT ${MOST_OF_PAYER}`,
    ),
    revoked: db.prepare(
      'SELECT id, revoked_at, ends_at FROM passes WHERE revoked_at > ? AND ends_at > ? ORDER BY revoked_at LIMIT ?',
    ),
    outstanding: db.prepare(
      `SELECT currency, amount, sold, drawn, count(*) AS passes FROM passes WHERE ${LIVE} AND kind <> 'seconds'
       GROUP BY currency, amount, sold, drawn`,
    ),
  };
  return {
    listPasses: ({ plan, terms, payer, live, before, limit }, now) => {
      const values: (string | number)[] = [];
      const where: string[] = [];
      const add = (condition: string, ...bound: (string | number)[]): void => {
        where.push(condition);
        values.push(...bound);
      };
      if (plan !== undefined) add('plan = ?', plan);
      if (terms !== undefined) add('terms_id = ?', terms);
      if (payer !== undefined) add('payer = ?', payer);
      if (live !== undefined) add(live ? LIVE : `NOT (${LIVE})`, now);
      if (before !== undefined) add('seq < ?', before);
      const conditions = where.length === 0 ? '' : `WHERE ${where.join(' AND ')}`;
      return db
        .prepare(`${SELECT} ${conditions} ORDER BY seq DESC LIMIT ?`)
        .all(...values, limit)
        .map(readPass);
    },
    getPass: (id) => {
      const row = sql.get.get(id);
      return row && readPass(row);
    },
    passesOfPayer: (payer, now) => sql.ofPayer.all(payer, now).map(readPass),
    revokedPasses: (after, limit, now) => sql.revoked.all(after, now, limit).map(readRevoked),
    outstandingPasses: (now) => {
      const sums = new Map<string, bigint>();
      for (const row of sql.outstanding.iterate(now)) {
        const currency = text(row, 'currency');
        const [sold, drawn] = [BigInt(text(row, 'sold')), BigInt(text(row, 'drawn'))];
        const rest = (creditUnits(text(row, 'amount')) * (sold - drawn)) / sold;
        sums.set(currency, (sums.get(currency) ?? 0n) + rest * BigInt(integer(row, 'passes')));
      }
      return [...sums].map(([currency, units]) => ({ currency, units }));
    },
  };
}
