// Fetches what was paid for and did not arrive, without a second charge: the kept answer is replayed as it was, or the
// upstream is asked once more. A request gets here only with the identical credential for the very same thing
// (domain/payment/claim-policy). The ledger lets one request at a time through.
import { receiptOf, type Charge, type KeptAnswer } from '../../domain/payment/charge.ts';
import { pauseLeft } from '../../domain/payment/claim-policy.ts';
import type { Log } from '../../host/log.ts';
import type { Rail } from '../rails/rail.ts';
import type { Deliverer } from './deliverer.ts';
import type { Leases } from './lease.ts';
import type { Payment, PayOutcome } from './payment.ts';
import type { PaymentResponses } from './payment-responses.ts';
import type { Recorder } from './recorder.ts';

type RedeemerDeps = {
  readonly recorder: Recorder;
  readonly responses: PaymentResponses;
  readonly deliverer: Deliverer;
  readonly leases: Pick<Leases, 'keep'>;
  readonly rail: Pick<Rail, 'receiptHeader'>;
  readonly log: Log;
  /** The ledger's clock. */
  readonly now: () => number;
  readonly monotonic: () => number;
  readonly leaseMs: number;
};

/** Gives a payer what a settled charge paid for. */
export type Redeemer = (payment: Payment, charge: Charge) => Promise<PayOutcome>;

export function createRedeemer(deps: RedeemerDeps): Redeemer {
  return (payment, charge) => redeem(deps, payment, charge);
}

async function redeem(deps: RedeemerDeps, payment: Payment, charge: Charge): Promise<PayOutcome> {
  const { recorder, responses, deliverer, leases, rail, log, now, monotonic, leaseMs } = deps;
  const { facts, presented, route } = payment;
  facts.noteCharge?.(() => responses.inUse(payment, charge));
  if (pauseLeft(charge, now()) > 0) return responses.upstreamPaused(payment, charge);
  const away = charge.answer === null ? await facts.connect() : undefined;
  if (away !== undefined) {
    log.warn('upstream failed', { request_id: facts.requestId, charge_id: charge.id, detail: away.detail });
    return responses.upstreamAway(payment, charge, true);
  }
  const event = { kind: 'redeem_started', request: payment.shown, leaseMs } as const;
  const since = monotonic();
  const taken = await recorder.change(payment, charge.id, event);
  if (taken.kind !== 'ok') {
    if (taken.because === 'lease_running') return responses.inUse(payment, taken.charge);
    const answer = taken.because === 'not_due' ? responses.upstreamPaused : responses.alreadyPaid;
    return answer(payment, taken.charge ?? charge);
  }
  recorder.counted(route.id, 'replayed', charge.way.network);
  const lease = leases.keep(charge.id, since);
  const { answer, undelivered } = taken.charge;
  if (answer === null) {
    const receipt = receiptOf(taken.charge);
    const header = receipt === undefined ? [] : rail.receiptHeader(presented.version, receipt);
    const upstream = undelivered === 'answer_lost' || undelivered === 'answer_dropped' ? 'answered' : 'ask';
    return deliverer.deliver(payment, taken.charge, header, upstream, lease);
  }
  if (!(await lease.holds())) return responses.takenOver(payment, taken.charge, lease);
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
      void recorder.changeUntilWritten(payment, charge.id, ended).finally(lease.stop);
    },
  };
}

/** Keeps a replayed answer for a short time: its last byte may be lost as well. */
function keepReplayed({ deliverer }: RedeemerDeps, payment: Payment, charge: Charge, answer: KeptAnswer): void {
  const kept = deliverer.keep(answer.body.length);
  kept.begin(answer.status, answer.headers);
  kept.add(Buffer.from(answer.body));
  if (kept.isKept) deliverer.remember(payment, charge, kept);
}
