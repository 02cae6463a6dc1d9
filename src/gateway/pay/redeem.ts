// Fetches what was paid for and did not arrive, without a second charge: the kept answer is replayed as it was, or the
// upstream is asked once more. A request gets here only with the identical credential for the very same thing
// (domain/payment/claim-policy). The ledger lets one request at a time through.
import { receiptOf, type Charge, type KeptAnswer } from '../../domain/payment/charge.ts';
import { pauseLeft } from '../../domain/payment/claim-policy.ts';
import { deliver, inUse, takenOver } from './deliver.ts';
import { KeptResponse } from './memory.ts';
import type { PayDeps, Payment, PayOutcome } from './payment.ts';
import { retryUntilRecorded } from './record.ts';
import { alreadyPaid, upstreamAway, upstreamPaused } from './statement.ts';

export async function redeem(deps: PayDeps, payment: Payment, charge: Charge): Promise<PayOutcome> {
  const { ledger, rail, newId, options, chargeLog } = deps;
  const { facts, owner, presented, route } = payment;
  if (pauseLeft(charge, ledger.now()) > 0) return upstreamPaused(deps, payment, charge);
  const away = charge.answer === null ? await facts.connect() : undefined;
  if (away !== undefined) {
    deps.log.warn('upstream failed', { request_id: facts.requestId, charge_id: charge.id, detail: away.detail });
    return upstreamAway(deps, payment, charge, true);
  }
  const event = { kind: 'redeem_started', request: payment.shown, leaseMs: options.leaseMs } as const;
  const since = deps.clock.monotonic();
  const taken = await ledger.advance(charge.id, event, { owner, changeId: newId() });
  if (taken.kind !== 'ok') {
    if (taken.because === 'lease_running') return inUse(deps, payment, taken.charge);
    const answer = taken.because === 'not_due' ? upstreamPaused : alreadyPaid;
    return answer(deps, payment, taken.charge ?? charge);
  }
  chargeLog.changed(taken.charge, event.kind);
  chargeLog.counted(route.id, 'replayed', charge.way.network);
  const lease = deps.leases.keep(charge.id, since);
  const { answer, undelivered } = taken.charge;
  if (answer === null) {
    const receipt = receiptOf(taken.charge);
    const header = receipt === undefined ? [] : rail.receiptHeader(presented.version, receipt);
    const upstream = undelivered === 'answer_lost' || undelivered === 'answer_dropped' ? 'answered' : 'ask';
    return deliver(deps, payment, taken.charge, header, upstream, lease);
  }
  if (!(await lease.holds())) return takenOver(deps, payment, taken.charge, lease);
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
  if (kept.isKept) replays.remember(payment.shown, kept, { chargeId: charge.id, routeId: charge.route.id });
}
