// Serves a charge of this request, and tells the ledger what became of the response. A claimed charge is settled before the
// upstream is asked, or when its status line is there and nothing of it has reached the client. Nothing is buffered
// meanwhile: the upstream's body waits in its socket. A settled charge is delivered, kept for a client that went first, or
// the ledger is told why it did not arrive. That decides how often the upstream may be asked again.
import type { Charge, KeptAnswer } from '../../domain/payment/charge.ts';
import { pauseLeft } from '../../domain/payment/claim-policy.ts';
import type { ChargeEvent } from '../../domain/payment/transition.ts';
import { chargedOf, type Charged } from '../../domain/payment/whereabouts.ts';
import { PROBLEMS, type Problem } from '../../domain/problem.ts';
import type { ClientGone, End } from '../telemetry.ts';
import type { PaidOutcome, ResponseOutcome, Aside, ResponseVerdict } from '../outcome.ts';
import { KeptResponse } from './memory.ts';
import { type Lease, retryUntilRecorded, releaseUnsent } from './record.ts';
import {
  whatIsShown,
  type PayDeps,
  type Payment,
  networkOf,
  paymentInUse,
  receiptOf,
  type PayOutcome,
  demandAnew,
  facilitatorUnavailable,
  ledgerUnavailable,
  refusePayment,
  settlementUnknown,
} from './payment.ts';
import { alreadyPaid, stateMoney, upstreamAway, upstreamPaused } from './statement.ts';
import type { RailOffer } from '../../domain/payment/way.ts';
import { isCharged, settleCharge, type SettleEnd } from './settle.ts';

/** How long a response is waited for that shall be kept with a charge of unknown end. */
const COLLECT_MS = 10_000;
/** How long a problem is held back until the ledger has what it says. */
const WRITTEN_MS = 2_000;

/** A charge that was claimed. `terms`: what was verified; `since`: this request asked for it then. */
export async function serve(
  deps: PayDeps,
  payment: Payment,
  charge: Charge,
  terms: RailOffer,
  since: number,
): Promise<PayOutcome> {
  const lease = deps.leases.keep(charge.id, since);
  if (!(await lease.holds())) return takenOver(deps, payment, charge, lease);
  return charge.settle === 'before_forward'
    ? settleAndForward(deps, payment, charge, terms, lease)
    : forwardAndSettle(deps, payment, charge, terms, lease);
}

/** Also for a charge that was taken over: what an upstream answered before is nothing that could be waited for. */
export async function settleAndForward(
  deps: PayDeps,
  payment: Payment,
  charge: Charge,
  terms: RailOffer,
  lease: Lease,
): Promise<PayOutcome> {
  const away = await payment.facts.connect();
  if (away !== undefined) return notSettled(deps, payment, charge, lease, away.detail);
  const end = await settleCharge(deps, payment, charge, terms);
  if (end.kind === 'settled' && end.charge.owner === payment.owner) {
    const receipt = deps.rail.receiptHeader(payment.presented.version, end.receipt);
    return deliver(deps, payment, end.charge, receipt, 'ask', lease);
  }
  lease.stop();
  if (end.kind === 'settled') return redeem(deps, payment, end.charge);
  if (end.kind === 'left') return { kind: 'gone', routeId: payment.route.id };
  return unsettled(deps, payment, charge, end);
}

/** No connection to the upstream can be had, so nothing is settled. An earlier attempt may have moved the money. */
export async function notSettled(
  deps: PayDeps,
  payment: Payment,
  charge: Charge,
  lease: Lease,
  detail: string,
): Promise<ResponseOutcome> {
  const { facts, route } = payment;
  deps.log.warn('upstream failed', { request_id: facts.requestId, charge_id: charge.id, detail });
  await within(deps, releaseUnsent(deps, payment, charge, 'upstream_unreachable', true).finally(lease.stop));
  if (charge.attempts === 0) return upstreamAway(deps, payment, charge, false);
  deps.chargeLog.counted(route.id, 'unknown', charge.way.network);
  return deps.refuse(stateMoney(deps, payment, charge, 'unknown', settlementUnknown(charge)), facts.origin, route.id);
}

/** What `written` resolves with, or undefined after a while: then the ledger is away. */
function within<T>({ pause }: PayDeps, written: Promise<T>): Promise<T | undefined> {
  return Promise.race([written, pause(WRITTEN_MS).then(() => undefined)]);
}

function forwardAndSettle(
  deps: PayDeps,
  payment: Payment,
  charge: Charge,
  terms: RailOffer,
  lease: Lease,
): PaidOutcome {
  const { modes, options, rail } = deps;
  const { payer } = payment.presented.key;
  let phase:
    | { readonly at: 'open' | 'settling' }
    | { readonly at: 'over'; readonly charged: Charged }
    | { readonly at: 'settled'; readonly charge: Charge } = { at: 'open' };
  let written: Promise<Charge | undefined> = Promise.resolve(undefined);
  const release = (reason: string, unasked?: true): void => {
    phase = { at: 'over', charged: false };
    deps.chargeLog.counted(charge.route.id, 'released', charge.way.network);
    written = releaseUnsent(deps, payment, charge, reason, unasked)
      .then(() => undefined)
      .finally(lease.stop);
  };
  const settle = async (): Promise<ResponseVerdict> => {
    phase = { at: 'settling' };
    const collected = isSafe(charge) ? undefined : collector(deps);
    const end = await settleCharge(deps, payment, charge, terms, collected?.answer);
    if (end.kind === 'settled') {
      if (!(await lease.holds())) {
        phase = { at: 'over', charged: true };
        return { kind: 'replace', response: takenOver(deps, payment, end.charge, lease).response };
      }
      phase = { at: 'settled', charge: end.charge };
      const receipt = rail.receiptHeader(payment.presented.version, end.receipt);
      return { kind: 'stream', headers: receipt, keep: keptResponse(deps) };
    }
    phase = { at: 'over', charged: end.kind === 'unknown' || end.kind === 'lost' ? 'unknown' : false };
    if (end.kind !== 'unknown' && end.kind !== 'lost') modes.ranUnpaid(payer);
    const recorded = end.kind === 'unknown' ? end.recorded : undefined;
    void Promise.resolve(recorded).finally(lease.stop);
    const { response } = unsettled(deps, payment, charge, end);
    return recorded === undefined || collected === undefined
      ? { kind: 'replace', response }
      : { kind: 'replace', response, keep: collected.keep };
  };
  return {
    kind: 'paid',
    charge,
    route: payment.route,
    customerId: payment.customerId,
    settles: 'before_response',
    // Not paid yet: a client that leaves takes the request with it.
    keep: undefined,
    beforeResponse: ({ status, headers }) => {
      if (isCharged(status, headers, options.ownAuthorities)) return settle();
      // The response costs nothing, so it does not wait for the ledger either.
      release(`upstream_answered_${status}`);
      return { kind: 'stream', headers: [] };
    },
    tookMoney: () => phase.at === 'settled',
    done: (outcome) => {
      if (phase.at === 'settled')
        written = recordDelivery(deps, payment, phase.charge, outcome, 'answered').finally(lease.stop);
      if (phase.at !== 'open') return;
      if (outcome.kind === 'client_gone' || outcome.kind === 'not_sent') modes.leftEarly(payer);
      if (outcome.kind === 'failed') release(outcome.code, outcome.asked ? undefined : true);
      else release('client_gone');
    },
    tell: async (given) => {
      const after = await within(deps, written);
      if (phase.at === 'settled') return stateMoney(deps, payment, after ?? phase.charge, true, given);
      return stateMoney(deps, payment, charge, phase.at === 'over' ? phase.charged : 'unknown', given);
    },
  };
}

function isSafe({ request: { method } }: Charge): boolean {
  return method === 'GET' || method === 'HEAD';
}

/** Where the exchange reads the response of a replaced one into, and the promise of it. */
function collector(deps: PayDeps): {
  readonly keep: Aside;
  readonly answer: () => Promise<KeptAnswer | undefined>;
} {
  const response = keptResponse(deps);
  let ended: (whole: boolean) => void = () => undefined;
  const whole = new Promise<boolean>((resolve) => {
    ended = resolve;
  });
  return {
    keep: { response, ended },
    answer: async () => {
      const inTime = await Promise.race([whole, deps.pause(COLLECT_MS).then(() => false)]);
      const answer = inTime && response.isKept ? keptAnswer(response) : undefined;
      response.drop();
      return answer;
    },
  };
}

/** What a client is told if the settlement did not end well. */
function unsettled(
  deps: PayDeps,
  payment: Payment,
  charge: Charge,
  end: Exclude<SettleEnd, { kind: 'settled' }>,
): ResponseOutcome {
  const { facts, route, presented } = payment;
  const { rail, chargeLog } = deps;
  const { network } = charge.way;
  const told = (charged: Charged, problem: Problem): ResponseOutcome =>
    deps.refuse(
      stateMoney(deps, payment, end.kind === 'unknown' ? end.charge : charge, charged, problem),
      facts.origin,
      route.id,
    );
  switch (end.kind) {
    case 'refused': {
      chargeLog.counted(route.id, 'refused', network);
      if ('code' in payment.offer) return told(false, payment.offer);
      return demandAnew(deps, payment, 'settlement_refused', rail.receiptHeader(presented.version, end.receipt));
    }
    case 'unknown':
      chargeLog.counted(route.id, 'unknown', network);
      return told('unknown', settlementUnknown(end.charge));
    case 'left':
      chargeLog.counted(route.id, 'released', network);
      return told(false, facilitatorUnavailable(deps, payment, 'settled', undefined));
    case 'not_carried_out':
      chargeLog.counted(route.id, 'unavailable', network);
      return told(false, facilitatorUnavailable(deps, payment, 'settled', end.retryAfterMs));
    case 'declined':
      if ('code' in payment.offer) return told(false, payment.offer);
      return refusePayment(deps, payment, charge.amount, end.refusal);
    case 'lost':
      chargeLog.counted(route.id, 'unavailable', network);
      if (end.because !== 'ledger') return told('unknown', paymentInUse(deps, charge));
      return told(charge.attempts === 0 ? false : 'unknown', ledgerUnavailable());
    default:
      return end satisfies never;
  }
}

/** `ask`: this time the upstream's response is the one that was paid for; `answered`: it gave one before. */
type Upstream = 'ask' | 'answered';

async function deliver(
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
    charge,
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

/** This process stood still, or the ledger was away, for longer than the lease: another request may be answered by now. */
function takenOver(deps: PayDeps, payment: Payment, charge: Charge, lease: Lease): ResponseOutcome {
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

function keptResponse({ responses, options }: PayDeps): KeptResponse {
  return new KeptResponse(responses.memory, options.keepResponseBytes);
}

/** What becomes of a settled charge. */
async function recordDelivery(
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
    deps.responses.replays.remember(whatIsShown(payment), again, of);
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

function keptAnswer(kept: KeptResponse): KeptAnswer {
  const { status, headers, body } = kept.response();
  return { status, headers, body: typeof body === 'string' ? Buffer.from(body) : body };
}

// Fetches what was paid for and did not arrive, without a second charge: the kept answer is replayed as it was, or the
// upstream is asked once more. A request gets here only with the identical credential for the very same thing
// (domain/payment/claim-policy). The ledger lets one request at a time through.

export async function redeem(deps: PayDeps, payment: Payment, charge: Charge): Promise<PayOutcome> {
  const { ledger, rail, newId, options, chargeLog } = deps;
  const { facts, owner, presented, route } = payment;
  if (pauseLeft(charge, ledger.now()) > 0) return upstreamPaused(deps, payment, charge);
  const away = charge.answer === null ? await facts.connect() : undefined;
  if (away !== undefined) {
    deps.log.warn('upstream failed', { request_id: facts.requestId, charge_id: charge.id, detail: away.detail });
    return upstreamAway(deps, payment, charge, true);
  }
  const event = { kind: 'redeem_started', request: whatIsShown(payment), leaseMs: options.leaseMs } as const;
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
  if (kept.isKept) replays.remember(whatIsShown(payment), kept, { chargeId: charge.id, routeId: charge.route.id });
}
