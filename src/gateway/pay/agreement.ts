// Finds what a payer agreed to: the quote that the payment names, or the route's price now; and the claim made of it.
import type { Claim } from '../../domain/charge.ts';
import type { Credential } from '../../domain/decide.ts';
import { comparePrices, formatPrice, parsePrice, toAtomic } from '../../domain/money.ts';
import type { Offer } from '../../domain/offer.ts';
import type { RailOffer } from '../../domain/payment/way.ts';
import type { Quote } from '../../domain/quote.ts';
import type { OwnResponses, RequestFacts } from '../outcome.ts';
import type { Presented, Refusal } from '../rails/rail.ts';
import { sha256Of, type Payment } from './payment.ts';

export type Agreement = { readonly offer: Offer; readonly terms: RailOffer; readonly quote: Quote | undefined };

/**
 * The quote that the payment names, if it is ours and still good; else the route's current price, in the way that it names.
 * A refusal: it names no way, or one that cannot hold the price.
 */
export function agreementOf(
  { quotes, listingOf }: Pick<OwnResponses, 'quotes' | 'listingOf'>,
  current: Offer,
  { chargeId, way }: Presented,
  facts: RequestFacts,
): Agreement | 'quote_mismatch' | Refusal {
  if ('reason' in way) return way;
  const agreeOn = (offer: Offer, amount: bigint, quote: Quote | undefined): Agreement => ({
    offer,
    quote,
    terms: {
      way,
      amount,
      description: offer.description,
      resource: facts.publicOrigin + facts.path,
      listing: listingOf(current.route, facts.method, facts.path),
    },
  });
  const quote = chargeId === undefined ? undefined : quotes.read(chargeId, facts.nowMs);
  if (quote !== undefined) {
    if (quote.routeId !== current.route.id || !quote.isFor(facts.method)) return 'quote_mismatch';
    const quoted = toAtomic(quote.price, way.decimals);
    // Terms that no longer exist make a quote void: the route is paid at what it costs now.
    if (quote.hasTermsOf(current) && quoted !== undefined && current.receiver.currencies.includes(quote.currency))
      return agreeOn({ ...current, price: quote.price }, quoted, quote);
  }
  const offered = current.ways.find((each) => each.way === way);
  return offered === undefined
    ? { reason: 'way_mismatch', expected: `a price of at most ${way.decimals} decimals on ${way.network}` }
    : agreeOn(current, offered.amount, undefined);
}

export function makeClaim(
  { presented, facts, customerId, route }: Payment,
  { offer, terms: { way, amount } }: Agreement,
  credential: Credential,
  id: string,
  currency: string,
  settle: Claim['settle'],
): Claim {
  return {
    id,
    payment: presented.key,
    credential: credential.value,
    credentialSha256: presented.sha256,
    x402Version: presented.version,
    way,
    amount,
    deadline: presented.deadline ?? null,
    route: { id: route.id, method: route.method, pattern: route.pattern },
    request: { method: facts.method, path: facts.path, targetSha256: sha256Of(facts.target) },
    requestId: facts.requestId,
    price: { amount: writePrice(offer), currency },
    customerId: customerId ?? null,
    settle,
  };
}

/** As the route writes it, unless a quote holds another price than the route has by now. */
function writePrice({ route, price }: Offer): string {
  const current = parsePrice(route.amount);
  return current !== undefined && comparePrices(current, price) === 0 ? route.amount : formatPrice(price);
}
