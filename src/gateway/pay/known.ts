// OwnResponses a payment by what the ledger knows of it: taken over, redeemed, or refused. If that leaves room for a claim, the
// payment goes on.
import type { Charge } from '../../domain/charge.ts';
import { paymentStatus, type Claimed, type PaymentStatus } from '../../domain/payment/claim-policy.ts';
import type { ResponseOutcome } from '../outcome.ts';
import {
  alreadyPaid,
  demandAnew,
  networkOf,
  paymentInUse,
  paymentProblem,
  whatIsShown,
  type PayDeps,
  type Payment,
  type PayOutcome,
} from './payment.ts';
import { redeem } from './redeem.ts';
import { resume } from './resume.ts';

const UNSETTLED_SECONDS = 2;

/** Undefined if another claim may be made for the payment. */
export async function answerKnown(deps: PayDeps, payment: Payment): Promise<PayOutcome | undefined> {
  const { key } = payment.presented;
  const known = await deps.ledger.find(key);
  if (known === undefined) return undefined;
  deps.seenPayments.add(key);
  const status = paymentStatus(known, whatIsShown(payment), deps.clock.now());
  return status === 'claimable' ? undefined : answerTaken(deps, payment, status, known);
}

/** A payment that was released and is used up all the same was perhaps paid to us. */
export async function isReleased({ ledger, clock }: PayDeps, payment: Payment): Promise<boolean> {
  const known = await ledger.find(payment.presented.key);
  return known?.state === 'released' && paymentStatus(known, whatIsShown(payment), clock.now()) === 'claimable';
}

/** The ledger did not take the claim. */
export function answerNotClaimed(
  deps: PayDeps,
  payment: Payment,
  claimed: Exclude<Claimed, { kind: 'claimed' }>,
): Promise<PayOutcome> | ResponseOutcome {
  const { route, facts } = payment;
  switch (claimed.kind) {
    case 'quote_already_used':
      deps.chargeLog.counted(route.id, 'already_used', networkOf(payment));
      return demandAnew(deps, payment, 'quote_already_used');
    case 'too_many_unsettled':
      return deps.refuse(
        paymentProblem(
          'too_many_unsettled',
          'This payer has too many payments that are not settled yet; nothing was charged. Try again later.',
          { retryAfter: UNSETTLED_SECONDS },
        ),
        facts.origin,
        route.id,
      );
    case 'in_use':
    case 'unfinished':
    case 'spent':
    case 'redeemable':
    case 'already_paid':
      return answerTaken(deps, payment, claimed.kind, claimed.charge);
    default:
      return claimed satisfies never;
  }
}

/** `charge`: as the ledger has it; undefined if another spelling of the payment is being verified. */
export async function answerTaken(
  deps: PayDeps,
  payment: Payment,
  status: Exclude<PaymentStatus, 'claimable'>,
  charge: Charge | undefined,
): Promise<PayOutcome> {
  const { route, facts } = payment;
  if (charge === undefined || status === 'in_use') {
    deps.chargeLog.counted(route.id, 'in_use', networkOf(payment, charge));
    return deps.refuse(paymentInUse(deps, charge), facts.origin, route.id);
  }
  switch (status) {
    case 'unfinished':
      return resume(deps, payment, charge);
    case 'spent':
      deps.chargeLog.counted(route.id, 'already_used', charge.way.network);
      return demandAnew(deps, payment, 'payment_already_used');
    case 'redeemable':
      return redeem(deps, payment, charge);
    case 'already_paid':
      return alreadyPaid(deps, payment, charge);
    default:
      return status satisfies never;
  }
}
