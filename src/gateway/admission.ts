// Admits requests by limits. Challenges may have a limit per client. Payments under way are limited all together, so that a
// slow ledger or facilitator never holds the places of free requests. They may be limited per client too, and so may refused
// payments. A refusal here comes before anything is looked up or written: nothing is charged for it, and what was charged
// before is not known.
import type { PaywallVerdict } from '../domain/decide.ts';
import { problem, secondsToWait, type Problem } from '../domain/problem.ts';
import { createRateLimit } from '../host/rate-limit.ts';
import { clientGroup, type AddressedRequest } from './client-group.ts';
import { createClientSemaphores, type ReleasePlace } from './client-semaphores.ts';
import { createRefusalLimit, NOT_LOOKED_AT } from './refusal-limit.ts';

/** Admits a request; undefined: go on. A ReleasePlace is called once, when the payment was taken or refused. */
type Admitter = (verdict: PaywallVerdict, req: AddressedRequest) => Problem | ReleasePlace | undefined;

export type AdmissionOptions = {
  /** Requests that present a payment, at a time, until they are forwarded or answered. */
  readonly payments: number;
  /** Payments of one client at a time; 0: as many as there are. */
  readonly paymentsPerClient: number;
  /** Payments of one client that facilitators may refuse in a minute; 0: as many as there are. */
  readonly refusedPaymentsPerClient: number;
  readonly challengesPerClient: ChallengeLimitOptions;
};

export type Admission = {
  readonly admit: Admitter;
  /** A facilitator was asked about a payment of `req` and refused it. */
  readonly refused: (req: AddressedRequest) => void;
};

const RETRY_SECONDS = 1;

export function createAdmission(
  { payments, paymentsPerClient, refusedPaymentsPerClient, challengesPerClient }: AdmissionOptions,
  trusts: (address: string | undefined) => boolean,
  monotonic: () => number,
): Admission {
  const refusalLimit = createRefusalLimit(refusedPaymentsPerClient, monotonic);
  const challengeLimit = createChallengeLimit(challengesPerClient, monotonic);
  const placeOf = createClientSemaphores(paymentsPerClient, trusts);
  let taken = 0;

  const pay = (req: AddressedRequest): Problem | ReleasePlace => {
    const excess = refusalLimit?.findExcess(clientGroup(req, trusts));
    if (excess !== undefined) return excess;
    if (taken >= payments) {
      return problem(
        'too_many_requests_in_flight',
        `More than ${payments} payments are being taken, ${NOT_LOOKED_AT}.`,
        { retryAfter: RETRY_SECONDS },
      );
    }
    const release = placeOf?.(req);
    if (placeOf !== undefined && release === undefined) {
      return problem(
        'too_many_payments',
        `More than ${paymentsPerClient} payments of this client are being taken, ${NOT_LOOKED_AT}.`,
        { retryAfter: RETRY_SECONDS },
      );
    }
    taken++;
    return () => {
      taken--;
      release?.();
    };
  };

  const admit: Admitter = (verdict, req) => {
    switch (verdict.kind) {
      case 'demand':
        return challengeLimit?.(clientGroup(req, trusts));
      case 'verify':
        return pay(req);
      case 'answer_preflight':
      case 'refuse':
        return undefined;
      default:
        return verdict satisfies never;
    }
  };
  return { admit, refused: (req) => refusalLimit?.refused(clientGroup(req, trusts)) };
}

type ChallengeLimitOptions = {
  /** Number of 402 answers a minute for one client; 0: as many as it likes. */
  readonly perMinute: number;
  /** Answers at once. */
  readonly burst: number;
  /** Clients that are remembered, at most. */
  readonly clients: number;
};

/** Counts one 402 for `client`; the Problem to answer instead if it had its share. */
type ChallengeLimit = (client: string) => Problem | undefined;

/**
 * A 402 costs next to nothing and stores nothing, so by default there is no limit; it counts answers to requests that
 * present no payment. Undefined: no limit.
 */
function createChallengeLimit(
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

/** Refusal where as many requests are in flight as may be. */
export function tooMany(limit: number): Problem {
  return problem('too_many_requests_in_flight', `More than ${limit} requests are in flight; try again.`, {
    retryAfter: RETRY_SECONDS,
  });
}

/** Refusal where one client has as many requests in flight as it may. */
export function tooManyOfClient(): Problem {
  return problem('too_many_requests_in_flight', 'Too many requests of this client are in flight; try again.', {
    retryAfter: RETRY_SECONDS,
  });
}
