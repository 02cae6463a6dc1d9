// The charge id of a payment, as far as the page can be sure of it. A problem of the server's names it. An answer of the
// service does not: its charge has the id of the quote if the quote was in force when the answer came. The server counts
// a quote that is over as none and makes a new id, which the page does not know.
import type { PageData } from '../domain/payment/page-data.ts';
import type { TabPayment } from './kept.ts';

/** A quote ends at a full second of the server's, so up to a second of its life is missing. */
const MISSING_MS = 1000;

/** Facts that the server gives about a payment's charge. `transaction` comes from a receipt, so there is a charge. */
type ToldCharge = { readonly charge?: string | undefined; readonly transaction?: string | undefined };

/** Returns `payment` with the charge id that follows from `told`, which came at `nowMs`. A known id stays the same. */
export function withChargeId(
  payment: TabPayment,
  told: ToldCharge,
  { quoteTtlMs }: PageData,
  nowMs: number,
): TabPayment {
  if (told.charge !== undefined) return { ...payment, charge: told.charge };
  if (payment.charge !== undefined || told.transaction === undefined) return payment;
  // A clock that was set back proves nothing.
  const elapsed = nowMs - payment.quotedAt;
  const isInForce = elapsed >= 0 && elapsed < quoteTtlMs - MISSING_MS;
  return isInForce ? { ...payment, charge: payment.accept.extra.external_ref } : payment;
}
