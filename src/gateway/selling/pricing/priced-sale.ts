// What a request of a route with a plan costs, and what that depends on. Type only.
import type { Offer } from '../../../domain/payment/offer.ts';
import type { Problem } from '../../../domain/problem.ts';

/** The price of a request. */
export type PricedSale = {
  /** Offer at the price, or why there is none. */
  readonly offer: Offer | Problem;
  /** Everything that the price depends on, as one text; undefined: it depends on nothing, or cannot be read. */
  readonly inputs: string | undefined;
  /** The request itself cannot be priced, whatever is presented with it. */
  readonly isRefused?: true;
};
