// The responses that end a payment without what was asked for. Each is counted, and says where the money is if a charge
// stands behind it.
import type { Charge } from '../../domain/payment/charge.ts';
import { chargedOf, type ChargeAnswer } from '../../domain/payment/whereabouts.ts';
import { problem, type Problem, type ProblemCode } from '../../domain/problem.ts';
import type { OwnResponses, ResponseOutcome } from '../outcome.ts';
import type { Rail, Refusal } from '../rails/rail.ts';
import type { Lease } from './lease.ts';
import { networkOf, type Payment } from './payment.ts';
import { facilitatorUnavailable, ledgerUnavailable, paymentInUse, settlementUnknown } from './payment-problems.ts';
import type { Recorder } from './recorder.ts';
import { stateMoney, type StatementDeps } from './statement.ts';

type PaymentResponsesDeps = StatementDeps & {
  readonly own: Pick<OwnResponses, 'demand' | 'refuse'>;
  readonly counted: Recorder['counted'];
  readonly rail: Pick<Rail, 'receiptHeader' | 'isCallable' | 'requirement'>;
  readonly options: { readonly leaseMs: number };
};

export type PaymentResponses = {
  readonly refuse: (payment: Payment, told: Problem) => ResponseOutcome;
  /** Refuses, and states where the money of `charge` is. */
  readonly refuseCharged: (payment: Payment, charge: Charge, charged: ChargeAnswer, told: Problem) => ResponseOutcome;
  /** States in `told` where the money of `charge` is. */
  readonly state: (payment: Payment, charge: Charge, charged: ChargeAnswer, told: Problem) => Problem;
  /** Demands a payment anew with a 402, or says why the route cannot be paid for now. */
  readonly demandAnew: (payment: Payment, reason: string, headers?: readonly string[]) => ResponseOutcome;
  /** Says with a 402 why this payment of `amount` is no good; nothing was charged. */
  readonly refusePayment: (payment: Payment, amount: bigint, refusal: Refusal) => ResponseOutcome;
  /** The payment was used up already, and paid for nothing of this API's that could be given. */
  readonly alreadyUsed: (
    payment: Payment,
    reason: 'quote_already_used' | 'payment_already_used',
    charge?: Charge,
  ) => ResponseOutcome;
  /** Refuses: another request works on the charge, or, if there is none, verifies another spelling of the payment. */
  readonly inUse: (payment: Payment, charge: Charge | undefined) => ResponseOutcome;
  /**
   * Refuses after this process stood still, or the ledger was away, for longer than the lease: another request may be
   * answered by now.
   */
  readonly takenOver: (payment: Payment, charge: Charge, lease: Lease) => ResponseOutcome;
  /** The request lost its charge before it settled it: to another request, or because the ledger is away. */
  readonly lost: (payment: Payment, charge: Charge, because: 'taken_over' | 'ledger') => ResponseOutcome;
  /** Whether the settlement took the money is not known. */
  readonly unknown: (payment: Payment, charge: Charge) => ResponseOutcome;
  /** The payment's answer can be had no more. */
  readonly alreadyPaid: (payment: Payment, charge: Charge) => ResponseOutcome;
  /** The upstream failed for this payment a moment ago, and is left alone: its client gets the same status again. */
  readonly upstreamPaused: (payment: Payment, charge: Charge) => ResponseOutcome;
  /** No connection to the upstream can be had, so it was not asked. */
  readonly upstreamAway: (payment: Payment, charge: Charge, charged: boolean) => ResponseOutcome;
  /** Problem of a payment that no facilitator can verify or settle now. `retryAfterMs`: until one is asked again, if known. */
  readonly facilitatorsAway: (
    payment: Payment,
    what: 'verified' | 'settled',
    retryAfterMs: number | undefined,
  ) => Problem;
};

const TIMED_OUT = 504;

export function createPaymentResponses(deps: PaymentResponsesDeps): PaymentResponses {
  const { own, counted, rail } = deps;
  const refuse: PaymentResponses['refuse'] = ({ facts, route }, told) => own.refuse(told, facts.origin, route.id);
  const state: PaymentResponses['state'] = (payment, charge, charged, told) =>
    stateMoney(deps, payment, charge, charged, told);
  const refuseCharged: PaymentResponses['refuseCharged'] = (payment, charge, charged, told) =>
    refuse(payment, state(payment, charge, charged, told));
  const demandAnew = (
    { offer, facts, route }: Payment,
    reason: string,
    headers: readonly string[] = [],
    expected?: string,
  ): ResponseOutcome =>
    'code' in offer
      ? own.refuse(offer, facts.origin, route.id)
      : own.demand({ offer, reason, facts, headers, expected });
  const inUse: PaymentResponses['inUse'] = (payment, charge) => {
    counted(payment.route.id, 'in_use', networkOf(payment, charge));
    const told = paymentInUse(deps, charge);
    if (charge === undefined) return refuse(payment, told);
    return refuseCharged(payment, charge, chargedOf(charge) === true ? true : 'unknown', told);
  };

  return {
    refuse,
    refuseCharged,
    state,
    demandAnew,
    inUse,
    refusePayment: (payment, amount, { reason, expected }) => {
      const { presented, route } = payment;
      counted(route.id, 'refused', networkOf(payment));
      const receipt = { payment: presented.key, amount, transaction: '', reason };
      const header = rail.receiptHeader(presented.version, receipt);
      return demandAnew(payment, `payment_refused: ${reason}`, header, expected);
    },
    alreadyUsed: (payment, reason, charge) => {
      counted(payment.route.id, 'already_used', networkOf(payment, charge));
      return demandAnew(payment, reason);
    },
    takenOver: (payment, charge, lease) => {
      lease.stop();
      return inUse(payment, charge);
    },
    lost: (payment, charge, because) => {
      counted(payment.route.id, 'unavailable', charge.way.network);
      if (because !== 'ledger') return refuseCharged(payment, charge, 'unknown', paymentInUse(deps, charge));
      return refuseCharged(payment, charge, charge.attempts === 0 ? false : 'unknown', ledgerUnavailable());
    },
    unknown: (payment, charge) => {
      counted(payment.route.id, 'unknown', charge.way.network);
      return refuseCharged(payment, charge, 'unknown', settlementUnknown(charge));
    },
    alreadyPaid: (payment, charge) => {
      counted(payment.route.id, 'already_used', charge.way.network);
      const told = problem('already_paid', 'This payment was settled, and its answer cannot be delivered any more.');
      return refuseCharged(payment, charge, true, told);
    },
    upstreamPaused: (payment, charge) => {
      counted(payment.route.id, 'paused', charge.way.network);
      const status = charge.failedStatus ?? undefined;
      const code: ProblemCode = status === TIMED_OUT ? 'upstream_timeout' : 'upstream_unreachable';
      const detail = 'The upstream failed for this payment, and is not asked for it again yet.';
      return refuseCharged(payment, charge, true, problem(code, detail, { status }));
    },
    upstreamAway: (payment, charge, charged) => {
      counted(payment.route.id, charged ? 'settled_undelivered' : 'released', charge.way.network);
      const told = problem('upstream_unreachable', 'The upstream cannot be reached, so it was not asked.');
      return refuseCharged(payment, charge, charged, told);
    },
    facilitatorsAway: (payment, what, retryAfterMs) =>
      facilitatorUnavailable(what, payableNetworks(rail, payment), retryAfterMs),
  };
}

/** Networks on which the same request could be paid in another way. */
function payableNetworks(
  rail: Pick<Rail, 'isCallable' | 'requirement'>,
  { offer, presented }: Payment,
): readonly string[] {
  if ('code' in offer) return [];
  const facts = { chargeId: '', upfront: false };
  const others = offer.ways.filter(
    ({ way, amount }) =>
      way !== presented.way &&
      rail.isCallable(way) &&
      rail.requirement({ way, amount, description: '', resource: undefined }, facts, 2) !== undefined,
  );
  return [...new Set(others.map(({ way }) => way.network))];
}
