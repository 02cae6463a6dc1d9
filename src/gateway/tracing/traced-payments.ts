// Payments of traced requests: each step runs in the scope of its request, the claim has a span of its own, and the
// request's span learns the network. What the reconciler asks belongs to no request and is not traced.
import type { Ledger } from '../../domain/payment/ledger.ts';
import type { RequestFacts } from '../outcome.ts';
import type { PaymentHandler } from '../pay/pay.ts';
import type { Rail } from '../rails/rail.ts';
import type { CallScope } from './call-scope.ts';
import type { RequestSpan } from './request-span.ts';

/** Runs payments in the scope of their request. */
export function tracePay(
  pay: PaymentHandler,
  scope: CallScope,
  spanOf: (facts: RequestFacts) => RequestSpan | undefined,
): PaymentHandler {
  return async (payable, facts) => {
    const span = spanOf(facts);
    const outcome = await scope.run(span, () => pay(payable, facts));
    if (outcome.kind !== 'paid') return outcome;
    // The upstream's socket tells of its answer in the scope of whoever opened it.
    return {
      ...outcome,
      beforeResponse: (head) => scope.run(span, () => outcome.beforeResponse(head)),
      done: (end) => scope.run(span, () => outcome.done(end)),
      tell: (problem) => scope.run(span, () => outcome.tell(problem)),
    };
  };
}

/** Traces claims. */
export function traceLedger(ledger: Ledger, scope: CallScope): Ledger {
  return {
    ...ledger,
    claim: async (claim, options) => {
      const span = scope.begin({ kind: 'internal', name: 'claim', attributes: [] });
      if (span === undefined) return ledger.claim(claim, options);
      try {
        const claimed = await scope.below(span, () => ledger.claim(claim, options));
        span.end({});
        return claimed;
      } catch (error) {
        span.end({ error: 'ledger_unavailable' });
        throw error;
      }
    },
  };
}

/** Notes the network of a payment that is read. */
export function traceRail(rail: Rail, scope: CallScope): Rail {
  return {
    ...rail,
    read: (credential, ways) => {
      const presented = rail.read(credential, ways);
      const span = scope.span();
      if (span !== undefined && 'way' in presented && 'network' in presented.way) span.network = presented.way.network;
      return presented;
    },
  };
}
