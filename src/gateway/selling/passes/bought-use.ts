// The use of the request that buys a pass, if the ledger reserved it as the pass opened. It is taken before the client hears of
// its response. Under a meter that hears the response to its end, it is taken after it: its price stays reserved until then.
import type { Charge } from '../../../domain/payment/charge.ts';
import { parsePrice } from '../../../domain/payment/money.ts';
import { readPassInSale, type PassInSale, type SoldPass } from '../../../domain/selling/pass.ts';
import type { SalesPlan } from '../../../domain/selling/plan.ts';
import type { End, ResponseHearer, SeenResponseHead } from '../../outcome.ts';
import type { MeteredUse, PriceLimit } from '../metering.ts';
import { whyUnused } from './draw.ts';
import type { Passes } from './passes.ts';
import type { FirstUse } from './presented-pass.ts';

export type BoughtUse = {
  readonly hearer: ResponseHearer | undefined;
  /** The pass is open: keeps its use alive from here on. */
  readonly open: (pass: SoldPass) => void;
  /** Takes the use for a response that counts as one. Resolves with what of a credit is taken, true for all that was reserved. */
  readonly take: (head: SeenResponseHead) => Promise<true | bigint>;
  /** The response counts as none. */
  readonly giveBack: () => void;
  readonly done: (end: End) => void;
};

/** The request that buys. */
type Buying = {
  readonly owner: string;
  readonly plan?: SalesPlan | undefined;
  readonly facts: { readonly requestId: string };
};

/** The use of the request that buys a pass by this charge; undefined: none is reserved for it. */
export function boughtUse(
  { openFirstUse, meter }: Pick<Passes, 'openFirstUse' | 'meter'>,
  buying: Buying,
  charge: Charge,
): BoughtUse | undefined {
  const sale = charge.pass === null ? undefined : readPassInSale(charge.pass);
  if (sale === undefined || sale.kind === 'seconds' || openFirstUse === undefined) return undefined;
  const isMetered = sale.kind === 'credit' && sale.isMetered === true;
  if (charge.settle === 'before_response' && !isMetered) return undefined;
  const metered = isMetered ? meterFirst(meter, buying, charge, sale) : undefined;
  let use: FirstUse | undefined;
  let stage: 'open' | 'heard' | 'over' = 'open';
  return {
    hearer: metered?.use.hearer,
    open: (pass) => void (use = openFirstUse(pass, buying.owner)),
    take: async (head) => {
      const isSaid = metered?.use.head(head);
      stage = isSaid === false ? 'heard' : 'over';
      const part = isSaid === true ? metered?.use.amount(metered.limit) : undefined;
      if (stage === 'over') await use?.take(part);
      return part ?? true;
    },
    giveBack: () => {
      stage = 'over';
      use?.giveBack('not_charged');
    },
    done: (end) => {
      if (stage === 'open') use?.giveBack(whyUnused(end));
      if (stage === 'heard' && metered !== undefined) use?.takeAfterwards(metered.use.amount(metered.limit, end));
      stage = 'over';
    },
  };
}

/** Meters the request by the plan in force; undefined: it has no meter any more, and takes its price. */
function meterFirst(
  meter: Passes['meter'],
  { plan, facts }: Buying,
  { way, route }: Charge,
  { first, planId }: PassInSale,
): { readonly use: MeteredUse; readonly limit: PriceLimit } | undefined {
  const price = parsePrice(first);
  if (plan?.meter === undefined || price === undefined) return undefined;
  const about = { routeId: route.id, planId, requestId: facts.requestId };
  return { use: meter(plan.meter, about), limit: { price, decimals: way.decimals } };
}
