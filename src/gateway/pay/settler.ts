// Settles a claimed charge of this request: before the upstream is asked, or when its status line is there and nothing of
// it has reached the client. The second way waits for nothing, but the upstream has worked for nothing if the settlement
// fails. So a payment that may fail is settled first. Nothing is buffered meanwhile: the upstream's body waits in its socket.
import { LRUCache } from 'lru-cache';
import type { Charge, KeptAnswer, Receipt } from '../../domain/payment/charge.ts';
import { settlesFirst } from '../../domain/payment/offer.ts';
import { FIRST_LOOK_MS } from '../../domain/payment/transition.ts';
import type { RailOffer } from '../../domain/payment/way.ts';
import type { ChargeAnswer } from '../../domain/payment/whereabouts.ts';
import type { Problem } from '../../domain/problem.ts';
import type { Log } from '../../host/log.ts';
import type { ResponseCollector, PaidOutcome, ResponseOutcome, ResponseVerdict, SeenResponseHead } from '../outcome.ts';
import type { Rail, Refusal } from '../rails/rail.ts';
import { isCharged, type OwnAuthorities } from './charged-responses.ts';
import { grantOf, keptAnswer, type Deliverer } from './deliverer.ts';
import type { Lease, Leases } from './lease.ts';
import type { Payment, PayOutcome, SettleModes } from './payment.ts';
import type { AnsweredSale, PassSale } from './pass-sale.ts';
import type { PaymentResponses } from './payment-responses.ts';
import type { Recorder } from './recorder.ts';
import type { Redeemer } from './redeemer.ts';

/** Dependencies of one attempt to settle. */
type AttemptDeps = {
  readonly rail: Pick<Rail, 'settle' | 'receiptHeader'>;
  readonly recorder: Recorder;
  readonly log: Log;
  readonly leaseMs: number;
};

type SettlerDeps = AttemptDeps & {
  readonly responses: PaymentResponses;
  readonly deliverer: Deliverer;
  readonly redeem: Redeemer;
  readonly leases: Pick<Leases, 'keep'>;
  readonly modes: Pick<SettleModes, 'ranUnpaid' | 'leftEarly'>;
  readonly ownAuthorities: OwnAuthorities;
  /** Passes; undefined: none are sold here. */
  readonly sale: PassSale | undefined;
};

export type Settler = {
  /** Settles a charge of this request. `terms`: what was verified; `since`: the request asked for its claim then. */
  readonly serve: (payment: Payment, charge: Charge, terms: RailOffer, since: number) => Promise<PayOutcome>;
  /** Settles before the upstream is asked: also a charge that was taken over, because its response is not waited for. */
  readonly settleAndForward: (payment: Payment, charge: Charge, terms: RailOffer, lease: Lease) => Promise<PayOutcome>;
  /** Releases a charge because no connection to the upstream can be had. An earlier attempt may have moved the money. */
  readonly notSettled: (payment: Payment, charge: Charge, lease: Lease, detail: string) => Promise<ResponseOutcome>;
};

export function createSettler(deps: SettlerDeps): Settler {
  return {
    serve: (payment, charge, terms, since) => serve(deps, payment, charge, terms, since),
    settleAndForward: (payment, charge, terms, lease) => settleAndForward(deps, payment, charge, terms, lease),
    notSettled: (payment, charge, lease, detail) => notSettled(deps, payment, charge, lease, detail),
  };
}

/** Time that a head and 10 s of settling may take; never less than a minute. */
export function enoughToServeFirst(upstreamHeadersMs: number): number {
  return Math.max(60_000, upstreamHeadersMs + 10_000);
}

const REMEMBERED_MS = 3_600_000;
const REMEMBERED_PAYERS = 10_000;
const LEAVINGS = 3;

type RememberedPayer = { readonly leavings: number; readonly settlesFirst: boolean; readonly until: number };

export function createSettleModes(monotonic: () => number, remembered = REMEMBERED_PAYERS): SettleModes {
  const payers = new LRUCache<string, RememberedPayer>({ maxSize: remembered, sizeCalculation: () => 1 });
  const known = (payer: string): RememberedPayer | undefined => {
    const seen = payers.get(payer);
    return seen !== undefined && seen.until > monotonic() ? seen : undefined;
  };
  const remember = (payer: string, leavings: number, settlesFirst: boolean): void =>
    void payers.set(payer, { leavings, settlesFirst, until: monotonic() + REMEMBERED_MS });
  return {
    modeFor: ({ wanted, method, conditionalWrite, payer, leftMs, enoughMs }) => {
      if (conditionalWrite || leftMs < enoughMs || known(payer)?.settlesFirst === true) return 'before_forward';
      return settlesFirst(wanted, method) ? 'before_forward' : 'before_response';
    },
    ranUnpaid: (payer) => remember(payer, 0, true),
    leftEarly: (payer) => {
      const seen = known(payer);
      if (seen?.settlesFirst === true) return;
      const leavings = (seen?.leavings ?? 0) + 1;
      remember(payer, leavings, leavings >= LEAVINGS);
    },
  };
}

/** Longest wait for a response that shall be kept with a charge of unknown end. */
const COLLECT_MS = 10_000;

async function serve(
  deps: SettlerDeps,
  payment: Payment,
  charge: Charge,
  terms: RailOffer,
  since: number,
): Promise<PayOutcome> {
  const lease = deps.leases.keep(charge.id, since);
  if (!(await lease.holds())) return deps.responses.takenOver(payment, charge, lease);
  return charge.settle === 'before_forward'
    ? settleAndForward(deps, payment, charge, terms, lease)
    : forwardAndSettle(deps, payment, charge, terms, lease);
}

async function settleAndForward(
  deps: SettlerDeps,
  payment: Payment,
  charge: Charge,
  terms: RailOffer,
  lease: Lease,
): Promise<PayOutcome> {
  payment.facts.noteCharge?.(() => deps.responses.unknown(payment, charge));
  const away = await payment.facts.connect();
  if (away !== undefined) return notSettled(deps, payment, charge, lease, away.detail);
  const end = await settleCharge(deps, payment, charge, terms);
  if (end.kind === 'settled' && end.charge.owner === payment.owner) {
    const receipt = deps.rail.receiptHeader(payment.presented.version, end.receipt);
    return end.charge.pass !== null && deps.sale !== undefined
      ? deps.sale.forward(payment, end.charge, receipt, lease)
      : deps.deliverer.deliver(payment, end.charge, receipt, 'ask', lease);
  }
  lease.stop();
  if (end.kind === 'settled') return deps.redeem(payment, end.charge);
  if (end.kind === 'left') return { kind: 'gone', routeId: payment.route.id };
  return unsettled(deps, payment, charge, end);
}

async function notSettled(
  { recorder, responses, log }: SettlerDeps,
  payment: Payment,
  charge: Charge,
  lease: Lease,
  detail: string,
): Promise<ResponseOutcome> {
  log.warn('upstream failed', { request_id: payment.facts.requestId, charge_id: charge.id, detail });
  await recorder.within(recorder.release(payment, charge, 'upstream_unreachable', true).finally(lease.stop));
  return charge.attempts === 0 ? responses.upstreamAway(payment, charge, false) : responses.unknown(payment, charge);
}

function forwardAndSettle(
  deps: SettlerDeps,
  payment: Payment,
  charge: Charge,
  terms: RailOffer,
  lease: Lease,
): PaidOutcome {
  const { modes, ownAuthorities, rail, recorder, responses, deliverer } = deps;
  const { payer } = payment.presented.key;
  const use = charge.pass === null ? undefined : deps.sale?.useOf(payment, charge);
  let phase:
    | { readonly at: 'open' | 'settling' }
    | { readonly at: 'over'; readonly charged: ChargeAnswer }
    | { readonly at: 'settled'; readonly charge: Charge; readonly sold?: AnsweredSale } = { at: 'open' };
  let written: Promise<Charge | undefined> = Promise.resolve(undefined);
  const release = (reason: string, unasked?: true): void => {
    phase = { at: 'over', charged: false };
    recorder.counted(charge.route.id, 'released', charge.way.network);
    written = recorder
      .release(payment, charge, reason, unasked)
      .then(() => undefined)
      .finally(lease.stop);
  };
  const settle = async (head: SeenResponseHead): Promise<ResponseVerdict> => {
    phase = { at: 'settling' };
    const collected = isSafe(charge) ? undefined : collector(deps);
    const end = await settleCharge(deps, payment, charge, terms, collected?.answer);
    if (end.kind === 'settled') {
      if (!(await lease.holds())) {
        phase = { at: 'over', charged: true };
        return { kind: 'replace', response: responses.takenOver(payment, end.charge, lease).response };
      }
      phase = { at: 'settled', charge: end.charge };
      const receipt = rail.receiptHeader(payment.presented.version, end.receipt);
      if (end.charge.pass !== null && deps.sale !== undefined) {
        const sold = await deps.sale.answered(payment, end.charge, lease, { head, use });
        phase = { at: 'settled', charge: end.charge, sold };
        return { ...sold.verdict, headers: [...receipt, ...sold.verdict.headers] };
      }
      return { kind: 'stream', headers: receipt, keep: deliverer.keep() };
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
    grant: grantOf(charge),
    route: payment.route,
    customerId: payment.customerId,
    settles: 'before_response',
    // A client that leaves takes the request with it: it has not paid yet.
    keep: undefined,
    hearer: use?.hearer,
    beforeResponse: (head) => {
      const { status, headers } = head;
      if (isCharged(status, headers, ownAuthorities)) return settle(head);
      // The response costs nothing, so it does not wait for the ledger either.
      release(`upstream_answered_${status}`);
      return { kind: 'stream', headers: [] };
    },
    tookMoney: () => phase.at === 'settled',
    done: (outcome) => {
      use?.done(outcome);
      if (phase.at === 'settled') phase.sold?.done(outcome);
      if (phase.at === 'settled' && phase.charge.pass === null)
        written = deliverer.end(payment, phase.charge, outcome, 'answered').finally(lease.stop);
      if (phase.at !== 'open') return;
      if (outcome.kind === 'client_gone' || outcome.kind === 'not_sent') modes.leftEarly(payer);
      if (outcome.kind === 'failed') release(outcome.code, outcome.asked ? undefined : true);
      else release('client_gone');
    },
    tell: async (given) => {
      const after = await recorder.within(written);
      if (phase.at === 'settled') return responses.state(payment, after ?? phase.charge, true, given);
      return responses.state(payment, charge, phase.at === 'over' ? phase.charged : 'unknown', given);
    },
  };
}

function isSafe({ request: { method } }: Charge): boolean {
  return method === 'GET' || method === 'HEAD';
}

/** Collects the upstream's response while the client gets another one; `answer` resolves with it if it is whole in time. */
function collector({ deliverer, recorder }: SettlerDeps): {
  readonly keep: ResponseCollector;
  readonly answer: () => Promise<KeptAnswer | undefined>;
} {
  const response = deliverer.keep();
  let ended: (whole: boolean) => void = () => undefined;
  const whole = new Promise<boolean>((resolve) => {
    ended = resolve;
  });
  return {
    keep: { response, ended },
    answer: async () => {
      const inTime = await recorder.within(whole, COLLECT_MS);
      const answer = inTime === true && response.isKept ? keptAnswer(response) : undefined;
      response.drop();
      return answer;
    },
  };
}

/** Tells the client that the settlement did not end well. */
function unsettled(
  { rail, recorder, responses }: SettlerDeps,
  payment: Payment,
  charge: Charge,
  end: Exclude<SettleEnd, { kind: 'settled' }>,
): ResponseOutcome {
  const { route, presented, offer } = payment;
  const { network } = charge.way;
  const told = (charged: ChargeAnswer, problem: Problem): ResponseOutcome =>
    responses.refuseCharged(payment, charge, charged, problem);
  switch (end.kind) {
    case 'refused': {
      recorder.counted(route.id, 'refused', network);
      if ('code' in offer) return told(false, offer);
      return responses.demandAnew(payment, 'settlement_refused', rail.receiptHeader(presented.version, end.receipt));
    }
    case 'unknown':
      return responses.unknown(payment, end.charge);
    case 'left':
      recorder.counted(route.id, 'released', network);
      return told(false, responses.facilitatorsAway(payment, 'settled', undefined));
    case 'not_carried_out':
      recorder.counted(route.id, 'unavailable', network);
      return told(false, responses.facilitatorsAway(payment, 'settled', end.retryAfterMs));
    case 'declined':
      if ('code' in offer) return told(false, offer);
      return responses.refusePayment(payment, charge.amount, end.refusal);
    case 'lost':
      return responses.lost(payment, charge, end.because);
    default:
      return end satisfies never;
  }
}

// One attempt to settle a claimed charge, and its possible ends. The ledger knows which facilitator is asked before it
// is asked. So a restart knows that a settlement may have been sent. A charge without a certain end stays `settling`,
// until the chain or the payer's next request ends it. Nothing is sent for a client that left.

type SettleEnd =
  | { readonly kind: 'settled'; readonly charge: Charge; readonly receipt: Receipt }
  | { readonly kind: 'refused'; readonly receipt: Receipt }
  /** The money may have moved, or may yet. `recorded`: the charge has no owner from then on. */
  | { readonly kind: 'unknown'; readonly charge: Charge; readonly recorded?: Promise<unknown> }
  /** No request that could move money was sent, and none will be for this request. */
  | { readonly kind: 'not_carried_out'; readonly retryAfterMs: number | undefined }
  /** No facilitator takes such a payment: nothing was sent. */
  | { readonly kind: 'declined'; readonly refusal: Refusal }
  /** The client left: nothing was sent. */
  | { readonly kind: 'left' }
  /** Loss of the charge: another request owns it by now, or the ledger is away. We sent nothing. */
  | { readonly kind: 'lost'; readonly because: 'taken_over' | 'ledger' };

/**
 * Settles a charge. `collect` gets the upstream's response, which cannot be had twice, to be kept with the charge if
 * its end is not known.
 */
async function settleCharge(
  { rail, recorder, log, leaseMs }: AttemptDeps,
  payment: Payment,
  charge: Charge,
  terms: RailOffer,
  collect?: () => Promise<KeptAnswer | undefined>,
): Promise<SettleEnd> {
  const { presented, facts } = payment;
  let current = charge;
  let stopped: 'left' | 'taken_over' | 'ledger' | undefined;
  const sending = async (via: string): Promise<boolean> => {
    if (facts.left()) stopped = 'left';
    else if (current.state !== 'settling' || (current.attempts === 0 && current.via !== via)) {
      const started = await recorder.changeTwice(payment, charge.id, { kind: 'settle_started', via, leaseMs });
      if (started === 'unavailable') stopped = 'ledger';
      else if (started.kind !== 'ok') stopped = 'taken_over';
      else {
        current = started.charge;
        if (facts.left()) stopped = 'left';
      }
    }
    return stopped === undefined;
  };

  const before = charge.attempts > 0;
  const history = { afterUnknown: before, via: before ? (charge.via ?? undefined) : undefined };
  const end = await rail.settle(presented, terms, history, sending);
  switch (end.kind) {
    case 'settled': {
      const { transaction } = end;
      const { amount } = charge;
      const proof = { transaction, logIndex: null, amount, payer: presented.key.payer };
      const event = { kind: 'settled', proof, leaseMs } as const;
      const changeId = recorder.newId();
      const settled = await recorder.changeTwice(payment, charge.id, event, changeId);
      if (settled !== 'unavailable' && settled.kind === 'ok')
        return {
          kind: 'settled',
          charge: settled.charge,
          receipt: { payment: presented.key, amount, transaction, reason: undefined },
        };
      // The ledger does not hold this settlement. Serving now would serve twice once the ledger finds it.
      log.error('a settlement could not be recorded', { charge_id: charge.id, transaction });
      if (settled === 'unavailable')
        void recorder.changeUntilWritten(payment, charge.id, { ...event, leaseMs: 0 }, changeId);
      return { kind: 'unknown', charge: current };
    }
    case 'refused': {
      const { reason } = end;
      const event = { kind: 'settle_refused', reason } as const;
      const refused = await recorder.changeTwice(payment, charge.id, event);
      if (refused === 'unavailable') void recorder.changeUntilWritten(payment, charge.id, event);
      if (refused === 'unavailable' || refused.kind !== 'ok') return { kind: 'unknown', charge: current };
      return refused.charge.state === 'failed'
        ? { kind: 'refused', receipt: { payment: presented.key, amount: charge.amount, transaction: '', reason } }
        : { kind: 'unknown', charge: refused.charge };
    }
    case 'not_carried_out': {
      if (stopped === 'taken_over') return { kind: 'lost', because: 'taken_over' };
      const reason = stopped === 'left' ? 'client_gone' : end.reason;
      if (stopped === 'ledger') {
        void recorder.release(payment, charge, reason);
        return { kind: 'lost', because: 'ledger' };
      }
      const event = { kind: current.state === 'claimed' ? 'released' : 'not_carried_out', reason } as const;
      const released = await recorder.changeTwice(payment, charge.id, event);
      if (released === 'unavailable') void recorder.release(payment, charge, reason);
      // An earlier attempt may have moved the money after all.
      if (released !== 'unavailable' && released.kind === 'ok' && released.charge.state === 'settling')
        return { kind: 'unknown', charge: released.charge };
      if (before) return { kind: 'unknown', charge: current };
      if (stopped === 'left') return { kind: 'left' };
      return end.declined === undefined
        ? { kind: 'not_carried_out', retryAfterMs: end.retryAfterMs }
        : { kind: 'declined', refusal: end.declined };
    }
    case 'unknown': {
      const { reason, detail } = end;
      log.warn('a settlement has an unknown end', { charge_id: charge.id, reason, detail });
      const event = { kind: 'settle_unknown', reason, lookInMs: FIRST_LOOK_MS } as const;
      if (collect !== undefined) {
        const recorded = collect().then(async (answer) => {
          if (answer !== undefined)
            await recorder.changeUntilWritten(payment, charge.id, { kind: 'answer_kept', answer, headSent: false });
          await recorder.changeUntilWritten(payment, charge.id, event);
        });
        return { kind: 'unknown', charge: { ...current, attempts: current.attempts + 1 }, recorded };
      }
      const doubted = await recorder.changeTwice(payment, charge.id, event);
      if (doubted === 'unavailable') void recorder.changeUntilWritten(payment, charge.id, event);
      const known = doubted !== 'unavailable' && doubted.kind === 'ok' ? doubted.charge : current;
      return { kind: 'unknown', charge: known };
    }
    default:
      return end satisfies never;
  }
}
