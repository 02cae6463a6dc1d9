// The ways in which a request of a route with a plan may pass: a dry run, somebody who need not pay, what was paid for
// before, a payment, a free request; last comes the 402. They stand in this order in selling.ts. The first that holds
// decides, and what comes after it is neither read nor counted.
import type { IncomingMessage } from 'node:http';
import type { Credential, DemandReason, PaywallVerdict, Permit, PlannedSale } from '../../domain/decide.ts';
import type { Problem } from '../../domain/problem.ts';
import type { Route } from '../../domain/routing/route.ts';
import type { GrantedOutcome, RequestFacts, ResponseOutcome } from '../outcome.ts';
import type { PricedSale } from './pricing/priced-sale.ts';

/** A request of a route with a plan, as the ways to pass see it. */
export type PlannedRequest = RequestFacts & { readonly req: IncomingMessage };

/** What becomes of a request. */
export type Ruling =
  | { readonly kind: 'granted'; readonly permit: Permit; readonly granted: GrantedOutcome }
  /** It is a request that was answered before: it gets that answer, and the upstream is not asked. */
  | { readonly kind: 'answered'; readonly outcome: ResponseOutcome }
  | JudgedRuling;
export type JudgedRuling = { readonly kind: 'judged'; readonly verdict: PaywallVerdict };

/** Refuses a request of a route with a plan. */
export function refuse(route: Route, refusal: Problem): JudgedRuling {
  return { kind: 'judged', verdict: { kind: 'refuse', problem: refusal, route } };
}

/** The way does not let the request pass. `because`: what a 402 says if no other one does. */
export type NotPassed = { readonly kind: 'next'; readonly because?: DemandReason };
export const NEXT: NotPassed = { kind: 'next' };

/** A way to pass. A promise only if it has to wait. */
export type WayToPass = (asked: AskedSale) => Ruling | NotPassed | Promise<Ruling | NotPassed>;

export type AskedSale = {
  readonly sale: PlannedSale;
  readonly request: PlannedRequest;
  /** What the request costs, found out when it is asked for; `credential`: what it pays with. */
  readonly priced: (credential?: Credential) => PricedSale | Promise<PricedSale>;
  /** Reason for a 402 that an earlier way gave. */
  readonly because: DemandReason | undefined;
  /** Asks the ways that come after this one, for a way that knows only later that it does not hold. */
  readonly rest: (because?: DemandReason) => Ruling | Promise<Ruling>;
  /** The 402, for a way that has to end the request. */
  readonly demand: (because?: DemandReason) => JudgedRuling | Promise<JudgedRuling>;
};

/** Sells requests of routes with a plan: the one call of the journey. */
export type Sell = (sale: PlannedSale, request: PlannedRequest) => Ruling | Promise<Ruling>;
