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
import { problem, type Problem } from '../../domain/problem.ts';
import type { SalesPlan, Plans } from '../../domain/selling/plan.ts';
import { NEXT, type AskedSale, type PlannedRequest, type Ruling, type Sell, type WayToPass } from './way-to-pass.ts';

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
  const demand: WayToPass = ({ sale, request, because }) => {
    const { route, plan } = sale;
    const offer = offerFor(sale, request);
    return judged(decidePayment(rules, { route, offer, plan, because }, request.req));
  };
  const closed = [pay, demand];
  const open = new Map(
    [...plans.byId.values()].map((plan) => {
      const { beforePayment, afterPayment } = waysOf(plan);
      return [plan.id, [...beforePayment, pay, ...afterPayment, demand]];
    }),
  );
  return (sale, request) => ask((sale.isSpelled && open.get(sale.plan.id)) || closed, { sale, request });
}

/** Asks `ways`, the first of them first. */
function ask(
  ways: readonly WayToPass[],
  asked: Pick<AskedSale, 'sale' | 'request'>,
  before?: DemandReason,
): Ruling | Promise<Ruling> {
  let because = before;
  for (const [index, way] of ways.entries()) {
    const said = because;
    const rest = (reason?: DemandReason): Ruling | Promise<Ruling> => ask(ways.slice(index + 1), asked, said ?? reason);
    const taken = way({ ...asked, because, rest });
    if (taken instanceof Promise) return taken.then((each) => (each.kind === 'next' ? rest(each.because) : each));
    if (taken.kind !== 'next') return taken;
    because ??= taken.because;
  }
  return judged({ kind: 'refuse', problem: NO_END, route: asked.sale.route });
}

/** No list of ways is without an end; if one ever is, nothing passes. */
const NO_END = problem('internal', 'Nothing decided about this request; it was not forwarded.');

/** Whether a refusal is about the caller, and not about the price. */
function isRefusedFor(verdict: PaywallVerdict, offer: Offer | Problem): boolean {
  return verdict.kind === 'refuse' && verdict.problem !== offer;
}

function judged(verdict: PaywallVerdict): Ruling {
  return { kind: 'judged', verdict };
}
