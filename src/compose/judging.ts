// What a listener that faces clients judges, prices and sells by, assembled from the configuration: alike for the proxy and for each
// decision listener, so that both write the same 402 and let the same requests pass.
import type { IncomingMessage } from 'node:http';
import type { Config, ProxyConfig } from '../config/config.ts';
import type { Rules } from '../domain/decide.ts';
import type { Discovery } from '../domain/discovery/listing.ts';
import { createOffers, type Offer } from '../domain/payment/offer.ts';
import { createPricedOffers, type OfferAt } from '../domain/payment/priced-offers.ts';
import { withPasses } from '../domain/payment/pass-offers.ts';
import { createPaymentRequired } from '../domain/payment/payment-required.ts';
import { createQuotes } from '../domain/payment/quote.ts';
import { LISTENER_REFUSALS } from '../domain/problem.ts';
import type { TargetOptions } from '../domain/routing/target.ts';
import type { PathOptions } from '../domain/routing/snapshot.ts';
import { highestPriceOf } from '../domain/selling/highest-price.ts';
import { createSignInNonces } from '../domain/selling/sign-in.ts';
import { findPlan, settleBy, type Plans } from '../domain/selling/plan.ts';
import { inputsOf } from '../domain/selling/price.ts';
import { createAdmission, type Admission } from '../gateway/admission.ts';
import { createCallerReader } from '../gateway/caller.ts';
import { createClientSemaphores, type TakePlace } from '../gateway/client-semaphores.ts';
import type { OwnResponses } from '../gateway/outcome.ts';
import type { Page } from '../gateway/page/document.ts';
import type { PaymentHandler } from '../gateway/pay/pay.ts';
import { createPaywall, type Paywall } from '../gateway/paywall.ts';
import type { Rails } from '../gateway/rails/rails.ts';
import type { Sell } from '../gateway/selling/way-to-pass.ts';
import type { Clock, Random } from '../host/clock.ts';
import { createTokens } from '../host/identifiers.ts';
import type { Refusals } from '../host/listener-refusals.ts';
import type { Log } from '../host/log.ts';
import { createListener, type Listener } from '../host/server.ts';
import { signInSite } from './pass-part.ts';
import { matchRules, pathOptions, receiversById } from './part.ts';
import type { SellFor } from './selling-part.ts';
import type { Trial } from '../registry/trying/trial.ts';
import { createTrial, type OwnTrial } from './trial.ts';

/** Objects by which the handler of a listener judges. */
export type Judging = {
  readonly rules: Rules<IncomingMessage> & { readonly plans: Plans };
  readonly target: TargetOptions & PathOptions;
  readonly paywall: Paywall;
  readonly sell: Sell;
  readonly placeOf: TakePlace | undefined;
  readonly admission: Admission;
  readonly trial: (origin: string) => OwnTrial;
};

type JudgingDeps = {
  readonly rails: Pick<Rails, 'requirement' | 'isCallable' | 'revision' | 'read'>;
  readonly sellFor: SellFor;
  /** Whether uses of passes can be written down here; else only passes by seconds are sold. */
  readonly drawsPasses: boolean;
  readonly clock: Clock;
  readonly random: Random;
};

/** What differs from listener to listener. */
type JudgingOptions = {
  readonly front: ProxyConfig;
  readonly discovery: Discovery | undefined;
  readonly createPay: (answers: OwnResponses) => PaymentHandler | undefined;
  readonly page: Page | undefined;
  /** Whether a peer may speak for others. */
  readonly trusts: (address: string | undefined) => boolean;
  /** Whether the upstream's responses pass here. */
  readonly seesResponses: boolean;
};

export function assembleJudging(config: Config, options: JudgingOptions, deps: JudgingDeps): Judging {
  const { front, trusts } = options;
  const { rails, clock } = deps;
  const { plans } = config.selling;
  const { undeclaredMethods, methods, targetBytes } = matchRules({ front, selling: config.selling });
  const paths = pathOptions({ front, selling: config.selling });
  const quotes = createQuotes({
    secrets: config.charges.secrets,
    ttlMs: config.charges.quoteTtlMs,
    nonce: createTokens(deps.random, 12, 'base64url'),
  });
  const paywall = createPaywall({
    createPay: options.createPay,
    quotes,
    paymentRequired: createPaymentRequired({ v1: config.x402.v1, ...rails, signInSite: signInSite(front.publicUrl) }),
    signIns: front.publicUrl === undefined ? undefined : createSignInNonces(config.charges.secrets),
    listingOf: options.discovery?.listingOf,
    page: options.page,
    corsOrigins: front.corsOrigins,
    allowedHeaders: headersOf(config.selling),
    methods,
  });
  const receivers = receiversById(config);
  const settleOf = paths.plans && settleBy(plans);
  const complete = offerPasses(plans, deps.drawsPasses);
  const offer = createOffers(receivers, settleOf, complete);
  const offerAt = createPricedOffers(receivers, settleOf, complete);
  const rules: Judging['rules'] = {
    policy: { undeclaredMethods, preflight: front.preflight, v1: config.x402.v1 },
    caller: createCallerReader(front.customerHeader),
    ...{ offer, plans },
  };
  return {
    rules,
    target: { limit: targetBytes, methods, ...paths },
    paywall,
    sell: deps.sellFor(config, front, {
      ...{ rules, paywall, seesResponses: options.seesResponses },
      ...{ ownOffer: offer, offerAt, quotes, rail: rails },
    }),
    placeOf: createClientSemaphores(front.limits.inFlightPerClient, trusts),
    admission: createAdmission(front.limits, trusts, clock.monotonic),
    trial: createTrial({ paywall, offer: highestOfferBy(plans, offer, offerAt), now: clock.now }),
  };
}

/**
 * Offers a route at the highest price of its plan. The 402 of a trial can be paid, and binds no price inputs: at a lower
 * price it would pay for any request of the route.
 */
function highestOfferBy(plans: Plans, own: Trial['offer'], offerAt: OfferAt): Trial['offer'] {
  return (route) => {
    const plan = findPlan(route, plans);
    if (plan === undefined || 'code' in plan || plan.price === undefined) return own(route);
    return offerAt(route, { price: highestPriceOf(route, plan) });
  };
}

/** Adds the passes of its plan to the offer of a route. */
function offerPasses(plans: Plans, drawsPasses: boolean): (offer: Offer) => Offer {
  return (offer) => {
    const plan = findPlan(offer.route, plans);
    if (plan === undefined || 'code' in plan) return offer;
    // What could not be drawn on is not sold.
    const passes = drawsPasses ? plan.passes : plan.passes.filter(({ kind }) => kind === 'seconds');
    return withPasses(offer, { ...plan, passes });
  };
}

/** Headers by which customers are known and on which prices depend. */
function headersOf({ plans, customers }: Config['selling']): readonly string[] {
  const prices = [...plans.byId.values()].flatMap(({ price }) => (price === undefined ? [] : inputsOf(price)));
  const named = prices.flatMap((input) => (input.kind === 'header' ? [input.name] : []));
  return [...new Set([...[...customers.values()].flatMap(({ header }) => header || []), ...named])];
}

/** The listener of a section; `handler` is read for each request. `refusals`: what it refuses by itself. */
export function createFrontListener(
  name: string,
  { listen, limits, timeouts }: ProxyConfig,
  handler: Parameters<typeof createListener>[1],
  { log, refusals = LISTENER_REFUSALS }: { readonly log: Log; readonly refusals?: Refusals },
): Listener {
  const options = { name, listen, timeouts, refusals, log };
  return createListener(
    { ...options, limits: { headers: limits.headerBytes, connections: limits.connections } },
    handler,
  );
}
