// Tells of a response whether a payment for it would have been charged: the rule of payments, for requests that pass without
// one. A dry run counts by it, and what was counted beforehand is given back by it.
import type { Offer } from '../../domain/payment/offer.ts';
import { settlesFirst } from '../../domain/payment/offer.ts';
import type { Problem } from '../../domain/problem.ts';
import type { SeenResponseHead } from '../outcome.ts';
import { isCharged, type OwnAuthorities } from '../pay/charged-responses.ts';

/** How a response began. `left`: its client left before that, when the upstream had been asked. */
export type SeenResponse = SeenResponseHead | 'left';

export type WouldCharge = (offer: Offer | Problem, method: string, seen: SeenResponse) => boolean;

/** First status of a server's failure: a request that is settled first is charged for any below it. */
const FAILURE = 500;

export function createWouldCharge(own: OwnAuthorities): WouldCharge {
  return (offer, method, seen) => {
    const isFirst = settlesFirst('code' in offer ? 'auto' : offer.receiver.settle, method);
    // The effect of a request that is settled first is the service, whether its client waits for the response or not.
    if (seen === 'left') return isFirst;
    return isFirst ? seen.status < FAILURE : isCharged(seen.status, seen.headers, own);
  };
}
