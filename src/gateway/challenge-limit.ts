// How many 402 answers one client may draw. A 402 costs next to nothing and stores nothing, so by default there is no
// limit; where an operator sets one, it counts answers to requests that present no payment, and nothing else: what is free
// and what is paid is never refused here.
import { problem, secondsToWait, type Problem } from '../domain/problem.ts';
import { createRateLimit } from '../host/rate-limit.ts';

export type ChallengeLimitOptions = {
  /** 402 answers a minute for one client; 0: as many as it likes. */
  readonly perMinute: number;
  /** How many at once. */
  readonly burst: number;
  /** Clients that are remembered, at most. */
  readonly clients: number;
};

/** Counts one 402 for `client`; the Problem to answer instead where it had its share. */
export type ChallengeLimit = (client: string) => Problem | undefined;

/** Undefined where there is no limit. */
export function createChallengeLimit(
  { perMinute, burst, clients }: ChallengeLimitOptions,
  monotonic: () => number,
): ChallengeLimit | undefined {
  if (perMinute === 0) return undefined;
  const limit = createRateLimit({ perMinute, burst, keys: clients }, monotonic);
  return (client) => {
    const waitMs = limit.takeMs(client);
    if (waitMs === 0) return undefined;
    return problem(
      'too_many_challenges',
      `More than ${perMinute} answers about what to pay were asked for in a minute. Send a payment, or ask again later.`,
      { retryAfter: secondsToWait(waitMs) },
    );
  };
}
