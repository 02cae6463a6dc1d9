// The ledger: which payments were presented, and what became of each. claim-policy and transition decide, the ledger
// performs what they decide over a store that only keeps. It writes a charge if its version is still the one that was
// decided on, and else decides again on what came back. It never guesses: a ledger that cannot say for certain rejects,
// and the caller must not serve, charge or ask to pay.
import { LRUCache } from 'lru-cache';
import type { Charge, Claim, PaymentKey, Proof, Spelling } from './charge.ts';
import { decideClaim, findClaimFault, type ClaimResult, type ClaimOptions } from './claim-policy.ts';
import { transition, type Actor, type ChargeEvent, type TransitionRefusal } from './transition.ts';

/** Owner of a charge: one request of one run of a process. Leases are renewed for the run. */
export function ownerOf(run: string, request: string): string {
  return `${run}/${request}`;
}

/**
 * Every call rejects with LedgerUnavailable if the ledger cannot say. A write may then have happened or not. The same
 * call with the same `changeId` is safe to repeat. Times are the ledger's clock.
 */
export type Ledger = {
  /** Limit on the body of a kept answer that `answer_kept` takes, in bytes. */
  readonly answerLimitBytes: number;
  /** Names this run of the process: a request that works on a charge here is an owner of it (`ownerOf`). */
  readonly run: string;
  readonly spelling: Spelling;
  /** The clock that leases and pauses go by, milliseconds since the epoch; of a remote ledger an estimate. */
  readonly now: () => number;
  /** Finds a charge by the canonical key of its payment. */
  readonly find: (payment: PaymentKey) => Promise<Charge | undefined>;
  readonly findByChargeId: (id: string) => Promise<Charge | undefined>;
  /** Claims in one atomic, durable insert: of identical calls one is `claimed`. A faulty claim rejects (ClaimFault). */
  readonly claim: (claim: Claim, options: ClaimOptions) => Promise<ClaimResult>;
  /** Changes a charge in one conditional, durable update. */
  readonly advance: (id: string, event: ChargeEvent, actor: Actor) => Promise<AdvanceResult>;
  /** Lists charges that are due, as the store says. */
  readonly due: (limit: number) => Promise<readonly Charge[]>;
  readonly renew: ChargeStore['renew'];
};

/**
 * Keeps charges. An implementation MUST resolve a write only once it is durable, and reject with LedgerUnavailable if
 * it cannot say. The transaction that writes MUST keep payment, id and proof (if its log index is known) unique. It
 * MUST keep the payer's limits, and write counts and sums, and the pass that a settled charge buys. How it groups commits, waits for locks and
 * tries again is its own affair.
 */
export type ChargeStore = {
  /** Limit on the body of a kept answer, in bytes. */
  readonly keptBodyBytes: number;
  /** Names this run of the process. */
  readonly run: string;
  /** The store's clock, milliseconds since the epoch; of a remote one an estimate. */
  readonly now: () => number;
  readonly find: (by: ChargeName) => Promise<StoredCharge | undefined>;
  /** Inserts a charge. A known payment is told before a taken id, and a taken id before a limit of its payer. */
  readonly insert: (entry: Entry) => Promise<InsertResult>;
  /**
   * Compare-and-swap: writes what differs between `before` and `after` if the charge still has the version of `before`.
   * A renewal makes no new version. So a lease that `after` does not change stays as the store has it. A change by
   * another than the owner of `before` also needs the lease of `before`, unless it `leavesToOwner` (transition.ts).
   */
  readonly update: (change: Change) => Promise<UpdateResult>;
  /**
   * The charges in `ids` that belong to `run` (`ownerOf`) are being worked on. Resolves with those that still are ours; need
   * not be durable, and leaves the version as it is.
   */
  readonly renew: (run: string, ids: readonly string[], leaseMs: number) => Promise<readonly string[]>;
  /**
   * Lists unsettled charges without an owner, at most `limit`, earliest first: `claimed` ones whose lease ran out,
   * `settling` ones whose next look is due. Takes nothing.
   */
  readonly due: (limit: number) => Promise<readonly StoredCharge[]>;
  /** Resolves after a real write, a few seconds old at most. For the start and for readiness. */
  readonly check: () => Promise<void>;
  /** Finishes what was called; later calls are refused. */
  readonly close: () => Promise<void>;
};

/** Charge as a store has it. Every write but a renewal raises `version`. */
export type StoredCharge = { readonly charge: Charge; readonly version: number };
export type ChargeName = { readonly id: string } | { readonly payment: PaymentKey };
export type Entry = { readonly charge: Charge; readonly claim: Claim; readonly options: ClaimOptions };
/** Result of an insert. `written` may bring a charge one step behind: claimed, and not settling yet. */
export type InsertResult =
  | { readonly kind: 'written'; readonly charge: StoredCharge }
  | { readonly kind: 'payment_known'; readonly charge: StoredCharge }
  | { readonly kind: 'id_taken' | 'too_many_unsettled' | 'too_many_passes' };
export type Change = {
  readonly before: StoredCharge;
  /** The charge that stands now. A change that was made already is written once more, so that it is durable. */
  readonly after: Charge;
  readonly actor: Actor;
  readonly because: { readonly event: ChargeEvent } | { readonly claim: Claim; readonly options: ClaimOptions };
};
export type UpdateResult =
  | { readonly kind: 'written'; readonly charge: StoredCharge }
  /** The charge has another version; undefined if there is no such charge. */
  | { readonly kind: 'stale'; readonly charge: StoredCharge | undefined }
  | { readonly kind: 'proof_used' | 'too_many_unsettled' | 'too_many_passes' };

/** Takes away what is over, a bounded part at a time. */
export type ChargeKeeping = {
  /**
   * Removes closed charges whose last change and payment are over, released ones, and kept answers, each from before
   * its time; never unsettled charges nor what is owed. Charges with a head that can be fetched no more become
   * `delivered` in part. Takes at most about `limit` rows of each; true if there may be more.
   */
  readonly prune: (before: PruneTimes, limit: number) => Promise<boolean>;
};
/** Times before which charges are removed, milliseconds since the epoch; `closedMs` undefined keeps closed ones. */
export type PruneTimes = {
  readonly closedMs: number | undefined;
  readonly releasedMs: number;
  readonly answersMs: number;
};

/** Charges whose leases one call renews at most. */
export const MAX_RENEWED = 1000;

export type AdvanceResult =
  | { readonly kind: 'ok'; readonly charge: Charge }
  | { readonly kind: 'conflict'; readonly because: AdvanceConflict; readonly charge: Charge | undefined };

/** Conflicts of a change. `proof_used`: another charge was settled by this very transfer. */
export const CONFLICTS = ['proof_used', 'unknown_charge'] as const;
type AdvanceConflict = TransitionRefusal | (typeof CONFLICTS)[number];

/** Rules that decide claims and changes. */
export type LedgerRules = { readonly decideClaim: typeof decideClaim; readonly transition: typeof transition };

/**
 * Observer of leases. `lost`: a request goes on with a charge that is not its own any more. `takenOver`: a charge was
 * taken from an owner whose lease ran out.
 */
export type ObserveLeases = { readonly lost: () => void; readonly takenOver: () => void };
const UNOBSERVED: ObserveLeases = { lost: () => undefined, takenOver: () => undefined };

/**
 * Number of charges in work that are remembered, so that most changes need no read: with one, a paid GET takes 1.2 and
 * a paid POST 1.13 times the CPU (`node bench/paid.ts --paid --rounds 16 --seconds 0.4 --root . --root ../without`).
 */
const REMEMBERED = 4096;
/** Number of decisions on one call at most, each on what came back from the one before. */
const ROUNDS = 3;

export function createLedger(
  store: ChargeStore,
  spelling: Spelling,
  rules: LedgerRules = { decideClaim, transition },
  observe = UNOBSERVED,
): Ledger {
  const remembered = new LRUCache<string, StoredCharge>({ max: REMEMBERED });
  const remember = (stored: StoredCharge): Charge => {
    if (stored.charge.owner === null) remembered.delete(stored.charge.id);
    else remembered.set(stored.charge.id, stored);
    return stored.charge;
  };
  const written = (before: Charge | undefined, after: StoredCharge, actor: Actor): Charge => {
    const last = before?.owner ?? null;
    if (last !== null && last !== actor.owner && last !== after.charge.owner) observe.takenOver();
    return remember(after);
  };

  const claim = async (wanted: Claim, options: ClaimOptions): Promise<ClaimResult> => {
    const fault = findSpellingFault(wanted, spelling) ?? findClaimFault(wanted);
    if (fault !== undefined) throw new ClaimFault(fault);
    const actor = { owner: options.owner, changeId: options.changeId };
    let known: StoredCharge | undefined;
    for (let round = 0; round <= ROUNDS; round++) {
      const decided = rules.decideClaim(known?.charge, wanted, options, store.now());
      if (decided.kind !== 'claimed') return decided;
      const { charge: after } = decided;
      const done = await (known === undefined
        ? store.insert({ charge: after, claim: wanted, options })
        : store.update({ before: known, after, actor, because: { claim: wanted, options } }));
      switch (done.kind) {
        case 'written':
          return { kind: 'claimed', charge: written(known?.charge, done.charge, actor) };
        case 'payment_known':
        case 'stale':
          known = done.charge;
          break;
        case 'id_taken':
          return { kind: 'quote_already_used' };
        case 'too_many_unsettled':
        case 'too_many_passes':
          return { kind: done.kind };
        case 'proof_used':
          throw new LedgerUnavailable('The store took a claim for a proof.');
        default:
          return done satisfies never;
      }
    }
    throw new LedgerUnavailable(KEEPS_CHANGING);
  };

  const advance = async (id: string, given: ChargeEvent, actor: Actor): Promise<AdvanceResult> => {
    const event = given.kind === 'settled' ? { ...given, proof: spell(given.proof, spelling) } : given;
    // Memory holds the first end of a lease. Whether it was renewed, the store says, to all but the owner.
    const last = remembered.get(id);
    remembered.delete(id);
    let known = last?.charge.owner === actor.owner ? last : undefined;
    const owned = known !== undefined;
    let fresh = false;
    for (let round = 0; round <= ROUNDS; round++) {
      if (known === undefined) {
        known = await store.find({ id });
        fresh = true;
      }
      if (known === undefined) return { kind: 'conflict', because: 'unknown_charge', charge: undefined };
      const moved = rules.transition(known.charge, event, actor, store.now());
      if (!moved.ok && fresh && owned && known.charge.owner !== actor.owner) observe.lost();
      if (!moved.ok && fresh) return { kind: 'conflict', because: moved.because, charge: known.charge };
      if (!moved.ok) {
        // Memory may be behind the store.
        known = undefined;
        continue;
      }
      const updated = await store.update({ before: known, after: moved.charge, actor, because: { event } });
      switch (updated.kind) {
        case 'written':
          return { kind: 'ok', charge: written(known.charge, updated.charge, actor) };
        case 'stale':
          known = updated.charge;
          fresh = true;
          if (known === undefined) return { kind: 'conflict', because: 'unknown_charge', charge: undefined };
          break;
        case 'proof_used':
          return { kind: 'conflict', because: 'proof_used', charge: known.charge };
        case 'too_many_unsettled':
        case 'too_many_passes':
          throw new LedgerUnavailable('The store took a change for a claim.');
        default:
          return updated satisfies never;
      }
    }
    throw new LedgerUnavailable(KEEPS_CHANGING);
  };

  return {
    answerLimitBytes: store.keptBodyBytes,
    run: store.run,
    spelling,
    now: store.now,
    find: async (payment) => (await store.find({ payment }))?.charge,
    findByChargeId: async (id) => (await store.find({ id }))?.charge,
    claim,
    advance,
    due: async (limit) => (await store.due(limit)).map(({ charge }) => charge),
    renew: store.renew,
  };
}

/** Whether two keys name the same payment. */
export function samePayment(a: PaymentKey, b: PaymentKey): boolean {
  return a.network === b.network && a.asset === b.asset && a.payer === b.payer && a.unique === b.unique;
}

/** The payment is canonical, and of the way that it was verified for. */
function findSpellingFault({ payment, way }: Claim, spelling: Spelling): string | undefined {
  const canonical = spelling.payment({ ...payment, asset: way.asset });
  return way.network === payment.network && canonical !== undefined && samePayment(canonical, payment)
    ? undefined
    : 'the payment is not in its canonical spelling, or is of another network or asset than its way';
}

/** Two spellings of one transaction must not prove two charges. */
function spell(proof: Proof, { identifier }: Spelling): Proof {
  return { ...proof, transaction: identifier(proof.transaction), payer: identifier(proof.payer) };
}

const KEEPS_CHANGING = 'The charge keeps changing while it is decided about.';

/** The claim's caller has a defect; `message` says which. */
export class ClaimFault extends TypeError {
  override readonly name = 'ClaimFault';
}

/** The ledger cannot say. `message` is for operators, not for payers. */
export class LedgerUnavailable extends Error {
  override readonly name = 'LedgerUnavailable';
}
