// The statement in every problem that ends a request under a claim: where the money is, and what to do. Programs read the
// members `charged`, `charge_id`, `retry_until` and `owed`, people the sentences. A receipt comes along if the money was
// taken.
import { endsAt, receiptOf, type Charge } from '../../domain/payment/charge.ts';
import { owedBecauseOf, pauseLeft } from '../../domain/payment/claim-policy.ts';
import { retryUntil, type ChargeAnswer } from '../../domain/payment/whereabouts.ts';
import type { WayServices } from '../../domain/payment/offer.ts';
import type { Way } from '../../domain/payment/way.ts';
import { secondsToWait, type Problem } from '../../domain/problem.ts';
import { soldPassOf } from '../../domain/selling/pass.ts';
import type { Passes } from '../selling/passes/passes.ts';
import type { Rail } from '../rails/rail.ts';
import type { Payment } from './payment.ts';

export type StatementDeps = {
  readonly rail: Pick<Rail, 'receiptHeader'>;
  readonly ledger: { readonly now: () => number };
  readonly options: {
    /** Services of a way, as configured now. */
    readonly services: (way: Way) => WayServices | undefined;
    /** Names a way's token and network, for people. */
    readonly nameOf: (way: Way) => string;
    /** Contact for payers who are owed an answer. */
    readonly support: string | undefined;
  };
  /** Passes; undefined: none are sold here. */
  readonly passes?: Pick<Passes, 'handedOver'> | undefined;
};

type Members = NonNullable<Problem['members']>;
type PaymentPart = { readonly presented: Pick<Payment['presented'], 'version'> };

/** Seconds after which to come back if nothing says how long something lasts. */
const SOON_SECONDS = 2;
/** Time after its end at which an unused payment is dead: by the word of a node of one's own, and of public ones. */
const DEAD_AFTER_MS = { own: 60_000, public: 600_000 };

/**
 * States in `given` where the money of `charge` is. `charged`: as this request knows it, which may be more than its row
 * does.
 */
export function stateMoney(
  deps: StatementDeps,
  payment: PaymentPart,
  charge: Charge,
  charged: ChargeAnswer,
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
      const receipt = { ...given.headers, ...receiptHeader(deps, payment, charge) };
      const headers = { ...receipt, ...passHeaders(deps, charge) };
      const { detail, members, retryAfter } = statePaid(deps, charge, money, given);
      return stated(detail, members, { headers, retryAfter });
    }
    default:
      return charged satisfies never;
  }
}

type PaidStatement = { readonly detail: string; readonly members: Members; readonly retryAfter: number | undefined };

function statePaid({ ledger, options }: StatementDeps, charge: Charge, money: string, given: Problem): PaidStatement {
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
  if (charge.pass !== null && charge.refundedAt === null) {
    const name = charge.pass['id'] ?? '';
    const detail = `${money} was charged for the pass ${name}, which is yours: send the same request with the same payment, or with its Tollgate-Pass, as often as it lasts.`;
    return { detail, members: { owed: false }, retryAfter: given.retryAfter };
  }
  const paid = `${money} was charged. Do not pay again for it.`;
  if (charge.refundedAt !== null) {
    const refunded = iso(charge.refundedAt);
    return { detail: `${paid} It was refunded at ${refunded}.`, members: { owed: false }, retryAfter: undefined };
  }
  if (charge.state === 'delivered') return { detail: paid, members: { owed: false }, retryAfter: undefined };
  // The charge's own request has ended, so its lease does not count any more.
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

/** Time, in milliseconds since the epoch, by which a payment without a known end has ended for good. */
function unknownUntil({ options }: StatementDeps, charge: Charge): number {
  const services = options.services(charge.way);
  const deadAfterMs = services === undefined || services.rpcPublic ? DEAD_AFTER_MS.public : DEAD_AFTER_MS.own;
  return endsAt(charge) + deadAfterMs;
}

/** The price as people read it: `0.10 USDC on base-sepolia`. */
function moneyOf({ options }: StatementDeps, { price, way }: Charge): string {
  return `${price.amount} ${options.nameOf(way)}`;
}

/** The pass that a charge bought, for a client that got no answer: this request was no use of it. */
function passHeaders({ passes }: StatementDeps, charge: Charge): Readonly<Record<string, string>> {
  const pass = soldPassOf(charge);
  if (pass === undefined || passes === undefined) return {};
  const flat = passes.handedOver(pass, false, false);
  return Object.fromEntries(flat.flatMap((name, i) => (i % 2 === 0 ? [[name, flat[i + 1] ?? '']] : [])));
}

function receiptHeader(
  { rail }: StatementDeps,
  { presented }: PaymentPart,
  charge: Charge,
): Readonly<Record<string, string>> {
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
