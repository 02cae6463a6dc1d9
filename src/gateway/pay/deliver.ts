// Delivers what a settled charge paid for, and tells the ledger what became of the response: delivered, kept for a client
// that went first, or why it did not arrive. That decides how often the upstream may be asked again.
import type { Charge, KeptAnswer } from '../../domain/payment/charge.ts';
import type { ChargeEvent } from '../../domain/payment/transition.ts';
import { chargedOf } from '../../domain/payment/whereabouts.ts';
import { PROBLEMS } from '../../domain/problem.ts';
import type { ClientGone, End, Grant, ResponseOutcome, ResponseVerdict } from '../outcome.ts';
import { KeptResponse } from './memory.ts';
import type { Lease } from './lease.ts';
import { networkOf, paymentInUse, type PayDeps, type Payment, type PayOutcome } from './payment.ts';
import { retryUntilRecorded } from './record.ts';
import { stateMoney } from './statement.ts';

/** How long a problem is held back until the ledger has what it says. */
const WRITTEN_MS = 2_000;

/** Waits for what `written` resolves with; undefined after a while: then the ledger is away. */
export function within<T>({ pause }: PayDeps, written: Promise<T>): Promise<T | undefined> {
  return Promise.race([written, pause(WRITTEN_MS).then(() => undefined)]);
}

/** `ask`: this time the upstream's response is the one that was paid for; `answered`: it gave one before. */
type Upstream = 'ask' | 'answered';

export async function deliver(
  deps: PayDeps,
  payment: Payment,
  charge: Charge,
  receipt: readonly string[],
  upstream: Upstream,
  lease: Lease,
): Promise<PayOutcome> {
  if (!(await lease.holds())) return takenOver(deps, payment, charge, lease);
  let isOurs = true;
  let written: Promise<Charge | undefined> = Promise.resolve(undefined);
  const verdict = (holds: boolean): ResponseVerdict => {
    isOurs = holds;
    return holds
      ? { kind: 'stream', headers: receipt }
      : { kind: 'replace', response: takenOver(deps, payment, charge, lease).response };
  };
  return {
    kind: 'paid',
    grant: grantOf(charge),
    route: payment.route,
    customerId: payment.customerId,
    settles: 'before_forward',
    keep: keptResponse(deps),
    beforeResponse: () => {
      const holds = lease.holds();
      return typeof holds === 'boolean' ? verdict(holds) : holds.then(verdict);
    },
    tookMoney: () => isOurs,
    done: (outcome) => {
      if (isOurs) written = recordDelivery(deps, payment, charge, outcome, upstream).finally(lease.stop);
    },
    tell: async (given) => stateMoney(deps, payment, (await within(deps, written)) ?? charge, true, given),
  };
}

/** The grant of a charge that is claimed or settled. */
export function grantOf({ id, route, payment, price, way }: Charge): Grant {
  return { id, routeId: route.id, price, payer: payment.payer, headers: ['Tollgate-Network', way.network] };
}

/** This process stood still, or the ledger was away, for longer than the lease: another request may be answered by now. */
export function takenOver(deps: PayDeps, payment: Payment, charge: Charge, lease: Lease): ResponseOutcome {
  lease.stop();
  return inUse(deps, payment, charge);
}

/** Another request works on the charge. */
export function inUse(deps: PayDeps, payment: Payment, charge: Charge | undefined): ResponseOutcome {
  const { facts, route } = payment;
  deps.chargeLog.counted(route.id, 'in_use', networkOf(payment, charge));
  const told = paymentInUse(deps, charge);
  if (charge === undefined) return deps.refuse(told, facts.origin, route.id);
  const charged = chargedOf(charge) === true ? true : 'unknown';
  return deps.refuse(stateMoney(deps, payment, charge, charged, told), facts.origin, route.id);
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
): Promise<Charge | undefined> {
  const event = deliveryEvent(outcome, upstream);
  const result = event.kind === 'delivered' ? 'delivered' : 'settled_undelivered';
  deps.chargeLog.counted(charge.route.id, result, charge.way.network);
  const kept = outcome.kind === 'delivered' || outcome.kind === 'client_gone' ? outcome.kept : undefined;
  const again = event.kind === 'delivered' && payment.presented.version === 2 ? kept : undefined;
  if (again !== undefined) {
    const of = { chargeId: charge.id, routeId: charge.route.id };
    deps.responses.replays.remember(payment.shown, again, of);
  }
  const recorded = await retryUntilRecorded(deps, payment, charge.id, event);
  if (again === undefined) kept?.drop();
  return recorded;
}

function deliveryEvent(outcome: End, upstream: Upstream): ChargeEvent {
  switch (outcome.kind) {
    case 'delivered':
      return isUsable(outcome.status) ? { kind: 'delivered', partial: false } : upstreamFailed(outcome.status, false);
    case 'failed':
      // An ask that never left counts for nothing.
      if (!outcome.asked) return undelivered('not_asked', false);
      return upstreamFailed(PROBLEMS[outcome.code].status, outcome.headersSent && isUsable(outcome.status));
    case 'replaced':
      return upstreamFailed(outcome.status, false);
    case 'not_sent':
      return undelivered('not_asked', false);
    case 'client_gone':
      return eventOfGone(outcome, upstream);
    default:
      return outcome satisfies never;
  }
}

function eventOfGone(gone: ClientGone, upstream: Upstream): ChargeEvent {
  const { status, headSent: sent, upload, failed, asked, kept } = gone;
  if (!asked) return undelivered('not_asked', false);
  if (status !== undefined && !isUsable(status)) return upstreamFailed(status, false);
  const headSent = sent && isUsable(status);
  if (kept !== undefined) return { kind: 'answer_kept', answer: keptAnswer(kept), headSent };
  if (upload !== 'whole' && status === undefined) return undelivered('upload_broken_off', headSent);
  if (failed && upstream === 'ask') return upstreamFailed(PROBLEMS.upstream_unreachable.status, headSent);
  return undelivered('answer_lost', headSent);
}

/** `status`: what the client got of it, or would have. */
function upstreamFailed(status: number, headSent: boolean): ChargeEvent {
  return { kind: 'undelivered', because: 'upstream_failed', headSent, status };
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
