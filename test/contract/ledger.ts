// What every ledger does, whatever it is made of: one suite for all implementations of the port. Another one, such as a
// store on PostgreSQL, is one more `open` in ledger.test.ts.
import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Charge, Claim, KeptAnswer } from '../../src/domain/payment/charge.ts';
import type { AdvanceResult, Ledger } from '../../src/domain/payment/ledger.ts';
import {
  ASK_AGAIN,
  CLAIMS,
  presentedBy,
  REDEEM_MS,
  type ClaimResult,
  type ClaimOptions,
} from '../../src/domain/payment/claim-policy.ts';
import type { ChargeEvent } from '../../src/domain/payment/transition.ts';
import { abroad, address, claimOf, proofOf, requestOf, sha256 } from '../cases/claims.ts';
import { createMemoryLedger } from '../support/memory-ledger.ts';

export type OpenedLedger = {
  /** Two ways to the same ledger, as two processes have them. */
  readonly clients: readonly [Ledger, Ledger];
  readonly now: () => number;
  /** Moves the ledger's clock. */
  readonly pass: (ms: number) => void;
  readonly close: () => Promise<void>;
};

const LEASE = 60_000;
const START: ChargeEvent = { kind: 'settle_started', via: 'first', leaseMs: LEASE };
const DELIVERED: ChargeEvent = { kind: 'delivered', partial: false };
const OPTIONS: ClaimOptions = { owner: 'run/one', leaseMs: LEASE, maxUnsettledPerPayer: 100 };

/** `runs`: sequences of calls that are compared with the reference. `operators`: whether their word can be given there. */
export function describeLedger(
  name: string,
  open: () => Promise<OpenedLedger>,
  { runs = 25, operators = true }: { readonly runs?: number; readonly operators?: boolean } = {},
): void {
  describe(name, () => {
    let opened: OpenedLedger;
    let ledger: Ledger;
    let other: Ledger;
    let n = 0;
    /** A claim of a payment that no test had before. */
    const fresh = (rest: Parameters<typeof claimOf>[1] = {}): Claim => claimOf(++n, rest);

    beforeAll(async () => {
      opened = await open();
      [ledger, other] = opened.clients;
    });
    afterAll(() => opened.close());

    const claim = (what: Claim, rest: Partial<ClaimOptions> = {}): Promise<ClaimResult> =>
      ledger.claim(what, { ...OPTIONS, ...rest });
    const advance = (what: Pick<Claim, 'id'>, event: ChargeEvent, owner = 'run/one'): Promise<AdvanceResult> =>
      ledger.advance(what.id, event, { owner });
    const must = async (what: Pick<Claim, 'id'>, event: ChargeEvent, owner = 'run/one'): Promise<Charge> => {
      const advanced = await advance(what, event, owner);
      if (advanced.kind !== 'ok') throw new Error(`${event.kind}: ${advanced.because}`);
      // What is told is what was written.
      expect(await other.findByChargeId(what.id)).toEqual(advanced.charge);
      return advanced.charge;
    };
    const settling = async (what = fresh()): Promise<Claim> => {
      expect((await claim(what)).kind).toBe('claimed');
      await must(what, START);
      return what;
    };
    const settled = async (what = fresh(), leaseMs = LEASE): Promise<Claim> => {
      await settling(what);
      await must(what, { kind: 'settled', proof: proofOf(what), leaseMs });
      return what;
    };

    describe('claims', () => {
      test('attack: one of 200 identical claims at once, over two clients, is claimed', async () => {
        const what = fresh();
        const all = await Promise.all(
          Array.from({ length: 200 }, (_, index) =>
            (index % 2 === 0 ? ledger : other).claim(what, { ...OPTIONS, owner: `request ${index}` }),
          ),
        );
        const kinds = Map.groupBy(all, ({ kind }) => kind);
        expect([kinds.get('claimed')?.length, kinds.get('in_use')?.length]).toEqual([1, 199]);
        const stored = await other.find(what.payment);
        const [winner] = kinds.get('claimed') ?? [];
        expect(winner?.kind === 'claimed' && winner.charge.owner).toBe(stored?.owner);
      });

      test('behaviour: a claim is found by its payment and its charge id, over the other client, with all it holds', async () => {
        const what = fresh({
          customerId: 'customer-1',
          settle: 'before_response',
          requestId: null,
          deadline: null,
          credential: 'A'.repeat(16 * 1024),
          amount: 10n ** 77n + 1n,
        });
        const claimed = await claim(what);
        const charge = {
          ...what,
          state: 'claimed',
          owner: 'run/one',
          claims: 1,
          attempts: 0,
          proof: null,
          answer: null,
        };
        expect(claimed).toMatchObject({ kind: 'claimed', charge });
        expect(await other.find(what.payment)).toMatchObject(charge);
        const found = await other.findByChargeId(what.id);
        expect(found).toEqual(await ledger.find(what.payment));
        // The clock of a real ledger goes on by itself.
        expect(Math.abs((found?.leaseUntil ?? 0) - opened.now() - LEASE)).toBeLessThan(5_000);
      });

      test.each(['the first time', 'after a release'])(
        'behaviour: a claim that settles at once is settling, or can be from there: %s',
        async (when) => {
          const what = fresh();
          if (when === 'after a release') {
            await claim(what);
            await must(what, { kind: 'released', reason: 'upstream_500' });
          }
          const asked = { owner: 'two', changeId: `at once ${n}`, settleVia: 'first' };
          const claimed = await claim(what, asked);
          if (claimed.kind !== 'claimed') throw new Error(claimed.kind);
          expect(await other.find(what.payment)).toEqual(claimed.charge);
          // The same call once more, as where its answer was lost.
          expect(await other.claim(what, { ...OPTIONS, ...asked })).toEqual(claimed);
          expect((await claim(what)).kind).toBe('in_use');
          if (claimed.charge.state === 'claimed') await must(what, START, 'two');
          else expect(claimed.charge).toMatchObject({ state: 'settling', attempts: 0, credential: what.credential });
          expect(await advance(what, { kind: 'released', reason: 'x' }, 'two')).toMatchObject({
            because: 'wrong_state',
          });
          expect(await must(what, { kind: 'settled', proof: proofOf(what), leaseMs: LEASE }, 'two')).toMatchObject({
            state: 'settled',
            credential: null,
          });
        },
      );

      test('behaviour: a charge that nobody claimed is not found', async () => {
        expect(await ledger.find(claimOf(-1 + 2 ** 40).payment)).toBeUndefined();
        expect(await ledger.findByChargeId('chg_nobody')).toBeUndefined();
        expect(await ledger.findByChargeId("chg_' OR 1=1 --")).toBeUndefined();
      });

      test('refuses: a charge id for a second payment; the first one keeps it', async () => {
        const first = fresh();
        await claim(first);
        const second = fresh({ id: first.id });
        expect(await claim(second)).toEqual({ kind: 'quote_already_used' });
        await must(first, { kind: 'released', reason: 'upstream_500' });
        expect(await claim(second)).toEqual({ kind: 'quote_already_used' });
        expect(await ledger.find(second.payment)).toBeUndefined();
      });

      test('refuses: one unsettled claim of a payer more than the limit; released and settled ones do not count', async () => {
        const payer = 900_000 + n;
        const [a, b, c] = [fresh({ payer }), fresh({ payer }), fresh({ payer })];
        const limit = { maxUnsettledPerPayer: 2 };
        expect((await claim(a, limit)).kind).toBe('claimed');
        await settling(b);
        expect((await claim(c, limit)).kind).toBe('too_many_unsettled');
        expect((await claim(fresh(), limit)).kind).toBe('claimed');
        expect((await claim(a, limit)).kind).toBe('in_use');
        await must(a, { kind: 'released', reason: 'client_gone' });
        expect((await claim(c, limit)).kind).toBe('claimed');
        expect((await claim(a, limit)).kind).toBe('too_many_unsettled');
        // A settlement that nobody works on and whose end is not known is unsettled all the same.
        await must(b, { kind: 'settle_unknown', reason: 'timeout', lookInMs: 1000 });
        expect((await claim(a, limit)).kind).toBe('too_many_unsettled');
        await must(b, { kind: 'taken_over', leaseMs: LEASE }, 'r');
        await must(b, { kind: 'settled', proof: proofOf(b), leaseMs: 0 }, 'r');
        expect((await claim(a, limit)).kind).toBe('claimed');
      });

      test('behaviour: claims of one address on two networks do not count together, nor after a release', async () => {
        const payer = 900_000 + n;
        const [a, b, c, d] = [fresh({ payer }), abroad(fresh({ payer })), abroad(fresh({ payer })), fresh({ payer })];
        const limit = { maxUnsettledPerPayer: 1 };
        expect((await claim(a, limit)).kind).toBe('claimed');
        expect((await claim(b, limit)).kind).toBe('claimed');
        expect((await claim(c, limit)).kind).toBe('too_many_unsettled');
        expect((await claim(d, limit)).kind).toBe('too_many_unsettled');
        await must(b, { kind: 'released', reason: 'client_gone' });
        expect((await claim(c, limit)).kind).toBe('claimed');
        expect((await claim(b, limit)).kind).toBe('too_many_unsettled');
        await must(c, { kind: 'released', reason: 'client_gone' });
        expect((await claim(b, limit)).kind).toBe('claimed');
      });

      test('behaviour: a settlement of unknown end takes a place until ten minutes past the end of its payment', async () => {
        const payer = 900_000 + n;
        const unknown: ChargeEvent = { kind: 'settle_unknown', reason: 'timeout', lookInMs: 3_600_000 };
        const seconds = BigInt(Math.ceil(opened.now() / 1000));
        // One that names no end counts as ending 150 s after its claim.
        for (const deadline of [seconds + 150n, null]) await must(await settling(fresh({ payer, deadline })), unknown);
        const limit = { maxUnsettledPerPayer: 1 };
        opened.pass(749_000);
        expect((await claim(fresh({ payer }), limit)).kind).toBe('too_many_unsettled');
        opened.pass(3_000);
        expect((await claim(fresh({ payer }), limit)).kind).toBe('claimed');
      });

      test('attack: many payments of one payer at once are claimed up to the limit and no further', async () => {
        const payer = 900_000 + n;
        const claims = Array.from({ length: 40 }, () => fresh({ payer }));
        const all = await Promise.all(
          claims.map((what, index) =>
            (index % 2 === 0 ? ledger : other).claim(what, { ...OPTIONS, maxUnsettledPerPayer: 8 }),
          ),
        );
        expect(all.filter(({ kind }) => kind === 'claimed').length).toBe(8);
        expect(all.filter(({ kind }) => kind === 'too_many_unsettled').length).toBe(32);
      });

      test('behaviour: after a release the same credential may claim again, ten times in all', async () => {
        const what = fresh();
        for (let claims = 1; claims <= CLAIMS; claims++) {
          expect(await claim(what)).toMatchObject({ kind: 'claimed', charge: { claims } });
          expect((await claim(what, { owner: 'two' })).kind).toBe('in_use');
          await must(what, { kind: 'released', reason: 'upstream_500' });
        }
        expect(await claim(what)).toMatchObject({ kind: 'spent', charge: { state: 'released' } });
      });

      test('refuses: another encoding of a released payment; the first one may claim with another amount and way', async () => {
        const what = fresh();
        await claim(what);
        await must(what, { kind: 'released', reason: 'upstream_500' });
        const recoded = `${what.credential}A`;
        expect((await claim({ ...what, credential: recoded, credentialSha256: sha256(recoded) })).kind).toBe('spent');
        expect((await claim({ ...what, request: requestOf('GET', '/else') })).kind).toBe('spent');
        const way = { ...what.way, payTo: address(0xcafe), terms: {} };
        const again = { ...what, id: 'chg_other', way, amount: 7n, price: { amount: '0.000007', currency: 'USD' } };
        const claimed = await claim(again);
        expect(claimed).toMatchObject({ kind: 'claimed', charge: { ...again, id: what.id, claims: 2 } });
        expect(await ledger.find(what.payment)).toEqual('charge' in claimed ? claimed.charge : undefined);
      });

      test('behaviour: a lease that ran out frees a claim for the same credential, and its owner has lost it', async () => {
        const what = fresh();
        await claim(what);
        opened.pass(LEASE - 5_000);
        expect((await claim(what, { owner: 'two' })).kind).toBe('in_use');
        opened.pass(6_000);
        expect(await claim(what, { owner: 'two' })).toMatchObject({
          kind: 'claimed',
          charge: { claims: 2, owner: 'two' },
        });
        expect(await advance(what, START)).toMatchObject({
          kind: 'conflict',
          because: 'not_owner',
          charge: { owner: 'two' },
        });
        await must(what, START, 'two');
      });

      test('behaviour: a lease that was renewed holds a claim', async () => {
        const what = fresh();
        await claim(what);
        opened.pass(LEASE - 5_000);
        expect(await other.renew('run', [what.id], LEASE)).toEqual([what.id]);
        opened.pass(LEASE - 5_000);
        expect((await claim(what, { owner: 'two' })).kind).toBe('in_use');
        await must(what, { kind: 'released', reason: 'client_gone' });
      });

      test('behaviour: a call that is repeated with its change id is the same call', async () => {
        const what = fresh();
        const options = { ...OPTIONS, changeId: 'change 1' };
        const first = await ledger.claim(what, options);
        expect(await other.claim(what, options)).toEqual(first);
        expect((await ledger.claim(what, { ...options, owner: 'two' })).kind).toBe('in_use');
        expect((await ledger.claim(what, { ...options, changeId: 'change 2' })).kind).toBe('in_use');
        const actor = { owner: 'run/one', changeId: 'change 3' };
        const started = await ledger.advance(what.id, START, actor);
        expect(await ledger.renew('run', [what.id], LEASE)).toEqual([what.id]);
        expect(await other.advance(what.id, START, actor)).toMatchObject({
          kind: 'ok',
          charge: { state: 'settling', claims: 1 },
        });
        expect(started).toMatchObject({ kind: 'ok', charge: { changeId: 'change 3' } });
        expect(await advance(what, { kind: 'released', reason: 'x' })).toMatchObject({ because: 'wrong_state' });
      });

      test('refuses: a claim with a fault, and writes nothing', async () => {
        const what = fresh();
        const { payment, way } = what;
        const faulty: Partial<Claim>[] = [
          { payment: { ...payment, unique: payment.unique.toUpperCase() } },
          { payment: { ...payment, payer: `0x${'A'.repeat(40)}` } },
          { payment: { ...payment, network: 'base-sepolia' } },
          { way: { ...way, network: 'eip155:1' } },
          { way: { ...way, network: 'base-sepolia' } },
          { way: { ...way, asset: `0x${'1'.repeat(40)}` } },
          { amount: 0n },
          { amount: -1n },
          { id: 'no charge id' },
          { credential: '' },
        ];
        for (const part of faulty) await expect(claim({ ...what, ...part })).rejects.toThrow(TypeError);
        expect(await ledger.find(payment)).toBeUndefined();
      });
    });

    describe('the way of a charge', () => {
      test('behaviour: a charge is claimed, settling, settled, delivered; then spent, and its authorization is forgotten', async () => {
        const what = await settling();
        expect((await ledger.find(what.payment))?.credential).toBe(what.credential);
        expect(await claim(what)).toMatchObject({ kind: 'in_use', charge: { state: 'settling' } });
        const charge = await must(what, { kind: 'settled', proof: proofOf(what, { logIndex: 3 }), leaseMs: LEASE });
        expect(charge).toMatchObject({ state: 'settled', credential: null, proof: proofOf(what, { logIndex: 3 }) });
        expect((await claim(what, { owner: 'two' })).kind).toBe('in_use');
        await must(what, DELIVERED);
        expect(await claim(what)).toMatchObject({ kind: 'spent', charge: { state: 'delivered', owner: null } });
        expect(await other.findByChargeId(what.id)).toMatchObject({ state: 'delivered', credential: null });
      });

      test('behaviour: a change that 50 ask for at once happens once', async () => {
        const what = await settling();
        const refused: ChargeEvent = { kind: 'settle_refused', reason: 'no' };
        const all = await Promise.all(
          Array.from({ length: 50 }, (_, index) =>
            (index % 2 === 0 ? ledger : other).advance(what.id, refused, { owner: 'run/one' }),
          ),
        );
        expect(all.filter(({ kind }) => kind === 'ok').length).toBe(1);
        expect(all.filter((each) => each.kind === 'conflict' && each.because === 'not_owner').length).toBe(49);
      });

      test('refuses: a change of an unknown charge', async () => {
        const conflict = { kind: 'conflict', because: 'unknown_charge', charge: undefined };
        expect(await advance({ id: 'chg_unknown' }, DELIVERED)).toEqual(conflict);
        expect(await advance({ id: '../chg unknown' }, DELIVERED)).toEqual(conflict);
      });

      test('behaviour: a refusal of the first attempt fails a charge; after an unknown one it does not', async () => {
        const refused: ChargeEvent = { kind: 'settle_refused', reason: 'insufficient_balance' };
        const first = await settling();
        expect(await must(first, refused)).toMatchObject({ state: 'failed', failedBy: 'refusal', credential: null });
        expect((await claim(first)).kind).toBe('spent');
        const second = await settling();
        await must(second, { kind: 'settle_unknown', reason: 'timeout', lookInMs: 1000 });
        expect(await advance(second, refused)).toMatchObject({ kind: 'conflict', because: 'not_owner' });
        expect((await claim(second)).kind).toBe('unfinished');
        await must(second, { kind: 'taken_over', leaseMs: LEASE }, 'two');
        expect(await must(second, refused, 'two')).toMatchObject({ state: 'settling', attempts: 2, owner: null });
      });

      test('behaviour: a charge that was not carried out is free again, unless an earlier attempt is unknown', async () => {
        const what = await settling();
        const event: ChargeEvent = { kind: 'not_carried_out', reason: 'breaker_open' };
        expect(await must(what, event)).toMatchObject({ state: 'released', credential: null, reason: 'breaker_open' });
        expect(await claim(what)).toMatchObject({ kind: 'claimed', charge: { claims: 2 } });
        await must(what, START);
        await must(what, { kind: 'settle_unknown', reason: 'timeout', lookInMs: 0 });
        await must(what, { kind: 'taken_over', leaseMs: LEASE }, 'two');
        expect(await must(what, event, 'two')).toMatchObject({ state: 'settling', attempts: 1, owner: null });
      });

      test('behaviour: an operator settles a charge that failed; it is counted as settled then', async () => {
        const what = await settling();
        await must(what, { kind: 'settle_refused', reason: 'insufficient_balance' });
        const word: ChargeEvent = {
          kind: 'settled',
          proof: proofOf(what, { logIndex: 9 }),
          leaseMs: 0,
          by: 'operator',
        };
        if (!operators) return;
        expect(await must(what, word, 'operator')).toMatchObject({ state: 'settled', failedBy: null, owner: null });
        expect((await claim(what)).kind).toBe('redeemable');
        await must(what, { kind: 'refunded', note: 'by hand' }, 'operator');
        expect((await claim(what)).kind).toBe('already_paid');
      });

      test('attack: one transfer does not settle two charges, whatever its spelling and whoever is first', async () => {
        const [a, b, c] = [await settling(), await settling(), await settling()];
        const transaction = `0x${'aB'.repeat(30)}${n.toString(16).padStart(4, '0')}`;
        const proof = (what: Claim, rest: object): ChargeEvent => ({
          kind: 'settled',
          proof: proofOf(what, { transaction, logIndex: 3, ...rest }),
          leaseMs: LEASE,
        });
        const both = await Promise.all([
          ledger.advance(a.id, proof(a, {}), { owner: 'run/one' }),
          other.advance(b.id, proof(b, { transaction: transaction.toUpperCase().replace('0X', '0x') }), {
            owner: 'run/one',
          }),
        ]);
        expect(both.map(({ kind }) => kind).sort()).toEqual(['conflict', 'ok']);
        const [loser, losing] = both[0].kind === 'ok' ? [b, both[1]] : [a, both[0]];
        expect(losing).toMatchObject({ because: 'proof_used', charge: { state: 'settling', proof: null } });
        // Two transfers in one transaction are two.
        await must(loser, proof(loser, { logIndex: 4 }));
        expect(await advance(c, proof(c, { logIndex: 4 }))).toMatchObject({ because: 'proof_used' });
        await must(c, proof(c, { logIndex: 5 }));
      });

      test('behaviour: a facilitator that settles several payments in one transaction settles each of them', async () => {
        const transaction = `0x${'cD'.repeat(30)}${n.toString(16).padStart(4, '0')}`;
        const [a, b, c] = [await settling(), await settling(), await settling()];
        for (const what of [a, b])
          await must(what, { kind: 'settled', proof: proofOf(what, { transaction }), leaseMs: LEASE });
        await must(c, { kind: 'settled', proof: proofOf(c, { transaction, logIndex: 7 }), leaseMs: LEASE });
      });

      test('refuses: a settlement with proof of another amount or payer', async () => {
        const what = await settling();
        for (const rest of [
          { amount: 99_999n },
          { amount: 100_001n },
          { payer: `0x${'9'.repeat(40)}` },
          { transaction: '' },
        ]) {
          const event: ChargeEvent = { kind: 'settled', proof: proofOf(what, rest), leaseMs: LEASE };
          if (rest.transaction === '') await expectRefused(advance(what, event));
          else expect(await advance(what, event)).toMatchObject({ kind: 'conflict', because: 'proof_mismatch' });
        }
        await must(what, { kind: 'settled', proof: proofOf(what), leaseMs: LEASE });
      });
    });

    test.each([undefined, 'first'])(
      'attack: a claim that was refused by time-out and turns up is given back by its owner (settles via %s)',
      async (settleVia) => {
        const what = fresh();
        const changeId = `late ${++n}`;
        // Nobody waited for it any more when it was written.
        await claim(what, { settleVia, changeId });
        const known = await other.find(what.payment);
        expect(known).toMatchObject({ owner: OPTIONS.owner, changeId });
        const reason = 'ledger_unavailable';
        const back: ChargeEvent =
          known?.state === 'settling' ? { kind: 'not_carried_out', reason } : { kind: 'released', reason };
        // Also where its lease is over by then, and somebody looked at it.
        opened.pass(LEASE + 1000);
        if (known?.state === 'settling')
          await must(
            what,
            { kind: 'looked', at: 'start', search: null, lookInMs: 60_000, reason: 'looking' },
            'reconciler',
          );
        expect(await must(what, back)).toMatchObject({ state: 'released', credential: null, attempts: 0, reason });
        // Its client was told that nothing was taken: it may pay with the very same.
        expect((await claim(what)).kind).toBe('claimed');
        await must(what, { kind: 'released', reason: 'done' });
      },
    );

    describe('what nobody works on', () => {
      /** Ends everything that is open, so that a test meets only its own. */
      const drain = async (): Promise<void> => {
        opened.pass(10 * 24 * 3_600_000);
        for (let rounds = 0; rounds < 100; rounds++) {
          const due = await ledger.due(20);
          for (const { id, state } of due) {
            if (state === 'claimed') await must({ id }, { kind: 'taken_over', leaseMs: 0 }, 'drain');
            else await must({ id }, { kind: 'failed', by: 'chain', reason: 'drained' }, 'drain');
          }
          if (due.length === 0) return;
        }
        throw new Error('there is no end of what is due');
      };
      const look = (lookInMs: number): ChargeEvent => ({
        kind: 'looked',
        at: 'start',
        search: null,
        lookInMs,
        reason: 'looking',
      });
      const idsOf = (due: readonly Charge[]): string[] => due.map(({ id }) => id);

      test('behaviour: a claim whose lease ran out can be released by anybody, a settlement belongs to whoever takes it', async () => {
        await drain();
        const [a, b, c] = [fresh(), await settling(), await settled()];
        await claim(a);
        expect(await ledger.due(10)).toEqual([]);
        opened.pass(LEASE + 1000);
        expect(new Set(idsOf(await other.due(10)))).toEqual(new Set([a.id, b.id]));
        expect(await must(a, { kind: 'taken_over', leaseMs: LEASE }, 'two')).toMatchObject({
          state: 'released',
          reason: 'lease_ran_out',
        });
        // Its owner may have sent a settlement before it went silent.
        expect(await must(b, { kind: 'taken_over', leaseMs: LEASE }, 'two')).toMatchObject({
          owner: 'two',
          attempts: 1,
          credential: b.credential,
        });
        expect((await ledger.findByChargeId(c.id))?.state).toBe('settled');
        expect(await other.due(10)).toEqual([]);
        expect(await advance(b, START)).toMatchObject({ because: 'not_owner' });
        expect(await other.advance(b.id, { kind: 'taken_over', leaseMs: LEASE }, { owner: 'three' })).toMatchObject({
          because: 'lease_running',
        });
        await must(b, { kind: 'settled', proof: proofOf(b), leaseMs: 0 }, 'two');
      });

      test('behaviour: the next look at a settlement of unknown end is waited for, and its payer is not', async () => {
        await drain();
        const what = await settling();
        await must(what, { kind: 'settle_unknown', reason: 'timeout', lookInMs: 3_600_000 });
        expect(await ledger.due(10)).toEqual([]);
        expect(await advance(what, look(1000), 'r')).toMatchObject({ because: 'not_due' });
        await must(what, { kind: 'taken_over', leaseMs: LEASE }, 'two');
        expect(await advance(what, look(1000), 'r')).toMatchObject({ because: 'lease_running' });
        await must(what, { kind: 'settle_unknown', reason: 'timeout', lookInMs: 3_600_000 }, 'two');
        opened.pass(3_601_000);
        expect(await ledger.due(10)).toMatchObject([{ id: what.id, attempts: 2, owner: null, looks: 0 }]);
      });

      test('attack: one of several processes that look at a charge at once does so, and nobody is kept from taking the charge', async () => {
        await drain();
        const what = await settling();
        opened.pass(LEASE + 1000);
        const all = await Promise.all(
          Array.from({ length: 10 }, (_, index) =>
            (index % 2 === 0 ? ledger : other).advance(what.id, look(60_000), { owner: `reconciler ${index}` }),
          ),
        );
        expect(all.filter(({ kind }) => kind === 'ok').length).toBe(1);
        expect(all.filter((each) => each.kind === 'conflict' && each.because === 'not_due').length).toBe(9);
        expect(await ledger.due(10)).toEqual([]);
        const search = { fromBlock: '12', toBlock: '900' };
        await must(
          what,
          { kind: 'looked', at: 'end', search, lookInMs: 60_000, reason: 'payment_unused' },
          'reconciler',
        );
        expect(await other.find(what.payment)).toMatchObject({ search, looks: 1, reason: 'payment_unused' });
        await must(what, { kind: 'taken_over', leaseMs: LEASE }, 'two');
        for (const event of [
          { kind: 'settled', proof: proofOf(what), leaseMs: 0 },
          { kind: 'failed', by: 'chain', reason: 'expired' },
          { kind: 'looked', at: 'end', search: null, lookInMs: 1, reason: 'x' },
        ] as const)
          expect(await advance(what, event, 'reconciler')).toMatchObject({ because: 'lease_running' });
      });

      test('behaviour: a search is kept with its charge, whoever looked and whoever has it, and never goes back', async () => {
        await drain();
        const what = await settling();
        const unknown = { kind: 'settle_unknown', reason: 'payment_used', lookInMs: 60_000 } as const;
        await must(what, { ...unknown, search: { next: '100', range: '10' } });
        const taken = await must(what, { kind: 'taken_over', leaseMs: LEASE }, 'two');
        expect(taken.search).toEqual({ next: '100', range: '10' });
        const ended = (next: string): ChargeEvent => ({
          ...{ kind: 'looked', at: 'end', search: { next }, lookInMs: 1000, reason: 'payment_used' },
        });
        // Its owner renews meanwhile, over the other client.
        await other.renew('two', [], LEASE);
        expect(await must(what, ended('300'), 'reconciler')).toMatchObject({
          ...{ owner: 'two', leaseUntil: taken.leaseUntil, state: 'settling', lookAt: null, search: { next: '300' } },
        });
        expect((await must(what, ended('200'), 'reconciler')).search).toEqual({ next: '300' });
        // It had read the charge before both.
        expect(await must(what, { ...unknown, search: { next: '250' } }, 'two')).toMatchObject({
          ...{ owner: null, search: { next: '300' }, attempts: taken.attempts + 1 },
        });
        expect((await must(what, ended('400'), 'reconciler')).search).toEqual({ next: '400' });
        await must(what, { kind: 'taken_over', leaseMs: LEASE }, 'three');
        await must(what, unknown, 'three');
        expect((await other.find(what.payment))?.search).toEqual({ next: '400' });
      });

      test('attack: the furthest search stays if looks end at once, over two clients and beside their owner', async () => {
        await drain();
        const what = await settling();
        await Promise.all(
          Array.from({ length: 12 }, async (_, index) => {
            const search = { next: String(((index * 5) % 12) + 1) };
            const event = { kind: 'looked', at: 'end', search, lookInMs: 60_000, reason: 'payment_used' } as const;
            for (let tries = 0; tries < 20; tries++) {
              const by = index % 2 === 0 ? ledger : other;
              const written = await by.advance(what.id, event, { owner: 'reconciler' }).catch(() => undefined);
              if (written?.kind === 'ok') return;
            }
            throw new Error('it was never written');
          }),
        );
        expect(await ledger.find(what.payment)).toMatchObject({ search: { next: '12' }, owner: OPTIONS.owner });
        await must(what, { kind: 'settled', proof: proofOf(what), leaseMs: LEASE });
      });

      test('behaviour: charges that are due come earliest first, and a slow one keeps none back', async () => {
        await drain();
        const all = [await settling(), await settling(), await settling()];
        for (const [index, what] of all.entries())
          await must(what, { kind: 'settle_unknown', reason: 'timeout', lookInMs: (3 - index) * 1000 });
        opened.pass(4000);
        expect(idsOf(await ledger.due(2))).toEqual([all[2]?.id, all[1]?.id]);
        // Somebody looks at the earliest, for as long as it takes: the others are what comes next.
        await must(all[2]!, look(60_000), 'r');
        expect(idsOf(await other.due(2))).toEqual([all[1]?.id, all[0]?.id]);
      });

      test('behaviour: the leases of a run are renewed in one call, which says which charges are its own', async () => {
        await drain();
        const [a, b] = [fresh(), await settling()];
        await claim(a, { owner: 'run/two' });
        const done = await settled();
        await must(done, DELIVERED);
        const [c, theirs] = [await settled(), await settling()];
        await must(theirs, { kind: 'settle_unknown', reason: 'timeout', lookInMs: 3_600_000 });
        await must(theirs, { kind: 'taken_over', leaseMs: LEASE }, 'other run/one');
        const before = await ledger.findByChargeId(b.id);
        opened.pass(LEASE - 5000);
        const asked = [a.id, b.id, c.id, done.id, theirs.id, 'chg_nobody'];
        expect(await other.renew('run', asked, LEASE)).toEqual([a.id, b.id, c.id]);
        expect(await other.renew('ru', asked, LEASE)).toEqual([]);
        opened.pass(LEASE - 5000);
        expect(idsOf(await ledger.due(10))).toEqual([theirs.id]);
        expect((await claim(c)).kind).toBe('in_use');
        // It is no change: what was known of the charge is still what is changed.
        const now = await other.findByChargeId(b.id);
        expect({ ...now, leaseUntil: 0 }).toEqual({ ...before, leaseUntil: 0 });
        await must(b, { kind: 'settled', proof: proofOf(b), leaseMs: LEASE });
      });
    });

    describe('an answer that did not arrive', () => {
      const answer: KeptAnswer = {
        status: 201,
        headers: ['Content-Type', 'application/octet-stream', 'Set-Cookie', 'a=1', 'Set-Cookie', 'b=2'],
        body: Uint8Array.from({ length: 64 * 1024 }, (_, index) => index % 256),
      };
      const redeem = (what: Claim, rest: object = {}): ChargeEvent => ({
        kind: 'redeem_started',
        request: { ...presentedBy(what), ...rest },
        leaseMs: LEASE,
      });
      const keep: ChargeEvent = { kind: 'answer_kept', answer, headSent: true };
      const gone = (because: 'answer_lost' | 'upstream_failed' | 'upload_broken_off'): ChargeEvent => ({
        kind: 'undelivered',
        because,
        headSent: false,
      });

      test('behaviour: a kept answer is replayed as it was, by one at a time, until it is delivered', async () => {
        const what = await settled(fresh({ request: requestOf('POST', '/x?y') }));
        await must(what, keep);
        expect((await claim(what)).kind).toBe('redeemable');
        const charge = await must(what, redeem(what), 'two');
        expect([charge.answer?.status, charge.answer?.headers]).toEqual([answer.status, answer.headers]);
        expect(Buffer.from(charge.answer?.body ?? []).equals(answer.body)).toBe(true);
        expect(charge.asks.all).toBe(1);
        expect(await other.advance(what.id, redeem(what), { owner: 'three' })).toMatchObject({
          because: 'lease_running',
        });
        expect((await claim(what)).kind).toBe('in_use');
        await must(what, gone('answer_lost'), 'two');
        await must(what, redeem(what), 'three');
        await must(what, DELIVERED, 'three');
        expect(await ledger.find(what.payment)).toMatchObject({ state: 'delivered', answer: null });
      });

      test('behaviour: an empty answer is kept as an answer', async () => {
        const what = await settled();
        const empty = { status: 204, headers: [], body: new Uint8Array() };
        await must(what, { kind: 'answer_kept', answer: empty, headSent: false });
        const found = (await other.find(what.payment))?.answer;
        expect([found?.status, found?.headers, found?.body.length]).toEqual([204, [], 0]);
      });

      test('attack: a kept answer is given to the identical credential, method and target alone, and for a day', async () => {
        const what = await settled();
        await must(what, keep);
        const recoded = `${what.credential}A`;
        expect((await claim({ ...what, credential: recoded, credentialSha256: sha256(recoded) })).kind).toBe('spent');
        expect((await claim({ ...what, request: { ...what.request, method: 'HEAD' } })).kind).toBe('spent');
        for (const rest of [
          { credentialSha256: sha256(recoded) },
          { method: 'HEAD' },
          { targetSha256: sha256('/else') },
        ])
          expect(await advance(what, redeem(what, rest), 'two')).toMatchObject({ because: 'not_redeemable' });
        opened.pass(REDEEM_MS - 5_000);
        expect((await claim(what)).kind).toBe('redeemable');
        opened.pass(6_000);
        expect((await claim(what)).kind).toBe('already_paid');
        expect(await advance(what, redeem(what), 'two')).toMatchObject({ because: 'not_redeemable' });
      });

      test('refuses: a kept answer for a v1 credential, which holds no charge id', async () => {
        const what = await settled(fresh({ x402Version: 1 }));
        await must(what, keep);
        expect((await claim(what)).kind).toBe('already_paid');
        // Its client had the head: that was the end of it.
        expect(await ledger.find(what.payment)).toMatchObject({ state: 'delivered', partial: true, answer: null });
        const gone = await settled(fresh({ x402Version: 1 }));
        await must(gone, { kind: 'undelivered', because: 'upstream_failed', headSent: false });
        expect((await claim(gone)).kind).toBe('already_paid');
        expect(await advance(gone, redeem(gone), 'two')).toMatchObject({ because: 'not_redeemable' });
      });

      test.each([
        ['upstream_failed', 'POST', 'before_forward'],
        ['upstream_failed', 'GET', 'before_response'],
        ['upload_broken_off', 'POST', 'before_forward'],
        ['answer_lost', 'GET', 'before_forward'],
        ['answer_lost', 'HEAD', 'before_response'],
        ['answer_lost', 'POST', 'before_forward'],
        ['answer_lost', 'POST', 'before_response'],
      ] as const)(
        'behaviour: after %s a %s, settled %s, is asked for again as often as it may',
        async (because, method, settle) => {
          const what = await settled(fresh({ settle, request: requestOf(method, '/x') }));
          await must(what, gone(because));
          const { counter, safe, other: unsafe } = ASK_AGAIN[because];
          const times = method === 'POST' ? unsafe : safe;
          for (let asked = 1; asked <= times; asked++) {
            const { askAt } = (await other.find(what.payment)) ?? { askAt: null };
            if (askAt !== null) {
              expect(await advance(what, redeem(what), 'two')).toMatchObject({ because: 'not_due' });
              // A remote clock may be taken for one that is a second behind.
              opened.pass(askAt - opened.now() + 1_500);
            }
            expect(await must(what, redeem(what), 'two')).toMatchObject({ asks: { all: asked + 1, [counter]: asked } });
            await must(what, gone(because), 'two');
          }
          expect((await claim(what)).kind).toBe('already_paid');
          expect(await advance(what, redeem(what), 'two')).toMatchObject({ because: 'not_redeemable' });
        },
      );

      test('behaviour: after a failure all clients leave the upstream alone, with the status that was told', async () => {
        const what = await settled(fresh({ request: requestOf('POST', '/x') }));
        const since = opened.now();
        await must(what, { kind: 'undelivered', because: 'upstream_failed', headSent: false, status: 504 });
        const found = await other.find(what.payment);
        expect(found).toMatchObject({ failedStatus: 504, owner: null, asks: { all: 1, afterFailure: 0 } });
        expect(Math.abs((found?.askAt ?? 0) - since - 2_000)).toBeLessThan(1_900);
        expect(await other.advance(what.id, redeem(what), { owner: 'run/two' })).toMatchObject({ because: 'not_due' });
        opened.pass(4_000);
        expect(await must(what, redeem(what), 'two')).toMatchObject({ askAt: null, failedStatus: null });
      });

      test('behaviour: a claim for which the upstream was never asked does not count', async () => {
        const what = fresh();
        for (let time = 0; time < 3; time++) {
          expect((await claim(what)).kind).toBe('claimed');
          await must(what, { kind: 'released', reason: 'upstream_unreachable', unasked: true });
        }
        expect((await claim(what)) satisfies ClaimResult).toMatchObject({ kind: 'claimed', charge: { claims: 2 } });
      });

      test('behaviour: a process that died while delivering leaves a charge whose payer may come back', async () => {
        const [post, get] = [await settled(fresh({ request: requestOf('POST', '/x') })), await settled()];
        opened.pass(LEASE + 1000);
        for (const what of [post, get]) {
          expect((await claim(what)).kind).toBe('redeemable');
          await must(what, redeem(what), 'two');
        }
        expect(await advance(get, DELIVERED, 'one')).toMatchObject({ because: 'not_owner' });
      });

      test('behaviour: an answer kept while the settlement was not known is there when it is', async () => {
        const what = await settling(fresh({ settle: 'before_response', request: requestOf('POST', '/x') }));
        await must(what, keep);
        await must(what, { kind: 'settle_unknown', reason: 'timeout', lookInMs: 0 });
        await must(what, { kind: 'settled', proof: proofOf(what), leaseMs: 0 }, 'reconciler');
        expect((await must(what, redeem(what), 'two')).answer?.status).toBe(201);
      });
    });

    test('behaviour: a ledger does what the reference does, over any sequence of calls', async () => {
      let base = 1_000_000_000;
      await fc.assert(
        fc.asyncProperty(fc.array(step(), { minLength: 1, maxLength: 25 }), async (steps) => {
          base += 100;
          const start = opened.now();
          // One clock for both: the reference stands where the ledger stands.
          const reference = createMemoryLedger(opened.now);
          const [real, model] = [await play(ledger, steps, base), await play(reference, steps, base)];
          expect(real.map(withoutTimes(start))).toEqual(model.map(withoutTimes(start)));
        }),
        { numRuns: runs },
      );
    }, 30_000);
  });
}

async function expectRefused(advanced: Promise<AdvanceResult>): Promise<void> {
  const result = await advanced.catch(() => ({ kind: 'conflict' }));
  expect(result.kind).toBe('conflict');
}

type Step =
  | { readonly kind: 'claim'; readonly payment: number; readonly owner: string; readonly again: boolean }
  | { readonly kind: 'advance'; readonly payment: number; readonly owner: string; readonly event: ChargeEvent };

const OWNERS = ['one', 'two'];

function step(): fc.Arbitrary<Step> {
  const payment = fc.integer({ min: 0, max: 2 });
  const owner = fc.constantFrom(...OWNERS);
  const leaseMs = fc.constantFrom(0, 1_000_000);
  const events: fc.Arbitrary<ChargeEvent> = fc.oneof(
    { weight: 3, arbitrary: leaseMs.map((ms): ChargeEvent => ({ kind: 'settle_started', via: 'first', leaseMs: ms })) },
    {
      weight: 3,
      arbitrary: fc
        .record({ ms: leaseMs, to: fc.integer({ min: 0, max: 3 }), log: fc.constantFrom(null, 1) })
        .map(({ ms, to, log }): ChargeEvent => ({
          kind: 'settled',
          leaseMs: ms,
          proof: { transaction: `0x${to.toString(16)}`, logIndex: log, amount: 100_000n, payer: '' },
        })),
    },
    fc.constantFrom<ChargeEvent>(
      { kind: 'not_carried_out', reason: 'breaker_open' },
      { kind: 'settle_refused', reason: 'no' },
      { kind: 'settle_unknown', reason: 'timeout', lookInMs: 0 },
      { kind: 'looked', at: 'start', search: null, lookInMs: 1_000_000, reason: 'looking' },
      { kind: 'looked', at: 'end', search: { a: 'b' }, lookInMs: 0, reason: 'unused' },
      { kind: 'looked', at: 'end', search: { next: '2' }, lookInMs: 0, reason: 'used' },
      { kind: 'settle_unknown', reason: 'used', lookInMs: 0, search: { next: '1' } },
      { kind: 'released', reason: 'gone' },
      DELIVERED,
      { kind: 'delivered', partial: true },
      { kind: 'undelivered', because: 'answer_lost', headSent: true },
      { kind: 'undelivered', because: 'upstream_failed', headSent: false },
      { kind: 'undelivered', because: 'upload_broken_off', headSent: false },
      { kind: 'undelivered', because: 'not_asked', headSent: false },
      { kind: 'answer_kept', answer: { status: 200, headers: [], body: Uint8Array.of(1) }, headSent: false },
      { kind: 'taken_over', leaseMs: 1_000_000 },
      {
        kind: 'redeem_started',
        request: { credentialSha256: '', method: '', targetSha256: '' },
        leaseMs: 1_000_000,
      },
      { kind: 'failed', by: 'chain', reason: 'expired' },
    ),
  );
  return fc.oneof(
    fc.record({ kind: fc.constant('claim' as const), payment, owner, again: fc.boolean() }),
    fc.record({ kind: fc.constant('advance' as const), payment, owner, event: events }),
  );
}

async function play(ledger: Ledger, steps: readonly Step[], base: number): Promise<unknown[]> {
  const results: unknown[] = [];
  const claims = [0, 1, 2].map((index) => claimOf(base + index, { payer: base }));
  for (const each of steps) {
    const what = claims[each.payment]!;
    if (each.kind === 'claim') {
      const claimed = await ledger.claim(each.again ? what : { ...what, id: claims[0]!.id }, {
        owner: each.owner,
        leaseMs: 1_000_000,
        maxUnsettledPerPayer: 2,
      });
      results.push(claimed);
      continue;
    }
    results.push(await ledger.advance(what.id, eventFor(each.event, what, base), { owner: each.owner }));
  }
  for (const { payment } of claims) results.push(await ledger.find(payment));
  return results;
}

function eventFor(event: ChargeEvent, what: Claim, base: number): ChargeEvent {
  if (event.kind === 'settled') {
    const transaction = `${event.proof.transaction}${base.toString(16)}`;
    return { ...event, proof: { ...event.proof, transaction, payer: what.payment.payer } };
  }
  if (event.kind === 'redeem_started') {
    return { ...event, request: presentedBy(what) };
  }
  return event;
}

/** The clock of a real ledger goes on between two plays: times are compared by whether they are there, and far off. */
function withoutTimes(start: number): (value: unknown) => unknown {
  const plain = (value: unknown, key = ''): unknown => {
    // Over HTTP every change has one.
    if (key === 'changeId') return null;
    if (key === 'events' && typeof value === 'string') return value.replaceAll(/^\[\d+/gm, '[');
    if (typeof value === 'bigint') return value.toString();
    if (value instanceof Uint8Array) return Buffer.from(value).toString('hex');
    if (Array.isArray(value)) return value.map((each) => plain(each));
    if (typeof value === 'object' && value !== null)
      return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, plain(each, name)]));
    if (typeof value !== 'number' || !/(?:Until|At)$/.test(key) || value === 0) return value;
    return value - start > 500_000 ? 'later' : 'about now';
  };
  return (value) => plain(value);
}
