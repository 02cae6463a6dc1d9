// A way to pay: which asset goes where on which network, and by when. Its terms hold what only the network's rail
// understands; only that rail reads them.
import type { Listing } from '../discovery/listing.ts';
import type { ClaimPart } from './charge-fields.ts';

export type Way = ClaimPart<'way'>;

/** Terms that a payment has to meet. */
export type RailOffer = {
  readonly way: Way;
  /** The smallest unit of the way's asset. */
  readonly amount: bigint;
  /** Public URL of what is paid for, as we know it; undefined where it is not known any more. */
  readonly resource: string | undefined;
  readonly description: string;
  /** Listing of the operation; undefined if it is not listed. */
  readonly listing?: Listing | undefined;
};

/** Facts that a 402 says of an offer beside its price. */
export type QuoteFacts = {
  readonly chargeId: string;
  /** Whether every request of this kind is settled before it is forwarded. */
  readonly upfront: boolean;
};

/** The entry of `accepts` for an offer in a version of x402; undefined: that version cannot name it. */
export type Requirement = (offer: RailOffer, quote: QuoteFacts, version: 1 | 2) => object | undefined;
