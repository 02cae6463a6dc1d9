// Takes a payment over whose settlement has no certain end, for the payer who asks again: what the chain proves is served;
// what is used up and not proven yet stays unknown; else it is settled again, which moves the money once at most.
import type { Charge } from '../../domain/charge.ts';
import { describeRoute } from '../../domain/route.ts';
import { FIRST_LOOK_MS, type ChargeEvent } from '../../domain/payment/transition.ts';
import type { RailOffer } from '../../domain/payment/way.ts';
import type { Lease } from './lease.ts';
import { demandAnew, paymentInUse, settlementUnknown, type PayDeps, type Payment, type PayOutcome } from './payment.ts';
import { retryUntilRecorded, step } from './record.ts';
import { redeem } from './redeem.ts';
import { settleAndForward } from './serve.ts';

export async function resume(deps: PayDeps, payment: Payment, charge: Charge): Promise<PayOutcome> {
  const { ledger, options, chargeLog, newId } = deps;
  const { facts, route, owner } = payment;
  const event = { kind: 'taken_over', leaseMs: options.leaseMs } as const;
  const taken = await ledger.advance(charge.id, event, { owner, changeId: newId() });
  if (taken.kind !== 'ok') {
    // The reconciler may have found its end in this moment.
    if (taken.charge?.state === 'settled') return redeem(deps, payment, taken.charge);
    chargeLog.counted(route.id, 'in_use', charge.way.network);
    return deps.refuse(paymentInUse(deps, taken.charge), facts.origin, route.id);
  }
  chargeLog.changed(taken.charge, event.kind);
  return lookFirst(deps, payment, taken.charge);
}

/** Goes on with a `settling` charge of this request that may have been paid already. */
export async function lookFirst(deps: PayDeps, payment: Payment, charge: Charge): Promise<PayOutcome> {
  const lease = deps.leases.keep(charge.id);
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
  switch (seen.kind) {
    case 'proven': {
      const settled = await step(deps, payment, charge.id, { kind: 'settled', proof: seen.proof, leaseMs: 0 });
      lease.stop();
      if (settled === 'unavailable' || settled.kind !== 'ok') return unknown(deps, payment, charge);
      return redeem(deps, payment, settled.charge);
    }
    case 'impossible': {
      const event = { kind: 'failed', by: 'chain', reason: seen.reason } as const;
      await retryUntilRecorded(deps, payment, charge.id, event);
      lease.stop();
      if (charge.settle === 'before_response') modes.ranUnpaid(charge.payment.payer);
      chargeLog.counted(payment.route.id, 'already_used', charge.way.network);
      return demandAnew(deps, payment, 'payment_already_used');
    }
    case 'open':
    case 'unavailable': {
      const terms = seen.kind === 'open' && seen.used ? undefined : termsOf(deps, payment, charge);
      if (terms !== undefined) return settleAndForward(deps, payment, charge, terms, lease);
      const reason = seen.kind === 'open' ? 'payment_used' : 'chain_unavailable';
      const event: ChargeEvent = { kind: 'settle_unknown', reason, lookInMs: FIRST_LOOK_MS };
      const doubted = await retryUntilRecorded(deps, payment, charge.id, event);
      lease.stop();
      return unknown(deps, payment, doubted ?? charge);
    }
    default:
      return seen satisfies never;
  }
}

function unknown(deps: PayDeps, { facts, route }: Payment, charge: Charge): PayOutcome {
  deps.chargeLog.counted(route.id, 'unknown', charge.way.network);
  return deps.refuse(settlementUnknown(deps, charge), facts.origin, route.id);
}

/** What was agreed to, whatever the route costs by now; undefined if it cannot be settled any more. */
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
    listing: listingOf(route, facts.method, facts.path),
  };
}
