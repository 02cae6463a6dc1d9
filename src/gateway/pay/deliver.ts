// Forwards for a charge that is settled, and tells the ledger what became of the response: delivered, kept for a client that
// went first, or why it did not arrive, which decides how often the upstream may be asked again.
import type { Charge, KeptAnswer } from '../../domain/charge.ts';
import type { ChargeEvent } from '../../domain/payment/transition.ts';
import type { ClientGone, End } from '../telemetry.ts';
import type { PaidOutcome } from '../outcome.ts';
import { KeptResponse } from '../kept-responses.ts';
import type { Lease } from './lease.ts';
import { whatIsShown, type PayDeps, type Payment } from './payment.ts';
import { retryUntilRecorded } from './record.ts';

/** `ask`: this time the upstream's response is the one that was paid for; `answered`: it gave one before. */
export type Upstream = 'ask' | 'answered';

export function deliver(
  deps: PayDeps,
  payment: Payment,
  charge: Charge,
  receipt: readonly string[],
  upstream: Upstream,
  lease: Lease,
): PaidOutcome {
  return {
    kind: 'paid',
    charge,
    route: payment.route,
    customerId: payment.customerId,
    settles: 'before_forward',
    keep: keptResponse(deps),
    beforeResponse: () => ({ kind: 'stream', headers: receipt }),
    tookMoney: () => true,
    done: (outcome) => void recordDelivery(deps, payment, charge, outcome, upstream).finally(lease.stop),
  };
}

export function keptResponse({ responses, options }: PayDeps): KeptResponse {
  return new KeptResponse(responses.memory, options.keepResponseBytes);
}

/** What becomes of a settled charge. */
export async function recordDelivery(
  deps: PayDeps,
  payment: Payment,
  charge: Charge,
  outcome: End,
  upstream: Upstream,
): Promise<void> {
  const event = deliveryEvent(outcome, upstream);
  const result = event.kind === 'delivered' ? 'delivered' : 'settled_undelivered';
  deps.chargeLog.counted(charge.route.id, result, charge.way.network);
  const kept = outcome.kind === 'delivered' || outcome.kind === 'client_gone' ? outcome.kept : undefined;
  const again = event.kind === 'delivered' && payment.presented.version === 2 ? kept : undefined;
  if (again !== undefined) {
    const of = { chargeId: charge.id, routeId: charge.route.id };
    deps.responses.replays.remember(whatIsShown(payment), again, of);
  }
  await retryUntilRecorded(deps, payment, charge.id, event);
  if (again === undefined) kept?.drop();
}

function deliveryEvent(outcome: End, upstream: Upstream): ChargeEvent {
  switch (outcome.kind) {
    case 'delivered':
      return isUsable(outcome.status) ? { kind: 'delivered', partial: false } : undelivered('upstream_failed', false);
    case 'failed':
      return undelivered('upstream_failed', outcome.headersSent && isUsable(outcome.status));
    case 'replaced':
      return undelivered('upstream_failed', false);
    case 'not_sent':
      return undelivered('not_asked', false);
    case 'client_gone':
      return eventOfGone(outcome, upstream);
    default:
      return outcome satisfies never;
  }
}

function eventOfGone({ status, headSent: sent, upload, failed, kept }: ClientGone, upstream: Upstream): ChargeEvent {
  if (status !== undefined && !isUsable(status)) return undelivered('upstream_failed', false);
  const headSent = sent && isUsable(status);
  if (kept !== undefined) return { kind: 'answer_kept', answer: keptAnswer(kept), headSent };
  if (upload !== 'whole' && status === undefined) return undelivered('upload_broken_off', headSent);
  return undelivered(failed && upstream === 'ask' ? 'upstream_failed' : 'answer_lost', headSent);
}

function undelivered(
  because: Extract<ChargeEvent, { kind: 'undelivered' }>['because'],
  headSent: boolean,
): ChargeEvent {
  return { kind: 'undelivered', because, headSent };
}

/** A server error is no service, also if the upstream is asked once more: its payer may ask again without paying again. */
function isUsable(status: number | undefined): boolean {
  return status !== undefined && status < 500;
}

export function keptAnswer(kept: KeptResponse): KeptAnswer {
  const { status, headers, body } = kept.response();
  return { status, headers, body: typeof body === 'string' ? Buffer.from(body) : body };
}
