// Takes over a payment whose settlement has no certain end, for the payer who asks again. If the chain proves it, it is
// served. If it is used up and not proven yet, it stays unknown. Else it is settled again, which moves the money once
// at most.
import type { Charge } from '../../domain/payment/charge.ts';
import { FIRST_LOOK_MS, type ChargeEvent } from '../../domain/payment/transition.ts';
import type { RailOffer, Way } from '../../domain/payment/way.ts';
import { describeRoute } from '../../domain/routing/route.ts';
import type { Clock } from '../../host/clock.ts';
import type { OwnResponses } from '../outcome.ts';
import type { Rail } from '../rails/rail.ts';
import type { Lease, Leases } from './lease.ts';
import { endOf } from './look-change.ts';
import type { WriteLook } from './look-writer.ts';
import type { Payment, PayOutcome, SettleModes } from './payment.ts';
import type { PaymentResponses } from './payment-responses.ts';
import type { Recorder } from './recorder.ts';
import type { Redeemer } from './redeemer.ts';
import type { Settler } from './settler.ts';

type ResumerDeps = TermsDeps & {
  readonly rail: Pick<Rail, 'look'>;
  readonly recorder: Recorder;
  readonly responses: PaymentResponses;
  readonly settler: Pick<Settler, 'settleAndForward' | 'notSettled'>;
  readonly redeem: Redeemer;
  readonly leases: Pick<Leases, 'keep'>;
  readonly ranUnpaid: SettleModes['ranUnpaid'];
  readonly writeLook: WriteLook;
  readonly leaseMs: number;
};

/** Dependencies of reading the terms of a known charge. */
type TermsDeps = {
  readonly clock: Clock;
  /** Whether services of a way are configured now. */
  readonly isServed: (way: Way) => boolean;
  readonly listingOf: OwnResponses['listingOf'];
};

export type Resumer = {
  /** Takes a `settling` charge over whose request is gone. */
  readonly takeOver: (payment: Payment, charge: Charge) => Promise<PayOutcome>;
  /** Goes on with a `settling` charge that may have been paid already. `since`: this request asked for it then. */
  readonly lookFirst: (payment: Payment, charge: Charge, since: number) => Promise<PayOutcome>;
};

export function createResumer(deps: ResumerDeps): Resumer {
  return {
    takeOver: (payment, charge) => takeOver(deps, payment, charge),
    lookFirst: (payment, charge, since) => lookFirst(deps, payment, charge, since),
  };
}

async function takeOver(deps: ResumerDeps, payment: Payment, charge: Charge): Promise<PayOutcome> {
  const { recorder, responses, redeem, clock, leaseMs } = deps;
  const since = clock.monotonic();
  const taken = await recorder.change(payment, charge.id, { kind: 'taken_over', leaseMs });
  if (taken.kind === 'ok') return lookFirst(deps, payment, taken.charge, since);
  // The reconciler may have found its end in this moment.
  if (taken.charge?.state === 'settled') return redeem(payment, taken.charge);
  return responses.inUse(payment, taken.charge);
}

async function lookFirst(deps: ResumerDeps, payment: Payment, charge: Charge, since: number): Promise<PayOutcome> {
  const lease = deps.leases.keep(charge.id, since);
  try {
    return await goOn(deps, payment, charge, lease);
  } catch (error) {
    lease.stop();
    throw error;
  }
}

async function goOn(deps: ResumerDeps, payment: Payment, charge: Charge, lease: Lease): Promise<PayOutcome> {
  const { rail, recorder, responses, settler, redeem, ranUnpaid, writeLook } = deps;
  payment.facts.noteCharge?.(() => responses.unknown(payment, charge));
  const seen = await rail.look(charge, 'payer');
  if (seen.end !== undefined) void writeLook(charge, seen.end);
  const end = endOf(seen);
  switch (end?.kind) {
    case 'settled': {
      const settled = await recorder.changeTwice(payment, charge.id, end);
      lease.stop();
      if (settled === 'unavailable' || settled.kind !== 'ok') return responses.unknown(payment, charge);
      return redeem(payment, settled.charge);
    }
    case 'failed':
      await recorder.changeUntilWritten(payment, charge.id, end);
      lease.stop();
      if (charge.settle === 'before_response') ranUnpaid(charge.payment.payer);
      return responses.alreadyUsed(payment, 'payment_already_used', charge);
    case undefined: {
      const search = seen.kind === 'open' ? seen.search : null;
      const terms = seen.kind === 'open' && seen.used ? undefined : termsOf(deps, payment, charge);
      const away = terms === undefined ? undefined : await payment.facts.connect();
      // An authorization that something unknown used up before this claim may have been paid to us.
      const isOpen = charge.attempts > 0 || seen.kind === 'open';
      if (away !== undefined && isOpen) {
        if (search !== null) void writeLook(charge, Promise.resolve(seen));
        return settler.notSettled(payment, charge, lease, away.detail);
      }
      if (terms !== undefined && away === undefined) {
        if (search !== null) void writeLook(charge, Promise.resolve(seen));
        return settler.settleAndForward(payment, charge, terms, lease);
      }
      const reason = seen.kind === 'open' ? 'payment_used' : 'chain_unavailable';
      const event: ChargeEvent = { kind: 'settle_unknown', reason, lookInMs: FIRST_LOOK_MS, search };
      const doubted = await recorder.changeUntilWritten(payment, charge.id, event);
      lease.stop();
      return responses.unknown(payment, doubted ?? charge);
    }
    default:
      return end satisfies never;
  }
}

/**
 * The terms that were agreed to, even if the route costs something else by now. Undefined if the payment cannot be
 * settled any more.
 */
function termsOf(
  { isServed, clock, listingOf }: TermsDeps,
  { route, facts }: Payment,
  charge: Charge,
): RailOffer | undefined {
  const { way, amount } = charge;
  if (!isServed(way)) return undefined;
  if (charge.deadline !== null && Number(charge.deadline) * 1000 <= clock.now()) return undefined;
  return {
    way,
    amount,
    description: describeRoute(route),
    // The resource is this request's: its method and target are those that were charged.
    resource: facts.publicOrigin + facts.path,
    listing: listingOf?.(route, facts.method, facts.path),
  };
}
