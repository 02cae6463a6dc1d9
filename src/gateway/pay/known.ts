// Answers a payment by what the ledger knows of it: taken over, redeemed, or refused. If that leaves room for a claim, the
// payment goes on.
import type { Charge } from '../../domain/payment/charge.ts';
import { paymentStatus, type Claimed, type PaymentStatus } from '../../domain/payment/claim-policy.ts';
import type { ResponseOutcome } from '../outcome.ts';
import {
  demandAnew,
  networkOf,
  paymentProblem,
  type PayDeps,
  type Payment,
  type PayOutcome,
  settlementUnknown,
} from './payment.ts';
import { inUse } from './deliver.ts';
import { redeem } from './redeem.ts';
import { notSettled, settleAndForward } from './settle.ts';
import { alreadyPaid, stateMoney } from './statement.ts';
import { describeRoute } from '../../domain/routing/route.ts';
import { FIRST_LOOK_MS, type ChargeEvent } from '../../domain/payment/transition.ts';
import type { RailOffer } from '../../domain/payment/way.ts';
import type { Look } from '../rails/rail.ts';
import type { Lease } from './lease.ts';
import { endOf, retryUntilRecorded, step } from './record.ts';

const UNSETTLED_SECONDS = 2;

/** Undefined if another claim may be made for the payment. */
export async function answerKnown(deps: PayDeps, payment: Payment): Promise<PayOutcome | undefined> {
  const { key } = payment.presented;
  const known = await deps.ledger.find(key);
  if (known === undefined) return undefined;
  deps.seenPayments.add(key);
  const status = paymentStatus(known, payment.shown, deps.ledger.now());
  return status === 'claimable' ? undefined : answerTaken(deps, payment, status, known);
}

/** A payment that was released and is used up all the same was perhaps paid to us. */
export async function isReleased({ ledger }: PayDeps, payment: Payment): Promise<boolean> {
  const known = await ledger.find(payment.presented.key);
  return known?.state === 'released' && paymentStatus(known, payment.shown, ledger.now()) === 'claimable';
}

/** The ledger did not take the claim. */
export function answerNotClaimed(
  deps: PayDeps,
  payment: Payment,
  claimed: Exclude<Claimed, { kind: 'claimed' }>,
): Promise<PayOutcome> | ResponseOutcome {
  const { route, facts } = payment;
  switch (claimed.kind) {
    case 'quote_already_used':
      deps.chargeLog.counted(route.id, 'already_used', networkOf(payment));
      return demandAnew(deps, payment, 'quote_already_used');
    case 'too_many_unsettled':
      return deps.refuse(
        paymentProblem(
          'too_many_unsettled',
          'This payer has too many payments that are not settled yet; nothing was charged. Try again later.',
          { retryAfter: UNSETTLED_SECONDS, members: { charged: false } },
        ),
        facts.origin,
        route.id,
      );
    case 'in_use':
    case 'unfinished':
    case 'spent':
    case 'redeemable':
    case 'already_paid':
      return answerTaken(deps, payment, claimed.kind, claimed.charge);
    default:
      return claimed satisfies never;
  }
}

/** `charge`: as the ledger has it; undefined if another spelling of the payment is being verified. */
export async function answerTaken(
  deps: PayDeps,
  payment: Payment,
  status: Exclude<PaymentStatus, 'claimable'>,
  charge: Charge | undefined,
): Promise<PayOutcome> {
  const { route } = payment;
  if (charge === undefined || status === 'in_use') return inUse(deps, payment, charge);
  switch (status) {
    case 'unfinished':
      return resume(deps, payment, charge);
    case 'spent':
      deps.chargeLog.counted(route.id, 'already_used', charge.way.network);
      return demandAnew(deps, payment, 'payment_already_used');
    case 'redeemable':
      return redeem(deps, payment, charge);
    case 'already_paid':
      return alreadyPaid(deps, payment, charge);
    default:
      return status satisfies never;
  }
}

// Takes over a payment whose settlement has no certain end, for the payer who asks again. If the chain proves it, it is
// served. If it is used up and not proven yet, it stays unknown. Else it is settled again, which moves the money once
// at most.

async function resume(deps: PayDeps, payment: Payment, charge: Charge): Promise<PayOutcome> {
  const { ledger, options, chargeLog, newId } = deps;
  const { owner } = payment;
  const event = { kind: 'taken_over', leaseMs: options.leaseMs } as const;
  const since = deps.clock.monotonic();
  const taken = await ledger.advance(charge.id, event, { owner, changeId: newId() });
  if (taken.kind !== 'ok') {
    // The reconciler may have found its end in this moment.
    if (taken.charge?.state === 'settled') return redeem(deps, payment, taken.charge);
    return inUse(deps, payment, taken.charge);
  }
  chargeLog.changed(taken.charge, event.kind);
  return lookFirst(deps, payment, taken.charge, since);
}

/** Goes on with a `settling` charge that may have been paid already. `since`: this request asked for it then. */
export async function lookFirst(deps: PayDeps, payment: Payment, charge: Charge, since: number): Promise<PayOutcome> {
  const lease = deps.leases.keep(charge.id, since);
  try {
    return await goOn(deps, payment, charge, lease);
  } catch (error) {
    lease.stop();
    throw error;
  }
}

async function goOn(deps: PayDeps, payment: Payment, charge: Charge, lease: Lease): Promise<PayOutcome> {
  const { rail, chargeLog, modes } = deps;
  const seen = await rail.look(charge, 'payer');
  if (seen.end !== undefined) void writeLook(deps, charge, seen.end);
  const end = endOf(seen);
  switch (end?.kind) {
    case 'settled': {
      const settled = await step(deps, payment, charge.id, end);
      lease.stop();
      if (settled === 'unavailable' || settled.kind !== 'ok') return unknown(deps, payment, charge);
      return redeem(deps, payment, settled.charge);
    }
    case 'failed':
      await retryUntilRecorded(deps, payment, charge.id, end);
      lease.stop();
      if (charge.settle === 'before_response') modes.ranUnpaid(charge.payment.payer);
      chargeLog.counted(payment.route.id, 'already_used', charge.way.network);
      return demandAnew(deps, payment, 'payment_already_used');
    case undefined: {
      const search = seen.kind === 'open' ? seen.search : null;
      const terms = seen.kind === 'open' && seen.used ? undefined : termsOf(deps, payment, charge);
      const away = terms === undefined ? undefined : await payment.facts.connect();
      // Used up before this claim, and by what is not known: it may have been paid to us.
      const isOpen = charge.attempts > 0 || seen.kind === 'open';
      if (away !== undefined && isOpen) {
        if (search !== null) void writeLook(deps, charge, Promise.resolve(seen));
        return notSettled(deps, payment, charge, lease, away.detail);
      }
      if (terms !== undefined && away === undefined) {
        if (search !== null) void writeLook(deps, charge, Promise.resolve(seen));
        return settleAndForward(deps, payment, charge, terms, lease);
      }
      const reason = seen.kind === 'open' ? 'payment_used' : 'chain_unavailable';
      const event: ChargeEvent = { kind: 'settle_unknown', reason, lookInMs: FIRST_LOOK_MS, search };
      const doubted = await retryUntilRecorded(deps, payment, charge.id, event);
      lease.stop();
      return unknown(deps, payment, doubted ?? charge);
    }
    default:
      return end satisfies never;
  }
}

/** For a request that has the charge meanwhile, and gives it up when its own time is over. */
const WRITE_PAUSE_MS = 2_000;
const WRITE_TRIES = 15;

/** For a search: only a ledger of an older version does not take it beside a request that has the charge. */
const SEARCH_TRIES = 3;

/**
 * Writes what a look found whose payer waits no longer, like a look of the reconciler. So whichever process he asks next
 * knows it: none searches again what was searched, and none asks the chain for what was proven.
 */
async function writeLook(deps: PayDeps, charge: Charge, looked: Promise<Look>): Promise<void> {
  const { ledger, chargeLog, modes, log, newId, pause } = deps;
  const seen = await looked.catch(() => undefined);
  if (seen === undefined) return;
  const event = endOf(seen) ?? searchOf(seen);
  if (event === undefined) return;
  const actor = { owner: 'reconciler', changeId: newId() };
  const most = event.kind === 'looked' ? SEARCH_TRIES : WRITE_TRIES;
  for (let tries = 0; tries < most; tries++) {
    try {
      const advanced = await ledger.advance(charge.id, event, actor);
      if (advanced.kind === 'ok') {
        chargeLog.changed(advanced.charge, event.kind);
        if (event.kind === 'failed' && charge.settle === 'before_response') modes.ranUnpaid(charge.payment.payer);
      }
      if (advanced.kind === 'ok' || advanced.because !== 'lease_running') return;
    } catch (error) {
      log.debug('what a look found was not written', { charge_id: charge.id, error });
    }
    await pause(WRITE_PAUSE_MS);
  }
}

/** Undefined if nothing was searched. */
function searchOf(seen: Look): ChargeEvent | undefined {
  if (seen.kind !== 'open' || seen.search === null) return undefined;
  const reason = seen.used ? 'payment_used' : 'payment_unused';
  return { kind: 'looked', at: 'end', search: seen.search, lookInMs: FIRST_LOOK_MS, reason };
}

function unknown(deps: PayDeps, payment: Payment, charge: Charge): PayOutcome {
  const { facts, route } = payment;
  deps.chargeLog.counted(route.id, 'unknown', charge.way.network);
  return deps.refuse(stateMoney(deps, payment, charge, 'unknown', settlementUnknown(charge)), facts.origin, route.id);
}

/**
 * The terms that were agreed to, even if the route costs something else by now. Undefined if the payment cannot be
 * settled any more.
 */
function termsOf(
  { options, clock, listingOf }: PayDeps,
  { route, facts }: Payment,
  charge: Charge,
): RailOffer | undefined {
  const { way, amount } = charge;
  if (options.services(way) === undefined) return undefined;
  if (charge.deadline !== null && Number(charge.deadline) * 1000 <= clock.now()) return undefined;
  return {
    way,
    amount,
    description: describeRoute(route),
    // This request is the one that was charged, by its method and target.
    resource: facts.publicOrigin + facts.path,
    listing: listingOf?.(route, facts.method, facts.path),
  };
}
