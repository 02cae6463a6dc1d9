// A question about a payment that was decided before. The very same request of the proxy, known by the id that the proxy made,
// joins the question that is being decided, and gets an allow again that was handed over a moment ago. Nobody else does: allowing
// a credential twice would halve its price.
import { receiptOf } from '../../domain/payment/charge.ts';
import { isSameAsk, paymentStatus } from '../../domain/payment/claim-policy.ts';
import { grantOf } from '../pay/deliverer.ts';
import type { CreateRepeats } from '../pay/repeats.ts';
import type { DecisionMetrics } from './decision-metrics.ts';

/** Pause between two looks at a charge that another process works on. */
const LOOK_MS = 100;

export function createRepeatedQuestions({ repeated }: Pick<DecisionMetrics, 'repeated'>): CreateRepeats {
  return ({ recorder, rail, ledger, pause }) => ({
    redeemed: () => repeated('undelivered'),
    join: async ({ presented, shown, facts }, charge) => {
      if (!isSameAsk(charge, shown)) return undefined;
      repeated('joined');
      for (;;) {
        if (facts.left()) return { status: 'in_use', charge };
        await pause(LOOK_MS);
        const known = await ledger.find(presented.key);
        const status = paymentStatus(known, shown, ledger.now());
        if (status !== 'in_use') return { status, charge: known };
      }
    },
    again: async (payment, charge) => {
      const { shown, route, customerId, presented } = payment;
      const given = await recorder.change(payment, charge.id, { kind: 'allow_repeated', request: shown });
      if (given.kind !== 'ok') {
        repeated('already_paid');
        return undefined;
      }
      repeated('same_request');
      recorder.counted(route.id, 'replayed', charge.way.network);
      const receipt = receiptOf(given.charge);
      const headers = receipt === undefined ? [] : rail.receiptHeader(presented.version, receipt);
      return {
        kind: 'paid',
        grant: grantOf(given.charge),
        ...{ route, customerId },
        settles: 'before_forward',
        keep: undefined,
        beforeResponse: () => ({ kind: 'stream', headers }),
        done: () => undefined,
        tookMoney: () => true,
        tell: (problem) => Promise.resolve(problem),
      };
    },
  });
}
