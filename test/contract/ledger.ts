// What every ledger does, whatever it is made of: one suite for all implementations of the port. Another one, such as a
// store on PostgreSQL, is one more `open` in ledger.test.ts.
import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Charge, Claim, KeptAnswer } from '../../src/domain/charge.ts';
import type { Advanced, Ledger } from '../../src/domain/ledger.ts';
import { ASKS, CLAIMS, REDEEM_MS, type Claimed, type ClaimOptions } from '../../src/domain/standing.ts';
import type { ChargeEvent } from '../../src/domain/transition.ts';
import { claimOf, proofOf, sha256 } from '../cases/claims.ts';
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
const OPTIONS: ClaimOptions = { owner: 'one', leaseMs: LEASE, maxUnsettledPerPayer: 100 };

/** `runs`: sequences of calls that are compared with the reference. */
export function describeLedger(name: string, open: () => Promise<OpenedLedger>, runs = 25): void {
  describe(name, () => {
    let opened: OpenedLedger;
    let ledger: Ledger;
    let other: Ledger;
    let n = 0;
    /** A claim of a payment that no test had before. */
    const fresh = (rest: Parameters<typeof claimOf>[1] = {}): Claim => claimOf(++n, rest);
    const presented = ({ credentialSha256, request }: Claim) => ({ credentialSha256, ...request });

    beforeAll(async () => {
      opened = await open();
      [ledger, other] = opened.clients;
    });
    afterAll(() => opened.close());

    const claim = (what: Claim, rest: Partial<ClaimOptions> = {}): Promise<Claimed> =>
      ledger.claim(what, { ...OPTIONS, ...rest });
    const advance = (what: Pick<Claim, 'id'>, event: ChargeEvent, owner = 'one'): Promise<Advanced> =>
      ledger.advance(what.id, event, { owner });
    const must = async (what: Pick<Claim, 'id'>, event: ChargeEvent, owner = 'one'): Promise<Charge> => {
      const advanced = await advance(what, event, owner);
      if (advanced.kind !== 'ok') throw new Error(`${event.kind}: ${advanced.because}`);
      // What is told is what was written.
      expect(await other.findByChargeId(what.id)).toEqual(advanced.charge);
      return advanced.charge;
    };
    const settling = async (what = fresh()): Promise<Claim> => {
      expect((await claim(what)).kind).toBe('claimed');
      await must(what, { kind: 'settle_started', leaseMs: LEASE });
      return what;
    };
    const settled = async (what = fresh(), leaseMs = LEASE): Promise<Claim> => {
      await settling(what);
      await must(what, { kind: 'settled', proof: proofOf(what), leaseMs });
      return what;
    };

    describe('claims', () => {
      test('attack: of 200 identical claims at once, over two clients, one is claimed', async () => {
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
          fromBlock: null,
          credential: 'A'.repeat(16 * 1024),
          terms: { ...claimOf(0).terms, amount: 10n ** 77n + 1n, validAfter: 2n ** 200n, validBefore: 2n ** 255n },
        });
        const claimed = await claim(what);
        const charge = { ...what, state: 'claimed', owner: 'one', claims: 1, attempts: 0, proof: null, answer: null };
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
          const asked = { owner: 'two', changeId: `at once ${n}`, settlesAtOnce: true };
          const claimed = await claim(what, asked);
          if (claimed.kind !== 'claimed') throw new Error(claimed.kind);
          expect(await other.find(what.payment)).toEqual(claimed.charge);
          // The same call once more, as where its answer was lost.
          expect(await other.claim(what, { ...OPTIONS, ...asked })).toEqual(claimed);
          expect((await claim(what)).kind).toBe('in_use');
          if (claimed.charge.state === 'claimed') await must(what, { kind: 'settle_started', leaseMs: LEASE }, 'two');
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

      test('behaviour: what nobody claimed is not found', async () => {
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
        await must(b, { kind: 'settle_unknown', reason: 'timeout', retryInMs: 1000 });
        expect((await claim(a, limit)).kind).toBe('too_many_unsettled');
        await must(b, { kind: 'taken_over', leaseMs: LEASE, early: true }, 'r');
        await must(b, { kind: 'settled', proof: proofOf(b), leaseMs: 0 }, 'r');
        expect((await claim(a, limit)).kind).toBe('claimed');
      });

      test('attack: of many payments of one payer at once no more than the limit are claimed', async () => {
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

      test('behaviour: after a release the same credential may claim again, twice', async () => {
        const what = fresh();
        for (let claims = 1; claims <= CLAIMS; claims++) {
          expect(await claim(what)).toMatchObject({ kind: 'claimed', charge: { claims } });
          expect((await claim(what, { owner: 'two' })).kind).toBe('in_use');
          await must(what, { kind: 'released', reason: 'upstream_500' });
        }
        expect(await claim(what)).toMatchObject({ kind: 'spent', charge: { state: 'released' } });
      });

      test('refuses: another encoding of a released payment; the first one may claim with other terms', async () => {
        const what = fresh();
        await claim(what);
        await must(what, { kind: 'released', reason: 'upstream_500' });
        const recoded = `${what.credential}A`;
        expect((await claim({ ...what, credential: recoded, credentialSha256: sha256(recoded) })).kind).toBe('spent');
        const terms = { ...what.terms, amount: 7n };
        const again = { ...what, id: 'chg_other', terms, request: { method: 'POST', target: '/else' } };
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
        expect(await advance(what, { kind: 'settle_started', leaseMs: LEASE })).toMatchObject({
          kind: 'conflict',
          because: 'not_owner',
          charge: { owner: 'two' },
        });
        await must(what, { kind: 'settle_started', leaseMs: LEASE }, 'two');
      });

      test('behaviour: a renewed lease holds', async () => {
        const what = fresh();
        await claim(what);
        opened.pass(LEASE - 5_000);
        await must(what, { kind: 'lease_renewed', leaseMs: LEASE });
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
        const actor = { owner: 'one', changeId: 'change 3' };
        const started = await ledger.advance(what.id, { kind: 'settle_started', leaseMs: LEASE }, actor);
        await must(what, { kind: 'lease_renewed', leaseMs: LEASE });
        expect(await other.advance(what.id, { kind: 'settle_started', leaseMs: LEASE }, actor)).toMatchObject({
          kind: 'ok',
          charge: { state: 'settling', claims: 1 },
        });
        expect(started).toMatchObject({ kind: 'ok', charge: { changeId: 'change 3' } });
        expect((await advance(what, { kind: 'settle_started', leaseMs: LEASE })).kind).toBe('conflict');
      });

      test('refuses: a claim with a fault, and writes nothing', async () => {
        const what = fresh();
        const { payment, terms } = what;
        const faulty: Partial<Claim>[] = [
          { payment: { ...payment, nonce: payment.nonce.toUpperCase() } },
          { payment: { ...payment, payer: `0x${'A'.repeat(40)}` } },
          { payment: { ...payment, network: 'base-sepolia' } },
          { terms: { ...terms, network: 'eip155:1' } },
          { terms: { ...terms, asset: `0x${'1'.repeat(40)}` } },
          { terms: { ...terms, amount: 0n } },
          { terms: { ...terms, amount: -1n } },
          { id: 'no charge id' },
          { credential: '' },
        ];
        for (const part of faulty) await expect(claim({ ...what, ...part })).rejects.toThrow(TypeError);
        expect(await ledger.find(payment)).toBeUndefined();
      });
    });

    describe('the way of a charge', () => {
      test('behaviour: claimed, settling, settled, delivered; then spent, and its authorization is forgotten', async () => {
        const what = await settling();
        expect((await ledger.find(what.payment))?.credential).toBe(what.credential);
        expect(await claim(what)).toMatchObject({ kind: 'in_use', charge: { state: 'settling' } });
        const charge = await must(what, { kind: 'settled', proof: proofOf(what, { logIndex: 3 }), leaseMs: LEASE });
        expect(charge).toMatchObject({ state: 'settled', credential: null, proof: proofOf(what, { logIndex: 3 }) });
        expect((await claim(what, { owner: 'two' })).kind).toBe('in_use');
        await must(what, { kind: 'delivered' });
        expect(await claim(what)).toMatchObject({ kind: 'spent', charge: { state: 'delivered', owner: null } });
        expect(await other.findByChargeId(what.id)).toMatchObject({ state: 'delivered', credential: null });
      });

      test('behaviour: of one change asked for at once by 50, one happens', async () => {
        const what = fresh();
        await claim(what);
        const all = await Promise.all(
          Array.from({ length: 50 }, (_, index) =>
            (index % 2 === 0 ? ledger : other).advance(
              what.id,
              { kind: 'settle_started', leaseMs: LEASE },
              { owner: 'one' },
            ),
          ),
        );
        expect(all.filter(({ kind }) => kind === 'ok').length).toBe(1);
        expect(all.filter((each) => each.kind === 'conflict' && each.because === 'wrong_state').length).toBe(49);
      });

      test('refuses: an unknown charge', async () => {
        const conflict = { kind: 'conflict', because: 'unknown_charge', charge: undefined };
        expect(await advance({ id: 'chg_unknown' }, { kind: 'delivered' })).toEqual(conflict);
        expect(await advance({ id: '../chg unknown' }, { kind: 'delivered' })).toEqual(conflict);
      });

      test('behaviour: a final refusal of the first attempt fails a charge; after an unknown one it does not', async () => {
        const final: ChargeEvent = {
          kind: 'settle_refused',
          reason: 'insufficient_balance',
          final: true,
          retryInMs: 1000,
        };
        const first = await settling();
        expect(await must(first, final)).toMatchObject({ state: 'failed', failedBy: 'refusal', credential: null });
        expect((await claim(first)).kind).toBe('spent');
        const second = await settling();
        await must(second, { kind: 'settle_unknown', reason: 'timeout', retryInMs: 1000 });
        expect(await advance(second, final)).toMatchObject({ kind: 'conflict', because: 'not_owner' });
        await must(second, { kind: 'taken_over', leaseMs: LEASE, early: true }, 'reconciler');
        expect(await must(second, final, 'reconciler')).toMatchObject({ state: 'settling', attempts: 2, owner: null });
      });

      test('attack: one transfer does not settle two charges, whatever its spelling and whoever is first', async () => {
        const [a, b, c] = [await settling(), await settling(), await settling()];
        const transaction = `0x${'aB'.repeat(30)}${n.toString(16).padStart(4, '0')}`;
        const proof = (what: Claim, rest: object): ChargeEvent => ({
          kind: 'settled',
          proof: proofOf(what, { transaction, ...rest }),
          leaseMs: LEASE,
        });
        const both = await Promise.all([
          ledger.advance(a.id, proof(a, {}), { owner: 'one' }),
          other.advance(b.id, proof(b, { transaction: transaction.toUpperCase().replace('0X', '0x') }), {
            owner: 'one',
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

      test('refuses: proof of another amount or payer', async () => {
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

    describe('what nobody works on', () => {
      /** Ends everything that is open, so that a test meets only its own. */
      const drain = async (): Promise<void> => {
        opened.pass(10 * 24 * 3_600_000);
        for (let rounds = 0; rounds < 100; rounds++) {
          const taken = await ledger.unfinished({ owner: 'drain', leaseMs: LEASE, limit: 20 });
          for (const charge of taken) {
            if (charge.state === 'settling')
              await must(charge, { kind: 'failed', by: 'operator', reason: 'drained' }, 'drain');
          }
          if (taken.length === 0) return;
        }
        throw new Error('there is no end of what is due');
      };

      test('behaviour: a claim whose lease ran out is released, a settlement changes hands, each once', async () => {
        await drain();
        const [a, b, c] = [fresh(), await settling(), await settled()];
        await claim(a);
        expect(await ledger.unfinished({ owner: 'r', leaseMs: LEASE, limit: 10 })).toEqual([]);
        opened.pass(LEASE + 1000);
        const taken = await ledger.unfinished({ owner: 'r', leaseMs: LEASE, limit: 10 });
        expect(new Map(taken.map((charge) => [charge.id, charge.state]))).toEqual(
          new Map([
            [a.id, 'released'],
            [b.id, 'settling'],
          ]),
        );
        // Its owner may have sent a settlement before it went silent.
        expect(await ledger.findByChargeId(b.id)).toMatchObject({ owner: 'r', attempts: 1, credential: b.credential });
        expect(await ledger.findByChargeId(a.id)).toMatchObject({ state: 'released', reason: 'lease_ran_out' });
        expect((await ledger.findByChargeId(c.id))?.state).toBe('settled');
        expect(await other.unfinished({ owner: 's', leaseMs: LEASE, limit: 10 })).toEqual([]);
        expect(await advance(b, { kind: 'settled', proof: proofOf(b), leaseMs: 0 })).toMatchObject({
          because: 'not_owner',
        });
        await must(b, { kind: 'settled', proof: proofOf(b), leaseMs: 0 }, 'r');
      });

      test('behaviour: a next try is waited for, also by who asks for the charge itself', async () => {
        await drain();
        const what = await settling();
        await must(what, { kind: 'settle_unknown', reason: 'timeout', retryInMs: 3_600_000 });
        expect(await ledger.unfinished({ owner: 'r', leaseMs: LEASE, limit: 10 })).toEqual([]);
        const take = (early: boolean): ChargeEvent => ({ kind: 'taken_over', leaseMs: LEASE, early });
        expect(await advance(what, take(false), 'r')).toMatchObject({ because: 'not_due' });
        opened.pass(3_601_000);
        const [charge, ...rest] = await ledger.unfinished({ owner: 'r', leaseMs: LEASE, limit: 10 });
        expect([charge?.id, charge?.attempts, charge?.owner, rest.length]).toEqual([what.id, 1, 'r', 0]);
        expect(await advance(what, take(true), 'operator')).toMatchObject({ because: 'lease_running' });
      });

      test('behaviour: two reconcilers never get the same charge, and no more than they asked for', async () => {
        await drain();
        for (let i = 0; i < 12; i++) await settling();
        opened.pass(LEASE + 1000);
        const runs = await Promise.all(
          [ledger, other, ledger, other].map((each, index) =>
            each.unfinished({ owner: `r${index}`, leaseMs: LEASE, limit: 5 }),
          ),
        );
        const ids = runs.flat().map(({ id }) => id);
        expect(new Set(ids).size).toBe(ids.length);
        for (const run of runs) expect(run.length).toBeLessThanOrEqual(5);
        for (const [index, run] of runs.entries()) expect(run.every(({ owner }) => owner === `r${index}`)).toBe(true);
        const rest = await ledger.unfinished({ owner: 'rest', leaseMs: LEASE, limit: 20 });
        expect(ids.length + rest.length).toBe(12);
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
        presented: { ...presented(what), ...rest },
        leaseMs: LEASE,
      });

      test('behaviour: a kept answer is replayed as it was, by one at a time, until it is delivered', async () => {
        const what = await settled(fresh({ request: { method: 'POST', target: '/x?y' } }));
        await must(what, { kind: 'answer_kept', answer });
        expect((await claim(what)).kind).toBe('redeemable');
        const charge = await must(what, redeem(what), 'two');
        expect([charge.answer?.status, charge.answer?.headers]).toEqual([answer.status, answer.headers]);
        expect(Buffer.from(charge.answer?.body ?? []).equals(answer.body)).toBe(true);
        expect(charge.asks).toBe(0);
        expect(await other.advance(what.id, redeem(what), { owner: 'three' })).toMatchObject({
          because: 'lease_running',
        });
        expect((await claim(what)).kind).toBe('in_use');
        await must(what, { kind: 'undelivered', because: 'answer_lost' }, 'two');
        await must(what, redeem(what), 'three');
        await must(what, { kind: 'delivered' }, 'three');
        expect(await ledger.find(what.payment)).toMatchObject({ state: 'delivered', answer: null });
      });

      test('behaviour: an empty answer is an answer', async () => {
        const what = await settled();
        const empty = { status: 204, headers: [], body: new Uint8Array() };
        await must(what, { kind: 'answer_kept', answer: empty });
        const found = (await other.find(what.payment))?.answer;
        expect([found?.status, found?.headers, found?.body.length]).toEqual([204, [], 0]);
      });

      test('attack: it is given to the identical credential, method and target alone, and for ten minutes', async () => {
        const what = await settled();
        await must(what, { kind: 'answer_kept', answer });
        const recoded = `${what.credential}A`;
        expect((await claim({ ...what, credential: recoded, credentialSha256: sha256(recoded) })).kind).toBe('spent');
        expect((await claim({ ...what, request: { ...what.request, method: 'HEAD' } })).kind).toBe('spent');
        for (const rest of [
          { credentialSha256: sha256(recoded) },
          { method: 'HEAD' },
          { target: `${what.request.target}1` },
        ])
          expect(await advance(what, redeem(what, rest), 'two')).toMatchObject({ because: 'not_redeemable' });
        opened.pass(REDEEM_MS - 5_000);
        expect((await claim(what)).kind).toBe('redeemable');
        opened.pass(6_000);
        expect((await claim(what)).kind).toBe('already_paid');
        expect(await advance(what, redeem(what), 'two')).toMatchObject({ because: 'not_redeemable' });
      });

      test('refuses: a v1 credential, which holds no charge id', async () => {
        const what = await settled(fresh({ x402Version: 1 }));
        await must(what, { kind: 'answer_kept', answer });
        expect((await claim(what)).kind).toBe('already_paid');
        expect(await advance(what, redeem(what), 'two')).toMatchObject({ because: 'not_redeemable' });
      });

      test('behaviour: an upstream that failed after settling is asked again three times', async () => {
        const what = await settled(fresh({ request: { method: 'POST', target: '/x' } }));
        await must(what, { kind: 'undelivered', because: 'upstream_failed' });
        for (let asks = 1; asks <= ASKS; asks++) {
          expect(await must(what, redeem(what), 'two')).toMatchObject({ asks, answer: null });
          await must(what, { kind: 'undelivered', because: 'upstream_failed' }, 'two');
        }
        expect((await claim(what)).kind).toBe('already_paid');
        expect(await advance(what, redeem(what), 'two')).toMatchObject({ because: 'not_redeemable' });
      });

      test.each([
        ['GET', 'before_forward', 1],
        ['HEAD', 'before_response', 1],
        ['POST', 'before_forward', 0],
        ['POST', 'before_response', 0],
      ] as const)(
        'behaviour: a lost answer to %s, settled %s, is asked for %d times more',
        async (method, settle, times) => {
          const what = await settled(fresh({ settle, request: { method, target: '/x' } }));
          await must(what, { kind: 'undelivered', because: 'answer_lost' });
          for (let i = 0; i < times; i++) {
            await must(what, redeem(what), 'two');
            await must(what, { kind: 'undelivered', because: 'answer_lost' }, 'two');
          }
          expect(await advance(what, redeem(what), 'two')).toMatchObject({ because: 'not_redeemable' });
        },
      );

      test('behaviour: a process that died while delivering leaves a charge whose payer may come back', async () => {
        const [post, get] = [await settled(fresh({ request: { method: 'POST', target: '/x' } })), await settled()];
        opened.pass(LEASE + 1000);
        for (const what of [post, get]) {
          expect((await claim(what)).kind).toBe('redeemable');
          await must(what, redeem(what), 'two');
        }
        expect(await advance(get, { kind: 'delivered' }, 'one')).toMatchObject({ because: 'not_owner' });
      });

      test('behaviour: an answer kept while the settlement was not known is there when it is', async () => {
        const what = await settling(fresh({ settle: 'before_response', request: { method: 'POST', target: '/x' } }));
        await must(what, { kind: 'answer_kept', answer });
        await must(what, { kind: 'settle_unknown', reason: 'timeout', retryInMs: 0 });
        await must(what, { kind: 'taken_over', leaseMs: LEASE, early: false }, 'r');
        await must(what, { kind: 'settled', proof: proofOf(what), leaseMs: 0 }, 'r');
        expect((await must(what, redeem(what), 'two')).answer?.status).toBe(201);
      });
    });

    test('behaviour: it does what the reference does, over any sequence of calls', async () => {
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

async function expectRefused(advanced: Promise<Advanced>): Promise<void> {
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
    { weight: 3, arbitrary: leaseMs.map((ms): ChargeEvent => ({ kind: 'settle_started', leaseMs: ms })) },
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
      { kind: 'settle_refused', reason: 'no', final: true, retryInMs: 0 },
      { kind: 'settle_refused', reason: 'maybe', final: false, retryInMs: 0 },
      { kind: 'settle_unknown', reason: 'timeout', retryInMs: 0 },
      { kind: 'released', reason: 'gone' },
      { kind: 'delivered' },
      { kind: 'undelivered', because: 'answer_lost' },
      { kind: 'undelivered', because: 'upstream_failed' },
      { kind: 'answer_kept', answer: { status: 200, headers: [], body: Uint8Array.of(1) } },
      { kind: 'taken_over', leaseMs: 1_000_000, early: true },
      { kind: 'lease_renewed', leaseMs: 1_000_000 },
      { kind: 'redeem_started', presented: { credentialSha256: '', method: '', target: '' }, leaseMs: 1_000_000 },
      { kind: 'failed', by: 'operator', reason: 'gave up' },
      { kind: 'failed', by: 'chain', chainTime: 2_000_000_001n, reason: 'expired' },
      { kind: 'failed', by: 'chain', chainTime: 2_000_000_000n, reason: 'expired' },
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
    return { ...event, presented: { credentialSha256: what.credentialSha256, ...what.request } };
  }
  return event;
}

/** The clock of a real ledger goes on between two plays: times are compared by whether they are there, and far off. */
function withoutTimes(start: number): (value: unknown) => unknown {
  const plain = (value: unknown, key = ''): unknown => {
    // Over HTTP every change has one.
    if (key === 'changeId') return null;
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
