// State of one payment while its request is handled, and the types that its steps share.
import type { Charge, Claim } from '../../domain/payment/charge.ts';
import type { PresentedRequest } from '../../domain/payment/claim-policy.ts';
import type { Offer, Receiver } from '../../domain/payment/offer.ts';
import type { Problem } from '../../domain/problem.ts';
import type { Route } from '../../domain/routing/route.ts';
import type { SalesPlan } from '../../domain/selling/plan.ts';
import type { GoneOutcome, PaidOutcome, PassOutcome, RequestFacts, ResponseOutcome } from '../outcome.ts';
import type { PresentedPayment } from '../rails/rail.ts';

/** Payment of one request. */
export type Payment = {
  readonly route: Route;
  /** Current price of the route, or why it cannot be paid now; what was paid for before is served all the same. */
  readonly offer: Offer | Problem;
  /** Everything that the price depends on, as one text; undefined: it depends on nothing of the request. */
  readonly inputs: string | undefined;
  readonly presented: PresentedPayment;
  readonly facts: RequestFacts;
  /** Facts that the ledger compares if a request presents a payment again. */
  readonly shown: PresentedRequest;
  readonly customerId: string | undefined;
  /** The plan that the route is sold by. */
  readonly plan?: SalesPlan | undefined;
  /** The path can mean no other route: a pass is good for it. */
  readonly isSpelled?: boolean | undefined;
  /** Names this request to the ledger. */
  readonly owner: string;
};

export type PayOutcome = ResponseOutcome | PaidOutcome | GoneOutcome | PassOutcome;

type SettleMode = Claim['settle'];

export type SettleFacts = {
  readonly wanted: Receiver['settle'];
  readonly method: string;
  readonly conditionalWrite: boolean;
  readonly payer: string;
  /** Time until the authorization ends. */
  readonly leftMs: number;
  /** Time that the upstream and the settlement may take: an authorization with less left is settled first. */
  readonly enoughMs: number;
};

export type SettleModes = {
  readonly modeFor: (facts: SettleFacts) => SettleMode;
  /** Notes that the upstream ran for this payer and the settlement afterwards took nothing. */
  readonly ranUnpaid: (payer: string) => void;
  /** Notes that the client left before the upstream's status line was there, and its claim was released. */
  readonly leftEarly: (payer: string) => void;
};

/**
 * The network that a payment is counted under; undefined: it names no way that is offered, and the ledger has no charge of
 * it.
 */
export function networkOf({ presented: { key, way } }: Payment, charge?: Charge): string | undefined {
  if (charge !== undefined) return charge.way.network;
  return 'reason' in way ? undefined : key.network;
}
