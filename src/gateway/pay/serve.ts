// Serves a claimed charge: settles before the upstream is asked, or when its status line is there and nothing of it has
// reached the client. Nothing is buffered while settling, the upstream's body waits in its socket.
import type { Charge, KeptAnswer } from '../../domain/charge.ts';
import type { ResponseOutcome, Aside, PaidOutcome, ResponseVerdict } from '../outcome.ts';
import type { RailOffer } from '../../domain/payment/way.ts';
import { isCharged } from './charged.ts';
import { deliver, keptAnswer, keptResponse, recordDelivery } from './deliver.ts';
import type { Lease } from './lease.ts';
import {
  demandAnew,
  facilitatorUnavailable,
  ledgerUnavailable,
  paymentInUse,
  refusePayment,
  settlementUnknown,
  type PayDeps,
  type Payment,
  type PayOutcome,
} from './payment.ts';
import { releaseUnsent, retryUntilRecorded, step } from './record.ts';
import { redeem } from './redeem.ts';
import { FIRST_LOOK_MS } from '../../domain/payment/transition.ts';
import { refusedReceipt, settledReceipt, type Receipt, type Refusal } from '../rails/rail.ts';

/** How long a response is waited for that shall be kept with a charge of unknown end. */
const COLLECT_MS = 10_000;

/** A charge that was claimed. `terms`: what was verified. */
export async function serve(deps: PayDeps, payment: Payment, charge: Charge, terms: RailOffer): Promise<PayOutcome> {
  const lease = deps.leases.keep(charge.id);
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

function forwardAndSettle(
  deps: PayDeps,
  payment: Payment,
  charge: Charge,
  terms: RailOffer,
  lease: Lease,
): PaidOutcome {
  const { modes, options, rail } = deps;
  const { payer } = payment.presented.key;
  let phase: { at: 'open' | 'settling' | 'over' } | { at: 'settled'; charge: Charge } = { at: 'open' };
  const release = (reason: string): void => {
    phase = { at: 'over' };
    deps.chargeLog.counted(charge.route.id, 'released', charge.way.network);
    void releaseUnsent(deps, payment, charge, reason).finally(lease.stop);
  };
  const settle = async (): Promise<ResponseVerdict> => {
    phase = { at: 'settling' };
    const collected = isSafe(charge) ? undefined : collector(deps);
    const end = await settleCharge(deps, payment, charge, terms, collected?.answer);
    if (end.kind === 'settled') {
      phase = { at: 'settled', charge: end.charge };
      const receipt = rail.receiptHeader(payment.presented.version, end.receipt);
      return { kind: 'stream', headers: receipt, keep: keptResponse(deps) };
    }
    phase = { at: 'over' };
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
        void recordDelivery(deps, payment, phase.charge, outcome, 'answered').finally(lease.stop);
      if (phase.at !== 'open') return;
      if (outcome.kind === 'client_gone' || outcome.kind === 'not_sent') modes.leftEarly(payer);
      release(outcome.kind === 'failed' ? outcome.code : 'client_gone');
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
  switch (end.kind) {
    case 'refused': {
      chargeLog.counted(route.id, 'refused', network);
      return demandAnew(deps, payment, 'settlement_refused', rail.receiptHeader(presented.version, end.receipt));
    }
    case 'unknown':
      chargeLog.counted(route.id, 'unknown', network);
      return deps.refuse(settlementUnknown(deps, end.charge), facts.origin, route.id);
    case 'left':
      chargeLog.counted(route.id, 'released', network);
      return deps.refuse(
        facilitatorUnavailable(deps, payment, 'settled', undefined, charge.id),
        facts.origin,
        route.id,
      );
    case 'not_carried_out':
      chargeLog.counted(route.id, 'unavailable', network);
      return deps.refuse(
        facilitatorUnavailable(deps, payment, 'settled', end.retryAfterMs, charge.id),
        facts.origin,
        route.id,
      );
    case 'declined':
      return refusePayment(deps, payment, charge.amount, end.refusal);
    case 'lost':
      chargeLog.counted(route.id, 'unavailable', network);
      return deps.refuse(
        end.because === 'ledger' ? ledgerUnavailable(charge.id) : paymentInUse(deps, charge),
        facts.origin,
        route.id,
      );
    default:
      return end satisfies never;
  }
}

// One attempt to settle a claimed charge, and the ways in which it can end. The ledger knows who is asked before anybody is,
// so that a restart knows that a settlement may have been sent; whatever is not certain afterwards stays `settling` until the
// chain or the payer's next request ends it. Nothing is sent for a client that left.

type SettleEnd =
  | { readonly kind: 'settled'; readonly charge: Charge; readonly receipt: Receipt }
  | { readonly kind: 'refused'; readonly receipt: Receipt }
  /** The money may have moved, or may yet. `recorded`: the charge has no owner from then on. */
  | { readonly kind: 'unknown'; readonly charge: Charge; readonly recorded?: Promise<unknown> }
  /** Nothing was sent that could move money, and nothing will be for this request. */
  | { readonly kind: 'not_carried_out'; readonly retryAfterMs: number | undefined }
  /** The same, because no facilitator takes such a payment. */
  | { readonly kind: 'declined'; readonly refusal: Refusal }
  /** The same, because the client left. */
  | { readonly kind: 'left' }
  /** Another request owns the charge by now, or the ledger is away: nothing was sent by us. */
  | { readonly kind: 'lost'; readonly because: 'taken_over' | 'ledger' };

/** `collect`: the upstream's response, which cannot be had twice, to be kept with the charge should its end not be known. */
async function settleCharge(
  deps: PayDeps,
  payment: Payment,
  charge: Charge,
  terms: RailOffer,
  collect?: () => Promise<KeptAnswer | undefined>,
): Promise<SettleEnd> {
  const { rail, log, options } = deps;
  const { presented, facts } = payment;
  let current = charge;
  let stopped: 'left' | 'taken_over' | 'ledger' | undefined;
  const sending = async (via: string): Promise<boolean> => {
    if (facts.left()) stopped = 'left';
    else if (current.state !== 'settling' || (current.attempts === 0 && current.via !== via)) {
      const { leaseMs } = options;
      const started = await step(deps, payment, charge.id, { kind: 'settle_started', via, leaseMs });
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
      const event = { kind: 'settled', proof, leaseMs: options.leaseMs } as const;
      const changeId = deps.newId();
      const settled = await step(deps, payment, charge.id, event, changeId);
      if (settled !== 'unavailable' && settled.kind === 'ok')
        return { kind: 'settled', charge: settled.charge, receipt: settledReceipt(presented.key, amount, transaction) };
      // Settled, and the ledger does not hold it: serving now and again once it is found would be twice.
      log.error('a settlement could not be recorded', { charge_id: charge.id, transaction });
      if (settled === 'unavailable')
        void retryUntilRecorded(deps, payment, charge.id, { ...event, leaseMs: 0 }, changeId);
      return { kind: 'unknown', charge: current };
    }
    case 'refused': {
      const { reason } = end;
      const event = { kind: 'settle_refused', reason } as const;
      const refused = await step(deps, payment, charge.id, event);
      if (refused === 'unavailable') void retryUntilRecorded(deps, payment, charge.id, event);
      if (refused === 'unavailable' || refused.kind !== 'ok') return { kind: 'unknown', charge: current };
      return refused.charge.state === 'failed'
        ? { kind: 'refused', receipt: refusedReceipt(presented.key, charge.amount, reason) }
        : { kind: 'unknown', charge: refused.charge };
    }
    case 'not_carried_out': {
      if (stopped === 'taken_over') return { kind: 'lost', because: 'taken_over' };
      const reason = stopped === 'left' ? 'client_gone' : end.reason;
      if (stopped === 'ledger') {
        void releaseUnsent(deps, payment, charge, reason);
        return { kind: 'lost', because: 'ledger' };
      }
      const event = { kind: current.state === 'claimed' ? 'released' : 'not_carried_out', reason } as const;
      const released = await step(deps, payment, charge.id, event);
      if (released === 'unavailable') void releaseUnsent(deps, payment, charge, reason);
      // An earlier attempt may have moved the money after all.
      if (released !== 'unavailable' && released.kind === 'ok' && released.charge.state === 'settling')
        return { kind: 'unknown', charge: released.charge };
      if (stopped === 'left') return { kind: 'left' };
      if (before) return { kind: 'unknown', charge: current };
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
            await retryUntilRecorded(deps, payment, charge.id, { kind: 'answer_kept', answer, headSent: false });
          await retryUntilRecorded(deps, payment, charge.id, event);
        });
        return { kind: 'unknown', charge: { ...current, attempts: current.attempts + 1 }, recorded };
      }
      const doubted = await step(deps, payment, charge.id, event);
      if (doubted === 'unavailable') void retryUntilRecorded(deps, payment, charge.id, event);
      const known = doubted !== 'unavailable' && doubted.kind === 'ok' ? doubted.charge : current;
      return { kind: 'unknown', charge: known };
    }
    default:
      return end satisfies never;
  }
}
