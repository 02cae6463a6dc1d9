// The decision about a request: pure and total. It is told everything and does nothing; the caller has to handle each kind
// of Verdict. An unknown kind does not compile, and there is no "otherwise let it through". verdictOf goes the whole way to
// it: target, match, decision. Below it is the Permit, the proof that a request may pass.
import type { Offer } from './payment/offer.ts';
import { problem, type Problem } from './problem.ts';
import type { Route } from './routing/route.ts';
import type { Match, Snapshot } from './routing/snapshot.ts';
import { findPlan, type SalesPlan, type Plans } from './selling/plan.ts';
import { refuseAmbiguous, splitTarget, type TargetOptions } from './routing/target.ts';

/** Credential that a client presents to pay: the header it came in and its value, not yet read. */
export type Credential = { readonly version: 1 | 2; readonly value: string };

export type Caller = { readonly customerId: string | undefined; readonly credential: Credential | undefined };

/** What becomes of a method for which only routes of other methods match. */
export type UndeclaredMethods = 'forward' | 'pay' | 'refuse';

export type Policy = {
  readonly undeclaredMethods: UndeclaredMethods;
  readonly preflight: 'answer' | 'forward';
  /** x402 v1 is enabled. */
  readonly v1: boolean;
};

/** Rules for every request. `Request` is whatever a caller is read from. */
export type Rules<Request> = {
  readonly policy: Policy;
  /** Reads who calls; asked only if the request costs something. */
  readonly caller: (request: Request) => Caller | Problem;
  readonly offer: (route: Route) => Offer | Problem;
  /** Plans by which routes are sold; undefined: who asks does not know them, and takes every route for one without. */
  readonly plans?: Plans | undefined;
};

/** A request, as far as a verdict on it depends on more than its route. */
type Question<Request> = {
  readonly method: string;
  /** An OPTIONS request that carries Origin and Access-Control-Request-Method. */
  readonly preflight: boolean;
  readonly request: Request;
};

export type Pass = {
  readonly kind: 'pass';
  readonly because: 'unprotected' | 'paused' | 'undeclared' | 'preflight';
  readonly route: Route | undefined;
  /** The route is sold by a plan, which the upstream is told. */
  readonly isPlanned?: true;
};

/** The route is sold by a plan: what lets the request pass has to be found out, and may have to be waited for. */
export type PlannedSale = {
  readonly kind: 'sell';
  readonly route: Route;
  readonly plan: SalesPlan;
  /** The path can mean no other route: only then the plan gives anything away. */
  readonly isSpelled: boolean;
};

/** Why a 402 is answered to a request whose payment was not read. */
export type DemandReason =
  | 'payment_required'
  | 'x402_version_unsupported'
  | 'customer_unknown'
  | 'customer_expired'
  | 'customer_quota_used_up'
  | 'free_used_up'
  | PassRefusal;

/** Why a pass that was presented does not let a request pass. */
export type PassRefusal =
  | 'pass_unknown'
  | 'pass_expired'
  | 'pass_used_up'
  | 'pass_scope'
  | 'pass_revoked'
  | 'wallet_unsupported';

export type Verdict =
  | Pass
  | PlannedSale
  | { readonly kind: 'answer_preflight' }
  | {
      readonly kind: 'demand';
      readonly offer: Offer;
      readonly caller: Caller;
      readonly because: DemandReason;
    }
  | {
      readonly kind: 'verify';
      readonly route: Route;
      /** Offer of the route, or why it cannot be paid now: what was paid for before is served all the same. */
      readonly offer: Offer | Problem;
      /** Everything that the price depends on, as one text; left out: it depends on nothing of the request. */
      readonly inputs?: string | undefined;
      readonly caller: Caller;
      readonly credential: Credential;
      /** The plan that the route is sold by, if it is. */
      readonly plan?: SalesPlan | undefined;
      /** The path can mean no other route: a pass that the payment bought is good for it. */
      readonly isSpelled?: boolean | undefined;
    }
  /** `route`: the one that would have had to be paid. */
  | { readonly kind: 'refuse'; readonly problem: Problem; readonly route: Route | undefined };

/** A verdict that a paywall performs. */
export type PaywallVerdict = Exclude<Verdict, Pass | PlannedSale>;

/** Verdict on most requests. */
const UNPROTECTED: Pass = { kind: 'pass', because: 'unprotected', route: undefined };
const UNDECLARED: Pass = { kind: 'pass', because: 'undeclared', route: undefined };

/** A request as it came: its target is read here and nowhere else. */
type JudgedRequest<Request> = Question<Request> & {
  readonly target: string;
  readonly host: string | undefined;
};

/** Target of a request, and what is decided about it. */
export type RequestJudgement = {
  /** The canonical path. */
  readonly path: string;
  /** The canonical path and the query: what is forwarded. */
  readonly target: string;
  readonly match: Match;
  readonly verdict: Verdict;
};

/** Seconds after which a client may come back while no routes are loaded. */
const RETRY_SECONDS = 1;

export function routesAbsent(): Problem {
  return problem('routes_absent', 'The protected routes are not loaded yet; try again.', { retryAfter: RETRY_SECONDS });
}

/** The verdict on a request: its target, one look-up of its route, the decision. A problem: the target or the routes. */
export function verdictOf<Request>(
  rules: Rules<Request>,
  options: TargetOptions,
  snapshot: Snapshot | undefined,
  facts: JudgedRequest<Request>,
): RequestJudgement | Problem {
  const split = splitTarget(facts, options);
  if ('code' in split) return split;
  if (snapshot === undefined) return routesAbsent();
  const resolution = snapshot.resolve(facts.method, split.rawPath);
  if (!resolution.ok) return refuseAmbiguous(resolution.reason);
  const { path, match } = resolution;
  return { path, target: path + split.query, match, verdict: decide(rules, match, facts) };
}

export function decide<Request>(rules: Rules<Request>, match: Match, question: Question<Request>): Verdict {
  const { policy } = rules;
  switch (match.kind) {
    case 'none':
      return UNPROTECTED;
    case 'route':
      if (match.route.status === 'paused') return paused(match.route, rules.plans);
      if (question.preflight) return preflight(policy);
      return price(match.route, match.spelled, rules, question.request);
    case 'undeclared': {
      const { highestPriced } = match;
      // A browser also asks before a request that a paused route lets pass: its question goes on with it.
      if (question.preflight) return highestPriced === undefined ? UNDECLARED : preflight(policy);
      switch (policy.undeclaredMethods) {
        case 'forward':
          return UNDECLARED;
        case 'pay':
          // A paused route costs nothing, for other methods too.
          return highestPriced === undefined
            ? UNDECLARED
            : price(highestPriced, match.spelled, rules, question.request);
        case 'refuse':
          return {
            kind: 'refuse',
            // RFC 9110 section 15.5.6.
            problem: problem('method_not_declared', `No route of this path declares the method ${question.method}.`, {
              headers: { Allow: match.declared.join(', ') },
            }),
            route: undefined,
          };
        default:
          return policy.undeclaredMethods satisfies never;
      }
    }
    default:
      return match satisfies never;
  }
}

function preflight(policy: Policy): Verdict {
  return policy.preflight === 'answer'
    ? { kind: 'answer_preflight' }
    : { kind: 'pass', because: 'preflight', route: undefined };
}

function paused(route: Route, plans: Plans | undefined): Pass {
  const isPlanned = plans !== undefined && (route.planId !== null || plans.hasStandard);
  return isPlanned ? { kind: 'pass', because: 'paused', route, isPlanned } : { kind: 'pass', because: 'paused', route };
}

function price<Request>(route: Route, spelled: true | undefined, rules: Rules<Request>, request: Request): Verdict {
  const { plans } = rules;
  // Most routes have no plan, and are asked nothing further.
  if (plans !== undefined && (route.planId !== null || plans.hasStandard)) {
    const plan = findPlan(route, plans);
    if (plan !== undefined && 'code' in plan) return { kind: 'refuse', problem: plan, route };
    if (plan !== undefined) return { kind: 'sell', route, plan, isSpelled: spelled === true };
  }
  return decidePayment(rules, { route, offer: rules.offer(route) }, request);
}

/** A route that only a payment opens. */
type Payable = {
  readonly route: Route;
  readonly offer: Offer | Problem;
  /** The plan that it is sold by, whose other ways to pass did not let the request pass. */
  readonly plan?: SalesPlan | undefined;
  readonly isSpelled?: boolean | undefined;
  /** Reason of the 402 if none is presented. */
  readonly because?: DemandReason | undefined;
};

/** Verdict on a request that only a payment lets pass. */
export function decidePayment<Request>(
  { policy, caller: readCaller }: Pick<Rules<Request>, 'policy' | 'caller'>,
  { route, offer, plan, isSpelled, because = 'payment_required' }: Payable,
  request: Request,
): PaywallVerdict {
  const caller = readCaller(request);
  if ('code' in caller) return { kind: 'refuse', problem: caller, route };
  if (!route.allowAnonymous && caller.customerId === undefined)
    return { kind: 'refuse', problem: customerRequired(), route };
  const { credential } = caller;
  const isUnread = credential?.version === 1 && !policy.v1;
  if (credential !== undefined && !isUnread)
    return { kind: 'verify', route, offer, caller, credential, plan, isSpelled };
  if ('code' in offer) return { kind: 'refuse', problem: offer, route };
  return { kind: 'demand', offer, caller, because: isUnread ? 'x402_version_unsupported' : because };
}

export function customerRequired(): Problem {
  return problem('customer_required', 'This route is not open to anonymous requests: send a customer id.');
}

// The proof that a request may pass. Only `Exchange.forward` opens the way to the upstream, and it takes a Permit. So a
// path through the journey that forgot to decide does not compile. Permits are made here for a request that costs nothing,
// and by the paywall for a charge that was claimed (test/architecture.test.ts holds that).

declare const proof: unique symbol;

/** What lets a request pass that its route does not let pass for nothing; a route without a plan knows `paid` alone. */
export type Access = 'paid' | 'observed' | 'customer' | 'pass' | 'free';

/** The header that tells the upstream what let a request pass. */
export function accessHeaders(access: Access): readonly string[] {
  return ['Tollgate-Access', access];
}

export type Permit = {
  readonly [proof]: true;
  readonly because: 'unprotected' | 'paused' | 'undeclared' | 'preflight' | Access;
  readonly route: Route | undefined;
  /** Headers that tell the upstream who paid for what: flat name, value pairs. Empty for a request that costs nothing. */
  readonly headers: readonly string[];
};

/** Makes the permit of a request that costs nothing. */
export function passPermit(pass: Pass): Permit {
  if (pass === UNPROTECTED) return UNPROTECTED_PERMIT;
  return mintPermit(pass.because, pass.route, pass.isPlanned === true ? accessHeaders('free') : NO_HEADERS);
}

const NO_HEADERS: readonly string[] = [];

export function mintPermit(
  because: Permit['because'],
  route: Route | undefined,
  headers: readonly string[] = NO_HEADERS,
): Permit {
  return { because, route, headers } as Permit;
}

const UNPROTECTED_PERMIT = mintPermit('unprotected', undefined);
