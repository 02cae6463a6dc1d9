// Passes as offers: each is a price of its own beside that of a single request, in the ways of the same receiver, and with a
// charge id of its own, because its terms are hashed into it. A payment says which price it pays by the charge id that it
// gives back, else by its amount. A pass whose credit does not cover the request is not offered. Under a meter nothing else is:
// what a request takes is known after its response, and a payment of a single request is for an exact amount.
import { coversPrice, hashPassTerms, type PassTerms } from '../selling/pass.ts';
import type { SalesPlan } from '../selling/plan.ts';
import { formatPrice, parsePrice } from './money.ts';
import { offeredWays, type Offer } from './offer.ts';
import { problem, type Problem } from '../problem.ts';
import type { Quote } from './quote.ts';

type PassSale = Pick<SalesPlan, 'id' | 'passes' | 'single' | 'wallet' | 'cookie' | 'meter'>;

/** The offer with the passes of its plan. */
export function withPasses(offer: Offer, plan: PassSale): Offer {
  const { id: planId, passes, single, wallet, cookie } = plan;
  const isMetered = plan.meter !== undefined;
  if (passes.length === 0 && !isMetered) return offer;
  const offers = passes.flatMap((terms) => passOffer(offer, planId, terms) ?? []);
  return { ...offer, passes: { planId, single, wallet, cookie, offers, isMetered } };
}

/** The offer without passes: its path could mean another route. */
export function withoutPasses(offer: Offer): Offer {
  const { passes } = offer;
  return { ...offer, passes: passes?.isMetered === true ? { ...passes, wallet: false, offers: [] } : undefined };
}

function passOffer(offer: Offer, planId: string, terms: PassTerms): Offer | undefined {
  const price = parsePrice(terms.amount);
  if (price === undefined) return undefined;
  const ways = offeredWays(offer.receiver, price);
  if (ways.length === 0) return undefined;
  const termsHash = hashPassTerms(offer.termsHash, planId, terms);
  // What it costs depends on nothing of the request that it is bought with.
  const { inputs: _inputs, shared: _shared, ...rest } = offer;
  return { ...rest, price, amount: terms.amount, ways, termsHash, pass: { planId, terms } };
}

/** Passes that can be bought with a request of this price. */
export function passesFor({ passes, price }: Offer): readonly Offer[] {
  if (passes === undefined) return [];
  const cost = formatPrice(price);
  return passes.offers.filter(({ pass }) => pass !== undefined && coversPrice(pass.terms, cost));
}

/** Prices that a 402 shows, the first of them first. None: a metered request that no pass which is sold here covers. */
export function pricesShown(offer: Offer): readonly Offer[] {
  const passes = passesFor(offer);
  if (offer.passes?.isMetered === true) return passes;
  return offer.passes?.single === false && passes.length > 0 ? passes : [offer, ...passes];
}

/** Why nothing is sold for a request. */
export function notSold(): Problem {
  const detail = 'This request is paid from a pass by credit, and no pass that is sold for it covers its price.';
  return problem('price_unpayable', detail);
}

/**
 * The price of `offer` or of one of its passes that a payment means: by its quote, else by its amount in its way. Undefined:
 * nothing that is sold for this request.
 */
export function priceMeant(
  offer: Offer,
  quote: Quote | undefined,
  paid: { readonly version: 1 | 2; readonly amount: bigint; readonly way: object },
): Offer | undefined {
  if (offer.passes === undefined) return offer;
  const quoted = [offer, ...passesFor(offer)].find((each) => quote?.hasTermsOf(each) === true);
  if (quoted !== undefined) return quoted;
  // Who agreed to terms that are gone must not be sold others for the same money.
  if (quote !== undefined) return offer.passes.isMetered ? undefined : offer;
  const shown = pricesShown(offer);
  const [first] = shown;
  // Version 1 is shown the first price alone.
  if (paid.version === 1) return first;
  const meant = shown.find(({ ways }) => ways.some(({ way, amount }) => way === paid.way && amount === paid.amount));
  return meant ?? first;
}
