// The limit of passes that are good at a time, over all payers and plans, in each kind of store.
import { join } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { afterAll, describe, expect, test } from 'vitest';
import { createLedger } from '../../../src/domain/payment/ledger.ts';
import { writePassInSale, type PassInSale } from '../../../src/domain/selling/pass.ts';
import { SPELLING } from '../../../src/gateway/rails/rails.ts';
import { openDatabase } from '../../../src/registry/store/sqlite/database.ts';
import { createPassOpener } from '../../../src/registry/store/sqlite/pass-rows.ts';
import { claimOf, proofOf } from '../../cases/claims.ts';
import { hasPostgres } from '../../postgres/server.ts';
import { freshDatabase, openTestStore, stopSharedPostgres } from '../../postgres/store.ts';
import { temporaryFolder } from '../kit.ts';

const MOST = 3;
const MINUTE_MS = 60_000;
const SALE = {
  ...{ kind: 'uses', uses: 5, planId: 'p', termsId: 'five', validMs: 86_400_000, scope: 'plan', first: '1' },
} as PassInSale;

afterAll(stopSharedPostgres);

test('refuses: SQLite sells no pass while as many are good as there may be, whoever has them', () => {
  const { folder, remove } = temporaryFolder();
  const db: DatabaseSync = openDatabase(join(folder, 'ledger.db'), 1000);
  try {
    let at = 1_000_000;
    const add = db.prepare(
      `INSERT INTO passes (id, plan, terms_id, kind, scope, route_id, payer, network, amount, currency, terms, sold, drawn,
         reserved, uses, lost, gone, sold_at, ends_at, revoked_at, is_used_up)
       VALUES (?1, 'p', 't', 'uses', 'plan', 'r', ?1, 'n', '1', 'USD', '{}', '5', '0', '0', 0, 0, 0, 0, ?2, ?3, ?4)`,
    );
    const opener = createPassOpener(db, MOST);
    const isFull = (): boolean => opener.isFull({ payer: 'new', plan: 'p', charge: 'c' }, (at += 2 * MINUTE_MS));
    expect(isFull()).toBe(false);
    for (const id of ['a', 'b']) add.run(id, at + 1e9, null, 0);
    add.run('over', at, null, 0);
    add.run('revoked', at + 1e9, at, 0);
    add.run('used up', at + 1e9, null, 1);
    expect(isFull()).toBe(false);
    add.run('c', at + 1e9, null, 0);
    expect(isFull()).toBe(true);
    db.exec("UPDATE passes SET revoked_at = 1 WHERE id = 'a'");
    expect(isFull()).toBe(false);
  } finally {
    db.close();
    remove();
  }
});

describe.skipIf(!hasPostgres)('PostgreSQL', () => {
  test('refuses: PostgreSQL sells no pass while as many are good as there may be, whoever has them', async () => {
    let ahead = 0;
    const store = await openTestStore(await freshDatabase(), { mostLivePasses: MOST, shift: () => ahead });
    try {
      const ledger = createLedger(store.charges, SPELLING);
      let made = 0;
      const buy = async (pass: PassInSale | undefined): Promise<string> => {
        ahead += MINUTE_MS;
        const n = ++made;
        const claim = claimOf(n, { pass: pass === undefined ? null : writePassInSale(pass) });
        const owner = { owner: `${store.charges.run}/r${n}` };
        const claimed = await ledger.claim(claim, { ...owner, leaseMs: 1e9, maxUnsettledPerPayer: 9, settleVia: 'x' });
        if (claimed.kind !== 'claimed') return claimed.kind;
        if (claimed.charge.state === 'claimed')
          await ledger.advance(claim.id, { kind: 'settle_started', via: 'x', leaseMs: 1e9 }, owner);
        const settled = await ledger.advance(claim.id, { kind: 'settled', proof: proofOf(claim), leaseMs: 1e9 }, owner);
        return settled.kind;
      };
      for (let n = 0; n < MOST; n++) expect(await buy(SALE)).toBe('ok');
      expect(await buy(SALE)).toBe('too_many_passes');
      expect(await buy(undefined)).toBe('ok');
      await store.charges.passes.revoke('pass_test-1');
      expect(await buy(SALE)).toBe('ok');
      expect(await buy(SALE)).toBe('too_many_passes');
    } finally {
      await store.close();
    }
  });
});
