// What small tables of the ledger's file say, remembered from one transaction to the next. Another process may write them beside
// this one (`tollgate serve` is not alone on its file): SQLite says whether anybody else committed, and then they are read anew.
import type { DatabaseSync } from 'node:sqlite';

export type SmallTables = {
  /** A new transaction, which holds the write lock: nobody else changes the file until it ends. */
  readonly begin: () => void;
  /** This connection changes one of the tables itself. The transaction may be rolled back: what it reads is not remembered. */
  readonly changed: () => void;
  /** Reads when it may have changed, else returns what was read. */
  readonly remember: <T>(read: () => T) => () => T;
};

export function createSmallTables(db: DatabaseSync): SmallTables {
  const version = db.prepare('PRAGMA data_version');
  let seen: unknown;
  let hasChanged = false;
  /** Number of times that something may have changed. */
  let changes = 0;
  return {
    begin: () => {
      const now = version.get()?.['data_version'];
      if (hasChanged || now !== seen) changes += 1;
      [seen, hasChanged] = [now, false];
    },
    changed: () => {
      changes += 1;
      hasChanged = true;
    },
    remember: (read) => {
      let last: { readonly value: ReturnType<typeof read>; readonly at: number } | undefined;
      return () => {
        if (last?.at !== changes) last = { value: read(), at: changes };
        return last.value;
      };
    },
  };
}
