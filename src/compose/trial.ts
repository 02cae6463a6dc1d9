// What the proxy of this process would answer to a request without a payment, asked of its own paywall: a 402 from here is one
// that can be paid, because a quote is signed and stored nowhere.
import type { Verdict } from '../domain/decide.ts';
import type { RequestFacts } from '../gateway/outcome.ts';
import type { Paywall } from '../gateway/paywall.ts';
import type { ProxyConfig } from '../config/config.ts';
import { formatListen } from '../config/addresses.ts';
import type { Trial, TrialOutcome } from '../registry/trying/trial.ts';

/** A trial in the process that serves requests, which answers at once. */
export type OwnTrial = Omit<Trial, 'answer'> & {
  readonly answer: (...asked: Parameters<Trial['answer']>) => TrialOutcome;
};

type TrialDeps = Pick<Trial, 'offer'> & {
  readonly paywall: Pick<Paywall, 'perform'>;
  readonly now: () => number;
};

export function createTrial({ paywall, offer, now }: TrialDeps): (origin: string) => OwnTrial {
  return (origin) => ({
    ...{ origin, offer },
    answer: (verdict: Verdict, { method, path }) => {
      if (verdict.kind === 'pass' || verdict.kind === 'sell') return FORWARDED;
      const outcome = paywall.perform(verdict, {
        ...NOBODY,
        method,
        path,
        target: path,
        publicOrigin: origin,
        nowMs: now(),
      });
      if (!('kind' in outcome) || outcome.kind !== 'response') return FORWARDED;
      const { status, headers, body } = outcome.response;
      return { kind: 'answer', answer: { status, headers, body: String(body) } };
    },
  });
}

const FORWARDED: TrialOutcome = { kind: 'forwarded' };

/** Scheme and authority under which clients reach a proxy. `boundPort`: the port that it got if any would do. */
export function trialOrigin(
  { publicUrl, listen }: Pick<ProxyConfig, 'publicUrl' | 'listen'>,
  boundPort: number | undefined,
): string {
  return publicUrl ?? `http://${formatListen({ ...listen, port: boundPort ?? listen.port })}`;
}

const NOBODY: Omit<RequestFacts, 'method' | 'path' | 'target' | 'publicOrigin' | 'nowMs'> = {
  ...{ requestId: '', origin: undefined, conditionalWrite: false, customerTrusted: false },
  asksForPage: () => false,
  left: () => false,
  connect: () => Promise.resolve(undefined),
  notePayer: () => undefined,
};
