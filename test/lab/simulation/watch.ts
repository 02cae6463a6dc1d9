// What must hold whatever happens. Some of it is looked at while a schedule runs, at the very moment; the rest when all
// has come to rest. It goes by the model chain and by what clients and upstream saw, never by what the code says of itself.
import type { Charge, PaymentKey } from '../../../src/domain/payment/charge.ts';
import { createAllowRules } from './allow-rules.ts';
import type { MemoryLedger } from '../../support/memory-ledger.ts';
import type { ModelChain } from './chain.ts';
import type { ModelFacilitator } from './facilitator.ts';
import type { Scheduler } from './scheduler.ts';

export type Watch = {
  readonly violations: readonly string[];
  readonly violated: (what: string) => void;
  /** The money of a payment moved or may yet, as the ledger, the chain and the facilitator have it right now. */
  readonly mayMove: (key: PaymentKey) => boolean;
  /** The money of a payment did not move, and no block takes it up any more, whatever the ledger could be told of it. */
  readonly isOver: (key: PaymentKey) => boolean;
  /** Until when a payment can move, seconds since the epoch. */
  readonly signed: (key: PaymentKey, validBefore: number) => void;
  readonly asked: (chargeId: string) => void;
  /** A front was handed an allow, for one of its requests. */
  readonly allowed: (chargeId: string, request: number) => void;
  /** The upstream ran for a request that a front was allowed. */
  readonly executed: (chargeId: string, request: number) => void;
  /** The ledger wrote that an allow led nowhere. */
  readonly reported: (chargeId: string) => void;
  /** A front said that an allow led nowhere, and was not believed. */
  readonly refusedReport: (chargeId: string) => void;
  /** A payer who asks through a front, and nobody else does any more, is told that this was paid for before. */
  readonly denied: (key: PaymentKey) => void;
  /** Bytes of a service reach a client that was charged for it. */
  readonly served: (chargeId: string) => void;
  readonly servedWhole: (chargeId: string) => void;
  readonly replayed: (chargeId: string) => void;
  readonly settledAt: (chargeId: string) => void;
  /** A change of the charge was written. */
  readonly written: (charge: Charge) => void;
  readonly whole: (chargeId: string) => number;
  readonly atRest: (calm: boolean) => void;
};

export function createWatch(
  scheduler: Scheduler,
  ledger: MemoryLedger,
  chain: ModelChain,
  facilitator: ModelFacilitator,
): Watch {
  const violations: string[] = [];
  const counts = {
    asked: new Map<string, number>(),
    whole: new Map<string, number>(),
    replayed: new Map<string, number>(),
    settled: new Map<string, number>(),
  };
  const count = (of: keyof typeof counts, id: string): number => counts[of].get(id) ?? 0;
  const add = (of: keyof typeof counts, id: string): void => void counts[of].set(id, count(of, id) + 1);
  const violated = (what: string): void => {
    scheduler.say(`!!! ${what}`);
    violations.push(what);
  };
  const allows = createAllowRules({
    now: scheduler.now,
    find: (id) => find(id),
    isPaid: (charge) => isPaid(charge),
    violated,
  });
  const ends = new Map<string, bigint>();
  const hasExpired = ({ unique }: PaymentKey): boolean => chain.timeOf(chain.head() + 1) >= (ends.get(unique) ?? 0n);
  const searched = new Map<string, number>();
  const find = (id: string): Charge | undefined => ledger.all().find((charge) => charge.id === id);
  const isPaid = (charge: Charge | undefined): boolean => charge?.state === 'settled' || charge?.state === 'delivered';

  const charge = (row: Charge, calm: boolean): void => {
    const { id, state, payment, claims, asks } = row;
    const moved = chain.used(payment)?.paid === true;
    const voided = chain.used(payment)?.paid === false;
    if (state === 'claimed' || (state === 'settling' && !voided)) violated(`${id} never ends: ${state}, ${row.reason}`);
    if (moved && !isPaid(row)) violated(`${id} is ${state} and its money moved`);
    if (!moved && isPaid(row)) violated(`${id} is ${state} and no money moved`);
    if (count('settled', id) > 1) violated(`${id} was settled ${count('settled', id)} times`);
    if (row.asker !== null) return allows.atRest(row, { whole: count('whole', id), calm });
    if (state === 'delivered' && !row.partial && count('whole', id) === 0)
      violated(`${id} is delivered and nobody got the answer`);
    // The first time is one of the claims' and of the asks'.
    const paidFor = Math.max(1, asks.all);
    if (count('asked', id) > claims - 1 + paidFor)
      violated(`${id} had the upstream asked ${count('asked', id)} times for ${claims} claims and ${asks.all} asks`);
    if (count('whole', id) > paidFor + count('replayed', id))
      violated(`${id} was delivered ${count('whole', id)} times`);
    if (calm && count('whole', id) > 1) violated(`${id} was delivered ${count('whole', id)} times on a calm day`);
    if (calm && count('whole', id) > 0 && state !== 'delivered')
      violated(`${id} was delivered on a calm day and is ${state}`);
  };

  return {
    violations,
    violated,
    mayMove: (key) => {
      const transfer = chain.used(key);
      if (transfer !== undefined) return transfer.paid;
      if (!hasExpired(key) && (chain.pending(key) || facilitator.busyWith(key))) return true;
      return ledger
        .all()
        .some(({ payment, state }) => payment.unique === key.unique && (state === 'settling' || state === 'settled'));
    },
    isOver: (key) => chain.used(key) === undefined && hasExpired(key),
    signed: ({ unique: nonce }, validBefore) => void ends.set(nonce, BigInt(validBefore)),
    asked: (id) => {
      add('asked', id);
      if (find(id) === undefined) violated(`the upstream was asked for ${id} without a claim`);
    },
    allowed: allows.allowed,
    executed: (id, request) => {
      if (find(id) === undefined) violated(`the upstream ran for ${id} without a claim`);
      allows.executed(id, request);
    },
    reported: allows.reported,
    refusedReport: allows.refusedReport,
    denied: (key) => {
      const row = ledger.all().find(({ payment }) => payment.unique === key.unique);
      if (row !== undefined) allows.denied(row);
    },
    served: (id) => {
      if (!isPaid(find(id))) violated(`${id} is served and ${find(id)?.state ?? 'unknown to the ledger'}`);
    },
    servedWhole: (id) => add('whole', id),
    replayed: (id) => add('replayed', id),
    settledAt: (id) => add('settled', id),
    written: ({ id, claims, search }) => {
      const name = `${id} ${claims} ${search?.['round'] ?? ''}`;
      const next = Number(search?.['next'] ?? 0);
      if (search !== null && next < (searched.get(name) ?? 0)) violated(`the search for ${id} went back to ${next}`);
      if (search !== null) searched.set(name, next);
    },
    whole: (id) => count('whole', id),
    atRest: (calm) => {
      const rows = ledger.all();
      for (const row of rows) charge(row, calm);
      const sum = (amounts: readonly bigint[]): bigint => amounts.reduce((total, amount) => total + amount, 0n);
      const earned = sum(chain.transfers.filter(({ paid }) => paid).map(() => PRICE));
      const booked = sum(rows.filter(isPaid).map(({ amount }) => amount));
      if (earned !== booked) violated(`the chain has ${earned}, the ledger ${booked}`);
      const proofs = rows.flatMap(({ proof }) => (proof === null ? [] : [proof.transaction]));
      if (new Set(proofs).size !== proofs.length) violated('one transfer proves two charges');
    },
  };
}

/** Of the one route, in the smallest unit. */
export const PRICE = 100_000n;
