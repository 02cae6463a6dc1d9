// The mark of a file that is copied to another store, or was: from then on nothing here is served or written. It stands in the
// file itself, and goes where the file goes.
import type { DatabaseSync } from 'node:sqlite';
import type { CopyMark } from '../copy-ports.ts';
import { nullableText, text } from '../rows.ts';

export function readMark(db: DatabaseSync): CopyMark | undefined {
  const there = db.prepare("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'copied'").get();
  const row = there && db.prepare('SELECT target, since, copied_at FROM copied').get();
  return row && { target: text(row, 'target'), since: text(row, 'since'), copiedAt: nullableText(row, 'copied_at') };
}

/** Writes the mark in the caller's transaction. */
export function writeMark(db: DatabaseSync, mark: CopyMark | undefined): void {
  db.exec('DROP TABLE IF EXISTS copied');
  if (mark === undefined) return;
  db.exec('CREATE TABLE copied (target TEXT NOT NULL, since TEXT NOT NULL, copied_at TEXT) STRICT');
  db.prepare('INSERT INTO copied VALUES (?, ?, ?)').run(mark.target, mark.since, mark.copiedAt);
}

/** Throws a sentence. */
export function refuseCopied(mark: CopyMark | undefined, file: string): void {
  if (mark === undefined) return;
  const { target, since, copiedAt } = mark;
  throw new Error(
    copiedAt === null
      ? `The store ${file} is being copied to ${target} since ${since}: run the same \`tollgate copy\` again, or go back with \`tollgate copy --thaw\`.`
      : `The store ${file} was copied to ${target} at ${copiedAt} and is served from there.`,
  );
}
