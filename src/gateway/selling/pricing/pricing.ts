// Prices requests of routes with a plan: what the route says, or what the plan's price makes of what is asked. A quote that
// was made for the same request is good for its own price, and the price service is not asked again. If the path can mean
// another route, the request costs the most that the plan can ask.
import { LRUCache } from 'lru-cache';
import { formatPrice, parsePrice, type Price } from '../../../domain/payment/money.ts';
import type { Credential, PlannedSale } from '../../../domain/decide.ts';
import type { Offer } from '../../../domain/payment/offer.ts';
import type { OfferAt } from '../../../domain/payment/priced-offers.ts';
import type { Quotes } from '../../../domain/payment/quote.ts';
import { problem, secondsToWait, type Problem } from '../../../domain/problem.ts';
import { paramsOf } from '../../../domain/routing/route-params.ts';
import type { Route } from '../../../domain/routing/route.ts';
import { highestPriceOf } from '../../../domain/selling/highest-price.ts';
import type { Plans, SalesPlan } from '../../../domain/selling/plan.ts';
import { sumPrice, type PlanPrice, type PriceInputs } from '../../../domain/selling/price.ts';
import { createInputReader, writeInputs, type InputReader } from '../../../domain/selling/price-inputs.ts';
import { readCaller } from '../../caller.ts';
import { namedByConnection } from '../../headers.ts';
import type { Rail } from '../../rails/rail.ts';
import type { PlannedRequest } from '../way-to-pass.ts';
import { whenKnown } from '../when-known.ts';
import type { PricedSale } from './priced-sale.ts';
import type { PriceServices } from './price-service.ts';

/** Prices a request; `credential`: what it pays with. A promise only if a price service has to be asked. */
export type PriceSale = (
  sale: PlannedSale,
  request: PlannedRequest,
  credential?: Credential,
) => PricedSale | Promise<PricedSale>;

type PricingDeps = {
  readonly plans: Plans;
  /** Offer at the price that a route says. */
  readonly ownOffer: (route: Route) => Offer | Problem;
  readonly offerAt: OfferAt;
  readonly services: PriceServices;
  readonly quotes: Pick<Quotes, 'read'>;
  readonly rail: Pick<Rail, 'read'>;
  /** Lower-cased. */
  readonly customerHeader: string;
};

export function createPricing(deps: PricingDeps): PriceSale {
  const { plans, ownOffer, offerAt } = deps;
  const readers = new Map<SalesPlan, InputReader>();
  for (const plan of plans.byId.values())
    if (plan.price !== undefined) readers.set(plan, createInputReader(plan.price));
  // By everything that it depends on. If each is priced anew, a priced 402 takes about 1 us more (`npm run bench -- --only price`).
  const known = new LRUCache<string, { readonly route: Route; readonly offer: Offer }>({ max: KNOWN });
  return (sale, request, credential) => {
    const { route, plan, isSpelled } = sale;
    const { price } = plan;
    const reader = readers.get(plan);
    if (price === undefined || reader === undefined) return { offer: ownOffer(route), inputs: undefined };
    if (!isSpelled) return { offer: offerAt(route, { price: highestPriceOf(route, plan) }), inputs: undefined };
    const read = reader(asPriced(sale, request));
    if ('code' in read) return { offer: read, inputs: undefined, isRefused: true };
    const inputs = price.service === undefined ? writeInputs(read) : undefined;
    const name = `${route.id} ${inputs}`;
    const before = inputs === undefined ? undefined : known.get(name);
    if (before?.route === route) return { offer: before.offer, inputs };
    const own = parsePrice(route.amount);
    if (own === undefined) return { offer: ownOffer(route), inputs: undefined };
    const sum = sumPrice(price, own, read);
    if ('code' in sum)
      return { offer: sum, inputs: undefined, ...(sum.code === 'price_ambiguous' && { isRefused: true }) };
    if (inputs === undefined)
      return askService(deps, { sale, request, credential, price, sum: sum.price, own, inputs: read });
    const offer = offerAt(route, { price: sum.price }, inputs);
    if (!('code' in offer)) known.set(name, { route, offer });
    return { offer, inputs };
  };
}

/** Requests of all routes, by what their price depends on, whose offers are remembered. */
const KNOWN = 2048;

/** The request as its price reads it. Whoever asks for a proxy does not tell how long the body is. */
function asPriced({ route }: PlannedSale, { target, path, req, asker }: PlannedRequest): Parameters<InputReader>[0] {
  return {
    query: target.slice(path.length),
    rawHeaders: req.rawHeaders,
    droppedHeaders: namedByConnection(req.headers.connection),
    params: () => paramsOf(route, path),
    length: asker === undefined ? req.headers['content-length'] : undefined,
  };
}

function priced(offerAt: OfferAt, route: Route, price: Price, inputs: string): PricedSale {
  return { offer: offerAt(route, { price }, inputs), inputs };
}

type ServiceQuestion = {
  readonly sale: PlannedSale;
  readonly request: PlannedRequest;
  readonly credential: Credential | undefined;
  readonly price: PlanPrice;
  /** Price by rules and units, and that of the route. */
  readonly sum: Price;
  readonly own: Price;
  readonly inputs: PriceInputs;
};

function askService(deps: PricingDeps, asked: ServiceQuestion): PricedSale | Promise<PricedSale> {
  const { offerAt, services, customerHeader } = deps;
  const { sale, request, price, sum, own, inputs: read } = asked;
  const { route } = sale;
  const { service } = price;
  if (service === undefined) throw new Error('a plan without a price service');
  const { method, path } = request;
  const caller = request.customerTrusted ? readCaller(request.req.rawHeaders, customerHeader) : undefined;
  const customerId = caller === undefined || 'code' in caller ? null : (caller.customerId ?? null);
  // The service may look at these as well, so they are as much a part of what was quoted.
  const inputs = writeInputs(read, { method, path, customer_id: customerId });
  const quoted = quotedOffer(deps, asked, inputs);
  if (quoted !== undefined) return { offer: quoted, inputs };
  const question = JSON.stringify({
    ...{ route_id: route.id, route_pattern: route.pattern, method, path },
    ...{ query: told(read, 'query.'), headers: told(read, 'header.'), params: told(read, 'param.') },
    length: read.get('length') === undefined ? null : Number(read.get('length')),
    ...{ customer_id: customerId, amount: formatPrice(sum), currency: route.currency },
  });
  return whenKnown(services.ask(service, question), (answer) => {
    if (answer.kind === 'price') return { offer: offerAt(route, answer.offered, inputs), inputs };
    return service.whenAway === 'route'
      ? priced(offerAt, route, own, inputs)
      : { offer: priceUnavailable(answer.retryAfterMs), inputs };
  });
}

function told(inputs: PriceInputs, prefix: string): Readonly<Record<string, string>> {
  return Object.fromEntries(
    [...inputs].flatMap(([name, value]): [string, string][] =>
      name.startsWith(prefix) && value !== undefined ? [[name.slice(prefix.length), value]] : [],
    ),
  );
}

/** The offer at the price of the quote that a payment names, if it was made for this very request and still holds. */
function quotedOffer(
  { offerAt, quotes, rail }: PricingDeps,
  { sale: { route }, request, credential, price: { service } }: ServiceQuestion,
  inputs: string,
): Offer | undefined {
  if (credential === undefined || service === undefined) return undefined;
  const most = offerAt(route, { price: service.max }, inputs);
  if ('code' in most) return undefined;
  const presented = rail.read(
    credential,
    most.receiver.ways.map(({ way }) => way),
  );
  if (!('key' in presented) || presented.chargeId === undefined) return undefined;
  const quote = quotes.read(presented.chargeId, request.nowMs);
  if (quote === undefined || quote.routeId !== route.id || quote.currency !== route.currency) return undefined;
  if (!quote.isFor(request.method) || !quote.hasTermsOf(most) || !quote.isForInputs(inputs)) return undefined;
  const offer = offerAt(route, { price: quote.price }, inputs);
  return 'code' in offer ? undefined : offer;
}

function priceUnavailable(retryAfterMs: number): Problem {
  const detail = 'What this request costs cannot be told right now; nothing was charged. Send the same request again.';
  return problem('price_unavailable', detail, { retryAfter: secondsToWait(retryAfterMs) });
}
