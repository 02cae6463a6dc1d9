// What the proxy of this process would answer to a request without a payment, asked of its own paywall: a 402 from here is one
// that can be paid, because a quote is signed and stored nowhere.
import type { Verdict } from '../domain/decide.ts';
import type { RequestFacts } from '../gateway/outcome.ts';
import type { Paywall } from '../gateway/paywall.ts';
import type { Trial } from '../registry/trying/trial.ts';

type TrialDeps = Pick<Trial, 'origin' | 'offer'> & {
  readonly paywall: Pick<Paywall, 'perform'>;
  readonly now: () => number;
};

export function createTrial({ paywall, offer, origin, now }: TrialDeps): Trial {
  return {
    ...{ origin, offer },
    answer: (verdict: Verdict, { method, path }) => {
      if (verdict.kind === 'pass' || verdict.kind === 'sell') return undefined;
      const outcome = paywall.perform(verdict, {
        ...NOBODY,
        method,
        path,
        target: path,
        publicOrigin: origin,
        nowMs: now(),
      });
      if (!('kind' in outcome) || outcome.kind !== 'response') return undefined;
      const { status, headers, body } = outcome.response;
      return { status, headers, body: String(body) };
    },
  };
}

const NOBODY: Omit<RequestFacts, 'method' | 'path' | 'target' | 'publicOrigin' | 'nowMs'> = {
  ...{ requestId: '', origin: undefined, conditionalWrite: false, customerTrusted: false },
  asksForPage: () => false,
  left: () => false,
  connect: () => Promise.resolve(undefined),
  notePayer: () => undefined,
};
