// Problems that end a request under a claim, and the statement in each of them: where the money is, and what to do. Programs
// read the members `charged`, `charge_id`, `retry_until` and `owed`, people the sentences. A receipt comes along if the
// money was taken.
import { receiptOf, type Charge } from '../../domain/payment/charge.ts';
import { owedBecauseOf, pauseLeft } from '../../domain/payment/claim-policy.ts';
import { retryUntil, type Charged } from '../../domain/payment/whereabouts.ts';
import { problem, secondsToWait, type Problem, type ProblemCode } from '../../domain/problem.ts';
import type { ResponseOutcome } from '../outcome.ts';
import { unknownUntil, type PayDeps, type Payment } from './payment.ts';

type Members = NonNullable<Problem['members']>;
type Presenting = Pick<Payment, 'presented'>;

/** When to come back if nothing says how long something lasts. */
const SOON_SECONDS = 2;

/** `given` with the statement about `charge`. `charged`: as this request knows it, which may be more than its row does. */
export function stateMoney(
  deps: PayDeps,
  payment: Presenting,
  charge: Charge,
  charged: Charged,
  given: Problem,
): Problem {
  const money = moneyOf(deps, charge);
  const stated = (detail: string, members: Members, rest: Partial<Problem> = {}): Problem => ({
    ...given,
    ...rest,
    detail: `${given.detail} ${detail}`,
    members: { ...given.members, charge_id: charge.id, charged, ...members },
  });
  switch (charged) {
    case false: {
      const nothing = given.detail.includes('nothing was charged') ? '' : ': nothing was charged';
      return stated(`The payment of ${money} was not taken${nothing}.`, {}, { retryAfter: soon(given) });
    }
    case 'unknown':
      return stated(
        `Whether the payment of ${money} was taken is not known yet. Do not pay again: send the same request with the same payment later.`,
        { retry_until: iso(unknownUntil(deps, charge)) },
        { retryAfter: soon(given) },
      );
    case true: {
      const headers = { ...given.headers, ...receiptHeader(deps, payment, charge) };
      const { detail, members, retryAfter } = statePaid(deps, charge, money, given);
      return stated(detail, members, { headers, retryAfter });
    }
    default:
      return charged satisfies never;
  }
}

type Paid = { readonly detail: string; readonly members: Members; readonly retryAfter: number | undefined };

function statePaid({ ledger, options }: PayDeps, charge: Charge, money: string, given: Problem): Paid {
  const now = ledger.now();
  const until = retryUntil(charge, now);
  if (until !== null) {
    const restMs = pauseLeft(charge, now);
    return {
      detail: `${money} was charged. Send the very same request with the same payment again, until ${iso(until)}: it brings the answer without another charge.`,
      members: { retry_until: iso(until) },
      retryAfter: Math.max(given.retryAfter ?? 0, restMs > 0 ? secondsToWait(restMs) : SOON_SECONDS),
    };
  }
  const paid = `${money} was charged. Do not pay again for it.`;
  if (charge.refundedAt !== null) {
    const refunded = iso(charge.refundedAt);
    return { detail: `${paid} It was refunded at ${refunded}.`, members: { owed: false }, retryAfter: undefined };
  }
  if (charge.state === 'delivered') return { detail: paid, members: { owed: false }, retryAfter: undefined };
  // Its own request has ended: what its lease says of it is past.
  const isOwed = owedBecauseOf({ ...charge, owner: null, leaseUntil: 0 }, now) !== undefined;
  if (!isOwed) return { detail: paid, members: { owed: false }, retryAfter: undefined };
  const { support } = options;
  const whom = support === undefined ? 'who runs this API' : support;
  return {
    detail: `${paid} It is owed to you: ask ${whom} for it, with the charge id.`,
    members: { owed: true, ...(support === undefined ? {} : { support }) },
    retryAfter: undefined,
  };
}

/** A 409 to a payment whose answer can be had no more. */
export function alreadyPaid(deps: PayDeps, payment: Payment, charge: Charge): ResponseOutcome {
  const { facts, route } = payment;
  deps.chargeLog.counted(route.id, 'already_used', charge.way.network);
  const told = problem('already_paid', 'This payment was settled, and its answer cannot be delivered any more.');
  return deps.refuse(stateMoney(deps, payment, charge, true, told), facts.origin, route.id);
}

/** The upstream failed for this payment a moment ago, and is left alone: its client gets the same status again. */
export function upstreamPaused(deps: PayDeps, payment: Payment, charge: Charge): ResponseOutcome {
  const { facts, route } = payment;
  deps.chargeLog.counted(route.id, 'paused', charge.way.network);
  const status = charge.failedStatus ?? undefined;
  const code: ProblemCode = status === TIMED_OUT ? 'upstream_timeout' : 'upstream_unreachable';
  const told = problem(code, 'The upstream failed for this payment, and is not asked for it again yet.', { status });
  return deps.refuse(stateMoney(deps, payment, charge, true, told), facts.origin, route.id);
}

const TIMED_OUT = 504;

/** No connection to the upstream can be had, so it was not asked. */
export function upstreamAway(deps: PayDeps, payment: Payment, charge: Charge, charged: boolean): ResponseOutcome {
  const { facts, route } = payment;
  deps.chargeLog.counted(route.id, charged ? 'settled_undelivered' : 'released', charge.way.network);
  const told = problem('upstream_unreachable', 'The upstream cannot be reached, so it was not asked.');
  return deps.refuse(stateMoney(deps, payment, charge, charged, told), facts.origin, route.id);
}

/** As prices are written: `0.10 USDC on base-sepolia`. */
function moneyOf({ options }: PayDeps, { price, way }: Charge): string {
  return `${price.amount} ${options.nameOf(way)}`;
}

function receiptHeader({ rail }: PayDeps, { presented }: Presenting, charge: Charge): Readonly<Record<string, string>> {
  const receipt = receiptOf(charge);
  if (receipt === undefined) return {};
  const [name, value] = rail.receiptHeader(presented.version, receipt);
  return { [name]: value };
}

function soon({ retryAfter }: Problem): number {
  return retryAfter ?? SOON_SECONDS;
}

function iso(ms: number): string {
  return new Date(ms).toISOString();
}
