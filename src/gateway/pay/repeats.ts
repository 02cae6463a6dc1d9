// What becomes of a payment that the same question presents again: the port through which a decision listener adds its rules to
// those of the proxy. Types only.
import type { Charge } from '../../domain/payment/charge.ts';
import type { PaymentStatus } from '../../domain/payment/claim-policy.ts';
import type { Ledger } from '../../domain/payment/ledger.ts';
import type { PaidOutcome } from '../outcome.ts';
import type { Rail } from '../rails/rail.ts';
import type { Payment } from './payment.ts';
import type { Recorder } from './recorder.ts';

export type Repeats = {
  /** Waits for the end of the very same question, which another process decides; undefined: it is another one. */
  readonly join: (payment: Payment, charge: Charge) => Promise<JoinedEnd | undefined>;
  /** Gives an allow again that was handed over; undefined: it is not given again. */
  readonly again: (payment: Payment, charge: Charge) => Promise<PaidOutcome | undefined>;
  /** Hears that an allow is given again that was not handed over. */
  readonly redeemed: () => void;
};

/** The charge after the question that was waited for. */
export type JoinedEnd = { readonly status: PaymentStatus; readonly charge: Charge | undefined };

export type CreateRepeats = (parts: {
  readonly recorder: Pick<Recorder, 'change' | 'counted'>;
  readonly rail: Pick<Rail, 'receiptHeader'>;
  readonly ledger: Pick<Ledger, 'find' | 'now'>;
  readonly pause: (ms: number) => Promise<void>;
}) => Repeats;
