// Tells of a response whether a payment for it would have been charged: the rule of payments, for requests that pass without
// one. A dry run counts by it, and what was counted beforehand is given back by it.
import type { Offer } from '../../domain/payment/offer.ts';
import { settlesFirst } from '../../domain/payment/offer.ts';
import type { Problem } from '../../domain/problem.ts';
import type { SeenResponseHead } from '../outcome.ts';
import { isCharged, type OwnAuthorities } from '../pay/charged-responses.ts';

export type WouldCharge = (offer: Offer | Problem, method: string, head: SeenResponseHead) => boolean;

/** First status of a server's failure: a request that is settled first is charged for any below it. */
const FAILURE = 500;

export function createWouldCharge(own: OwnAuthorities): WouldCharge {
  return (offer, method, { status, headers }) => {
    const settle = 'code' in offer ? 'auto' : offer.receiver.settle;
    return settlesFirst(settle, method) ? status < FAILURE : isCharged(status, headers, own);
  };
}
