// A pass that a request presents, and what draws on it. However it was presented (token, cookie, the payment that bought it, a
// wallet's signature), from here on it is the same. Types only.
import type { Offer } from '../../../domain/payment/offer.ts';
import type { Problem } from '../../../domain/problem.ts';
import type { Route } from '../../../domain/routing/route.ts';
import type { PassMeasure } from '../../../domain/selling/pass.ts';
import type { SalesPlan } from '../../../domain/selling/plan.ts';
import type { RequestFacts } from '../../outcome.ts';
import type { NotPassed, Ruling } from '../way-to-pass.ts';

/** A genuine pass of ours. Whether it is over, empty, revoked or of another scope is still to be found out. */
export type PresentedPass = {
  readonly passId: string;
  readonly kind: PassMeasure['kind'];
  /** Token that answers carry, as it was made for the pass: the same one for all of its life. */
  readonly token: string;
};

/** The request that wants to pass by it. */
export type PassUse = {
  readonly route: Route;
  readonly plan: SalesPlan;
  /** Price of the request, or why it has none now. */
  readonly offer: Offer | Problem;
  readonly request: RequestFacts;
  /** Headers of the request, names and values in turn. */
  readonly rawHeaders: readonly string[];
};

/** Lets a request pass by a pass, or says why not. */
export type DrawFrom = (pass: PresentedPass, use: PassUse) => Ruling | NotPassed | Promise<Ruling | NotPassed>;

/** Names of the headers that tell about a pass. */
export const PASS_HEADER = 'Tollgate-Pass';
export const PASS_LEFT_HEADER = 'Tollgate-Pass-Left';
