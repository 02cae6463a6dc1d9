// Finds what a payer agreed to: the quote that the payment names, or the route's price now; and the claim made of it.
import type { Claim } from '../../domain/charge.ts';
import type { Credential } from '../../domain/decide.ts';
import { comparePrices, formatPrice, parsePrice, toAtomic } from '../../domain/money.ts';
import type { Offer } from '../../domain/offer.ts';
import type { Quote, Quotes } from '../../domain/quote.ts';
import type { RequestFacts } from '../outcome.ts';
import type { Presented, RailOffer } from '../rails/rail.ts';
import { railOfferOf, sha256Of, type Payment } from './payment.ts';

export type Agreement = { readonly offer: Offer; readonly terms: RailOffer; readonly quote: Quote | undefined };

/** The quote that the payment names, if it is ours and still good; else the route's current price. */
export function agreementOf(
  quotes: Quotes,
  current: Offer,
  { chargeId }: Presented,
  facts: RequestFacts,
): Agreement | 'mismatch' {
  const priced = (offer: Offer, quote: Quote | undefined): Agreement => ({
    offer,
    quote,
    terms: railOfferOf(offer, facts),
  });
  const quote = chargeId === undefined ? undefined : quotes.read(chargeId, facts.nowMs);
  if (quote === undefined) return priced(current, quote);
  if (quote.routeId !== current.route.id || !quote.isFor(facts.method)) return 'mismatch';
  const atomic = toAtomic(quote.price, current.receiver.assetDecimals);
  // Terms that no longer exist make a quote void: the route is paid at what it costs now.
  if (!quote.hasTermsOf(current) || atomic === undefined || !current.receiver.currencies.includes(quote.currency))
    return priced(current, undefined);
  return priced({ ...current, price: quote.price, atomic }, quote);
}

export function makeClaim(
  { presented, facts, customerId, route }: Payment,
  { offer }: Agreement,
  credential: Credential,
  id: string,
  currency: string,
  settle: Claim['settle'],
): Claim {
  const { receiver } = offer;
  return {
    id,
    payment: presented.key,
    credential: credential.value,
    credentialSha256: presented.sha256,
    x402Version: presented.version,
    terms: {
      scheme: receiver.scheme,
      network: receiver.caip2,
      asset: receiver.asset,
      payTo: receiver.payTo,
      amount: offer.atomic,
      maxTimeoutSeconds: receiver.maxTimeoutSeconds,
      assetName: receiver.assetName,
      assetVersion: receiver.assetVersion,
      assetDecimals: receiver.assetDecimals,
    },
    deadline: presented.deadline ?? null,
    route: { id: route.id, method: route.method, pattern: route.pattern },
    request: { method: facts.method, path: facts.path, targetSha256: sha256Of(facts.target) },
    requestId: facts.requestId,
    price: { amount: writePrice(offer), currency },
    receiverId: receiver.id,
    customerId: customerId ?? null,
    settle,
  };
}

/** As the route writes it, unless a quote holds another price than the route has by now. */
function writePrice({ route, price }: Offer): string {
  const current = parsePrice(route.amount);
  return current !== undefined && comparePrices(current, price) === 0 ? route.amount : formatPrice(price);
}
