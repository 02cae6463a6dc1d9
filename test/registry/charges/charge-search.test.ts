// Charges that people look for, over a real registry: by whatever names them, in one box, and by filters of their own.
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import type { Claim } from '../../../src/domain/payment/charge.ts';
import type { ChargeView } from '../../../src/registry/charges/charge-schemas.ts';
import { createChargeReads } from '../../../src/registry/store/sqlite/charge-reports.ts';
import { abroad, address, claimOf, hash32, NETWORK, OTHER_ROUTE, proofOf, ROUTE_ID } from '../../cases/claims.ts';
import { startRegistry, type Kit } from '../kit.ts';

const CHARGES = '/v1/billing/charges';
const SOLANA = 'solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1';
const SOLANA_PAYER = '7EcDhSYGxXyscszYEp35KHN8vvw3svAuLKTzXwCFLtV';
const SOLANA_TX = '5'.repeat(87);

let kit: Kit;
beforeAll(async () => {
  kit = await startRegistry();
  const take = async (claim: Claim, transaction?: string): Promise<void> => {
    await kit.ledger.claim(claim, { owner: 'one', leaseMs: 60_000, maxUnsettledPerPayer: 8 });
    if (transaction === undefined) return;
    await kit.ledger.advance(claim.id, { kind: 'settle_started', via: 'v', leaseMs: 60_000 }, { owner: 'one' });
    const proof = proofOf(claim, { transaction });
    await kit.ledger.advance(claim.id, { kind: 'settled', proof, leaseMs: 60_000 }, { owner: 'one' });
  };
  await take(claimOf(1, { requestId: '4bf92f3577b34da6a3ce929d0e0e4736' }), hash32(101));
  await take(claimOf(2, { payer: 1, price: { amount: '1', currency: 'EURC' } }), hash32(102));
  const solana = claimOf(3, { way: { ...claimOf(3).way, receiverId: 'second', network: SOLANA } });
  const asset = '4zMMC9srt5Ri5X14GAgXhaHii3GnPAEERYPJgZJDncDU';
  await take(
    {
      ...solana,
      way: { ...solana.way, asset },
      payment: { network: SOLANA, asset, payer: SOLANA_PAYER, unique: 'ab'.repeat(32) },
    },
    SOLANA_TX,
  );
  await take(abroad(claimOf(4), 'eip155:999999'));
});
afterAll(() => kit.close());

type Page = { readonly data: readonly ChargeView[]; readonly next_cursor: string | null };
const list = async (query: Record<string, string>): Promise<Page> => {
  const reply = await kit.dashboard('GET', `${CHARGES}?${new URLSearchParams(query)}`);
  expect(reply.status, reply.json?.detail).toBe(200);
  return JSON.parse(reply.body.toString());
};
const found = async (query: Record<string, string>): Promise<string> =>
  (await list(query)).data.map(({ id }) => id.slice(-1)).join('');

describe('q', () => {
  test.each<[what: string, q: string, ids: string]>([
    ['a charge id', 'chg_test-1', '1'],
    ['the id of a request', '4bf92f3577b34da6a3ce929d0e0e4736', '1'],
    ['the id of a request as its client named it', 'request-2', '2'],
    ['a payer', address(1), '21'],
    ['a payer in capitals', address(1).toUpperCase().replace('0X', '0x'), '21'],
    ['a payer of Solana', SOLANA_PAYER, '3'],
    ['a transaction', hash32(102), '2'],
    ['a transaction of Solana', SOLANA_TX, '3'],
    ['a payer who never paid', address(77), ''],
    ['an id that nothing has', 'chg_test-1-and-more', ''],
  ])('behaviour: q finds charges by %s', async (_what, q, ids) => {
    // Ids of tests are shorter than those of the gateway.
    if (q === 'chg_test-1') expect(await found({ q: 'chg_test-1'.padEnd(12, '-') })).toBe('');
    else expect(await found({ q })).toBe(ids);
  });

  test('behaviour: 12 characters of an id are enough, and several charges begin alike', async () => {
    const id = `chg_${'Q'.repeat(100)}`;
    for (const n of [1, 2])
      await kit.ledger.claim(claimOf(500 + n, { id: `${id}${n}` }), {
        ...{ owner: 'one', leaseMs: 60_000, maxUnsettledPerPayer: 8 },
      });
    expect(await found({ q: id.slice(0, 12) })).toBe('21');
    expect(await found({ q: `${id}1` })).toBe('1');
    const { data, next_cursor: cursor } = await list({ q: id, limit: '1' });
    expect([data.length, cursor]).toEqual([1, expect.any(String)]);
    expect(await found({ q: id, limit: '1', cursor: cursor ?? '' })).toBe('1');
  });

  test('behaviour: q goes together with filters, and with the parameter of its own kind if both say the same', async () => {
    expect(await found({ q: address(1), currency: 'eurc' })).toBe('2');
    expect(await found({ q: address(1), payer: address(1).replace('0x', '0x') })).toBe('21');
    expect(await found({ q: address(1), payer: address(2) })).toBe('');
    expect(await found({ q: 'request-2', request_id: 'request-2' })).toBe('2');
    expect(await found({ q: 'request-2', request_id: 'request-3' })).toBe('');
  });

  test.each([
    ['an id that is too short', 'chg_test-1'],
    ['an id in its short form', 'chg_...abcdefghijkl'],
    ['half an address', '0x1234'],
    ['a wildcard', '%'],
    ['wildcards in an id', 'chg_test-%%%%'],
    ['words', 'who paid?'],
    ['SQL', "' OR 1=1 --"],
    ['nothing', ''],
    ['text that is huge', 'a'.repeat(129)],
    ['a NUL', 'request-1\0'],
  ])('refuses: q with %s, with a sentence that says what it takes', async (_what, q) => {
    const reply = await kit.dashboard('GET', `${CHARGES}?${new URLSearchParams({ q })}`);
    expect([reply.status, reply.json.code]).toEqual([400, 'malformed']);
    expect(reply.json.detail).toMatch(/^The query's q is not valid: /);
  });

  test('attack: an underscore, which SQL patterns take for any character, is itself', async () => {
    expect(await found({ q: 'request_2' })).toBe('');
    expect(await found({ q: 'chg_test_1--' })).toBe('');
  });
});

describe('filters', () => {
  test('behaviour: charges are filtered by several states, a currency, a receiver, a transaction and a request', async () => {
    expect(await found({ status: 'claimed,settled', network: NETWORK, route_id: ROUTE_ID, to: '2100-01-01' })).toBe(
      '2121',
    );
    expect(await found({ status: 'settled' })).toBe('321');
    expect(await found({ status: 'settled,settled,delivered' })).toBe('321');
    expect(await found({ currency: 'EURC' })).toBe('2');
    expect(await found({ receiver_id: 'second' })).toBe('3');
    expect(await found({ transaction: hash32(101) })).toBe('1');
    expect(await found({ request_id: 'request-2' })).toBe('2');
    expect(await found({ route_id: OTHER_ROUTE })).toBe('');
  });

  test('attack: 10,000 states are refused before anything is asked', async () => {
    for (const status of [Array(10_000).fill('settled').join(','), 'settled,', ',', 'settled,paid', "settled') --"]) {
      // As long as a request line may be.
      const reply = await kit.dashboard('GET', `${CHARGES}?status=${encodeURIComponent(status.slice(0, 12_000))}`);
      expect([reply.status, reply.json.code]).toEqual([400, 'malformed']);
    }
  });

  test('attack: the cursor of another filter pages on in this one and shows nothing that does not fit', async () => {
    const { next_cursor: cursor } = await list({ limit: '1' });
    expect(await found({ cursor: cursor ?? '', payer: SOLANA_PAYER })).toBe('3');
    for (const forged of ['r9', 'cjA', 'cg', Buffer.from('r1 OR 1=1').toString('base64url')])
      expect((await kit.dashboard('GET', `${CHARGES}?cursor=${forged}`)).status).toBe(400);
  });
});

test('behaviour: a charge names its request, its network and the pages of its explorer, null if that is not known', async () => {
  const seen = new Map((await list({})).data.map((charge) => [charge.id, charge]));
  expect(seen.get('chg_test-1')).toMatchObject({
    request_id: '4bf92f3577b34da6a3ce929d0e0e4736',
    network_name: 'base-sepolia',
    transaction_url: `https://sepolia.basescan.org/tx/${hash32(101)}`,
    payer_url: `https://sepolia.basescan.org/address/${address(1)}`,
  });
  expect(seen.get('chg_test-3')).toMatchObject({
    network_name: 'solana-devnet',
    transaction_url: `https://explorer.solana.com/tx/${SOLANA_TX}?cluster=devnet`,
    payer_url: `https://explorer.solana.com/address/${SOLANA_PAYER}?cluster=devnet`,
  });
  expect(seen.get('chg_test-4')).toMatchObject({ network_name: null, transaction_url: null, payer_url: null });
});

test('behaviour: no list of charges reads the whole table, whatever is looked for', async () => {
  const db = new DatabaseSync(kit.file);
  const prepare = vi.spyOn(db, 'prepare');
  const { list: read } = createChargeReads(db);
  const filters = [
    ...[{ requestId: 'x' }, { transaction: 'x' }, { idStart: 'chg_x' }, { payer: 'x' }, { customerId: 'x' }],
    ...[{ routeId: 'x' }, { network: 'x' }, { currency: 'USD' }, { receiverId: 'default' }, { owed: true }],
    ...[{ states: ['claimed'] }, { states: ['failed', 'settled', 'settling'] }, { fromMs: 1, toMs: 2 }],
    ...[
      { currency: 'USD', states: ['failed'] },
      { payer: 'x', states: ['claimed'] },
    ],
  ];
  for (const filter of filters) read({ limit: 50, ...(filter as object) }, Date.now());
  const texts = prepare.mock.calls.map(([sql]) => sql);
  expect(texts.length).toBeGreaterThan(filters.length);
  for (const sql of texts) {
    const steps = db.prepare(`EXPLAIN QUERY PLAN ${sql}`).all();
    for (const { detail } of steps)
      expect(String(detail), sql).not.toMatch(/^SCAN charges(?! USING (COVERING )?INDEX)/);
  }
  db.close();
});
