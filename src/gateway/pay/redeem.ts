// Fetches what was paid for and did not arrive, without a second charge: the kept answer is replayed as it was, or the
// upstream is asked once more. Only a request with the identical credential for the very same thing gets here
// (domain/payment/claim-policy); the ledger lets one request at a time through.
import type { Charge, KeptAnswer } from '../../domain/charge.ts';
import { KeptResponse } from '../kept-responses.ts';
import { deliver } from './deliver.ts';
import {
  alreadyPaid,
  paymentInUse,
  receiptOf,
  whatIsShown,
  type PayDeps,
  type Payment,
  type PayOutcome,
} from './payment.ts';
import { retryUntilRecorded } from './record.ts';

export async function redeem(deps: PayDeps, payment: Payment, charge: Charge): Promise<PayOutcome> {
  const { ledger, rail, newId, options, chargeLog } = deps;
  const { facts, owner, presented, route } = payment;
  const event = { kind: 'redeem_started', request: whatIsShown(payment), leaseMs: options.leaseMs } as const;
  const taken = await ledger.advance(charge.id, event, { owner, changeId: newId() });
  if (taken.kind !== 'ok') {
    if (taken.because !== 'lease_running') return alreadyPaid(deps, payment, taken.charge ?? charge);
    chargeLog.counted(route.id, 'in_use', charge.way.network);
    return deps.refuse(paymentInUse(deps, taken.charge), facts.origin, route.id);
  }
  chargeLog.changed(taken.charge, event.kind);
  chargeLog.counted(route.id, 'replayed', charge.way.network);
  const lease = deps.leases.keep(charge.id);
  const { answer, undelivered } = taken.charge;
  if (answer === null) {
    const receipt = receiptOf(taken.charge);
    const header = receipt === undefined ? [] : rail.receiptHeader(presented.version, receipt);
    const upstream = undelivered === 'answer_lost' || undelivered === 'answer_dropped' ? 'answered' : 'ask';
    return deliver(deps, payment, taken.charge, header, upstream, lease);
  }
  const body = Buffer.from(answer.body);
  return {
    kind: 'response',
    response: { status: answer.status, headers: answer.headers, body },
    outcome: 'paid',
    reason: 'replayed',
    chargeId: charge.id,
    routeId: route.id,
    delivered: (whole) => {
      if (whole) keepReplayed(deps, payment, charge, answer);
      const kept = { kind: 'answer_kept', answer: { ...answer, body }, headSent: false } as const;
      const ended = whole ? ({ kind: 'delivered', partial: false } as const) : kept;
      void retryUntilRecorded(deps, payment, charge.id, ended).finally(lease.stop);
    },
  };
}

/** This last byte may be lost as well. */
function keepReplayed(deps: PayDeps, payment: Payment, charge: Charge, answer: KeptAnswer): void {
  const { memory, replays } = deps.responses;
  const kept = new KeptResponse(memory, answer.body.length);
  kept.begin(answer.status, answer.headers);
  kept.add(Buffer.from(answer.body));
  if (kept.isKept) replays.remember(whatIsShown(payment), kept, { chargeId: charge.id, routeId: charge.route.id });
}
