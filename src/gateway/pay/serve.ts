// Serves a claimed charge: settles before the upstream is asked, or when its status line is there and nothing of it has
// reached the client; and tells the ledger what became of the answer. Nothing is buffered while settling, the upstream's
// body waits in its socket. CONTRACT section 6, rules 5, 6 and 8.
import { LRUCache } from 'lru-cache';
import type { Charge, Claim } from '../../domain/charge.ts';
import type { Receiver } from '../../domain/receiver.ts';
import type { ChargeEvent } from '../../domain/transition.ts';
import type { AnswerOutcome, PaidOutcome } from '../collect.ts';
import type { ForwardOutcome, ResponseVerdict } from '../forward-order.ts';
import { keepLease } from './lease.ts';
import { ledgerUnavailable, paymentProblem, settlementUnknown, type PayDeps, type Payment } from './payment.ts';
import { settleCharge, type SettleEnd } from './settle.ts';

export type SettleMode = Claim['settle'];

export type SettleModes = {
  readonly modeFor: (receiver: Receiver, method: string, payer: string) => SettleMode;
  /** A settlement was refused after the upstream had run for this payer. */
  readonly distrust: (payer: string) => void;
};

const DISTRUST_MS = 3_600_000;
const DISTRUSTED_PAYERS = 10_000;

/** `auto`: GET and HEAD settle before the response, every other method before it is forwarded, because its effect is the service. */
export function createSettleModes(now: () => number, remembered = DISTRUSTED_PAYERS): SettleModes {
  const distrusted = new LRUCache<string, number>({ max: remembered });
  return {
    modeFor: (receiver, method, payer) => {
      if ((distrusted.get(payer) ?? 0) > now()) return 'before_forward';
      if (receiver.settle !== 'auto') return receiver.settle;
      return method === 'GET' || method === 'HEAD' ? 'before_response' : 'before_forward';
    },
    distrust: (payer) => void distrusted.set(payer, now() + DISTRUST_MS),
  };
}

export function createServe(
  deps: PayDeps,
  modes: SettleModes,
): (payment: Payment, charge: Charge) => Promise<AnswerOutcome | PaidOutcome> {
  const { rail, options } = deps;

  const receiptHeader = (payment: Payment, end: Extract<SettleEnd, { receipt: unknown }>): readonly string[] =>
    rail.receiptHeader(payment.presented.version, end.receipt);

  /** What a client is told where the settlement did not end well. */
  const unsettled = (payment: Payment, charge: Charge, end: Exclude<SettleEnd, { kind: 'settled' }>): AnswerOutcome => {
    const { offer, asked } = payment;
    const routeId = offer.route.id;
    switch (end.kind) {
      case 'refused':
        deps.chargeLog.counted(routeId, 'refused');
        return deps.demand(offer, 'settlement_refused', asked, receiptHeader(payment, end));
      case 'unknown':
        deps.chargeLog.counted(routeId, 'unknown');
        return deps.refuse(settlementUnknown(charge.id), asked.origin, routeId);
      case 'lost':
        deps.chargeLog.counted(routeId, 'unavailable');
        return deps.refuse(
          end.because === 'ledger'
            ? ledgerUnavailable(charge.id)
            : paymentProblem(
                'payment_in_use',
                'This payment took too long and was given up; nothing was charged by this request. Send it again.',
                charge.id,
              ),
          asked.origin,
          routeId,
        );
      default:
        return end satisfies never;
    }
  };

  const beforeForward = async (payment: Payment, charge: Charge): Promise<AnswerOutcome | PaidOutcome> => {
    const end = await settleCharge(deps, payment, charge);
    if (end.kind !== 'settled') return unsettled(payment, charge, end);
    return deliver(deps, payment, end.charge, receiptHeader(payment, end), 'ask');
  };

  const beforeResponse = (payment: Payment, charge: Charge): PaidOutcome => {
    const { owner } = payment;
    const lease = keepLease(deps, charge.id, { owner }, options.leaseMs);
    let settled: Charge | undefined;
    let open = true;
    const release = async (reason: string): Promise<void> => {
      open = false;
      await insist(deps, payment, charge.id, { kind: 'released', reason });
      deps.chargeLog.counted(charge.route.id, 'released');
    };
    return {
      kind: 'paid',
      charge,
      route: payment.offer.route,
      customerId: payment.customerId,
      // Not paid yet: a client that leaves takes the request with it.
      keepBytes: undefined,
      beforeResponse: async ({ status, headers }): Promise<ResponseVerdict> => {
        if (!isCharged(status, headers, payment)) {
          await release(`upstream_answered_${status}`);
          return { kind: 'stream', headers: [] };
        }
        const end = await settleCharge(deps, payment, charge);
        open = false;
        if (end.kind === 'settled') {
          settled = end.charge;
          return { kind: 'stream', headers: receiptHeader(payment, end), keepBytes: options.keepResponseBytes };
        }
        if (end.kind === 'refused') modes.distrust(payment.presented.key.payer);
        return { kind: 'replace', answer: unsettled(payment, charge, end).answer };
      },
      done: (outcome) => {
        lease.stop();
        if (settled !== undefined) void recordDelivery(deps, payment, settled, outcome, 'answered');
        else if (open) void release(outcome.kind === 'failed' ? outcome.code : 'client_gone');
      },
    };
  };

  return async (payment, charge) =>
    charge.settle === 'before_forward' ? beforeForward(payment, charge) : beforeResponse(payment, charge);
}

/** Forwards for a charge that is settled: first time in `before_forward`, or when its payer fetches a lost answer. */
export function deliver(
  deps: PayDeps,
  payment: Payment,
  charge: Charge,
  receipt: readonly string[],
  upstream: 'ask' | 'answered',
): PaidOutcome {
  const lease = keepLease(deps, charge.id, { owner: payment.owner }, deps.options.leaseMs);
  return {
    kind: 'paid',
    charge,
    route: payment.offer.route,
    customerId: payment.customerId,
    keepBytes: deps.options.keepResponseBytes,
    beforeResponse: async () => ({ kind: 'stream', headers: receipt }),
    done: (outcome) => {
      lease.stop();
      void recordDelivery(deps, payment, charge, outcome, upstream);
    },
  };
}

/** What becomes of a settled charge. `upstream`: whether a failure now means that it never gave an answer at all. */
async function recordDelivery(
  deps: PayDeps,
  payment: Payment,
  charge: Charge,
  outcome: ForwardOutcome,
  upstream: 'ask' | 'answered',
): Promise<void> {
  const event = deliveryEvent(outcome, upstream);
  deps.chargeLog.counted(charge.route.id, event.kind === 'delivered' ? 'delivered' : 'settled_undelivered');
  await insist(deps, payment, charge.id, event);
}

function deliveryEvent(outcome: ForwardOutcome, upstream: 'ask' | 'answered'): ChargeEvent {
  switch (outcome.kind) {
    case 'delivered':
      return isUsable(outcome.status) ? { kind: 'delivered' } : { kind: 'undelivered', because: 'upstream_failed' };
    case 'replaced':
      return { kind: 'undelivered', because: 'upstream_failed' };
    case 'client_gone':
      if (outcome.status !== undefined && !isUsable(outcome.status))
        return { kind: 'undelivered', because: 'upstream_failed' };
      if (outcome.kept !== undefined) return { kind: 'answer_kept', answer: keptAnswer(outcome.kept) };
      return {
        kind: 'undelivered',
        because: upstream === 'ask' && outcome.status === undefined ? 'upstream_failed' : 'answer_lost',
      };
    case 'failed':
      return { kind: 'undelivered', because: 'upstream_failed' };
    default:
      return outcome satisfies never;
  }
}

/** A server error is none, also where the upstream is asked once more: the payer may ask again without paying again. */
function isUsable(status: number): boolean {
  return status < 500;
}

function keptAnswer({ status, headers, body }: NonNullable<Extract<ForwardOutcome, { kind: 'client_gone' }>['kept']>): {
  status: number;
  headers: readonly string[];
  body: Uint8Array;
} {
  return { status, headers, body: typeof body === 'string' ? Buffer.from(body) : body };
}

/** Charged: 2xx, 101, and a redirect that leads away from this API. */
function isCharged(status: number, headers: readonly string[], { asked }: Payment): boolean {
  if (status === 101 || (status >= 200 && status < 300)) return true;
  if (status < 300 || status >= 400) return false;
  const at = headers.findIndex((name, i) => i % 2 === 0 && name.toLowerCase() === 'location');
  const location = headers[at + 1];
  if (at < 0 || location === undefined) return false;
  const here = asked.publicOrigin;
  if (!URL.canParse(location, here)) return false;
  const { origin } = new URL(location, here);
  return origin !== new URL(here).origin && !asked.ownOrigins.includes(origin);
}

const INSIST_MS = [100, 500, 2_000, 10_000, 30_000];

/** A change that must not be lost over a passing fault of the ledger; given up in the end, when the lease decides. */
export async function insist(deps: PayDeps, payment: Payment, id: string, event: ChargeEvent): Promise<void> {
  const { ledger, log, newId } = deps;
  const actor = { owner: payment.owner, changeId: newId() };
  for (const pauseMs of [...INSIST_MS, undefined]) {
    try {
      const advanced = await ledger.advance(id, event, actor);
      if (advanced.kind === 'ok') deps.chargeLog.changed(advanced.charge);
      else log.warn('a charge is not ours any more', { charge_id: id, event: event.kind, because: advanced.because });
      return;
    } catch (error) {
      log.error('the ledger is unavailable', { charge_id: id, event: event.kind, error });
    }
    if (pauseMs !== undefined) await deps.pause(pauseMs);
  }
}
