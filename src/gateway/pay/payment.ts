// The types that the steps of a payment share, and how its ends are told to the client. A step that cannot say what
// happened to the money says just that, with 503 and the charge id. It never answers 402: a payer who is told to pay again
// may pay twice.
import { endsAt, type Charge, type Claim, type PaymentKey } from '../../domain/payment/charge.ts';
import type { Offer, WayServices, Receiver } from '../../domain/payment/offer.ts';
import { problem, secondsToWait, type Problem, type ProblemCode } from '../../domain/problem.ts';
import type { Way, Receipt } from '../../domain/payment/way.ts';
import type { Route } from '../../domain/routing/route.ts';
import type { PresentedRequest } from '../../domain/payment/claim-policy.ts';
import type { Clock } from '../../host/clock.ts';
import type { ResponseOutcome, OwnResponses, GoneOutcome, PaidOutcome, RequestFacts } from '../outcome.ts';
import type { Replays, ResponseMemory, SeenPayments } from './memory.ts';
import type { Presented, Rail, Refusal } from '../rails/rail.ts';
import type { OwnAuthorities } from './charged-responses.ts';
import type { Leases } from './lease.ts';
import type { RecordDeps } from './record.ts';

export type PayDeps = OwnResponses &
  RecordDeps & {
    readonly rail: Rail;
    readonly seenPayments: SeenPayments;
    readonly modes: SettleModes;
    readonly leases: Leases;
    readonly responses: { readonly memory: ResponseMemory; readonly replays: Replays };
    readonly clock: Clock;
    readonly options: PayOptions;
  };

export type PayOptions = {
  /** A response up to this size is kept for a payer who may not have had it whole. */
  readonly keepResponseBytes: number;
  readonly maxUnsettledPerPayer: number;
  readonly ownAuthorities: OwnAuthorities;
  /** How long an authorization must hold at least for the upstream to be asked before the settlement. */
  readonly enoughToServeFirstMs: number;
  /** For how long a charge is ours without a word from us. */
  readonly leaseMs: number;
  /** As configured now. */
  readonly services: (way: Way) => WayServices | undefined;
  /** A way's token and network, for people. */
  readonly nameOf: (way: Way) => string;
  /** Whom a payer asks for what is owed. */
  readonly support: string | undefined;
};

type SettleMode = Claim['settle'];

export type SettleFacts = {
  readonly wanted: Receiver['settle'];
  readonly method: string;
  readonly conditionalWrite: boolean;
  readonly payer: string;
  /** Until the authorization ends. */
  readonly leftMs: number;
  /** Less than this may run out before the upstream has answered and the money has moved. */
  readonly enoughMs: number;
};

export type SettleModes = {
  readonly modeFor: (facts: SettleFacts) => SettleMode;
  /** The upstream ran for this payer and the settlement afterwards took nothing. */
  readonly ranUnpaid: (payer: string) => void;
  /** The client left before the upstream's status line was there, and its claim was released. */
  readonly leftEarly: (payer: string) => void;
};

/** One payment on its way. */
export type Payment = {
  readonly route: Route;
  /** What the route costs now, or why it cannot be paid now: what was paid for before is served all the same. */
  readonly offer: Offer | Problem;
  readonly presented: Presented;
  readonly facts: RequestFacts;
  /** What the ledger asks of a request that presents a payment again. */
  readonly shown: PresentedRequest;
  readonly customerId: string | undefined;
  /** Names this request to the ledger. */
  readonly owner: string;
};

/** The network that a payment is counted under; undefined: it names no way that is offered, and the ledger has no charge of it. */
export function networkOf({ presented: { key, way } }: Payment, charge?: Charge): string | undefined {
  if (charge !== undefined) return charge.way.network;
  return 'reason' in way ? undefined : key.network;
}

export type PayOutcome = ResponseOutcome | PaidOutcome | GoneOutcome;

export type Told = {
  readonly chargeId?: string | undefined;
  /** When to come back, in seconds. */
  readonly retryAfter?: number;
  readonly members?: Problem['members'];
};

/** A problem about this payment: which charge it is about, and when to come back if that can help. */
export function paymentProblem(code: ProblemCode, detail: string, told: Told = {}): Problem {
  const { chargeId, retryAfter, members } = told;
  return problem(code, detail, {
    retryAfter,
    members: { ...(chargeId === undefined ? {} : { charge_id: chargeId }), ...members },
  });
}

const IN_USE_SECONDS = 2;
const AWAY_SECONDS = 5;
const LONGEST_UNKNOWN_SECONDS = 30;
/** How long after its end a payment is held to be dead if it was not used: by a node of one's own, and by public ones. */
const DEAD_AFTER_MS = { own: 60_000, public: 600_000 };

/** `charge`: as the ledger has it, if another request works on it. */
export function paymentInUse({ ledger, options }: PayDeps, charge: Charge | undefined): Problem {
  const restMs = (charge?.leaseUntil ?? 0) - ledger.now();
  // Who is alive renews a third of the lease before it is over at the latest.
  const overdue = restMs > 0 && restMs < options.leaseMs / 2;
  return paymentProblem(
    'payment_in_use',
    'This payment is being used by another request. Send it again when that is answered.',
    { chargeId: charge?.id, retryAfter: overdue ? Math.ceil(restMs / 1000) : IN_USE_SECONDS },
  );
}

export function settlementUnknown(charge: Charge): Problem {
  return paymentProblem('settlement_unknown', 'The end of the settlement is not known yet.', {
    retryAfter: Math.min(LONGEST_UNKNOWN_SECONDS, 2 ** Math.max(0, charge.attempts - 1)),
  });
}

/** When a payment without a known end has ended for good, milliseconds since the epoch. */
export function unknownUntil({ options }: PayDeps, charge: Charge): number {
  const services = options.services(charge.way);
  const deadAfterMs = services === undefined || services.rpcPublic ? DEAD_AFTER_MS.public : DEAD_AFTER_MS.own;
  return endsAt(charge) + deadAfterMs;
}

/** `retryAfterMs`: when a facilitator is asked again, if that is known. */
export function facilitatorUnavailable(
  deps: PayDeps,
  payment: Payment,
  what: 'verified' | 'settled',
  retryAfterMs: number | undefined,
): Problem {
  const others = payableNetworks(deps, payment);
  const instead = others.length === 0 ? '' : ` What can be paid on now: ${others.join(', ')}.`;
  return paymentProblem(
    'facilitator_unavailable',
    `The payment cannot be ${what} right now; nothing was charged. Send the same request again later.${instead}`,
    {
      members: { charged: false },
      retryAfter: retryAfterMs === undefined ? AWAY_SECONDS : secondsToWait(retryAfterMs),
    },
  );
}

/** Where the same request could be paid in another way. */
function payableNetworks({ rail }: PayDeps, { offer, presented }: Payment): readonly string[] {
  if ('code' in offer) return [];
  const facts = { chargeId: '', upfront: false };
  const others = offer.ways.filter(
    ({ way, amount }) =>
      way !== presented.way &&
      rail.isCallable(way) &&
      rail.requirement({ way, amount, description: '', resource: undefined }, facts, 2) !== undefined,
  );
  return [...new Set(others.map(({ way }) => way.network))];
}

export function ledgerUnavailable(): Problem {
  return paymentProblem(
    'ledger_unavailable',
    'Payments cannot be recorded right now, so none is taken. Send the same request again later.',
    { retryAfter: AWAY_SECONDS },
  );
}

/** A 402, or why the route cannot be paid for now. */
export function demandAnew(
  deps: PayDeps,
  { offer, facts, route }: Payment,
  reason: string,
  headers: readonly string[] = [],
  expected?: string,
): ResponseOutcome {
  return 'code' in offer
    ? deps.refuse(offer, facts.origin, route.id)
    : deps.demand({ offer, reason, facts, headers, expected });
}

/** A 402 that says why this payment of `amount` is no good; nothing was charged. */
export function refusePayment(
  deps: PayDeps,
  payment: Payment,
  amount: bigint,
  { reason, expected }: Refusal,
): ResponseOutcome {
  const { presented, route } = payment;
  deps.chargeLog.counted(route.id, 'refused', networkOf(payment));
  const header = deps.rail.receiptHeader(presented.version, refusedReceipt(presented.key, amount, reason));
  return demandAnew(deps, payment, `payment_refused: ${reason}`, header, expected);
}

/** The receipt that says that nothing was taken. */
export function refusedReceipt(key: PaymentKey, amount: bigint, reason: string): Receipt {
  return { success: false, network: key.network, payer: key.payer, amount: amount.toString(), transaction: '', reason };
}
