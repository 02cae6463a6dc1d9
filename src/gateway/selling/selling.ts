// Sells the requests of routes with a plan: asks the ways to pass in their order, until one decides. The 402 is the last
// one, so that every request has an end, and nothing passes because no way was found. Ways that give something away are
// asked only if the path can mean no other route: else a dearer route could be had for nothing by another spelling.
import {
  decidePayment,
  type DemandReason,
  type PaywallVerdict,
  type Rules,
  type PlannedSale,
} from '../../domain/decide.ts';
import type { IncomingMessage } from 'node:http';
import { withoutPasses } from '../../domain/payment/pass-offers.ts';
import type { Offer } from '../../domain/payment/offer.ts';
import { problem, type Problem } from '../../domain/problem.ts';
import type { SalesPlan, Plans } from '../../domain/selling/plan.ts';
import type { PricedSale } from './pricing/priced-sale.ts';
import type { PriceSale } from './pricing/pricing.ts';
import { whenKnown } from './when-known.ts';
import {
  NEXT,
  type JudgedRuling,
  type AskedSale,
  type PlannedRequest,
  type Ruling,
  type Sell,
  type WayToPass,
} from './way-to-pass.ts';

/** Ways to pass of a plan that cost the client nothing, in the order in which they are asked. */
export type PlanWays = {
  /** Before a payment: a dry run, customers, what was paid for before. */
  readonly beforePayment: readonly WayToPass[];
  /** After it: free requests. */
  readonly afterPayment: readonly WayToPass[];
};

export type SellingDeps = {
  readonly plans: Plans;
  readonly rules: Pick<Rules<IncomingMessage>, 'policy' | 'caller'>;
  readonly price: PriceSale;
  readonly waysOf: (plan: SalesPlan) => PlanWays;
};

/** Stands for a price that is not made: most requests that carry no payment are not asked for one here. */
const UNPRICED = problem('price_unavailable', 'What this request costs was not asked.');

export function createSelling({ plans, rules, price, waysOf }: SellingDeps): Sell {
  const pay: WayToPass = ({ sale, request, priced }) => {
    const { route, plan, isSpelled } = sale;
    const verdict = decidePayment(rules, { route, offer: UNPRICED, plan, isSpelled }, request.req);
    if (verdict.kind !== 'verify') return isRefusedFor(verdict) ? judged(verdict) : NEXT;
    const judge = ({ offer, inputs, isRefused }: PricedSale): JudgedRuling =>
      isRefused === true && 'code' in offer
        ? judged({ kind: 'refuse', problem: offer, route })
        : judged({ ...verdict, offer: soldOn(sale, offer), inputs });
    return whenKnown(priced(verdict.credential), judge);
  };
  const demand: Demand = ({ sale, request, priced }, because) => {
    const { route, plan } = sale;
    return whenKnown(priced(), ({ offer }) =>
      judged(decidePayment(rules, { route, offer: soldOn(sale, offer), plan, because }, request.req)),
    );
  };
  const open = new Map(
    [...plans.byId.values()].map((plan) => {
      const { beforePayment, afterPayment } = waysOf(plan);
      return [plan.id, [...beforePayment, pay, ...afterPayment]];
    }),
  );
  return (sale, request) => {
    const ways = (sale.isSpelled && open.get(sale.plan.id)) || [pay];
    return ask(ways, 0, { sale, request, demand, priced: pricedOnce(price, sale, request) });
  };
}

/** Prices a request at most once, and once more with what it pays with: the quote may know the price. */
function pricedOnce(price: PriceSale, sale: PlannedSale, request: PlannedRequest): AskedSale['priced'] {
  let known: PricedSale | Promise<PricedSale> | undefined;
  return (credential) => {
    if (credential !== undefined && known === undefined) return price(sale, request, credential);
    return (known ??= price(sale, request));
  };
}

/** Makes the 402 of a request. */
type Demand = (
  asked: Pick<AskedSale, 'sale' | 'request' | 'priced'>,
  because?: DemandReason,
) => JudgedRuling | Promise<JudgedRuling>;
type Asking = Pick<AskedSale, 'sale' | 'request' | 'priced'> & { readonly demand: Demand };

/** Asks `ways` from number `at` on; after the last one comes the 402. `because`: what it says, from those before. */
function ask(ways: readonly WayToPass[], at: number, asking: Asking, because?: DemandReason): Ruling | Promise<Ruling> {
  const { sale, request, priced } = asking;
  const way = ways[at];
  if (way === undefined) return asking.demand(asking, because);
  const rest: AskedSale['rest'] = (reason) => ask(ways, at + 1, asking, because ?? reason);
  const demand: AskedSale['demand'] = (reason) => asking.demand(asking, because ?? reason);
  const taken = way({ sale, request, priced, because, rest, demand });
  if (taken instanceof Promise) return taken.then((each) => (each.kind === 'next' ? rest(each.because) : each));
  return taken.kind === 'next' ? rest(taken.because) : taken;
}

/** What is sold of an offer: no pass if the path could mean another route. */
function soldOn({ isSpelled }: PlannedSale, offer: Offer | Problem): Offer | Problem {
  return isSpelled || 'code' in offer || offer.passes === undefined ? offer : withoutPasses(offer);
}

/** Whether a refusal is about the caller, and not about the price. */
function isRefusedFor(verdict: PaywallVerdict): boolean {
  return verdict.kind === 'refuse' && verdict.problem !== UNPRICED;
}

function judged(verdict: PaywallVerdict): JudgedRuling {
  return { kind: 'judged', verdict };
}
