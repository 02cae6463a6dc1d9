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
import type { Offer } from '../../domain/payment/offer.ts';
import type { Problem } from '../../domain/problem.ts';
import type { SalesPlan, Plans } from '../../domain/selling/plan.ts';
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
  /** Price of a request in the terms of its receiver, or why it has none. */
  readonly offerFor: (sale: PlannedSale, request: PlannedRequest) => Offer | Problem;
  readonly waysOf: (plan: SalesPlan) => PlanWays;
};

export function createSelling({ plans, rules, offerFor, waysOf }: SellingDeps): Sell {
  const pay: WayToPass = ({ sale, request }) => {
    const { route, plan } = sale;
    const offer = offerFor(sale, request);
    const verdict = decidePayment(rules, { route, offer, plan }, request.req);
    return verdict.kind === 'verify' || isRefusedFor(verdict, offer) ? judged(verdict) : NEXT;
  };
  const demand: Demand = (sale, request, because) => {
    const { route, plan } = sale;
    return judged(decidePayment(rules, { route, offer: offerFor(sale, request), plan, because }, request.req));
  };
  const open = new Map(
    [...plans.byId.values()].map((plan) => {
      const { beforePayment, afterPayment } = waysOf(plan);
      return [plan.id, [...beforePayment, pay, ...afterPayment]];
    }),
  );
  return (sale, request) => ask((sale.isSpelled && open.get(sale.plan.id)) || [pay], { sale, request, demand });
}

/** Makes the 402 of a request. */
type Demand = (sale: PlannedSale, request: PlannedRequest, because?: DemandReason) => JudgedRuling;
type Asking = Pick<AskedSale, 'sale' | 'request'> & { readonly demand: Demand };

/** Asks `ways`, the first of them first; after the last one comes the 402. */
function ask(ways: readonly WayToPass[], asking: Asking, before?: DemandReason): Ruling | Promise<Ruling> {
  const { sale, request } = asking;
  let because = before;
  for (const [index, way] of ways.entries()) {
    const said = because;
    const rest = (reason?: DemandReason): Ruling | Promise<Ruling> =>
      ask(ways.slice(index + 1), asking, said ?? reason);
    const demand = (reason?: DemandReason): JudgedRuling => asking.demand(sale, request, said ?? reason);
    const taken = way({ sale, request, because, rest, demand });
    if (taken instanceof Promise) return taken.then((each) => (each.kind === 'next' ? rest(each.because) : each));
    if (taken.kind !== 'next') return taken;
    because ??= taken.because;
  }
  return asking.demand(sale, request, because);
}

/** Whether a refusal is about the caller, and not about the price. */
function isRefusedFor(verdict: PaywallVerdict, offer: Offer | Problem): boolean {
  return verdict.kind === 'refuse' && verdict.problem !== offer;
}

function judged(verdict: PaywallVerdict): JudgedRuling {
  return { kind: 'judged', verdict };
}
