// Whether a request that costs something may go on now. Challenges may have a limit per client; payments being taken are
// limited all together, so that a slow ledger or facilitator never holds the places of free requests, and may be limited
// per client, so that one client cannot hold the places of all who pay. A refusal here comes before anything is looked up
// or written: nothing was charged.
import type { Verdict } from '../domain/decide.ts';
import { problem, type Problem } from '../domain/problem.ts';
import { createChallengeLimit, type ChallengeLimitOptions } from './challenge-limit.ts';
import { clientGroup, type Addressed } from './client-group.ts';

/** To be called once, when the payment of the request was taken or refused. */
export type Release = () => void;

/** Undefined: go on. */
export type Admit = (verdict: Verdict, req: Addressed) => Problem | Release | undefined;

export type AdmissionOptions = {
  /** Requests that present a payment, at a time, until they are forwarded or answered. */
  readonly payments: number;
  /** Of one client; 0: as many as there are. */
  readonly paymentsPerClient: number;
  readonly challengesPerClient: ChallengeLimitOptions;
};

const RETRY_SOON = { 'Retry-After': '1' };

export function createAdmission(
  { payments, paymentsPerClient, challengesPerClient }: AdmissionOptions,
  trusts: (address: string | undefined) => boolean,
  monotonic: () => number,
): Admit {
  const challengeLimit = createChallengeLimit(challengesPerClient, monotonic);
  const byClient = new Map<string, number>();
  let taken = 0;

  const pay = (req: Addressed): Problem | Release => {
    if (taken >= payments) {
      return problem(
        'too_many_requests_in_flight',
        `More than ${payments} payments are being taken; nothing was charged, try again.`,
        { headers: RETRY_SOON },
      );
    }
    if (paymentsPerClient === 0) {
      taken++;
      return () => void taken--;
    }
    const client = clientGroup(req, trusts);
    const own = byClient.get(client) ?? 0;
    if (own >= paymentsPerClient) {
      return problem(
        'too_many_payments',
        `More than ${paymentsPerClient} payments of this client are being taken; nothing was charged, try again.`,
        { headers: RETRY_SOON },
      );
    }
    taken++;
    byClient.set(client, own + 1);
    return () => {
      taken--;
      const left = (byClient.get(client) ?? 1) - 1;
      if (left === 0) byClient.delete(client);
      else byClient.set(client, left);
    };
  };

  return (verdict, req) => {
    switch (verdict.kind) {
      case 'demand':
        return challengeLimit?.(clientGroup(req, trusts));
      case 'verify':
        return pay(req);
      case 'pass':
      case 'answer_preflight':
      case 'refuse':
        return undefined;
      default:
        return verdict satisfies never;
    }
  };
}
