// Delivers what a settled charge paid for, and tells the ledger what became of the response: delivered, kept for a client
// that went first, or why it did not arrive. That decides how often the upstream may be asked again.
import type { Charge, KeptAnswer } from '../../domain/payment/charge.ts';
import type { ChargeEvent } from '../../domain/payment/transition.ts';
import { PROBLEMS } from '../../domain/problem.ts';
import type { ClientAbort, End, Grant, ResponseVerdict } from '../outcome.ts';
import { KeptResponse, type Replays, type ResponseMemory } from './kept-responses.ts';
import { firstUseIn } from '../../domain/selling/pass-opening.ts';
import type { Lease } from './lease.ts';
import type { Payment, PayOutcome } from './payment.ts';
import type { PaymentResponses } from './payment-responses.ts';
import type { Recorder } from './recorder.ts';

type DelivererDeps = {
  readonly recorder: Recorder;
  readonly responses: PaymentResponses;
  readonly kept: { readonly memory: ResponseMemory; readonly replays: Replays };
  /** A response up to this size is kept for a payer who may not have had it whole. */
  readonly keepResponseBytes: number;
};

/**
 * Part of the upstream in a delivery. `ask`: this time its response is the one that was paid for; `answered`: it gave
 * one before.
 */
type Upstream = 'ask' | 'answered';

export type Deliverer = {
  /** Forwards a request whose charge is settled. `receipt`: flat name, value pairs. */
  readonly deliver: (
    payment: Payment,
    charge: Charge,
    receipt: readonly string[],
    upstream: Upstream,
    lease: Lease,
  ) => Promise<PayOutcome>;
  /** Writes what became of a settled charge. */
  readonly end: (payment: Payment, charge: Charge, outcome: End, upstream: Upstream) => Promise<Charge | undefined>;
  /** Makes an empty response to collect the upstream's in, with a body of at most `limit` bytes. */
  readonly keep: (limit?: number) => KeptResponse;
  /** Remembers for a short time a response whose last byte was handed over, because that byte may be lost. */
  readonly remember: (payment: Payment, charge: Charge, response: KeptResponse) => void;
};

export function createDeliverer(deps: DelivererDeps): Deliverer {
  const { recorder, responses, kept, keepResponseBytes } = deps;
  const keep = (limit = keepResponseBytes): KeptResponse => new KeptResponse(kept.memory, limit);

  const remember: Deliverer['remember'] = ({ shown }, charge, response) =>
    kept.replays.remember(shown, response, { chargeId: charge.id, routeId: charge.route.id });

  const end: Deliverer['end'] = async (payment, charge, outcome, upstream) => {
    const event = deliveryEvent(outcome, upstream);
    const result = event.kind === 'delivered' ? 'delivered' : 'settled_undelivered';
    recorder.counted(charge.route.id, result, charge.way.network);
    const response = outcome.kind === 'delivered' || outcome.kind === 'client_gone' ? outcome.kept : undefined;
    const again = event.kind === 'delivered' && payment.presented.version === 2 ? response : undefined;
    if (again !== undefined) remember(payment, charge, again);
    const recorded = await recorder.changeUntilWritten(payment, charge.id, event);
    if (again === undefined) response?.drop();
    return recorded;
  };

  const deliver: Deliverer['deliver'] = async (payment, charge, receipt, upstream, lease) => {
    if (!(await lease.holds())) return responses.takenOver(payment, charge, lease);
    let isOurs = true;
    let written: Promise<Charge | undefined> = Promise.resolve(undefined);
    const verdict = (holds: boolean): ResponseVerdict => {
      isOurs = holds;
      return holds
        ? { kind: 'stream', headers: receipt }
        : { kind: 'replace', response: responses.takenOver(payment, charge, lease).response };
    };
    return {
      kind: 'paid',
      grant: grantOf(charge),
      route: payment.route,
      customerId: payment.customerId,
      settles: 'before_forward',
      keep: keep(),
      beforeResponse: () => {
        const holds = lease.holds();
        return typeof holds === 'boolean' ? verdict(holds) : holds.then(verdict);
      },
      tookMoney: () => isOurs,
      done: (outcome) => {
        if (isOurs) written = end(payment, charge, outcome, upstream).finally(lease.stop);
      },
      tell: async (given) => responses.state(payment, (await recorder.within(written)) ?? charge, true, given),
    };
  };

  return { deliver, end, keep, remember };
}

/** The grant of a charge that is claimed or settled. */
export function grantOf({ id, route, payment, price, way, pass }: Charge): Grant {
  const headers = ['Tollgate-Network', way.network];
  // The request that buys a pass is a use of it.
  const use = pass === null ? undefined : firstUseIn(id, pass);
  if (use !== undefined) headers.push('Tollgate-Use-Id', use);
  return { id, routeId: route.id, price, payer: payment.payer, headers };
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

function eventOfGone(gone: ClientAbort, upstream: Upstream): ChargeEvent {
  const { status, headSent: sent, upload, failed, asked, kept } = gone;
  if (!asked) return undelivered('not_asked', false);
  if (status !== undefined && !isUsable(status)) return upstreamFailed(status, false);
  const headSent = sent && isUsable(status);
  if (kept !== undefined) return { kind: 'answer_kept', answer: keptAnswer(kept), headSent };
  if (upload !== 'whole' && status === undefined) return undelivered('upload_broken_off', headSent);
  if (failed && upstream === 'ask') return upstreamFailed(PROBLEMS.upstream_unreachable.status, headSent);
  return undelivered('answer_lost', headSent);
}

/** Event of an upstream that failed. `status` is the one that the client got, or would have got. */
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
