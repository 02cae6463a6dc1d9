// Refunds of a charge: transfers by which its operator gave money back. Tollgate sends none, it records them. A charge keeps
// them as lines of text, oldest first. What was given back is their sum, or the whole amount once the operator said that it
// is settled between the two, and never more than the amount.
import type { Charge } from './charge.ts';

/** One transfer back to the payer. */
export type Refund = {
  /** Milliseconds since the epoch. */
  readonly at: number;
  /** Transaction in its canonical spelling (`Spelling`). */
  readonly transaction: string;
  /** Place of the transfer among those of its transaction; null if only the operator says that it is there. */
  readonly logIndex: number | null;
  /** Part of the charge that it gives back, in the smallest unit of its asset. */
  readonly amount: bigint;
  /** The operator's reason; empty if there is none. */
  readonly reason: string;
};

/** Refund that is to be recorded: the ledger's clock says when. */
export type NewRefund = Omit<Refund, 'at'>;

/** Transfers that one charge takes: an event of a webhook has to hold them all. */
export const MAX_REFUNDS = 8;
/** A reason: one line, without control characters. */
export const REFUND_REASON = /^[^\u0000-\u001f\u007f-\u009f\u2028\u2029]{0,200}$/;

const LINE = '\n';

/** Oldest first. A line that is none throws: the store holds something else than was written. */
export function readRefunds(lines: string | null): readonly Refund[] {
  return lines === null || lines === '' ? [] : lines.split(LINE).map(readLine);
}

export function writeRefunds(refunds: readonly Refund[]): string | null {
  if (refunds.length === 0) return null;
  const lines = refunds.map(({ at, transaction, logIndex, amount, reason }) =>
    JSON.stringify([at, transaction, logIndex, amount.toString(), reason]),
  );
  return lines.join(LINE);
}

function readLine(line: string): Refund {
  const read: unknown = JSON.parse(line);
  const [at, transaction, logIndex, amount, reason] = Array.isArray(read) ? (read as readonly unknown[]) : [];
  const isPlace = logIndex === null || typeof logIndex === 'number';
  if (typeof at !== 'number' || typeof transaction !== 'string' || !isPlace || typeof reason !== 'string')
    throw new TypeError('the store holds a line of a refund that is none');
  return { at, transaction, logIndex, amount: BigInt(String(amount)), reason };
}

type RefundedCharge = Pick<Charge, 'amount' | 'refundedAt' | 'refunds'>;

/** Part of the amount that was given back, in the smallest unit of the asset. */
export function refundedAmount({ amount, refundedAt, refunds }: RefundedCharge): bigint {
  return refundedAt === null ? sumOf(readRefunds(refunds)) : amount;
}

/** Part of the amount for which no transfer is recorded yet. */
export function unrecordedAmount({ amount, refunds }: RefundedCharge): bigint {
  return amount - sumOf(readRefunds(refunds));
}

function sumOf(refunds: readonly Refund[]): bigint {
  return refunds.reduce((sum, { amount }) => sum + amount, 0n);
}

type Recording =
  /** The refunds as they are now. `isWhole`: the whole amount was given back. */
  | { readonly ok: true; readonly refunds: readonly Refund[]; readonly isWhole: boolean }
  | { readonly ok: false; readonly because: 'refund_exceeds' | 'refund_recorded' };

/**
 * Adds a refund. One that is there already changes nothing; if it was the operator's word and is proven now, its place is
 * filled in. `refund_recorded`: its transaction is there with another amount.
 */
export function recordRefund(
  charge: RefundedCharge,
  { transaction, logIndex, amount, reason }: NewRefund,
  at: number,
): Recording {
  const known = readRefunds(charge.refunds);
  const same = known.find((each) => each.transaction === transaction);
  const left = unrecordedAmount(charge);
  if (same !== undefined) {
    if (same.amount !== amount) return { ok: false, because: 'refund_recorded' };
    const proven = { ...same, logIndex: same.logIndex ?? logIndex };
    return { ok: true, refunds: known.map((each) => (each === same ? proven : each)), isWhole: left === 0n };
  }
  if (amount <= 0n || amount > left || known.length >= MAX_REFUNDS) return { ok: false, because: 'refund_exceeds' };
  return { ok: true, refunds: [...known, { at, transaction, logIndex, amount, reason }], isWhole: amount === left };
}
