// What every store of a ledger does with refunds: one transfer proves one thing, the sum stays within the charge however many say
// it at once, and the books show what was given back beside what was taken.
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Claim } from '../../src/domain/payment/charge.ts';
import type { AdvanceResult } from '../../src/domain/payment/ledger.ts';
import { MAX_REFUNDS, readRefunds, refundedAmount, type NewRefund } from '../../src/domain/payment/refund.ts';
import type { ChargeEvent } from '../../src/domain/payment/transition.ts';
import { SPELLING } from '../../src/gateway/rails/rails.ts';
import { createLog } from '../../src/host/log.ts';
import { ledgerOf, type StoredLedger } from '../../src/registry/store/stored-ledger.ts';
import { claimOf, hash32, NETWORK, proofOf, ROUTE_ID } from '../cases/claims.ts';
import { hasPostgres } from '../postgres/server.ts';
import { freshDatabase, openTestStore, stopSharedPostgres } from '../postgres/store.ts';
import { temporaryFolder } from '../registry/kit.ts';
import { createMemoryCharges } from '../support/memory-ledger.ts';
import { openPatientCharges } from '../support/sqlite-ledger.ts';

type Opened = {
  /** Two ways to the same ledger, as two processes have them. */
  readonly ledgers: readonly [StoredLedger, StoredLedger];
  readonly close: () => Promise<void>;
};
const log = createLog('error', () => undefined, Date.now);
const LEASE = 60_000;
const OWNER = { owner: 'run/one' };
const OPERATOR = { owner: 'operator-1', cause: { actor: 'root', via: 'command_line', requestId: null } } as const;

const STORES: readonly (readonly [name: string, open: () => Promise<Opened>])[] = [
  [
    'in memory, the reference',
    async () => {
      const store = ledgerOf(createMemoryCharges(Date.now), SPELLING);
      return { ledgers: [store, store], close: async () => undefined };
    },
  ],
  [
    'SQLite, two threads on one file',
    async () => {
      const { folder, remove } = temporaryFolder();
      const open = (): StoredLedger =>
        ledgerOf(openPatientCharges(join(folder, 'ledger.db'), { now: Date.now, log }), SPELLING);
      const ledgers = [open(), open()] as const;
      const close = async (): Promise<void> => {
        await Promise.all(ledgers.map((ledger) => ledger.close()));
        remove();
      };
      return { ledgers, close };
    },
  ],
  ...(hasPostgres
    ? [
        [
          'PostgreSQL, two processes on one database',
          async () => {
            const database = await freshDatabase();
            const stores = [await openTestStore(database), await openTestStore(database)] as const;
            const [one, other] = stores.map((store) => ledgerOf(store.charges, SPELLING)) as [
              StoredLedger,
              StoredLedger,
            ];
            return {
              ledgers: [one, other],
              close: async () => void (await Promise.all(stores.map((each) => each.close()))),
            };
          },
        ] as const satisfies readonly [string, () => Promise<Opened>],
      ]
    : []),
];

afterAll(stopSharedPostgres);

describe.each(STORES)('refunds: %s', (_, open) => {
  let opened: Opened;
  let ledger: StoredLedger;
  let other: StoredLedger;
  let n = 0;
  let transactions = 0xabc000;
  const begin = Date.now() - 3_600_000;

  beforeAll(async () => {
    opened = await open();
    [ledger, other] = opened.ledgers;
  }, 60_000);
  afterAll(() => opened?.close());

  const paid = async (rest: Parameters<typeof claimOf>[1] = {}, proof = {}): Promise<Claim> => {
    const claim = claimOf(++n, rest);
    const events: ChargeEvent[] = [
      { kind: 'settle_started', via: 'first', leaseMs: LEASE },
      { kind: 'settled', proof: proofOf(claim, proof), leaseMs: LEASE },
      { kind: 'delivered', partial: false },
    ];
    await ledger.claim(claim, { ...OWNER, leaseMs: LEASE, maxUnsettledPerPayer: 1000 });
    for (const event of events) expect((await ledger.advance(claim.id, event, OWNER)).kind).toBe('ok');
    return claim;
  };
  const transfer = (rest: Partial<NewRefund> = {}): NewRefund => ({
    ...{ transaction: hash32(++transactions), logIndex: 2, amount: 100_000n, reason: 'too late', ...rest },
  });
  const refund = (claim: Pick<Claim, 'id'>, by: NewRefund, through = ledger): Promise<AdvanceResult> =>
    through.advance(claim.id, { kind: 'refunded', note: '', transfer: by }, OPERATOR);
  const endOf = (result: AdvanceResult): string => (result.kind === 'ok' ? 'ok' : result.because);

  test('behaviour: a charge is refunded in parts, and is refunded once the parts are the whole', async () => {
    const claim = await paid();
    const [first, second] = [transfer({ amount: 40_000n }), transfer({ amount: 60_000n, logIndex: null, reason: '' })];
    expect(endOf(await refund(claim, first))).toBe('ok');
    const part = await other.get(claim.id);
    expect(part).toMatchObject({ state: 'delivered', refundedAt: null, owed: null });
    expect(part && refundedAmount(part)).toBe(40_000n);
    expect(endOf(await refund(claim, transfer({ amount: 60_001n })))).toBe('refund_exceeds');
    expect(endOf(await refund(claim, second, other))).toBe('ok');
    const whole = await ledger.get(claim.id);
    expect(whole?.refundedAt).toEqual(expect.any(Number));
    expect(readRefunds(whole?.refunds ?? null)).toEqual([
      { ...first, at: expect.any(Number) },
      { ...second, at: expect.any(Number) },
    ]);
    expect(endOf(await refund(claim, transfer({ amount: 1n })))).toBe('refund_exceeds');
    const told = (await ledger.history(claim.id))?.filter(({ event }) => event === 'refunded');
    expect(told?.map(({ by, detail }) => [by, detail])).toEqual([
      ['operator', first.transaction],
      ['operator', second.transaction],
    ]);
  });

  test('attack: of many refunds at once over two processes no more is given back than was taken', async () => {
    const claim = await paid();
    const all = await Promise.all(
      Array.from({ length: 12 }, (_, index) =>
        refund(claim, transfer({ amount: 30_000n }), index % 2 === 0 ? ledger : other).then(endOf, () => 'lost'),
      ),
    );
    expect(all.filter((end) => end === 'ok').length).toBeLessThanOrEqual(3);
    expect(all).toContain('ok');
    const charge = await ledger.get(claim.id);
    const given = readRefunds(charge?.refunds ?? null);
    expect(given).toHaveLength(all.filter((end) => end === 'ok').length);
    expect(charge && refundedAmount(charge)).toBe(BigInt(given.length) * 30_000n);
  });

  test('attack: one transfer proves one refund, of however many charges, processes and at whatever time', async () => {
    const claims = await Promise.all(Array.from({ length: 6 }, () => paid()));
    const one = transfer();
    const ends = await Promise.all(
      claims.map((claim, index) => refund(claim, one, index % 2 === 0 ? ledger : other).then(endOf)),
    );
    expect(ends.toSorted()).toEqual(['ok', ...Array.from({ length: 5 }, () => 'proof_used')]);
    const loser = claims[ends.indexOf('proof_used')];
    // Another transfer of the same transaction is another one; on another network it is another transaction.
    expect(loser && endOf(await refund(loser, { ...one, logIndex: 3 }))).toBe('ok');
    const abroad = await paid({
      payment: { ...claimOf(n + 1).payment, network: 'eip155:8453' },
      way: { ...claimOf(n + 1).way, network: 'eip155:8453' },
    });
    expect(endOf(await refund(abroad, one))).toBe('ok');
  });

  test('attack: what paid for a charge proves no refund, and what proves a refund pays for no charge', async () => {
    const victim = await paid();
    const byWord = await paid();
    const byChain = await paid({}, { transaction: hash32(++transactions), logIndex: 4 });
    const chained = hash32(transactions);
    for (const [at, transaction] of [
      [0, byWord.payment.unique],
      [7, byWord.payment.unique],
      [4, chained],
    ] as const)
      expect([at, endOf(await refund(victim, transfer({ transaction, logIndex: at })))]).toEqual([at, 'proof_used']);
    expect(byChain.id).not.toBe(victim.id);
    expect(endOf(await refund(victim, transfer({ transaction: chained, logIndex: 5, amount: 1n })))).toBe('ok');

    const claim = claimOf(++n);
    await ledger.claim(claim, { ...OWNER, leaseMs: LEASE, maxUnsettledPerPayer: 1000 });
    await ledger.advance(claim.id, { kind: 'settle_started', via: 'first', leaseMs: LEASE }, OWNER);
    const settle = (logIndex: number): Promise<AdvanceResult> =>
      other.advance(
        claim.id,
        { kind: 'settled', proof: proofOf(claim, { transaction: chained, logIndex }), leaseMs: LEASE },
        OWNER,
      );
    expect(endOf(await settle(5))).toBe('proof_used');
    expect(endOf(await settle(6))).toBe('ok');
  });

  test('behaviour: the same transaction again is the same refund, and one by word becomes proven', async () => {
    const claim = await paid();
    const said = transfer({ logIndex: null, amount: 50_000n });
    const before = await ledger.refunded();
    for (let time = 0; time < 3; time++) expect(endOf(await refund(claim, said))).toBe('ok');
    expect(endOf(await refund(claim, { ...said, amount: 40_000n }))).toBe('refund_recorded');
    expect(endOf(await refund(claim, { ...said, logIndex: 9 }, other))).toBe('ok');
    const charge = await ledger.get(claim.id);
    expect(readRefunds(charge?.refunds ?? null)).toEqual([{ ...said, logIndex: 9, at: expect.any(Number) }]);
    expect(charge && refundedAmount(charge)).toBe(50_000n);
    // What is proven now proves nothing else.
    expect(endOf(await refund(await paid(), { ...said, logIndex: 9 }))).toBe('proof_used');
    expect(sumIn(await ledger.refunded()) - sumIn(before)).toBe(50_000n);
  });

  test('refuses: more refunds than a charge keeps', async () => {
    const claim = await paid();
    for (let index = 0; index < MAX_REFUNDS; index++)
      expect(endOf(await refund(claim, transfer({ amount: 1n })))).toBe('ok');
    expect(endOf(await refund(claim, transfer({ amount: 1n })))).toBe('refund_exceeds');
  });

  test('behaviour: what is owed is what was not given back, and sums show refunds beside a revenue that stays', async () => {
    const claim = claimOf(++n, { x402Version: 1, price: { amount: '0.10', currency: 'EURC' } });
    await ledger.claim(claim, { ...OWNER, leaseMs: LEASE, maxUnsettledPerPayer: 1000 });
    for (const event of [
      { kind: 'settle_started', via: 'first', leaseMs: LEASE },
      { kind: 'settled', proof: proofOf(claim), leaseMs: LEASE },
      { kind: 'undelivered', because: 'upstream_failed', headSent: false },
    ] as const)
      expect((await ledger.advance(claim.id, event, OWNER)).kind).toBe('ok');
    const owed = async (): Promise<string[]> =>
      (await ledger.alarms()).owed.filter(({ currency }) => currency === 'EURC').map(({ amount }) => String(amount));
    const books = async (): Promise<unknown> => {
      const summary = await ledger.summary({
        ...{ fromMs: begin, toMs: Date.now() + 3_600_000, bucket: 'total', currency: 'EURC', limit: 10 },
      });
      return (
        summary.kind === 'sums' && summary.sums.map(({ charges, amount, refunded }) => [charges, amount, refunded])
      );
    };
    expect([await owed(), await books()]).toEqual([['100000'], [[1, 100_000n, 0n]]]);
    expect(endOf(await refund(claim, transfer({ amount: 30_000n })))).toBe('ok');
    expect([await owed(), await books()]).toEqual([['70000'], [[1, 100_000n, 30_000n]]]);
    expect(await ledger.get(claim.id)).toMatchObject({ owed: 'upstream' });
    expect(endOf(await refund(claim, transfer({ amount: 70_000n })))).toBe('ok');
    expect([await owed(), await books()]).toEqual([[], [[1, 100_000n, 100_000n]]]);
    expect(await ledger.get(claim.id)).toMatchObject({ owed: null, state: 'settled' });
    expect((await ledger.refunded()).filter(({ currency }) => currency === 'EURC')).toEqual([
      { currency: 'EURC', assetDecimals: 6, amount: 100_000n },
    ]);
    const summary = await ledger.summary({
      ...{
        fromMs: begin,
        toMs: Date.now() + 3_600_000,
        bucket: 'total',
        groupBy: 'network',
        currency: 'EURC',
        limit: 10,
      },
    });
    expect(summary).toMatchObject({ sums: [{ network: NETWORK, routeId: null, refunded: 100_000n }] });
    expect(ROUTE_ID).toBe(claim.route.id);
  });
});

function sumIn(sums: readonly { readonly amount: bigint }[]): bigint {
  return sums.reduce((sum, { amount }) => sum + amount, 0n);
}
