// What every store of charges does, beneath the ledger: it keeps what was decided, and only if it was decided on what it has.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Charge, Claim } from '../../src/domain/payment/charge.ts';
import { decideClaim, type ClaimOptions } from '../../src/domain/payment/claim-policy.ts';
import {
  LedgerUnavailable,
  type Change,
  type ChargeStore,
  type Entry,
  type InsertResult,
  type StoredCharge,
  type UpdateResult,
} from '../../src/domain/payment/ledger.ts';
import { transition, type ChargeEvent } from '../../src/domain/payment/transition.ts';
import type { ChargesStore } from '../../src/registry/store/ports.ts';
import { claimOf, proofOf } from '../cases/claims.ts';

export type OpenedStores = {
  /** Two ways to the same charges, as two processes have them. */
  readonly stores: readonly [ChargeStore, ChargeStore];
  readonly now: () => number;
  /** Moves the store's clock. */
  readonly pass: (ms: number) => void;
  readonly close: () => Promise<void>;
};

const LEASE = 60_000;
const OPTIONS: ClaimOptions = { owner: 'run/one', leaseMs: LEASE, maxUnsettledPerPayer: 100 };
const START: ChargeEvent = { kind: 'settle_started', via: 'first', leaseMs: LEASE };

/** `decides`: it decides again on what it has by then, and compares no version. */
export function describeChargeStore(
  name: string,
  open: () => Promise<OpenedStores>,
  { decides }: { readonly decides: boolean },
): void {
  describe(`charges: ${name}`, () => {
    let opened: OpenedStores;
    let store: ChargeStore;
    let other: ChargeStore;
    let n = 2_000_000;
    const fresh = (rest: Parameters<typeof claimOf>[1] = {}): Claim => claimOf(++n, rest);

    beforeAll(async () => {
      opened = await open();
      [store, other] = opened.stores;
    });
    afterAll(() => opened.close());

    const entryOf = (claim: Claim, rest: Partial<ClaimOptions> = {}): Entry => {
      const options = { ...OPTIONS, ...rest };
      const { charge } = decideClaim(undefined, claim, options, opened.now());
      return { charge, claim, options };
    };
    const insert = (claim: Claim, rest: Partial<ClaimOptions> = {}): Promise<InsertResult> =>
      store.insert(entryOf(claim, rest));
    const inserted = async (claim = fresh()): Promise<StoredCharge> => {
      const result = await insert(claim);
      if (result.kind !== 'written') throw new Error(result.kind);
      return result.charge;
    };
    const changeOf = (before: StoredCharge, event: ChargeEvent, owner = 'run/one'): Change => {
      const actor = { owner, changeId: `change ${++n}` };
      const moved = transition(before.charge, event, actor, opened.now());
      if (!moved.ok) throw new Error(moved.because);
      return { before, after: moved.charge, actor, because: { event } };
    };
    const written = (updated: UpdateResult): StoredCharge => {
      if (updated.kind !== 'written') throw new Error(updated.kind);
      return updated.charge;
    };
    const stateOf = async ({ charge: { id } }: StoredCharge): Promise<Charge['state'] | undefined> =>
      (await other.find({ id }))?.charge.state;

    test('behaviour: a charge that is written is found by its id and by its payment, as it was told', async () => {
      const made = await inserted();
      const { id, payment } = made.charge;
      expect(await other.find({ id })).toEqual(made);
      expect(await other.find({ payment })).toEqual(made);
      const next = written(await store.update(changeOf(made, START)));
      expect(next.charge.state).toBe('settling');
      expect(await other.find({ id })).toEqual(next);
      expect(await store.find({ id: 'chg_nobody' })).toBeUndefined();
    });

    test('behaviour: a new charge is refused for a known payment before a taken id, and for that before too many', async () => {
      const payer = 900_000 + n;
      const made = await inserted(fresh({ payer }));
      const full = { maxUnsettledPerPayer: 1, owner: 'run/two' };
      const known = await insert({ ...claimOf(n, { payer }) }, full);
      expect(known).toEqual({ kind: 'payment_known', charge: made });
      expect(await insert(fresh({ payer, id: made.charge.id }), full)).toEqual({ kind: 'id_taken' });
      expect(await insert(fresh({ payer }), full)).toEqual({ kind: 'too_many_unsettled' });
      expect((await insert(fresh({ payer }), { ...full, maxUnsettledPerPayer: 2 })).kind).toBe('written');
    });

    test.skipIf(decides)(
      'attack: a change of an older version of a charge writes nothing and brings the newer one',
      async () => {
        const first = await inserted();
        const second = written(await other.update(changeOf(first, START)));
        expect(second.version).toBeGreaterThan(first.version);
        const late = await store.update(changeOf(first, { kind: 'released', reason: 'late' }));
        expect(late).toEqual({ kind: 'stale', charge: second });
        expect(await stateOf(first)).toBe('settling');
      },
    );

    test('attack: a change of a charge that is not there any more, or never was, writes nothing', async () => {
      const { charge } = entryOf(fresh());
      const gone = { charge, version: 1 };
      expect(await store.update(changeOf(gone, START))).toEqual({ kind: 'stale', charge: undefined });
      expect(await store.find({ id: charge.id })).toBeUndefined();
    });

    test('behaviour: if two changes of one version of a charge come at once, one is written', async () => {
      const made = await inserted();
      const all = await Promise.all([
        store.update(changeOf(made, START)),
        other.update(changeOf(made, { kind: 'released', reason: 'client_gone' })),
      ]);
      expect(all.map(({ kind }) => kind).sort()).toEqual(['stale', 'written']);
    });

    test('behaviour: a renewed lease makes no other version of a charge, and its owner leaves the lease as it was renewed', async () => {
      const what = fresh();
      const made = await inserted(what);
      const settling = written(await store.update(changeOf(made, START)));
      expect(await other.renew('run', [what.id], 10 * LEASE)).toEqual([what.id]);
      const renewed = await other.find({ id: what.id });
      expect(renewed?.version).toBe(settling.version);
      expect(renewed?.charge.leaseUntil).toBeGreaterThan(settling.charge.leaseUntil + LEASE);
      const answer = { status: 200, headers: [], body: Uint8Array.of(1) };
      written(await store.update(changeOf(settling, { kind: 'answer_kept', answer, headSent: false })));
      expect((await other.find({ id: what.id }))?.charge).toMatchObject({
        leaseUntil: renewed?.charge.leaseUntil,
        answer: { status: 200 },
      });
    });

    // Another process's store ends them itself.
    test.skipIf(decides)(
      'behaviour: the leases of a run that is gone are over, in every state, and no others',
      async () => {
        const owner = 'gone/one';
        const claimed = entryOf(fresh(), { owner });
        const settled = entryOf(fresh(), { owner });
        const others = [entryOf(fresh(), { owner: 'gone.2/one' }), entryOf(fresh(), { owner: 'go/one' })];
        const made: StoredCharge[] = [];
        for (const entry of [claimed, settled, ...others]) {
          const done = await store.insert(entry);
          if (done.kind !== 'written') throw new Error(done.kind);
          made.push(done.charge);
        }
        const settling = written(await store.update(changeOf(made[1] ?? (await inserted()), START, owner)));
        const proof = proofOf(settled.claim);
        const version = written(
          await store.update(changeOf(settling, { kind: 'settled', proof, leaseMs: LEASE }, owner)),
        ).version;
        await (other as ChargeStore & Pick<ChargesStore, 'endRun'>).endRun('gone');
        const leaseOf = async (entry: Entry): Promise<number> =>
          (await store.find({ id: entry.charge.id }))?.charge.leaseUntil ?? Number.NaN;
        expect(await leaseOf(claimed)).toBeLessThanOrEqual(opened.now());
        expect(await leaseOf(settled)).toBeLessThanOrEqual(opened.now());
        expect((await store.find({ id: settled.charge.id }))?.version).toBe(version);
        for (const entry of others) expect(await leaseOf(entry)).toBeGreaterThan(opened.now());
      },
    );

    test('attack: nobody else takes a charge by what its lease was before it was renewed', async () => {
      const what = fresh();
      const settling = written(await store.update(changeOf(await inserted(what), START)));
      expect(await other.renew('run', [what.id], 10 * LEASE)).toEqual([what.id]);
      opened.pass(2 * LEASE);
      const taken = await store.update(changeOf(settling, { kind: 'taken_over', leaseMs: LEASE }, 'run/two'));
      expect(taken).toMatchObject({ kind: 'stale', charge: { charge: { id: what.id, owner: 'run/one' } } });
      expect((await other.find({ id: what.id }))?.charge.owner).toBe('run/one');
    });

    test('behaviour: a search of a look is kept though the lease was renewed meanwhile, and the lease stays', async () => {
      const what = fresh();
      const settling = written(await store.update(changeOf(await inserted(what), START)));
      expect(await other.renew('run', [what.id], 10 * LEASE)).toEqual([what.id]);
      const renewed = (await other.find({ id: what.id }))?.charge;
      const search = { next: '12' };
      const kept = await store.update(
        changeOf(settling, { kind: 'looked', at: 'end', search, lookInMs: 1000, reason: 'payment_used' }, 'reconciler'),
      );
      expect(kept.kind).toBe('written');
      const { owner, leaseUntil, lookAt, reason } = renewed ?? {};
      expect((await other.find({ id: what.id }))?.charge).toMatchObject({ search, owner, leaseUntil, lookAt, reason });
    });

    test('behaviour: a change that is written once more is durable, and the same', async () => {
      const made = await inserted();
      const change = changeOf(made, START);
      const once = written(await store.update(change));
      const again = written(await other.update({ ...change, before: once, after: once.charge }));
      expect(again.charge).toEqual(once.charge);
      expect(await store.find({ id: made.charge.id })).toEqual(again);
    });

    test('attack: one transfer proves one charge, in the transaction that writes it', async () => {
      const [a, b] = [fresh(), fresh()];
      const { transaction } = proofOf(a);
      const settled = async (what: Claim): Promise<UpdateResult> => {
        const settling = written(await store.update(changeOf(await inserted(what), START)));
        const proof = proofOf(what, { transaction, logIndex: 5 });
        return other.update(changeOf(settling, { kind: 'settled', proof, leaseMs: LEASE }));
      };
      const all = await Promise.all([settled(a), settled(b)]);
      expect(all.map(({ kind }) => kind).sort()).toEqual(['proof_used', 'written']);
    });

    test('behaviour: a claim over a released charge is a change like any other, within the limit of its payer', async () => {
      const payer = 900_000 + n;
      const what = fresh({ payer });
      const made = await inserted(what);
      const released = written(await store.update(changeOf(made, { kind: 'released', reason: 'upstream_500' })));
      await inserted(fresh({ payer }));
      const claim = (maxUnsettledPerPayer: number): Change => {
        const options = { ...OPTIONS, owner: 'run/two', changeId: `again ${++n}`, maxUnsettledPerPayer };
        const { charge: after } = decideClaim(released.charge, what, options, opened.now());
        return { before: released, after, actor: { owner: 'run/two' }, because: { claim: what, options } };
      };
      expect(await store.update(claim(1))).toEqual({ kind: 'too_many_unsettled' });
      expect(await stateOf(made)).toBe('released');
      expect(written(await store.update(claim(2))).charge).toMatchObject({ claims: 2, owner: 'run/two' });
      expect(await other.find({ id: what.id })).toMatchObject({ charge: { credential: what.credential } });
    });

    test('behaviour: the check of a store of charges takes a real write', async () => {
      await store.check();
    });

    test.skipIf(decides)('behaviour: a store of charges that was closed refuses every call', async () => {
      const { stores, close } = await open();
      const made = await stores[0].insert(entryOf(fresh()));
      expect(made.kind).toBe('written');
      await close();
      if (name.startsWith('in memory')) return;
      await expect(stores[0].insert(entryOf(fresh()))).rejects.toThrow(LedgerUnavailable);
    });
  });
}
