// The part that sells by plans: what its ways to pass share for the life of a process, and the ways themselves, made anew
// for each configuration.
import type { Config, ProxyConfig } from '../config/config.ts';
import type { Offer } from '../domain/payment/offer.ts';
import type { OfferAt } from '../domain/payment/priced-offers.ts';
import type { Quotes } from '../domain/payment/quote.ts';
import type { Problem } from '../domain/problem.ts';
import type { Route } from '../domain/routing/route.ts';
import type { CounterChanger } from '../domain/selling/counter.ts';
import type { PassLedger } from '../domain/selling/pass-store.ts';
import type { CustomerEntry } from '../domain/selling/customer.ts';
import type { FreeRequests, SalesPlan } from '../domain/selling/plan.ts';
import type { SaleCount } from '../domain/totals/sale-counts.ts';
import { readCaller } from '../gateway/caller.ts';
import { clientGroup } from '../gateway/client-group.ts';
import { ownAuthorities } from '../gateway/pay/charged-responses.ts';
import type { ResponseMemory } from '../gateway/pay/kept-responses.ts';
import type { Paywall } from '../gateway/paywall.ts';
import { createAsk } from '../gateway/selling/customers/ask.ts';
import { createMayAsk } from '../gateway/selling/customers/asked-clients.ts';
import { createCustomers } from '../gateway/selling/customers/customers.ts';
import { createKeyFiles } from '../gateway/selling/customers/key-files.ts';
import { recogniseKeys } from '../gateway/selling/customers/customer-keys.ts';
import { recogniseNetworks } from '../gateway/selling/customers/networks.ts';
import type { Recognise } from '../gateway/selling/customers/recognition.ts';
import { recogniseTokens } from '../gateway/selling/customers/tokens.ts';
import { createPriceServices } from '../gateway/selling/pricing/price-service.ts';
import { createPricing } from '../gateway/selling/pricing/pricing.ts';
import type { Rail } from '../gateway/rails/rail.ts';
import { createFreeRequests, type RequestSubject } from '../gateway/selling/free-requests.ts';
import { createMetering } from '../gateway/selling/metering.ts';
import { createObservation } from '../gateway/selling/observation.ts';
import { createRequestCounter } from '../gateway/selling/request-counter.ts';
import { createSaleMetrics } from '../gateway/selling/sale-metrics.ts';
import { createSelling, type SellingDeps } from '../gateway/selling/selling.ts';
import { refuseAnonymous } from '../gateway/selling/anonymous.ts';
import { refuseUnanswerable } from '../gateway/selling/unanswerable.ts';
import {
  NEXT,
  type AskedSale,
  type PlannedRequest,
  type Sell,
  type WayToPass,
} from '../gateway/selling/way-to-pass.ts';
import { createWouldCharge, type SeenResponse } from '../gateway/selling/would-charge.ts';
import { createTrust } from '../gateway/trust.ts';
import { systemSchedule, type Clock, type Random } from '../host/clock.ts';
import { createTokens } from '../host/identifiers.ts';
import { createKeySet, type KeySet } from '../host/jwt/key-set.ts';
import type { Log } from '../host/log.ts';
import type { Metrics } from '../host/metrics.ts';
import { createRateLimit } from '../host/rate-limit.ts';
import { createSlowLane } from '../host/slow-lane.ts';
import { startPassBooks } from './pass-books.ts';
import { createPassesFor, type PassesFor } from './pass-part.ts';

/** The proxy's own rules, as far as selling needs them. */
export type ProxyRules = Pick<SellingDeps, 'rules'> & {
  /** Offer at the price of a route, and at another one. */
  readonly ownOffer: (route: Route) => Offer | Problem;
  readonly offerAt: OfferAt;
  readonly quotes: Pick<Quotes, 'read'>;
  readonly rail: Pick<Rail, 'read'>;
  readonly paywall: Pick<Paywall, 'perform' | 'refuse'>;
  /** Whether the upstream's responses pass here; false: what depends on one cannot be decided. */
  readonly seesResponses: boolean;
};

/** Makes what sells under a configuration. */
export type SellFor = (config: Config, proxy: ProxyConfig, rules: ProxyRules) => Sell;

type SellingPart = { readonly sellFor: SellFor; readonly passesFor: PassesFor; readonly close: () => void };

type SellingPartDeps = {
  readonly metrics: Metrics;
  readonly log: Log;
  readonly clock: Clock;
  readonly random: Random;
  /** Names a route in metrics. */
  readonly routeLabel: (id: string) => string;
  /** Takes counts for sums. */
  readonly countSale: (count: SaleCount) => void;
  /** Counters of the ledger; undefined: there is none, and nothing that has to be counted is free. */
  readonly counters: CounterChanger | undefined;
  /** Memory for all responses that are kept. */
  readonly memory: ResponseMemory;
  /** Books of passes in the ledger; undefined: passes by uses and credit are no good here. */
  readonly passes: PassLedger | undefined;
  readonly config: () => Config;
};

/** Wrong credentials of one client in a minute that are looked at at once, and refusals of the upstream's own sign-in. */
const REFUSED_A_MINUTE = 60;
const ASKED_A_MINUTE = 10;
/** How tokens of a client that has shown more are checked: with a pause after each, so that they never take the whole process. */
const SLOW_LANE = { pauseMs: 3, places: 256 };
/** Clients that are remembered. */
const CLIENTS = 65_536;

export function startSelling(deps: SellingPartDeps): SellingPart {
  const { log, clock, random, counters } = deps;
  const metrics = createSaleMetrics(deps.metrics, deps.routeLabel, deps.countSale);
  const meter = createMetering({ metrics, log });
  const books = deps.passes && startPassBooks({ ...deps, ledger: deps.passes, meter, metrics });
  const passesFor = createPassesFor({ books: books?.books, meter, metrics, clock });
  const keyFiles = createKeyFiles(systemSchedule, log);
  const keySets = new Map<string, KeySet>();
  const keySet = (url: string): KeySet => {
    const known = keySets.get(url) ?? createKeySet(url, clock, globalThis.fetch);
    keySets.set(url, known);
    return known;
  };
  const limitOf = (perMinute: number): ReturnType<typeof createRateLimit> =>
    createRateLimit({ perMinute, burst: perMinute, keys: CLIENTS }, clock.monotonic);
  const refusals = limitOf(REFUSED_A_MINUTE);
  const mayAsk = createMayAsk({ refusals: limitOf(ASKED_A_MINUTE), clock });
  const slowly = createSlowLane(SLOW_LANE, systemSchedule);
  const newId = createTokens(random, 18, 'base64url');
  const services = createPriceServices({ fetch: globalThis.fetch, clock, log, noteCall: metrics.priceService });

  const sellFor: SellFor = (config, proxy, own) => {
    const { rules, ownOffer, paywall, seesResponses } = own;
    const { plans, customers } = config.selling;
    const { publicUrl, hosts, upstream } = proxy;
    const judge = createWouldCharge(ownAuthorities({ publicUrl, hosts, upstream: new URL(upstream.origin) }));
    const trusts = createTrust(proxy.trustedProxies);
    const clientOf = ({ req }: PlannedRequest): string => clientGroup(req, trusts);
    const counter = createRequestCounter(config.charges.secrets[0] ?? '', {
      ...{ store: counters, newId, schedule: systemSchedule, log },
    });
    const wouldCharge = ({ sale, request }: AskedSale, seen: SeenResponse): boolean =>
      judge(ownOffer(sale.route), request.method, seen);
    const isOver = (request: PlannedRequest): boolean => {
      const client = clientOf(request);
      if (refusals.takeMs(client) > 0) return true;
      refusals.giveBack(client);
      return false;
    };
    const recogniseBy = ({ id, header, proof }: CustomerEntry): Recognise | undefined => {
      switch (proof.kind) {
        case 'keys':
          return recogniseKeys(header, id, keyFiles.open(proof.file));
        case 'jwt':
          return recogniseTokens(header, id, proof, { keySet, clock, isOver, slowly });
        case 'networks':
          return recogniseNetworks(proof.cidrs, id, trusts);
        case 'ask':
          return undefined;
        default:
          return proof satisfies never;
      }
    };
    const named = refuseAnonymous(proxy.customerHeader.toLowerCase());
    const passes = passesFor(config, proxy, (refusal, origin) => paywall.refuse(refusal, origin).response);
    const namedPass: WayToPass = (asked) => (passes === undefined || named(asked) !== NEXT ? NEXT : passes.way(asked));
    const customersBy = (entry: CustomerEntry): WayToPass => {
      const recognise = recogniseBy(entry);
      if (recognise === undefined) {
        const statuses = entry.proof.kind === 'ask' ? entry.proof.statuses : [];
        const answer = answerWith(paywall);
        return createAsk(entry, statuses, { mayAsk, pass: namedPass, clientOf, metrics, answer });
      }
      const refused = ({ request }: AskedSale): void => void refusals.takeMs(clientOf(request));
      return createCustomers(entry, { recognise, counter, wouldCharge, metrics, refused });
    };
    const ways = new Map([...customers.values()].map((entry) => [entry.id, customersBy(entry)]));
    const observe = createObservation({ ownOffer, wouldCharge: judge, meter, metrics, log });
    const subjectOf = subjectBy(clientOf, proxy.customerHeader.toLowerCase());
    const waysOf = (plan: SalesPlan): ReturnType<SellingDeps['waysOf']> => ({
      beforePayment: [
        ...(seesResponses || !needsResponse(plan, config.selling) ? [] : [refuseUnanswerable]),
        ...(plan.observe === undefined ? [] : [observe]),
        ...askingLast(plan.customers, config.selling).flatMap((id) => ways.get(id) ?? []),
        named,
        ...(passes === undefined ? [] : [passes.way]),
      ],
      afterPayment:
        plan.free === undefined ? [] : [createFreeRequests(plan.free, { counter, subjectOf, wouldCharge, metrics })],
    });
    const price = createPricing({ ...own, plans, services, customerHeader: proxy.customerHeader.toLowerCase() });
    return createSelling({ plans, rules, price, waysOf });
  };
  const close = (): void => {
    keyFiles.close();
    books?.close();
  };
  return { sellFor, passesFor, close };
}

/** Whether a plan depends on what the API answers. */
function needsResponse({ customers: ids, meter }: SalesPlan, { customers }: Config['selling']): boolean {
  return meter !== undefined || ids.some((id) => customers.get(id)?.proof.kind === 'ask');
}

/** Entries that the upstream decides about come after those that are known here: it need not be asked about these. */
function askingLast(ids: readonly string[], { customers }: Config['selling']): readonly string[] {
  const asks = (id: string): boolean => customers.get(id)?.proof.kind === 'ask';
  return [...ids.filter((id) => !asks(id)), ...ids.filter(asks)];
}

/** Answers what no way lets pass; no payment is presented, so nothing is waited for. */
function answerWith(paywall: ProxyRules['paywall']): Parameters<typeof createAsk>[2]['answer'] {
  return ({ verdict }, request) => {
    const outcome = paywall.perform(verdict, request);
    if (outcome instanceof Promise || outcome.kind !== 'response')
      throw new Error('a request without a payment was not answered at once');
    return outcome.response;
  };
}

/** Finds whose a request is. An IPv6 network of 64 bits belongs to one of 48. */
function subjectBy(
  clientOf: (request: PlannedRequest) => string,
  customerHeader: string,
): (by: FreeRequests['by'], request: PlannedRequest) => RequestSubject | undefined {
  return (by, request) => {
    if (by === 'customer') {
      const caller = request.customerTrusted ? readCaller(request.req.rawHeaders, customerHeader) : undefined;
      if (caller === undefined || 'code' in caller || caller.customerId === undefined) return undefined;
      return { subject: caller.customerId, group: undefined };
    }
    const subject = clientOf(request);
    if (subject === '') return undefined;
    return { subject, group: subject.includes(':') ? subject.split(':', 3).join(':') : undefined };
  };
}
