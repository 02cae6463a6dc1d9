// Answers a payment by what the ledger knows of it: taken over, redeemed, or refused. If that leaves room for a claim, the
// payment goes on.
import type { Charge } from '../../domain/payment/charge.ts';
import { paymentStatus, type ClaimResult, type PaymentStatus } from '../../domain/payment/claim-policy.ts';
import type { Quotes } from '../../domain/payment/quote.ts';
import type { Ledger } from '../../domain/payment/ledger.ts';
import type { ResponseOutcome } from '../outcome.ts';
import type { SeenPayments } from './seen-payments.ts';
import type { Payment, PayOutcome } from './payment.ts';
import { tooManyPasses, tooManyUnsettled } from './payment-problems.ts';
import type { PassSale } from './pass-sale.ts';
import type { PaymentResponses } from './payment-responses.ts';
import type { Redeemer } from './redeemer.ts';
import type { Repeats } from './repeats.ts';
import type { Resumer } from './resumer.ts';

type KnownPaymentsDeps = {
  readonly ledger: Pick<Ledger, 'find' | 'now'>;
  readonly seenPayments: SeenPayments;
  readonly quotes: Pick<Quotes, 'explain'>;
  readonly responses: PaymentResponses;
  readonly redeem: Redeemer;
  readonly takeOver: Resumer['takeOver'];
  readonly repeats: Repeats | undefined;
  /** Passes; undefined: none are sold here. */
  readonly sale: Pick<PassSale, 'present'> | undefined;
};

/** Status of a payment that leaves no room for a claim. */
type TakenStatus = Exclude<PaymentStatus, 'claimable'>;

export type KnownPayments = {
  /** Answers a payment that the ledger knows; undefined if another claim may be made for it. */
  readonly answer: (payment: Payment) => Promise<PayOutcome | undefined>;
  /** Answers a payment of this status. `charge`: the ledger's; undefined: another spelling of it is being verified. */
  readonly answerTaken: (payment: Payment, status: TakenStatus, charge: Charge | undefined) => Promise<PayOutcome>;
  /** Answers a payment whose claim the ledger did not take. */
  readonly answerNotClaimed: (
    payment: Payment,
    claimed: Exclude<ClaimResult, { kind: 'claimed' }>,
  ) => Promise<PayOutcome> | ResponseOutcome;
  /** Whether the payment was released: if it is used up all the same, it was perhaps paid to us. */
  readonly isReleased: (payment: Payment) => Promise<boolean>;
};

export function createKnownPayments({
  ledger,
  seenPayments,
  quotes,
  responses,
  redeem,
  takeOver,
  repeats,
  sale,
}: KnownPaymentsDeps): KnownPayments {
  /** What a charge was bound to says the whole of what was paid for: the target leaves out headers and the length. */
  const asksForTheSame = ({ inputs }: Payment, { id }: Charge): boolean => {
    if (inputs === undefined) return true;
    const explained = quotes.explain(id);
    return explained.kind !== 'quote' || explained.quote.isForInputs(inputs);
  };
  const answerTaken: KnownPayments['answerTaken'] = async (payment, status, charge) => {
    if (charge === undefined) return responses.inUse(payment, charge);
    const bought = charge.pass === null ? undefined : await sale?.present(payment, charge);
    if (bought !== undefined) return bought;
    if (!asksForTheSame(payment, charge)) return responses.alreadyUsed(payment, 'payment_already_used', charge);
    switch (status) {
      case 'in_use': {
        const joined = await repeats?.join(payment, charge);
        if (joined === undefined || joined.status === 'in_use' || joined.status === 'claimable')
          return responses.inUse(payment, joined?.charge ?? charge);
        return answerTaken(payment, joined.status, joined.charge);
      }
      case 'unfinished':
        return takeOver(payment, charge);
      case 'spent':
        return responses.alreadyUsed(payment, 'payment_already_used', charge);
      case 'redeemable':
        repeats?.redeemed();
        return redeem(payment, charge);
      case 'already_paid':
        return (await repeats?.again(payment, charge)) ?? responses.alreadyPaid(payment, charge);
      default:
        return status satisfies never;
    }
  };

  return {
    answer: async (payment) => {
      const { key } = payment.presented;
      const known = await ledger.find(key);
      if (known === undefined) return undefined;
      seenPayments.add(key);
      const status = paymentStatus(known, payment.shown, ledger.now());
      return status === 'claimable' ? undefined : answerTaken(payment, status, known);
    },
    isReleased: async (payment) => {
      const known = await ledger.find(payment.presented.key);
      return known?.state === 'released' && paymentStatus(known, payment.shown, ledger.now()) === 'claimable';
    },
    answerNotClaimed: (payment, claimed) => {
      switch (claimed.kind) {
        case 'quote_already_used':
          return responses.alreadyUsed(payment, 'quote_already_used');
        case 'too_many_unsettled':
          return responses.refuse(payment, tooManyUnsettled());
        case 'too_many_passes':
          return responses.refuse(payment, tooManyPasses());
        case 'in_use':
        case 'unfinished':
        case 'spent':
        case 'redeemable':
        case 'already_paid':
          return answerTaken(payment, claimed.kind, claimed.charge);
        default:
          return claimed satisfies never;
      }
    },
    answerTaken,
  };
}
