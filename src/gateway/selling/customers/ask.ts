// Customers whom the upstream knows by its own sign-in: a request that shows a credential goes upstream unpaid, and what the
// upstream answers decides. To a status that says no the upstream's answer is dropped, and the other ways are asked. It opens
// what the upstream gives to anybody with a made-up credential; so a client may make up ten a minute.
import { hash } from 'node:crypto';
import type { CustomerEntry } from '../../../domain/selling/customer.ts';
import type { OwnResponse } from '../../../host/respond.ts';
import { headerValues } from '../../caller.ts';
import { hasBody } from '../../headers.ts';
import type { GrantedVerdict } from '../../outcome.ts';
import { grantAccess } from '../grant.ts';
import type { SaleMetrics } from '../sale-metrics.ts';
import {
  NEXT,
  type AskedSale,
  type JudgedRuling,
  type NotPassed,
  type PlannedRequest,
  type Ruling,
  type WayToPass,
} from '../way-to-pass.ts';
import { whenKnown } from '../when-known.ts';
import type { DecideAsked, MayAsk } from './asked-clients.ts';

export type AskDeps = {
  readonly mayAsk: MayAsk;
  /** The pass of a request, which may be in a cookie: with a good one the upstream is not asked. */
  readonly pass: WayToPass;
  readonly clientOf: (request: PlannedRequest) => string;
  readonly metrics: Pick<SaleMetrics, 'customer' | 'asked'>;
  /** The answer of ours to a request that nothing lets pass. */
  readonly answer: (ruling: JudgedRuling, request: PlannedRequest) => OwnResponse;
};

/** First status that does not say that the upstream knows its client. */
const CLIENT_ERROR = 400;
const UNKNOWN: NotPassed = { kind: 'next', because: 'customer_unknown' };
/** Headers with which a client wants to pay, or has paid: then the upstream is not asked. */
const PAYING: readonly string[] = ['payment-signature', 'x-payment', 'tollgate-pass', 'sign-in-with-x'];

export function createAsk(
  { id, header }: CustomerEntry,
  statuses: readonly number[],
  { mayAsk, pass, clientOf, metrics, answer }: AskDeps,
): WayToPass {
  const ask = (asked: AskedSale, decide: DecideAsked | undefined): Ruling | NotPassed => {
    if (decide === undefined) return UNKNOWN;
    const { sale, request } = asked;
    return grantAccess('customer', sale, {
      ...{ customerId: id, headers: ['Tollgate-Customer-Id', id] },
      beforeResponse: ({ status }): GrantedVerdict | Promise<GrantedVerdict> => {
        const isRefused = statuses.includes(status);
        decide(isRefused ? 'refused' : status < CLIENT_ERROR ? 'known' : 'silent');
        metrics.customer(id, isRefused ? 'unknown' : 'known');
        metrics.asked(sale.route.id, !isRefused);
        if (!isRefused) return { kind: 'stream', headers: [] };
        // A body can be sent once.
        const isSpent = hasBody(request.req) || request.req.headers.upgrade !== undefined;
        const ruling = isSpent ? asked.demand('customer_unknown') : asked.rest('customer_unknown');
        return whenKnown(ruling, (ruled): GrantedVerdict => {
          if (ruled.kind === 'granted') return { kind: 'again', permit: ruled.permit, granted: ruled.granted };
          return {
            kind: 'replace',
            response: ruled.kind === 'answered' ? ruled.outcome.response : answer(ruled, request),
          };
        });
      },
      done: () => decide('silent'),
    });
  };
  return (asked) => {
    const { sale, request } = asked;
    const { rawHeaders } = request.req;
    const [credential = '', ...others] = headerValues(rawHeaders, header);
    if (
      credential.trim() === '' ||
      others.length > 0 ||
      PAYING.some((name) => headerValues(rawHeaders, name).length > 0)
    )
      return NEXT;
    return whenKnown(pass(asked), (passed) => {
      if (passed.kind !== 'next') return passed;
      // On another route the upstream may not know it.
      const name = hash('sha256', JSON.stringify([id, sale.route.id, credential]));
      return whenKnown(mayAsk(clientOf(request), name), (decide) => ask(asked, decide));
    });
  };
}
