// What every store of a ledger tells people: lists, sums and counts, and never what could be replayed.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Claim } from '../../src/domain/payment/charge.ts';
import type { ChargeSearch, ChargeReports } from '../../src/domain/payment/reports.ts';
import type { Ledger } from '../../src/domain/payment/ledger.ts';
import { abroad, address, claimOf, NETWORK, OTHER_ROUTE, ROUTE_ID, proofOf } from '../cases/claims.ts';

export type OpenedReports = {
  readonly ledger: Ledger & ChargeReports;
  readonly now: () => number;
  readonly pass: (ms: number) => void;
  readonly close: () => Promise<void>;
};

const HOUR = 3_600_000;
const BIG = 10n ** 30n;

export function describeReports(name: string, open: () => Promise<OpenedReports>): void {
  describe(`reports: ${name}`, () => {
    let opened: OpenedReports;
    let ledger: Ledger & ChargeReports;
    let begin: number;
    let middle: number;
    const ids = (page: { charges: readonly { id: string }[] }): string[] => page.charges.map(({ id }) => id);

    const take = async (claim: Claim, until: 'claimed' | 'settling' | 'settled' | 'delivered'): Promise<void> => {
      await ledger.claim(claim, { owner: 'o', leaseMs: 60_000, maxUnsettledPerPayer: 100 });
      const events = [
        { kind: 'settle_started', via: 'first', leaseMs: 60_000 },
        { kind: 'settled', proof: proofOf(claim), leaseMs: 60_000 },
        { kind: 'delivered', partial: false },
      ] as const;
      const count = { claimed: 0, settling: 1, settled: 2, delivered: 3 }[until];
      for (const event of events.slice(0, count)) await ledger.advance(claim.id, event, { owner: 'o' });
    };

    beforeAll(async () => {
      opened = await open();
      ({ ledger } = opened);
      // The first half of an hour, so that what follows at once is in the same.
      opened.pass(HOUR - (opened.now() % HOUR));
      // The clock may have gone on since.
      const now = opened.now();
      begin = now - (now % HOUR);
      // Together: a batch adds up before it writes.
      await Promise.all([
        take(claimOf(1, { customerId: 'c1' }), 'delivered'),
        take(claimOf(2, { payer: 1 }), 'settled'),
      ]);
      await take(claimOf(3, { route: { id: OTHER_ROUTE, method: '*', pattern: '/x' }, amount: BIG }), 'delivered');
      opened.pass(2 * HOUR);
      middle = opened.now();
      await take(claimOf(4, { route: { id: OTHER_ROUTE, method: '*', pattern: '/x' }, amount: BIG + 1n }), 'settled');
      await take(claimOf(5, { customerId: 'c1', price: { amount: '1', currency: 'USDC' } }), 'delivered');
      await take(claimOf(6), 'settling');
      await take(claimOf(7), 'claimed');
      await take(claimOf(8), 'claimed');
      await ledger.advance('chg_test-8', { kind: 'released', reason: 'upstream_500' }, { owner: 'o' });
    });
    afterAll(() => opened.close());

    test('behaviour: charges are listed newest first, a page at a time', async () => {
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

    test('behaviour: charges are listed by filters, alone and together', async () => {
      const found = async (filter: object): Promise<string> =>
        ids(await ledger.list({ limit: 50, ...filter }))
          .map((id) => id.slice(-1))
          .join('');
      expect(await found({ states: ['settled'] })).toBe('42');
      expect(await found({ states: ['claimed'] })).toBe('7');
      expect(await found({ states: ['settling'], payer: address(6) })).toBe('6');
      expect(await found({ states: ['released'], fromMs: begin })).toBe('8');
      expect(await found({ states: ['delivered'] })).toBe('531');
      expect(await found({ routeId: OTHER_ROUTE })).toBe('43');
      expect(await found({ payer: address(1).toUpperCase().replace('0X', '0x') })).toBe('21');
      expect(await found({ customerId: 'c1' })).toBe('51');
      expect(await found({ toMs: middle })).toBe('321');
      expect(await found({ fromMs: middle })).toBe('87654');
      expect(await found({ states: ['delivered'], customerId: 'c1', fromMs: begin, toMs: middle })).toBe('1');
      expect(await found({ customerId: "' OR 1=1 --" })).toBe('');
    });

    test('behaviour: charges are filtered by several states, the way, the request, the transaction and the beginning of an id, alone and together', async () => {
      const found = async (filter: object): Promise<string> =>
        ids(await ledger.list({ limit: 50, ...filter }))
          .map((id) => id.slice(-1))
          .join('');
      const { transaction } = proofOf(claimOf(3));
      expect(await found({ states: ['settled', 'released'] })).toBe('842');
      expect(await found({ states: ['claimed', 'settling', 'released'] })).toBe('876');
      expect(await found({ states: ['delivered', 'claimed'] })).toBe('7531');
      expect(await found({ states: [] })).toBe('');
      expect(await found({ states: [], requestId: 'request-5' })).toBe('');
      expect(await found({ states: [], owed: true })).toBe('');
      expect(await found({ states: ['settled', 'released', 'claimed'], fromMs: middle })).toBe('874');
      expect(await found({ states: ['settled', 'delivered'], payer: address(1) })).toBe('21');
      expect(await found({ currency: 'USDC' })).toBe('5');
      expect(await found({ currency: 'USD', states: ['delivered'] })).toBe('31');
      expect(await found({ currency: 'USD', network: NETWORK, receiverId: 'default', toMs: middle })).toBe('321');
      expect(await found({ receiverId: 'nobody' })).toBe('');
      expect(await found({ network: 'eip155:1' })).toBe('');
      expect(await found({ requestId: 'request-5' })).toBe('5');
      expect(await found({ requestId: 'request-5', currency: 'USD' })).toBe('');
      expect(await found({ transaction })).toBe('3');
      expect(await found({ transaction: transaction.toUpperCase().replace('0X', '0x') })).toBe('3');
      expect(await found({ transaction, states: ['settled'] })).toBe('');
      expect(await found({ idStart: 'chg_test-' })).toBe('87654321');
      expect(await found({ idStart: 'chg_test-6', states: ['settling'] })).toBe('6');
      expect(await found({ idStart: 'chg_test-', toMs: middle, routeId: OTHER_ROUTE })).toBe('3');
      for (const wild of ['%', '_', 'chg_test-_', 'chg%', "' OR 1=1 --"])
        for (const name of ['idStart', 'requestId', 'transaction', 'payer', 'currency', 'receiverId'])
          expect(await found({ [name]: wild }), `${name} ${wild}`).toBe('');
      const pages: string[] = [];
      let before: number | undefined;
      do {
        const page = await ledger.list({ limit: 2, before, states: ['settled', 'released', 'settling', 'claimed'] });
        pages.push(
          ids(page)
            .map((id) => id.slice(-1))
            .join(''),
        );
        before = page.nextBefore;
      } while (before !== undefined);
      expect(pages).toEqual(['87', '64', '2']);
    });

    test('behaviour: charges are found by a part of their id, by request and by transaction, newest first', async () => {
      const search = async (wanted: ChargeSearch, limit = 10): Promise<string[]> =>
        (await ledger.search(wanted, limit)).map(({ id }) => id);
      const { id } = claimOf(3);
      for (const [start, end] of [
        [id, ''],
        [id.slice(0, -1), id.slice(-1)],
        ['chg_', id.slice(4)],
      ] as const)
        expect(await search({ idPart: { start, end } })).toEqual([id]);
      const all = await search({ idPart: { start: id.slice(0, 5), end: '' } });
      expect(all.length).toBeGreaterThan(3);
      expect(await search({ idPart: { start: id.slice(0, 5), end: '' } }, 2)).toEqual(all.slice(0, 2));
      expect(await search({ idPart: undefined, requestId: 'request-5' })).toEqual([claimOf(5).id]);
      const { transaction } = proofOf(claimOf(2, { payer: 1 }));
      expect(await search({ idPart: undefined, requestId: 'nobody', transaction })).toEqual([claimOf(2).id]);
      for (const nothing of ['%', '_', "' OR 1=1 --", 'request-'])
        expect(await search({ idPart: { start: 'chg_', end: nothing }, requestId: nothing })).toEqual([]);
    });

    test('refuses: to show a credential, its digest, an answer or an owner in a report', async () => {
      await ledger.advance(
        'chg_test-2',
        {
          kind: 'answer_kept',
          answer: { status: 200, headers: ['A', 'secret'], body: Buffer.from('secret') },
          headSent: false,
        },
        { owner: 'o' },
      );
      const shown = [...(await ledger.list({ limit: 50 })).charges, await ledger.get('chg_test-2')];
      for (const charge of shown) {
        for (const member of ['credential', 'credentialSha256', 'answer', 'owner', 'changeId', 'events'])
          expect(charge).not.toHaveProperty(member);
      }
      expect(await ledger.get('chg_test-1')).toMatchObject({
        id: 'chg_test-1',
        state: 'delivered',
        proof: proofOf(claimOf(1)),
      });
      expect(await ledger.get('chg_nobody')).toBeUndefined();
    });

    test('behaviour: charges that settled are summed by route, currency and bucket, exact beyond 64 bits', async () => {
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
              each.routeId?.[0],
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

    test('behaviour: days and months of sums begin at midnight, UTC', async () => {
      for (const bucket of ['day', 'month'] as const) {
        const summary = await ledger.summary({ fromMs: begin, toMs: begin + 1, bucket, limit: 10 });
        const text = new Date(begin).toISOString();
        const start = bucket === 'day' ? `${text.slice(0, 10)}T00:00:00.000Z` : `${text.slice(0, 7)}-01T00:00:00.000Z`;
        const [first] = summary.kind === 'sums' ? summary.sums : [];
        expect([first && new Date(first.start).toISOString(), first?.network]).toEqual([start, NETWORK]);
      }
    });

    test('behaviour: a charge that is owed is listed with whose fault it is, summed by currency, and no more once it was refunded', async () => {
      const failing = async (
        n: number,
        because: 'upstream_failed' | 'answer_lost' | 'answer_dropped',
      ): Promise<void> => {
        const price = { amount: '1', currency: n === 22 ? 'EURC' : 'USD' };
        const claim = claimOf(n, { x402Version: 1, price, customerId: `owed-${n}` });
        await take(claim, 'settled');
        const event = { kind: 'undelivered', because, headSent: false } as const;
        expect((await ledger.advance(claim.id, event, { owner: 'o' })).kind).toBe('ok');
      };
      await failing(20, 'upstream_failed');
      await failing(21, 'answer_lost');
      await failing(22, 'upstream_failed');
      await failing(23, 'answer_dropped');
      await failing(24, 'upstream_failed');
      const owed = async (filter: object = {}): Promise<string[]> =>
        (await ledger.list({ limit: 50, owed: true, ...filter })).charges.map(
          ({ id, owed: fault }) => `${id} ${fault}`,
        );
      const all = ['24 upstream', '23 tollgate', '22 upstream', '21 client', '20 upstream'];
      expect(await owed()).toEqual(all.map((each) => `chg_test-${each}`));
      expect(await owed({ customerId: 'owed-21', states: ['settled'] })).toEqual(['chg_test-21 client']);
      expect(await owed({ states: ['delivered'] })).toEqual([]);
      const first = await ledger.list({ limit: 2, owed: true });
      expect(await owed({ limit: 2, before: first.nextBefore })).toEqual([
        'chg_test-22 upstream',
        'chg_test-21 client',
      ]);
      expect(await ledger.get('chg_test-1')).toMatchObject({ owed: null });
      expect(await ledger.get('chg_test-21')).toMatchObject({ owed: 'client' });
      const sums = async (): Promise<string[]> =>
        (await ledger.alarms()).owed
          .map(({ currency, because, charges, amount }) => `${currency} ${because} ${charges} ${amount}`)
          .toSorted();
      expect(await sums()).toEqual([
        'EURC upstream 1 100000',
        'USD client 1 100000',
        'USD tollgate 1 100000',
        'USD upstream 2 200000',
      ]);
      await ledger.advance('chg_test-20', { kind: 'refunded', note: 'by hand' }, { owner: 'operator' });
      expect(await sums()).toEqual([
        'EURC upstream 1 100000',
        'USD client 1 100000',
        'USD tollgate 1 100000',
        'USD upstream 1 100000',
      ]);
      expect(await ledger.get('chg_test-20')).toMatchObject({ owed: null, state: 'settled', refundNote: 'by hand' });
      // A goodwill refund is noted on the charge; sums, counts and what is owed stay.
      const { deliveredAt } = (await ledger.get('chg_test-1')) ?? {};
      const revenue = async (): Promise<unknown> => {
        const summary = await ledger.summary({ fromMs: 0, toMs: Date.now() + 1000, bucket: 'total', limit: 10 });
        return summary.kind === 'sums' && summary.sums.map(({ refunded: _refunded, ...sum }) => sum);
      };
      const books = async (): Promise<unknown> => [
        await revenue(),
        await ledger.countByState(),
        await owed(),
        await sums(),
      ];
      const before = await books();
      await ledger.advance('chg_test-1', { kind: 'refunded', note: 'with our regrets' }, { owner: 'operator' });
      expect(await ledger.get('chg_test-1')).toMatchObject({
        ...{ state: 'delivered', deliveredAt, owed: null, refundNote: 'with our regrets' },
        refundedAt: expect.any(Number),
      });
      expect(await books()).toEqual(before);
      const { deadline } = claimOf(6);
      expect((await ledger.alarms()).settlingEndsAt).toBe(Number(deadline) * 1000);
    });

    test('behaviour: charges are counted by state', async () => {
      expect(await ledger.countByState()).toEqual({
        claimed: 1,
        settling: 1,
        settled: 7,
        delivered: 3,
        released: 1,
        failed: 0,
      });
      expect((await ledger.get('chg_test-1'))?.route.id).toBe(ROUTE_ID);
    });

    test('behaviour: charges are listed and summed by network, over all routes of it', async () => {
      opened.pass(100 * HOUR);
      const fromMs = opened.now();
      const there = 'eip155:8453';
      const customerId = 'by network';
      const way = { id: OTHER_ROUTE, method: '*', pattern: '/x' };
      await take(claimOf(31, { customerId }), 'settled');
      await take(claimOf(32, { customerId, route: way }), 'settled');
      await take(abroad(claimOf(33, { customerId, route: way, amount: BIG })), 'settled');
      await take(abroad(claimOf(34, { customerId, route: way, price: { amount: '1', currency: 'EURC' } })), 'settled');
      const found = async (filter: object): Promise<string[]> =>
        ids(await ledger.list({ limit: 50, customerId, ...filter })).map((id) => id.slice(-2));
      expect(await found({ network: there })).toEqual(['34', '33']);
      expect(await found({ network: NETWORK, states: ['settled'] })).toEqual(['32', '31']);
      expect(await found({ network: there, payer: address(33) })).toEqual(['33']);
      expect(await found({ network: 'eip155:1' })).toEqual([]);
      const query = { fromMs, toMs: fromMs + 1, bucket: 'total', groupBy: 'network', limit: 3 } as const;
      const sums = async (more: object): Promise<unknown> => {
        const summary = await ledger.summary({ ...query, ...more });
        if (summary.kind !== 'sums') return summary.kind;
        const rows = summary.sums.map((sum) => [sum.network, sum.routeId, sum.currency, sum.charges, sum.amount]);
        return rows.toSorted((a, b) => String(a).localeCompare(String(b)));
      };
      const all = [
        [NETWORK, null, 'USD', 2, 200_000n],
        [there, null, 'EURC', 1, 100_000n],
        [there, null, 'USD', 1, BIG],
      ].toSorted((a, b) => String(a).localeCompare(String(b)));
      expect(await sums({})).toEqual(all);
      expect(await sums({ limit: 2 })).toBe('too_long');
      expect(await sums({ currency: 'EURC' })).toEqual([[there, null, 'EURC', 1, 100_000n]]);
      expect(await sums({ routeId: ROUTE_ID })).toEqual([[NETWORK, null, 'USD', 1, 100_000n]]);
    });

    test('behaviour: the history of a charge is what happened to it, oldest first, each change once', async () => {
      const { transaction } = proofOf(claimOf(1));
      const told = async (id: string): Promise<unknown> =>
        (await ledger.history(id))?.map(({ state, event, by, detail }) => [state, event, by, detail]);
      expect(await told('chg_test-1')).toEqual([
        ['claimed', 'claimed', 'request', 'request-1'],
        ['settling', 'settle_started', 'request', null],
        ['settled', 'settled', 'request', transaction],
        ['delivered', 'delivered', 'request', null],
        ['delivered', 'refunded', 'operator', 'with our regrets'],
      ]);
      expect(await told('chg_test-8')).toEqual([
        ['claimed', 'claimed', 'request', 'request-8'],
        ['released', 'released', 'request', 'upstream_500'],
      ]);
      const times = (await ledger.history('chg_test-1'))?.map(({ at }) => at) ?? [];
      expect(times.toSorted((a, b) => a - b)).toEqual(times);
      expect(times[0]).toBe((await ledger.get('chg_test-1'))?.createdAt);
      // A change that is called again is one change, and one that is refused is none.
      const refund = { kind: 'refunded', note: 'sorry "twice"\n' } as const;
      const actor = { owner: 'operator-abcd', changeId: 'once' };
      await take(claimOf(90), 'delivered');
      for (const each of [actor, actor, { owner: 'operator' }]) await ledger.advance('chg_test-90', refund, each);
      expect(await told('chg_test-90')).toEqual([
        ['claimed', 'claimed', 'request', 'request-90'],
        ['settling', 'settle_started', 'request', null],
        ['settled', 'settled', 'request', proofOf(claimOf(90)).transaction],
        ['delivered', 'delivered', 'request', null],
        ['delivered', 'refunded', 'operator', 'sorry "twice"\n'],
      ]);
      expect(await ledger.history('chg_nobody')).toBeUndefined();
    });

    test('behaviour: looks at the chain one after the other are one line, and of more than 64 the first stays', async () => {
      const claim = claimOf(91);
      await take(claim, 'settling');
      const unknown = { kind: 'settle_unknown', reason: 'timeout', lookInMs: 0 } as const;
      await ledger.advance(claim.id, unknown, { owner: 'o' });
      const look = { kind: 'looked', search: null, lookInMs: 0, reason: 'unseen "looked"' } as const;
      for (const at of ['start', 'end', 'start', 'end'] as const)
        await ledger.advance(claim.id, { ...look, at }, { owner: 'reconciler' });
      const events = async (): Promise<string[]> =>
        (await ledger.history(claim.id))?.map(({ event, by }) => `${event} ${by}`) ?? [];
      expect(await events()).toEqual([
        ...['claimed request', 'settle_started request', 'settle_unknown request', 'looked reconciler'],
      ]);
      for (let n = 0; n < 40; n++) {
        expect((await ledger.advance(claim.id, { kind: 'taken_over', leaseMs: 1000 }, { owner: 'p' })).kind).toBe('ok');
        expect((await ledger.advance(claim.id, unknown, { owner: 'p' })).kind).toBe('ok');
      }
      const all = await events();
      expect([all.length, all[0], all[1], all.at(-1)]).toEqual([
        ...[64, 'claimed request', 'settle_unknown request', 'settle_unknown request'],
      ]);
      await ledger.advance(claim.id, { kind: 'failed', by: 'operator', reason: 'x' }, { owner: 'operator' });
      expect((await events()).at(-1)).toBe('failed operator');
    });
  });
}
