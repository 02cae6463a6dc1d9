// What the steps of a payment share: what they work with, the one payment they work on, and how its ends are told to the
// client. A step that cannot say what happened to the money says just that (503 and the charge id), never 402: whoever is
// told to pay again may pay twice.
import type { Charge } from '../../domain/charge.ts';
import type { Ledger } from '../../domain/ledger.ts';
import type { Offer } from '../../domain/offer.ts';
import { problem, type Problem, type ProblemCode } from '../../domain/problem.ts';
import type { Clock, Schedule } from '../../host/clock.ts';
import type { Log } from '../../host/log.ts';
import type { Answers, Asked } from '../collect.ts';
import { settledReceipt, type Presented, type Rail, type RailOffer, type Receipt } from '../rails/rail.ts';
import type { ChargeLog } from './charge-log.ts';
import type { Met } from './met.ts';

export type PayDeps = Answers & {
  readonly rail: Rail;
  readonly ledger: Ledger;
  readonly met: Met;
  readonly chargeLog: ChargeLog;
  readonly log: Log;
  readonly clock: Clock;
  /** A name that nothing else has. */
  readonly newId: () => string;
  readonly options: PayOptions;
  readonly schedule: Schedule;
  /** Waits. */
  readonly pause: (ms: number) => Promise<void>;
};

export type PayOptions = {
  /** An answer up to this size is kept for a payer who went before it was whole. */
  readonly keepResponseBytes: number;
  readonly maxUnsettledPerPayer: number;
  /** For how long a charge is ours without a word from us. */
  readonly leaseMs: number;
  /** When the reconciler takes a settlement of unknown end on. */
  readonly retryMs: number;
};

/** One payment on its way. */
export type Payment = {
  readonly offer: Offer;
  /** The same for the rail: made once, so that it can tell that it is the same. */
  readonly railOffer: RailOffer;
  readonly presented: Presented;
  readonly asked: Asked;
  readonly customerId: string | undefined;
  /** Names this request to the ledger. */
  readonly owner: string;
};

export const LEASE_MS = 60_000;
const RETRY_AFTER_SECONDS = 2;

export function railOfferOf({ receiver, atomic, description }: Offer, asked: Asked): RailOffer {
  return { receiver, atomic, description, resource: asked.publicOrigin + asked.path };
}

/** A problem about this payment; a passing one says when to come back, and every one which charge it is about. */
export function paymentProblem(code: ProblemCode, detail: string, chargeId?: string): Problem {
  return problem(code, detail, {
    headers: { 'Retry-After': String(RETRY_AFTER_SECONDS) },
    ...(chargeId === undefined ? {} : { members: { charge_id: chargeId } }),
  });
}

export function settlementUnknown(chargeId: string): Problem {
  return paymentProblem(
    'settlement_unknown',
    'Whether this payment was settled is not known yet. Do not pay again: send the same request with the same payment later.',
    chargeId,
  );
}

export function ledgerUnavailable(chargeId?: string): Problem {
  return paymentProblem(
    'ledger_unavailable',
    'Payments cannot be recorded right now, so none is taken. Send the same request again later.',
    chargeId,
  );
}

/** The receipt of a charge that was settled before. */
export function receiptOf(charge: Charge): Receipt | undefined {
  return charge.proof === null
    ? undefined
    : settledReceipt(charge.payment, charge.terms.amount, charge.proof.transaction);
}

/** What the ledger asks of whoever presents a payment again. */
export function whatIsShown({ presented, asked }: Payment): {
  credentialSha256: string;
  method: string;
  target: string;
} {
  return { credentialSha256: presented.sha256, method: asked.method, target: asked.target };
}
