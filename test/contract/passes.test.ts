// The contract of passes over every store that keeps them, and over HTTP as sidecars and workers use it: opened with the charge
// that paid for them, drawn on exactly whatever asks at the same time, and a change that is sent again is the same change.
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { createLedger, type ChargeStore, type Ledger } from '../../src/domain/payment/ledger.ts';
import type { ClaimResult } from '../../src/domain/payment/claim-policy.ts';
import {
  creditUnits,
  standingOfBook,
  type DrawChange,
  type DrawKey,
  type DrawResult,
} from '../../src/domain/selling/pass-book.ts';
import { writePassInSale, type PassInSale } from '../../src/domain/selling/pass.ts';
import type { ListedPass, PassLedger, PassStore } from '../../src/domain/selling/pass-store.ts';
import { SPELLING } from '../../src/gateway/rails/rails.ts';
import { createRemoteCharges } from '../../src/gateway/ledger/remote-ledger.ts';
import { createRandom, systemClock, systemSchedule } from '../../src/host/clock.ts';
import { createLog } from '../../src/host/log.ts';
import { address, claimOf, proofOf, sha256 } from '../cases/claims.ts';
import { hasPostgres } from '../postgres/server.ts';
import { freshDatabase, openTestStore, stopSharedPostgres } from '../postgres/store.ts';
import { LEDGER_KEY, startRegistry, temporaryFolder } from '../registry/kit.ts';
import { createMemoryCharges } from '../support/memory-ledger.ts';
import { openPatientCharges } from '../support/sqlite-ledger.ts';

const log = createLog('error', () => undefined, Date.now);
const DAY_MS = 86_400_000;
const LEASE_MS = 60_000;

type PassKeeping = ChargeStore & { readonly passes: PassStore };
type OpenedPasses = {
  /** Two ways to the same passes, as two processes have them; the first has the store. */
  readonly stores: readonly [PassKeeping, { readonly passes: PassLedger }];
  /** Run whose requests draw. */
  readonly run: string;
  readonly close: () => Promise<void>;
};

let made = 0;
const uses = (count: number, rest: Partial<PassInSale> = {}): PassInSale =>
  ({
    kind: 'uses',
    uses: count,
    planId: 'p',
    termsId: 'hundred',
    validMs: DAY_MS,
    scope: 'plan',
    first: '1',
    ...rest,
  }) as PassInSale;
const keyOf = (name: string, target = '/a', method = 'POST'): DrawKey => ({
  ...{ sha256: sha256(name), method, targetSha256: sha256(target) },
});

function describePasses(name: string, open: () => Promise<OpenedPasses>): void {
  describe(name, () => {
    let opened: OpenedPasses;
    let ledger: Ledger;
    beforeAll(async () => {
      opened = await open();
      ledger = createLedger(opened.stores[0], SPELLING);
    });
    afterAll(() => opened.close());

    const claim = (
      sale: PassInSale,
      payer = ++made + 1000,
      settle: 'before_forward' | 'before_response' = 'before_response',
    ) => {
      const n = ++made;
      const wanted = claimOf(n, {
        payer,
        pass: writePassInSale(sale),
        settle,
        id: `chg_${name.replaceAll(' ', '-')}-${n}`,
      });
      const owner = `${opened.run}/r${n}`;
      const options = { owner, leaseMs: LEASE_MS, maxUnsettledPerPayer: 100, settleVia: 'x' };
      return { wanted, owner, claimed: ledger.claim(wanted, options) };
    };
    const settle = async (
      { wanted, owner }: Pick<ReturnType<typeof claim>, 'wanted' | 'owner'>,
      leaseMs = LEASE_MS,
    ): Promise<void> => {
      const event = { kind: 'settled', proof: proofOf(wanted), leaseMs } as const;
      expect(await ledger.advance(wanted.id, event, { owner })).toMatchObject({ kind: 'ok' });
    };
    const buy = async (sale: PassInSale, payer?: number, mode?: 'before_forward'): Promise<ListedPass> => {
      const buying = claim(sale, payer, mode);
      expect((await buying.claimed).kind).toBe('claimed');
      if ((await buying.claimed).kind === 'claimed') {
        const started = { kind: 'settle_started', via: 'x', leaseMs: LEASE_MS } as const;
        await ledger.advance(buying.wanted.id, started, { owner: buying.owner });
      }
      await settle(buying);
      return stateOf(buying.wanted.id.replace('chg_', 'pass_'));
    };
    const stateOf = async (id: string): Promise<ListedPass> => {
      const found = await opened.stores[0].passes.get(id);
      if (found === undefined) throw new Error(`there is no pass ${id}`);
      return found;
    };
    const change = (each: DrawChange, store: 0 | 1 = made % 2 === 0 ? 0 : 1): Promise<DrawResult> =>
      opened.stores[store].passes.change(each);
    const reserve = (
      { pass }: ListedPass,
      { amount = 1n, key = null, leaseMs = LEASE_MS }: Partial<Extract<DrawChange, { kind: 'reserve' }>> = {},
    ): Extract<DrawChange, { kind: 'reserve' }> => {
      const owner = `${opened.run}/u${++made}`;
      const { planId, routeId, kind, currency } = pass;
      const of = { planId, routeId, kind, currency };
      return { kind: 'reserve', passId: pass.passId, useId: `use_${made}`, owner, amount, leaseMs, key, of };
    };
    const take = ({ passId, useId, owner }: DrawChange, amount: bigint | null = null): DrawChange => ({
      ...{ kind: 'take', passId, useId, owner, amount },
    });
    const giveBack = (
      { passId, useId, owner }: DrawChange,
      because: Extract<DrawChange, { kind: 'give_back' }>['because'] = 'not_charged',
    ): DrawChange => ({ kind: 'give_back', passId, useId, owner, because });
    const numbers = async ({ pass }: ListedPass): Promise<readonly (bigint | number)[]> => {
      const { book } = await stateOf(pass.passId);
      const { left, lapsed } = standingOfBook(book, Date.now());
      expect(left + lapsed + book.drawn + book.reserved).toBe(book.sold);
      return [book.drawn, left, book.reserved, lapsed];
    };

    test(`behaviour: ${name} opens a pass with the charge that paid for it, and with nothing else`, async () => {
      const buying = claim(uses(3));
      expect((await buying.claimed).kind).toBe('claimed');
      const id = buying.wanted.id.replace('chg_', 'pass_');
      expect(await opened.stores[0].passes.get(id)).toBeUndefined();
      await settle(buying);
      // The request that bought it has had its use: the upstream had answered when it was settled.
      const pass = await stateOf(id);
      expect(pass).toMatchObject({
        pass: { passId: id, chargeId: buying.wanted.id, planId: 'p', termsId: 'hundred', kind: 'uses', uses: 3 },
        book: { sold: 3n, drawn: 1n, reserved: 0n, uses: 1, revokedAt: null },
      });
      expect(await numbers(pass)).toEqual([1n, 2n, 0n, 0n]);
      // One that is forwarded only then has it reserved, until it is ended as any other use is.
      const forward = await buy(uses(3), undefined, 'before_forward');
      expect(await numbers(forward)).toEqual([0n, 2n, 1n, 0n]);
      const { passId } = forward.pass;
      const first = { passId, useId: passId.replace('pass_', 'use_') };
      const owner = `${opened.run}/r${passId.split('-').at(-1) ?? ''}`;
      expect(await change({ kind: 'take', ...first, owner: 'x/another', amount: null })).toEqual({ kind: 'lost' });
      expect(await change({ kind: 'take', ...first, owner, amount: null })).toMatchObject({ kind: 'taken', left: 2n });
      expect(await numbers(forward)).toEqual([1n, 2n, 0n, 0n]);
      const day = await buy({ ...uses(1), kind: 'seconds', seconds: 3600, first: '0' } as unknown as PassInSale);
      expect(day.book).toMatchObject({ sold: 0n, drawn: 0n, reserved: 0n });
    });

    test(`behaviour: ${name} takes of a metered credit what its first response says, and no more than was reserved`, async () => {
      const credit = { kind: 'credit', credit: '1', first: '0.25', isMetered: true };
      const worth = (left: string, drawn: string): readonly bigint[] => [
        ...[creditUnits(drawn), creditUnits(left), 0n, 0n],
      ];
      for (const [said, left, drawn] of [
        ['0.01', '0.99', '0.01'],
        ['0', '1', '0'],
        ['7', '0.75', '0.25'],
      ] as const) {
        const pass = await buy({ ...uses(1), uses: undefined, ...credit } as unknown as PassInSale);
        expect(await numbers(pass)).toEqual([0n, creditUnits('0.75'), creditUnits('0.25'), 0n]);
        const { passId } = pass.pass;
        const owner = `${opened.run}/r${passId.split('-').at(-1) ?? ''}`;
        const first = { passId, useId: passId.replace('pass_', 'use_'), owner };
        const taken = await change({ kind: 'take', ...first, amount: creditUnits(said) });
        expect(taken).toMatchObject({ kind: 'taken', left: creditUnits(left) });
        expect(await numbers(pass)).toEqual(worth(left, drawn));
      }
    });

    test(`behaviour: ${name} reserves, takes and gives back, each once however often it is said`, async () => {
      const pass = await buy(uses(4));
      const [one, two] = [reserve(pass), reserve(pass)];
      expect(await change(one)).toMatchObject({ kind: 'reserved', useId: one.useId, left: 2n });
      expect(await change(one)).toMatchObject({ kind: 'reserved', useId: one.useId, left: 2n });
      expect(await change(two)).toMatchObject({ kind: 'reserved', useId: two.useId, left: 1n });
      expect(await numbers(pass)).toEqual([1n, 1n, 2n, 0n]);
      for (const store of [0, 1] as const)
        expect(await change(take(one), store)).toEqual({
          ...{ kind: 'taken', useId: one.useId, left: 1n, termsId: 'hundred' },
          worth: creditUnits('0.025'),
        });
      for (const store of [0, 1] as const)
        expect(await change(giveBack(two), store)).toMatchObject({ kind: 'given_back', useId: two.useId, left: 2n });
      // What was taken is not given back.
      expect(await change(giveBack(one))).toMatchObject({ kind: 'taken' });
      expect(await numbers(pass)).toEqual([2n, 2n, 0n, 0n]);
    });

    test(`attack: ${name} gives ten requests at once one last use, and says of the others that it is in use, then used up`, async () => {
      const pass = await buy(uses(2));
      const wanted = Array.from({ length: 10 }, () => reserve(pass));
      const results = await Promise.all(wanted.map((each, n) => change(each, n % 2 === 0 ? 0 : 1)));
      expect(results.map(({ kind }) => kind).toSorted()).toEqual([...Array<string>(9).fill('in_use'), 'reserved']);
      const winner = wanted[results.findIndex(({ kind }) => kind === 'reserved')];
      if (winner === undefined) throw new Error('nobody had the last use');
      expect(await change(take(winner))).toMatchObject({ kind: 'taken', left: 0n });
      expect(await change(reserve(pass))).toEqual({ kind: 'used_up' });
      expect(await numbers(pass)).toEqual([2n, 0n, 0n, 0n]);
    });

    test(`behaviour: ${name} takes of a credit what a request came to, exactly`, async () => {
      const pass = await buy({ ...uses(1), kind: 'credit', credit: '5.00', first: '0.02' } as unknown as PassInSale);
      const wanted = reserve(pass, { amount: creditUnits('0.10') });
      expect(await change(wanted)).toMatchObject({ kind: 'reserved', left: creditUnits('4.88') });
      expect(await change(take(wanted, creditUnits('0.000002')))).toMatchObject({ left: creditUnits('4.979998') });
      // Never more than was reserved; and of too little left nothing.
      const dear = reserve(pass, { amount: creditUnits('4.979998') });
      expect(await change(dear)).toMatchObject({ kind: 'reserved', left: 0n });
      expect(await change(reserve(pass, { amount: creditUnits('0.01') }))).toEqual({ kind: 'in_use' });
      expect(await change(take(dear, creditUnits('1000')))).toMatchObject({ kind: 'taken', left: 0n });
      expect(await change(reserve(pass, { amount: 1n }))).toEqual({ kind: 'used_up' });
    });

    test(`behaviour: ${name} draws once for a key, asks the upstream three times again, and refuses other requests`, async () => {
      const pass = await buy(uses(10));
      const key = keyOf(`k${made}`);
      const first = reserve(pass, { key });
      expect(await change(first)).toMatchObject({ kind: 'reserved', useId: first.useId });
      // Somebody works on it.
      expect(await change(reserve(pass, { key }))).toEqual({ kind: 'in_use' });
      expect(await change(take(first))).toMatchObject({ kind: 'taken', left: 8n });
      for (let again = 1; again <= 3; again++) {
        const repeated = reserve(pass, { key });
        for (const store of [0, 1] as const)
          expect(await change(repeated, store)).toMatchObject({ kind: 'repeated', useId: first.useId, left: 8n });
        if (again === 1) {
          // One that was not sent upstream counts for nothing, once.
          for (const store of [0, 1] as const)
            await change({ ...giveBack({ ...repeated, useId: first.useId }, 'unasked') }, store);
          expect(await change(reserve(pass, { key }))).toMatchObject({ kind: 'repeated' });
        }
      }
      expect(await change(reserve(pass, { key }))).toEqual({ kind: 'conflict' });
      expect(await change(reserve(pass, { key: { ...key, targetSha256: sha256('/b') } }))).toEqual({
        kind: 'conflict',
      });
      expect(await change(reserve(pass, { key: { ...key, method: 'GET' } }))).toEqual({ kind: 'conflict' });
      // Another pass has keys of its own.
      expect(await change(reserve(await buy(uses(3)), { key }))).toMatchObject({ kind: 'reserved' });
      expect(await numbers(pass)).toEqual([2n, 8n, 0n, 0n]);
    });

    test(`behaviour: ${name} draws anew for a key once its time is over, and asks for it as often as it says`, async () => {
      const pass = await buy(uses(10));
      const often = { ...keyOf(`o${made}`), forMs: 3_600_000, asks: 6 };
      const first = reserve(pass, { key: often });
      await change(first);
      await change(take(first));
      for (let ask = 2; ask <= 6; ask++)
        expect(await change(reserve(pass, { key: often }))).toMatchObject({ kind: 'repeated', useId: first.useId });
      expect(await change(reserve(pass, { key: often }))).toEqual({ kind: 'conflict' });
      const short = { ...keyOf(`s${made}`), forMs: 1 };
      const brief = reserve(pass, { key: short });
      expect(await change(brief)).toMatchObject({ kind: 'reserved', useId: brief.useId });
      expect(await change(take(brief))).toMatchObject({ kind: 'taken', left: 7n });
      await vi.waitUntil(() => change(reserve(pass, { key: short })).then(({ kind }) => kind === 'reserved'));
      expect((await numbers(pass))[0]).toBe(3n);
    });

    test(`behaviour: ${name} draws for a key whose first use was given back when it is sent again, under the same id`, async () => {
      const pass = await buy(uses(3));
      const key = keyOf(`g${made}`);
      const first = reserve(pass, { key });
      await change(first);
      expect(await change(giveBack(first))).toMatchObject({ kind: 'given_back', left: 2n });
      const second = reserve(pass, { key });
      expect(await change(second)).toMatchObject({ kind: 'reserved', useId: first.useId, left: 1n });
      expect(await change(take({ ...second, useId: first.useId }))).toMatchObject({ kind: 'taken', left: 1n });
      // The first request has nothing of it any more.
      expect(await change(take(first))).toEqual({ kind: 'lost' });
      expect(await numbers(pass)).toEqual([2n, 1n, 0n, 0n]);
    });

    test(`attack: ${name} draws once for a key that two processes present at once`, async () => {
      const pass = await buy(uses(10));
      const key = keyOf(`storm${made}`);
      const wanted = Array.from({ length: 20 }, () => reserve(pass, { key }));
      const results = await Promise.all(wanted.map((each, n) => change(each, n % 2 === 0 ? 0 : 1)));
      expect(results.filter(({ kind }) => kind === 'reserved')).toHaveLength(1);
      expect(results.filter(({ kind }) => kind === 'in_use')).toHaveLength(19);
      expect(await numbers(pass)).toEqual([1n, 8n, 1n, 0n]);
    });

    test(`behaviour: ${name} gives back what nobody ended three times, then takes it; and likewise whose client left`, async () => {
      const pass = await buy(uses(20));
      const abandon = async (): Promise<DrawChange> => {
        const wanted = reserve(pass, { leaseMs: 0 });
        expect(await change(wanted)).toMatchObject({ kind: 'reserved' });
        await opened.stores[0].passes.endLost(100);
        return wanted;
      };
      const late = await abandon();
      expect(await numbers(pass)).toEqual([1n, 19n, 0n, 0n]);
      // It comes after all, and nobody else has it.
      expect(await change(take(late))).toMatchObject({ kind: 'taken', left: 18n });
      await abandon();
      await abandon();
      expect(await numbers(pass)).toEqual([2n, 18n, 0n, 0n]);
      await abandon();
      expect(await numbers(pass)).toEqual([3n, 17n, 0n, 0n]);
      const leave = async (): Promise<DrawResult> => {
        const wanted = reserve(pass);
        await change(wanted);
        return change(giveBack(wanted, 'left'));
      };
      for (const kind of ['given_back', 'given_back', 'given_back', 'taken', 'taken'])
        expect(await leave()).toMatchObject({ kind });
      expect(await numbers(pass)).toEqual([5n, 15n, 0n, 0n]);
    });

    test(`behaviour: ${name} makes no reservation that was given up before it arrived, and takes nothing that was given back`, async () => {
      const pass = await buy(uses(10));
      const key = keyOf(`late${made}`);
      for (const late of [reserve(pass), reserve(pass, { key })]) {
        const keySha256 = late.key?.sha256;
        for (const store of [0, 1] as const)
          expect(await change({ ...giveBack(late, 'unasked'), keySha256 } as DrawChange, store)).toMatchObject({
            kind: 'given_back',
          });
        expect(await change(late)).toEqual({ kind: 'lost' });
        expect(await change(take(late))).toEqual({ kind: 'lost' });
      }
      expect(await numbers(pass)).toEqual([1n, 9n, 0n, 0n]);
      // A take that comes after its request gave the use back.
      const slow = reserve(pass);
      await change(slow);
      await change(giveBack(slow));
      expect(await change(take(slow))).toEqual({ kind: 'lost' });
      // The key was never used: its next request draws, and a late one of the first is nobody's.
      const next = reserve(pass, { key });
      expect(await change(next)).toMatchObject({ kind: 'reserved', useId: next.useId });
      expect(await change(take(next))).toMatchObject({ kind: 'taken' });
      const repeated = reserve(pass, { key });
      expect(await change(repeated)).toMatchObject({ kind: 'repeated', useId: next.useId });
      expect(await change(next)).toEqual({ kind: 'lost' });
      expect(await numbers(pass)).toEqual([2n, 8n, 0n, 0n]);
    });

    test(`behaviour: ${name} counts no ask of a key whose answer was lost before anything was sent upstream`, async () => {
      const pass = await buy(uses(10));
      const key = keyOf(`unheard${made}`);
      const first = reserve(pass, { key });
      await change(first);
      await change(take(first));
      for (let times = 0; times < 6; times++) {
        const unheard = reserve(pass, { key });
        expect(await change(unheard)).toMatchObject({ kind: 'repeated', useId: first.useId });
        const gaveUp = { ...giveBack(unheard, 'unasked'), keySha256: key.sha256 } as DrawChange;
        expect(await change(gaveUp)).toMatchObject({ kind: 'taken', useId: first.useId });
        expect(await change(unheard)).toEqual({ kind: 'lost' });
      }
      expect(await numbers(pass)).toEqual([2n, 8n, 0n, 0n]);
    });

    test(`behaviour: ${name} makes no use of a key again for a request that gave it back and arrives twice`, async () => {
      const pass = await buy(uses(10));
      for (const because of ['unasked', 'not_charged'] as const) {
        const key = keyOf(`twice${made}`);
        const first = reserve(pass, { key });
        await change(first);
        await change(giveBack(first));
        const second = reserve(pass, { key });
        expect(await change(second)).toMatchObject({ kind: 'reserved', useId: first.useId });
        await change(giveBack({ ...second, useId: first.useId }, because));
        expect(await change(second)).toEqual({ kind: 'lost' });
      }
      expect(await numbers(pass)).toEqual([1n, 9n, 0n, 0n]);
    });

    test(`behaviour: ${name} undoes a take that its request never heard of, unless another one has had the use since`, async () => {
      const pass = await buy(uses(10));
      const key = keyOf(`undone${made}`);
      for (const wanted of [reserve(pass), reserve(pass, { key })]) {
        await change(wanted);
        expect(await change(take(wanted))).toMatchObject({ kind: 'taken', left: 8n });
        for (const store of [0, 1] as const)
          expect(await change(giveBack(wanted, 'unheard'), store)).toMatchObject({ kind: 'given_back', left: 9n });
        expect(await change(take(wanted))).toEqual({ kind: 'lost' });
        expect((await stateOf(pass.pass.passId)).book.uses).toBe(1);
      }
      // The same key once more, and the answer of the repetition was delivered.
      const second = reserve(pass, { key });
      const { useId } = { useId: '', ...(await change(second)) };
      await change(take({ ...second, useId }));
      expect(await change(reserve(pass, { key }))).toMatchObject({ kind: 'repeated' });
      expect(await change(giveBack({ ...second, useId }, 'unheard'))).toEqual({ kind: 'lost' });
      expect(await numbers(pass)).toEqual([2n, 8n, 0n, 0n]);
    });

    test(`behaviour: ${name} gives a use that ran out once too often back to its request, if that says so late`, async () => {
      const pass = await buy(uses(20));
      const abandoned = [reserve(pass), reserve(pass), reserve(pass), reserve(pass), reserve(pass)] as const;
      for (const each of abandoned) {
        await change({ ...each, leaseMs: 0 });
        await opened.stores[0].passes.endLost(100);
      }
      expect(await numbers(pass)).toEqual([3n, 17n, 0n, 0n]);
      const [first, , , fourth, fifth] = abandoned;
      for (const store of [0, 1] as const)
        expect(await change(giveBack(fourth), store)).toMatchObject({ kind: 'given_back', left: 18n });
      for (const store of [0, 1] as const)
        expect(await change(take(fifth), store)).toMatchObject({ kind: 'taken', left: 18n });
      expect(await change(giveBack(fifth))).toMatchObject({ kind: 'taken' });
      expect(await change(giveBack(first))).toMatchObject({ kind: 'given_back' });
      expect(await change(take(first))).toEqual({ kind: 'lost' });
      expect(await numbers(pass)).toEqual([2n, 18n, 0n, 0n]);
      expect((await stateOf(pass.pass.passId)).book).toMatchObject({ uses: 2, lost: 3 });
    });

    test(`behaviour: ${name} finds what nobody works on any more when too little is left`, async () => {
      const pass = await buy(uses(2));
      expect(await change(reserve(pass, { leaseMs: 0 }))).toMatchObject({ kind: 'reserved' });
      expect(await change(reserve(pass))).toMatchObject({ kind: 'reserved', left: 0n });
      expect(await numbers(pass)).toEqual([1n, 0n, 1n, 0n]);
    });

    test(`behaviour: ${name} renews the leases of its own run alone`, async () => {
      const pass = await buy(uses(5));
      const [own, foreign] = [reserve(pass, { leaseMs: 0 }), { ...reserve(pass, { leaseMs: 0 }), owner: 'run-x/1' }];
      await change(own);
      await change(foreign);
      const { run } = opened;
      expect(await opened.stores[1].passes.renew(run, [own.useId, foreign.useId, 'use_none'], LEASE_MS)).toEqual([
        own.useId,
      ]);
      await opened.stores[0].passes.endLost(100);
      expect(await numbers(pass)).toEqual([1n, 3n, 1n, 0n]);
    });

    test(`behaviour: ${name} revokes a pass with the refund that gives the last of its money back`, async () => {
      const buying = claim(uses(5));
      await buying.claimed;
      await settle(buying);
      const chargeId = buying.wanted.id;
      const passId = chargeId.replace('chg_', 'pass_');
      const { charge } = await ledger.advance(chargeId, { kind: 'delivered', partial: false }, { owner: buying.owner });
      const cause = { actor: 'root', via: 'command_line', requestId: null } as const;
      const refund = (amount: bigint) => {
        const transfer = { transaction: sha256(`refund ${++made}`), logIndex: 1, amount, reason: '' };
        return ledger.advance(chargeId, { kind: 'refunded', note: '', transfer }, { owner: 'operator-1', cause });
      };
      const whole = charge?.amount ?? 0n;
      expect((await refund(1n)).kind).toBe('ok');
      expect((await stateOf(passId))?.book.revokedAt).toBeNull();
      expect((await refund(whole - 1n)).kind).toBe('ok');
      expect((await stateOf(passId))?.book.revokedAt).toEqual(expect.any(Number));
      const pass = await stateOf(passId);
      if (pass === undefined) throw new Error('the pass is gone');
      expect(await change(reserve(pass))).toEqual({ kind: 'revoked' });
    });

    test(`behaviour: ${name} draws nothing of a pass that was revoked or is over, and what was left has lapsed`, async () => {
      const pass = await buy(uses(5));
      const before = Date.now() - 1;
      const open = reserve(pass);
      await change(open);
      expect(await opened.stores[0].passes.revoke(pass.pass.passId)).toMatchObject({ book: { drawn: 1n } });
      expect(await numbers(pass)).toEqual([1n, 0n, 1n, 3n]);
      expect(await change(reserve(pass))).toEqual({ kind: 'revoked' });
      // What was let in goes on.
      expect(await change(take(open))).toMatchObject({ kind: 'taken', left: 0n });
      expect(await numbers(pass)).toEqual([2n, 0n, 0n, 3n]);
      const revoked = await opened.stores[1].passes.revoked(before, 1000);
      expect(revoked.map(({ id }) => id)).toContain(pass.pass.passId);
      expect(await opened.stores[1].passes.revoked(Date.now() + 1000, 1000)).toEqual([]);
      expect(await opened.stores[0].passes.revoke('pass_none')).toBeUndefined();
      const short = await buy(uses(5, { validMs: 0 }));
      expect(await change(reserve(short))).toEqual({ kind: 'expired' });
      expect(await numbers(short)).toEqual([1n, 0n, 0n, 4n]);
      expect(await change({ ...reserve(pass), passId: 'pass_none' })).toEqual({ kind: 'unknown' });
    });

    test(`attack: ${name} draws nothing of a pass for another plan, route, kind or currency`, async () => {
      const whole = await buy(uses(5));
      const one = await buy(uses(5, { scope: 'route' }));
      const credit = await buy({ ...uses(1), kind: 'credit', credit: '5.00', first: '0.02' } as unknown as PassInSale);
      const of = reserve(whole).of;
      const elsewhere = { ...of, routeId: 'another' };
      for (const [pass, asked] of [
        ...([
          [whole, { ...of, planId: 'x' }],
          [whole, { ...of, kind: 'credit' }],
          [one, elsewhere],
        ] as const),
        ...([
          [credit, { ...of, kind: 'credit', currency: 'EUR' }],
          [credit, of],
        ] as const),
      ])
        expect(await change({ ...reserve(pass), of: asked })).toEqual({ kind: 'scope' });
      expect(await change({ ...reserve(whole), of: elsewhere })).toMatchObject({ kind: 'reserved' });
      // In uses the currency of the route does not matter.
      expect(await change({ ...reserve(whole), of: { ...of, currency: 'EUR' } })).toMatchObject({ kind: 'reserved' });
    });

    test(`refuses: ${name} sells a payer no fifth pass of a plan at a time, and counts those that are being bought`, async () => {
      const payer = 5000 + ++made;
      await buy(uses(1), payer);
      const [a] = [await buy(uses(3), payer), await buy(uses(3), payer), await buy(uses(3), payer)];
      // One is used up: three are good.
      const fourth = claim(uses(3), payer);
      expect((await fourth.claimed).kind).toBe('claimed');
      const results: ClaimResult['kind'][] = [];
      for (const sale of [uses(3), uses(3, { planId: 'other' })]) results.push((await claim(sale, payer).claimed).kind);
      expect(results).toEqual(['too_many_passes', 'claimed']);
      const single = claimOf(++made, { payer, id: `chg_single-${made}-${name.length}` });
      const options = { owner: `${opened.run}/s`, leaseMs: LEASE_MS, maxUnsettledPerPayer: 100 };
      expect((await ledger.claim(single, options)).kind).toBe('claimed');
      await opened.stores[0].passes.revoke(a.pass.passId);
      expect((await claim(uses(3), payer).claimed).kind).toBe('claimed');
    });

    test(`behaviour: ${name} lets a payer try a purchase again that was released, also the fourth one and not the fifth`, async () => {
      const payer = 12_000 + ++made;
      const claimAgain = async ({ wanted, owner }: ReturnType<typeof claim>): Promise<ClaimResult['kind']> => {
        const options = { owner, leaseMs: LEASE_MS, maxUnsettledPerPayer: 100, settleVia: 'x' };
        return (await ledger.claim(wanted, options)).kind;
      };
      const release = async ({ wanted, owner }: ReturnType<typeof claim>): Promise<void> => {
        const event = { kind: 'not_carried_out', reason: 'facilitator_away' } as const;
        expect(await ledger.advance(wanted.id, event, { owner })).toMatchObject({ kind: 'ok' });
      };
      const again = claim(uses(3), payer);
      expect((await again.claimed).kind).toBe('claimed');
      await release(again);
      for (let times = 0; times < 3; times++) await buy(uses(3), payer);
      expect(await claimAgain(again)).toBe('claimed');
      await release(again);
      await buy(uses(3), payer);
      expect(await claimAgain(again)).toBe('too_many_passes');
    });

    test(`attack: ${name} sells a payer who buys ten passes at once four of them`, async () => {
      const payer = 9000 + ++made;
      const kinds = await Promise.all(
        Array.from({ length: 10 }, async () => (await claim(uses(2), payer).claimed).kind),
      );
      expect(kinds.filter((kind) => kind === 'claimed')).toHaveLength(4);
      expect(kinds.filter((kind) => kind === 'too_many_passes')).toHaveLength(6);
    });

    test(`behaviour: ${name} lists passes newest first, by plan, terms and payer, and whether they can be used`, async () => {
      const payer = 20_000 + ++made;
      const plan = `listed-${made}`;
      const sold = [];
      for (const termsId of ['a', 'b', 'a'])
        sold.push((await buy(uses(2, { planId: plan, termsId }), payer)).pass.passId);
      const { passes } = opened.stores[0];
      const ids = async (filter: Partial<Parameters<PassStore['list']>[0]>): Promise<readonly string[]> =>
        (await passes.list({ limit: 10, plan, ...filter })).map(({ pass }) => pass.passId);
      expect(await ids({})).toEqual(sold.toReversed());
      expect(await ids({ terms: 'b' })).toEqual([sold[1]]);
      expect(await ids({ payer: address(payer), limit: 2 })).toEqual([sold[2], sold[1]]);
      expect(await ids({ payer: address(1) })).toEqual([]);
      await passes.revoke(sold[1] ?? '');
      expect(await ids({ live: true })).toEqual([sold[2], sold[0]]);
      expect(await ids({ live: false })).toEqual([sold[1]]);
      const [, second] = await passes.list({ plan, limit: 2 });
      expect(await ids({ before: second?.seq ?? 0 })).toEqual([sold[0]]);
      const found = await opened.stores[1].passes.ofPayer(address(payer));
      expect(found.map(({ pass }) => pass.passId)).toEqual([sold[0], sold[2]]);
    });

    test(`behaviour: ${name} lists passes of a payer that can be used before those that are used up, each by their end`, async () => {
      const payer = 20_000 + ++made;
      const sold: string[] = [];
      for (const [count, days] of [
        [1, 1],
        [2, 4],
        [1, 2],
        [2, 3],
      ] as const)
        sold.push((await buy(uses(count, { validMs: days * DAY_MS }), payer)).pass.passId);
      const found = await opened.stores[1].passes.ofPayer(address(payer));
      expect(found.map(({ pass }) => sold.indexOf(pass.passId))).toEqual([3, 1, 0, 2]);
    });

    test(`behaviour: ${name} tells what was paid for and not used yet`, async () => {
      const of = async (currency: string): Promise<bigint> =>
        (await opened.stores[0].passes.outstanding()).find((each) => each.currency === currency)?.units ?? 0n;
      const before = await of('USD');
      const pass = await buy(uses(4));
      // Sold at 0.10, a use of four is drawn.
      expect((await of('USD')) - before).toBe(creditUnits('0.075'));
      const wanted = reserve(pass);
      await change(wanted);
      expect((await of('USD')) - before).toBe(creditUnits('0.075'));
      await change(take(wanted));
      expect((await of('USD')) - before).toBe(creditUnits('0.05'));
      await opened.stores[0].passes.revoke(pass.pass.passId);
      expect(await of('USD')).toBe(before);
    });
  });
}

describePasses('memory', async () => {
  const store = createMemoryCharges(Date.now);
  return { stores: [store, store], run: store.run, close: async () => undefined };
});

describePasses('SQLite', async () => {
  const { folder, remove } = temporaryFolder();
  const file = join(folder, 'ledger.db');
  const [one, two] = [
    openPatientCharges(file, { now: Date.now, log }),
    openPatientCharges(file, { now: Date.now, log }),
  ];
  return {
    stores: [one, two],
    run: one.run,
    close: async () => {
      await Promise.all([one.close(), two.close()]);
      remove();
    },
  };
});

describePasses('the ledger over HTTP', async () => {
  const kit = await startRegistry();
  const remote = createRemoteCharges({
    ...{ registryUrl: `http://127.0.0.1:${kit.port}`, apiKey: LEDGER_KEY, version: '1.2.3' },
    ...{ schedule: systemSchedule, clock: systemClock, random: createRandom() },
    limits: { attemptMs: 20_000, totalMs: 25_000 },
  });
  return {
    stores: [kit.ledger.store, remote],
    run: remote.run,
    close: async () => {
      await remote.close();
      await kit.close();
    },
  };
});

describe.skipIf(!hasPostgres)('PostgreSQL', () => {
  afterAll(stopSharedPostgres);
  describePasses('PostgreSQL', async () => {
    const database = await freshDatabase();
    const [one, two] = [await openTestStore(database), await openTestStore(database)];
    return {
      stores: [one.charges, two.charges],
      run: one.charges.run,
      close: async () => void (await Promise.all([one.close(), two.close()])),
    };
  });
});
