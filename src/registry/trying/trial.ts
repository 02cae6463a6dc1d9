// The type of what a proxy would answer: the registry of its process asks it, and nothing is counted or stored.
import type { Verdict } from '../../domain/decide.ts';
import type { MatchQuestion } from '../../domain/explanation.ts';

export type TrialAnswer = {
  readonly status: number;
  /** Flat name, value pairs. */
  readonly headers: readonly string[];
  readonly body: string;
};

/** `silent`: the processes that would write the answer did not say it. */
export type TrialOutcome =
  | { readonly kind: 'answer'; readonly answer: TrialAnswer }
  | { readonly kind: 'forwarded' }
  | { readonly kind: 'silent' };

export type TrialRequest = { readonly method: string; readonly path: string };

export type Trial = {
  /** Scheme and authority under which clients reach the proxy. */
  readonly origin: string;
  readonly offer: NonNullable<MatchQuestion['offer']>;
  /** Answers a request without a payment. */
  readonly answer: (verdict: Verdict, request: TrialRequest) => TrialOutcome | Promise<TrialOutcome>;
};
