// The pass that a settled charge opens: its books, and the use of the request that bought it. The store that settles the
// charge writes both in the same transaction, so that a pass is sold exactly if it was paid for.
import type { Charge } from '../payment/charge.ts';
import { creditUnits, DRAW_KEY_MS, type BookTerms, type DrawKey, type PassBook, type PassDraw } from './pass-book.ts';
import { passIdOf, readPassInSale, soldPassOf, type PassInSale, type SoldPass } from './pass.ts';

/**
 * A pass with its books; `first`: the use of the request that bought it, while that goes on, or for as long as it may be asked
 * for again.
 */
export type OpenedPass = {
  readonly pass: SoldPass;
  readonly book: PassBook;
  readonly first: PassDraw | undefined;
};

/** A pass with its books, as a store has it. */
export type KeptPass = Omit<OpenedPass, 'first'>;

/** Amount that a request of this price takes of a pass: a use, or its price. */
export function drawnBy({ kind }: Pick<PassInSale, 'kind'>, price: string): bigint {
  return kind === 'uses' ? 1n : creditUnits(price);
}

/** The id of the use of the request that bought a pass. */
export function firstUseOf(passId: string): string {
  return passId.replace(/^pass_/, 'use_');
}

/** The id of the use of a request that buys a pass by the terms in its charge; undefined: it is by seconds, which counts none. */
export function firstUseIn(chargeId: string, terms: Parameters<typeof readPassInSale>[0]): string | undefined {
  const sale = readPassInSale(terms);
  return sale === undefined || sale.kind === 'seconds' ? undefined : firstUseOf(passIdOf(chargeId));
}

/**
 * The pass that a charge opens as it is settled; undefined if it buys none. A request that settles when the upstream has
 * answered has had its use; one that is forwarded afterwards, or whose response says only later what it takes, has it
 * reserved; without a request there is none.
 */
export function openPass(charge: Charge): OpenedPass | undefined {
  const pass = soldPassOf(charge);
  if (pass === undefined) return undefined;
  const { passId, endsAtMs: endsAt, soldAtMs: at } = pass;
  const sold = soldUnits(pass);
  const amount = firstUnits(pass);
  const terms = termsOf(pass);
  const fresh = {
    id: passId,
    terms,
    sold,
    drawn: 0n,
    reserved: 0n,
    endsAt,
    revokedAt: null,
    uses: 0,
    lost: 0,
    left: 0,
  };
  const { owner, leaseUntil } = charge;
  if (owner === null || amount === 0n || amount > sold) return { pass, book: fresh, first: undefined };
  const isMetered = pass.kind === 'credit' && pass.isMetered === true;
  const key = keyOf(pass, charge);
  const use = { id: firstUseOf(passId), passId, amount, owner, key, asks: 1, at };
  if (charge.settle === 'before_response' && !isMetered)
    return {
      pass,
      book: { ...fresh, drawn: amount, uses: 1 },
      first: key === null ? undefined : { ...use, state: 'taken', leaseUntil: at, keptUntil: at + DRAW_KEY_MS },
    };
  return {
    pass,
    book: { ...fresh, reserved: amount },
    first: { ...use, state: 'reserved', leaseUntil, keptUntil: null },
  };
}

/** The `Idempotency-Key` of the request that bought a pass. */
function keyOf({ keySha256 }: PassInSale, { request: { method, targetSha256 } }: Charge): DrawKey | null {
  return keySha256 === undefined ? null : { sha256: keySha256, method, targetSha256 };
}

function termsOf({ planId, termsId, kind, scope, routeId, amount, currency }: SoldPass): BookTerms {
  return { planId, termsId, kind, scope, routeId, amount, currency };
}

/** Money of the sale that the use of the request that buys comes to, in units of 10^-18 of its currency. */
export function worthOfFirst(pass: SoldPass): bigint {
  const sold = soldUnits(pass);
  return sold === 0n ? 0n : (creditUnits(pass.amount) * firstUnits(pass)) / sold;
}

function firstUnits({ kind, first }: PassInSale): bigint {
  return kind === 'seconds' ? 0n : kind === 'uses' ? BigInt(first) : creditUnits(first);
}

function soldUnits(pass: PassInSale): bigint {
  switch (pass.kind) {
    case 'seconds':
      return 0n;
    case 'uses':
      return BigInt(pass.uses);
    case 'credit':
      return creditUnits(pass.credit);
    default:
      return pass satisfies never;
  }
}
