// What every store of a ledger tells people: lists, sums and counts, and never what could be replayed.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Claim } from '../../src/domain/charge.ts';
import type { Ledger, Reports } from '../../src/domain/ledger.ts';
import { address, claimOf, NETWORK, OTHER_ROUTE, ROUTE_ID, proofOf } from '../cases/claims.ts';

export type OpenedReports = {
  readonly ledger: Ledger & Reports;
  readonly now: () => number;
  readonly pass: (ms: number) => void;
  readonly close: () => Promise<void>;
};

const HOUR = 3_600_000;
const BIG = 10n ** 30n;

export function describeReports(name: string, open: () => Promise<OpenedReports>): void {
  describe(`reports: ${name}`, () => {
    let opened: OpenedReports;
    let ledger: Ledger & Reports;
    let begin: number;
    let middle: number;
    const ids = (page: { charges: readonly { id: string }[] }): string[] => page.charges.map(({ id }) => id);

    const take = async (claim: Claim, until: 'claimed' | 'settling' | 'settled' | 'delivered'): Promise<void> => {
      await ledger.claim(claim, { owner: 'o', leaseMs: 60_000, maxUnsettledPerPayer: 100 });
      const events = [
        { kind: 'settle_started', leaseMs: 60_000 },
        { kind: 'settled', proof: proofOf(claim), leaseMs: 60_000 },
        { kind: 'delivered' },
      ] as const;
      const count = { claimed: 0, settling: 1, settled: 2, delivered: 3 }[until];
      for (const event of events.slice(0, count)) await ledger.advance(claim.id, event, { owner: 'o' });
    };

    beforeAll(async () => {
      opened = await open();
      ({ ledger } = opened);
      const { terms } = claimOf(0);
      // The first half of an hour, so that what follows at once is in the same.
      opened.pass(HOUR - (opened.now() % HOUR));
      begin = opened.now();
      // Together: a batch adds up before it writes.
      await Promise.all([
        take(claimOf(1, { customerId: 'c1' }), 'delivered'),
        take(claimOf(2, { payer: 1 }), 'settled'),
      ]);
      await take(
        claimOf(3, { route: { id: OTHER_ROUTE, method: '*', pattern: '/x' }, terms: { ...terms, amount: BIG } }),
        'delivered',
      );
      opened.pass(2 * HOUR);
      middle = opened.now();
      await take(
        claimOf(4, { route: { id: OTHER_ROUTE, method: '*', pattern: '/x' }, terms: { ...terms, amount: BIG + 1n } }),
        'settled',
      );
      await take(claimOf(5, { customerId: 'c1', price: { amount: '1', currency: 'USDC' } }), 'delivered');
      await take(claimOf(6), 'settling');
      await take(claimOf(7), 'claimed');
      await take(claimOf(8), 'claimed');
      await ledger.advance('chg_test-8', { kind: 'released', reason: 'upstream_500' }, { owner: 'o' });
    });
    afterAll(() => opened.close());

    test('behaviour: newest first, a page at a time', async () => {
      const pages: string[][] = [];
      let before: number | undefined;
      do {
        const page = await ledger.list({ limit: 3, before });
        pages.push(ids(page).map((id) => id.slice(-1)));
        before = page.nextBefore;
      } while (before !== undefined);
      expect(pages).toEqual([
        ['8', '7', '6'],
        ['5', '4', '3'],
        ['2', '1'],
      ]);
    });

    test('behaviour: filters, alone and together', async () => {
      const found = async (filter: object): Promise<string> =>
        ids(await ledger.list({ limit: 50, ...filter }))
          .map((id) => id.slice(-1))
          .join('');
      expect(await found({ state: 'settled' })).toBe('42');
      expect(await found({ state: 'claimed' })).toBe('7');
      expect(await found({ state: 'settling', payer: address(6) })).toBe('6');
      expect(await found({ state: 'released', fromMs: begin })).toBe('8');
      expect(await found({ state: 'delivered' })).toBe('531');
      expect(await found({ routeId: OTHER_ROUTE })).toBe('43');
      expect(await found({ payer: address(1).toUpperCase().replace('0X', '0x') })).toBe('21');
      expect(await found({ customerId: 'c1' })).toBe('51');
      expect(await found({ toMs: middle })).toBe('321');
      expect(await found({ fromMs: middle })).toBe('87654');
      expect(await found({ state: 'delivered', customerId: 'c1', fromMs: begin, toMs: middle })).toBe('1');
      expect(await found({ customerId: "' OR 1=1 --" })).toBe('');
    });

    test('refuses: to show a credential, its digest, an answer or an owner', async () => {
      await ledger.advance(
        'chg_test-2',
        { kind: 'answer_kept', answer: { status: 200, headers: ['A', 'secret'], body: Buffer.from('secret') } },
        { owner: 'o' },
      );
      const shown = [
        ...(await ledger.list({ limit: 50 })).charges,
        await ledger.get('chg_test-2'),
        ...(await ledger.due(10)),
      ];
      for (const charge of shown) {
        for (const member of ['credential', 'credentialSha256', 'answer', 'owner', 'changeId'])
          expect(charge).not.toHaveProperty(member);
      }
      expect(await ledger.get('chg_test-1')).toMatchObject({
        id: 'chg_test-1',
        state: 'delivered',
        proof: proofOf(claimOf(1)),
      });
      expect(await ledger.get('chg_nobody')).toBeUndefined();
    });

    test('behaviour: sums of what settled, by route, currency and bucket, exact beyond 64 bits', async () => {
      const sum = async (query: object): Promise<unknown> => {
        const summary = await ledger.summary({
          fromMs: begin,
          toMs: middle + HOUR,
          bucket: 'hour',
          limit: 100,
          ...query,
        });
        return summary.kind === 'sums'
          ? summary.sums.map((each) => [
              (each.start - begin) / HOUR,
              each.routeId[0],
              each.currency,
              each.charges,
              each.amount,
            ])
          : summary.kind;
      };
      const sorted = (all: unknown): unknown =>
        (all as unknown[][]).toSorted((a, b) => String(a).localeCompare(String(b)));
      expect(sorted(await sum({}))).toEqual([
        [0, '1', 'USD', 2, 200_000n],
        [0, '2', 'USD', 1, BIG],
        [2, '1', 'USDC', 1, 100_000n],
        [2, '2', 'USD', 1, BIG + 1n],
      ]);
      const whole = [
        [0, '1', 'USD', 2, 200_000n],
        [0, '1', 'USDC', 1, 100_000n],
        [0, '2', 'USD', 2, 2n * BIG + 1n],
      ];
      expect(sorted(await sum({ bucket: 'total' }))).toEqual(whole);
      expect(await sum({ bucket: 'total', routeId: OTHER_ROUTE })).toEqual([whole[2]]);
      expect(await sum({ bucket: 'total', currency: 'USDC' })).toEqual([whole[1]]);
      expect(await sum({ toMs: middle - HOUR })).toEqual(await sum({ toMs: begin + 1 }));
      expect(await sum({ limit: 3 })).toBe('too_long');
      expect(await sum({ fromMs: begin - 10 * HOUR, toMs: begin })).toEqual([]);
    });

    test('behaviour: days and months begin at midnight, UTC', async () => {
      for (const bucket of ['day', 'month'] as const) {
        const summary = await ledger.summary({ fromMs: begin, toMs: begin + 1, bucket, limit: 10 });
        const text = new Date(begin).toISOString();
        const start = bucket === 'day' ? `${text.slice(0, 10)}T00:00:00.000Z` : `${text.slice(0, 7)}-01T00:00:00.000Z`;
        const [first] = summary.kind === 'sums' ? summary.sums : [];
        expect([first && new Date(first.start).toISOString(), first?.network]).toEqual([start, NETWORK]);
      }
    });

    test('behaviour: counts by state', async () => {
      expect(await ledger.countByState()).toEqual({
        claimed: 1,
        settling: 1,
        settled: 2,
        delivered: 3,
        released: 1,
        failed: 0,
      });
      expect((await ledger.get('chg_test-1'))?.route.id).toBe(ROUTE_ID);
    });
  });
}
