// Fetches what was paid for and did not arrive, without a second charge: the kept answer is replayed as it was, or the
// upstream is asked once more. Only whoever holds the identical credential and asks for the very same thing gets here
// (domain/standing); the ledger lets one request at a time through. CONTRACT section 6, rule 8.
import type { Charge } from '../../domain/charge.ts';
import type { AnswerOutcome, PaidOutcome } from '../collect.ts';
import { paymentProblem, receiptOf, whatIsShown, type PayDeps, type Payment } from './payment.ts';
import { deliver, insist } from './serve.ts';

export async function redeem(deps: PayDeps, payment: Payment, charge: Charge): Promise<AnswerOutcome | PaidOutcome> {
  const { ledger, rail, newId, options } = deps;
  const { asked, owner, presented, offer } = payment;
  const event = { kind: 'redeem_started', presented: whatIsShown(payment), leaseMs: options.leaseMs } as const;
  const advanced = await ledger.advance(charge.id, event, { owner, changeId: newId() });
  const receipt = receiptOf(charge);
  const header = receipt === undefined ? [] : rail.receiptHeader(presented.version, receipt);
  if (advanced.kind !== 'ok') {
    deps.chargeLog.counted(offer.route.id, 'in_use');
    return advanced.because === 'lease_running'
      ? deps.refuse(
          paymentProblem(
            'payment_in_use',
            'The answer to this payment is being fetched by another request.',
            charge.id,
          ),
          asked.origin,
          offer.route.id,
        )
      : deps.refuse(
          paymentProblem(
            'already_paid',
            'This payment was settled, and its answer cannot be delivered any more. Do not pay again for it.',
            charge.id,
          ),
          asked.origin,
          offer.route.id,
        );
  }
  deps.chargeLog.counted(offer.route.id, 'replayed');
  const { answer } = advanced.charge;
  if (answer === null) {
    return deliver(
      deps,
      payment,
      advanced.charge,
      header,
      advanced.charge.undelivered === 'answer_lost' ? 'answered' : 'ask',
    );
  }
  return {
    kind: 'answer',
    answer: { status: answer.status, headers: answer.headers, body: Buffer.from(answer.body) },
    outcome: 'paid',
    reason: 'replayed',
    chargeId: charge.id,
    routeId: offer.route.id,
    delivered: (whole) => {
      const body = Buffer.from(answer.body);
      void insist(
        deps,
        payment,
        charge.id,
        whole ? { kind: 'delivered' } : { kind: 'answer_kept', answer: { ...answer, body } },
      );
    },
  };
}
