// Sums of money on SQLite, where what it adds by itself ends and the program goes on.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, test } from 'vitest';
import { openDatabase } from '../../../src/registry/store/sqlite/database.ts';
import { createTotals } from '../../../src/registry/store/sqlite/charge-totals.ts';

test('behaviour: sums are exact where numbers of 64 bits end, and one past it, and each charge counts once', () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'tollgate-sums-'));
  const db = openDatabase(path.join(folder, 'store.db'), 1_000, () => undefined);
  try {
    const totals = createTotals(db);
    const most = 10n ** 18n - 1n;
    let sum = 0n;
    let charges = 0;
    for (const amount of [most, most, 1n, most, 10n ** 18n, 2n ** 63n, 10n ** 40n, 5n]) {
      sum += amount;
      charges += 1;
      const facts = { routeId: 'r', currency: 'USD', network: 'n', asset: 'a', assetDecimals: 6, at: 1_000_000 };
      totals.clear();
      totals.settled({ ...facts, amount: `${amount}` });
      totals.refunded({ ...facts, amount: `${amount}` });
      totals.write();
      const rows = (sql: string): unknown[] =>
        db
          .prepare(sql)
          .all()
          .map((row) => ({ ...row }));
      const one = { charges, amount: `${sum}` };
      expect(rows('SELECT charges, amount FROM charge_sums')).toEqual([one]);
      expect(rows('SELECT charges, amount FROM charge_totals')).toEqual([one, one, one, one]);
      expect(rows('SELECT refunds AS charges, amount FROM refund_sums')).toEqual([one]);
    }
  } finally {
    db.close();
    rmSync(folder, { recursive: true });
  }
});
