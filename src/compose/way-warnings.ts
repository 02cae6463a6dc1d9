// Warnings for an owner of several ways to pay, route by route: where the price is too fine for an asset, which public
// clients pay without being told to, and which ways and passes a 402 has no room for. `check` says all of it, a start
// only the last.
import type { LoadedConfig } from '../config/config.ts';
import { comparePrices } from '../domain/payment/money.ts';
import { makeOffer, type Offer, type OfferedWay, type ReceiverWay } from '../domain/payment/offer.ts';
import { withPasses } from '../domain/payment/pass-offers.ts';
import { notOffered, waysNotShown } from '../domain/payment/payment-required.ts';
import type { Way } from '../domain/payment/way.ts';
import type { Route } from '../domain/routing/route.ts';
import { fullRequirement, NETWORKS } from '../gateway/rails/rails.ts';
import { findPlan } from '../domain/selling/plan.ts';
import { receiversById } from './part.ts';
import { signInSite } from './pass-part.ts';

type PaymentConfig = Pick<LoadedConfig, 'receivers' | 'x402' | 'selling' | 'proxy'>;
type NamedWay = Pick<ReceiverWay, 'way' | 'networkName'>;

/** Source: @x402/core 2.27 (spend controls), x402 1.2 (maxValue); both for assets that they know. */
const CAPS = {
  1: { text: '0.10', price: { units: 1n, scale: 1 } },
  2: { text: '1', price: { units: 1n, scale: 0 } },
} as const;
const MOST_LINES = 20;

export function routeWarnings(config: PaymentConfig, routes: readonly Route[]): string[] {
  const offers = offersOf(config, routes);
  const { v1 } = config.x402;
  return [
    tooFine,
    notShown,
    (offer: Offer) => overCap(offer, 2),
    (offer: Offer) => (v1 ? overCap(offer, 1) : []),
    notOfferedBy(config),
  ].flatMap((say) => shorten(offers.flatMap(say)));
}

/** Warns of what no payer is shown. `routes` is read only if there may be something to say. */
export function notShownWarnings(config: PaymentConfig, routes: () => readonly Route[]): string[] {
  const sellsPasses = config.selling.plans.byId.values().some(({ passes }) => passes.length > 0);
  if (!sellsPasses && config.receivers.every(({ ways }) => ways.length < 2)) return [];
  const offers = offersOf(config, routes());
  return [...shorten(offers.flatMap(notShown)), ...shorten(offers.flatMap(notOfferedBy(config)))];
}

/** The network of a way, and its asset by the symbol if that is known. */
export function nameWay({ networkName, way }: NamedWay): string {
  return `${networkName} ${symbolOf(way) ?? way.asset}`;
}

function offersOf({ receivers }: PaymentConfig, routes: readonly Route[]): readonly Offer[] {
  const byId = receiversById({ receivers });
  return routes.flatMap((route) => {
    const offer = route.status === 'paused' ? undefined : makeOffer(route, byId);
    return offer === undefined || 'code' in offer ? [] : [offer];
  });
}

function tooFine(offer: Offer): string[] {
  const left = offer.receiver.ways.filter(({ way }) => !offer.ways.some((offered) => offered.way === way));
  return say(offer, left, (names) => `is not offered on ${names}: the price has more decimals than the asset`);
}

function overCap(offer: Offer, version: 1 | 2): string[] {
  const cap = CAPS[version];
  if (comparePrices(offer.price, cap.price) <= 0) return [];
  const known = waysOf(offer, version).filter(({ way }) => symbolOf(way) !== undefined);
  return say(
    offer,
    known,
    (names) => `costs more than the $${cap.text} that clients of x402 v${version} pay unasked: ${names}`,
  );
}

/** Lists the ways that a version of x402 can name. */
function waysOf({ ways, description }: Offer, version: 1 | 2): readonly OfferedWay[] {
  const facts = { chargeId: '', upfront: false };
  return ways.filter(
    (offered) => fullRequirement({ ...offered, description, resource: undefined }, facts, version) !== undefined,
  );
}

function notShown(offer: Offer): string[] {
  // The first way is shown in any case.
  if (offer.ways.length < 2) return [];
  return say(
    offer,
    waysNotShown(offer, fullRequirement),
    (names) => `does not show ${names}: the header of a 402 has no room for more; they can be paid all the same`,
  );
}

/** Says of an offer which passes of its plan are not offered with it. */
function notOfferedBy({ selling, proxy }: PaymentConfig): (offer: Offer) => string[] {
  const options = { requirement: fullRequirement, signInSite: signInSite(proxy?.publicUrl) };
  return (offer) => {
    const { route } = offer;
    const plan = findPlan(route, selling.plans);
    if (plan === undefined || 'code' in plan || plan.passes.length === 0) return [];
    const left = notOffered(withPasses(offer, plan), options);
    const names = left.passes.map(({ id }) => id).join(', ');
    const about = `the route ${route.method} ${route.pattern} at ${route.amount} ${route.currency}`;
    const room = 'the header of a 402 has no room for more';
    return [
      ...(names === ''
        ? []
        : [`${about} does not offer the passes ${names} of its plan: ${room}, with fewer passes or ways there is`]),
      ...(left.signIn
        ? [`${about} does not declare sign-in-with-x: ${room}; wallets show the token or the payment of their pass`]
        : []),
    ];
  };
}

function say({ route }: Offer, ways: readonly NamedWay[], what: (names: string) => string): string[] {
  const { method, pattern, amount, currency } = route;
  const about = `the route ${method} ${pattern} at ${amount} ${currency}`;
  return ways.length === 0 ? [] : [`${about} ${what(ways.map(nameWay).join(', '))}`];
}

/** A store of a thousand routes is not listed line by line. */
function shorten(lines: readonly string[]): string[] {
  const left = lines.length - MOST_LINES;
  return left > 0 ? [...lines.slice(0, MOST_LINES), `the same holds for ${left} more routes`] : [...lines];
}

function symbolOf({ network, asset }: Way): string | undefined {
  const tokens = NETWORKS.find(network)?.tokens ?? [];
  return tokens.find(({ address }) => address.toLowerCase() === asset.toLowerCase())?.symbol;
}
