// The list of a payer's charges, which no index of its own serves: whoever pays often is found among the newest charges,
// everybody else through the index that keeps payments unique. Wherever the one ends and the other begins, the list is
// the same.
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { ChargeFilter } from '../../src/domain/payment/reports.ts';
import { createLog } from '../../src/host/log.ts';
import { SPELLING } from '../../src/gateway/rails/rails.ts';
import { openLedger } from '../support/sqlite-ledger.ts';
import { createChargeReads } from '../../src/registry/store/sqlite/charge-reports.ts';
import { address, claimOf, OTHER_ROUTE, ROUTE_ID } from '../cases/claims.ts';
import { temporaryFolder } from './kit.ts';

const LEASE = 60_000;
const COUNT = 40;
/** The first pays once, at the beginning; the second now and then; the third all the time. */
const PAYERS = [1, 2, 3];
const payerOf = (n: number): number => (n === 1 ? 1 : n % 10 === 0 ? 2 : 3);

let db: DatabaseSync;
let remove: () => void;

beforeEach(async () => {
  const made = temporaryFolder();
  const file = join(made.folder, 'ledger.db');
  const ledger = openLedger(file, { now: Date.now, log: createLog('error', () => undefined, Date.now) });
  for (let n = 1; n <= COUNT; n++) {
    const route = { id: n % 4 === 0 ? OTHER_ROUTE : ROUTE_ID, method: 'GET', pattern: '/x' };
    const claim = claimOf(n, { payer: payerOf(n), route });
    const options = { owner: 'one', leaseMs: LEASE, maxUnsettledPerPayer: COUNT };
    expect((await ledger.claim(claim, options)).kind).toBe('claimed');
    if (n % 3 !== 0) await ledger.advance(claim.id, { kind: 'released', reason: 'test' }, { owner: 'one' });
  }
  await ledger.close();
  db = new DatabaseSync(file);
  remove = () => {
    db.close();
    made.remove();
  };
});
afterEach(() => remove());

/** Every page of `filter`, each as the ids it holds. */
function pagesOf(filter: ChargeFilter, payerWalk?: number): string[][] {
  const { list } = createChargeReads(db, payerWalk);
  const pages: string[][] = [];
  let before: number | undefined;
  do {
    const page = list({ ...filter, before }, Date.now());
    pages.push(page.charges.map(({ id }) => id));
    before = page.nextBefore;
  } while (before !== undefined);
  return pages;
}

/** The same without an index: every charge, and those of them that fit. */
function expected({ payer, states, routeId, limit }: ChargeFilter): string[][] {
  const ids = createChargeReads(db)
    .list({ limit: COUNT }, Date.now())
    .charges.filter(
      (charge) =>
        charge.payment.payer === payer &&
        (states === undefined || states.includes(charge.state)) &&
        (routeId === undefined || charge.route.id === routeId),
    )
    .map(({ id }) => id);
  const pages = Array.from({ length: Math.ceil(ids.length / limit) }, (_, i) => ids.slice(i * limit, (i + 1) * limit));
  return pages.length === 0 ? [[]] : pages;
}

describe.each(PAYERS)('payer %i', (payer) => {
  test.each([1, 2, 7, COUNT - 1, COUNT, COUNT + 1, undefined])(
    'behaviour: a payer’s charges are listed whole and in order if %s charges are looked through first',
    (walk) => {
      for (const limit of [1, 3, COUNT]) {
        for (const rest of [
          {},
          { states: ['released' as const] },
          { states: ['claimed' as const] },
          { routeId: OTHER_ROUTE },
        ]) {
          const filter = { payer: address(payer), limit, ...rest };
          expect(pagesOf(filter, walk), JSON.stringify(filter)).toEqual(expected(filter));
        }
      }
    },
  );
});

test('behaviour: a payer who never paid has an empty list', () => {
  expect(pagesOf({ payer: address(99), limit: 5 }, 3)).toEqual([[]]);
});

test('behaviour: a hexadecimal address finds its payer in any letter case, another one only to the letter', () => {
  // The store keeps payments of EVM networks only so far.
  db.exec('PRAGMA ignore_check_constraints = ON');
  const base58 = '7EcDhSYGxXyscszYEp35KHN8vvw3svAuLKTzXwCFLtV1';
  db.prepare('UPDATE charges SET payer = ? WHERE payer = ?').run(base58, address(2));
  const hex = `0x${'ab'.repeat(20)}`;
  db.prepare('UPDATE charges SET payer = ? WHERE payer = ?').run(hex, address(1));
  for (const walk of [1, COUNT]) {
    const found = (payer: string): number =>
      pagesOf({ payer: SPELLING.identifier(payer), limit: COUNT }, walk).flat().length;
    expect([hex, hex.toUpperCase(), hex.replace('ab', 'aB')].map(found)).toEqual([1, 1, 1]);
    expect([base58, base58.toLowerCase(), base58.toUpperCase()].map(found)).toEqual([COUNT / 10, 0, 0]);
  }
});
