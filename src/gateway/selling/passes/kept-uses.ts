// Answers to uses of passes that carried an Idempotency-Key, kept in memory for a short time after their last byte. A client
// that lost one sends its request again and gets it as it was, without the upstream and without a draw. Only the process that
// gave it has it: elsewhere or later the books know the use, and the upstream is asked again.
import { hash } from 'node:crypto';
import type { PresentedRequest } from '../../../domain/payment/claim-policy.ts';
import type { DrawKey } from '../../../domain/selling/pass-book.ts';
import { chargeIdOfPass } from '../../../domain/selling/pass.ts';
import type { ResponseOutcome } from '../../outcome.ts';
import { KeptResponse, type Replays, type ResponseMemory } from '../../pay/kept-responses.ts';
import type { CollectedUse, PassUse } from './presented-pass.ts';

/** A use that can be asked for again: the request with its key, under the route and the plan of its answer. */
export type UseName = {
  readonly passId: string;
  readonly planId: string;
  readonly routeId: string;
  readonly key: DrawKey;
};

export type KeptUses = {
  /** The answer to this very use, if it was given a moment ago. */
  readonly find: (use: UseName) => ResponseOutcome | undefined;
  readonly collect: (use: UseName) => CollectedUse;
};

type KeptUsesDeps = {
  readonly memory: ResponseMemory;
  readonly replays: Replays;
  /** Size of the largest answer that is kept, as configured now. */
  readonly keepBytes: () => number;
};

export function createKeptUses({ memory, replays, keepBytes }: KeptUsesDeps): KeptUses {
  return {
    find: (use) => {
      const found = replays.find(shownBy(use));
      return found && { kind: 'response', outcome: 'pass', reason: 'replayed', ...found };
    },
    collect: (use) => ({
      keep: new KeptResponse(memory, keepBytes()),
      done: (end) => {
        const kept = end.kind === 'delivered' || end.kind === 'client_gone' ? end.kept : undefined;
        if (kept === undefined) return;
        const { passId, routeId } = use;
        replays.remember(shownBy(use), kept, { chargeId: chargeIdOfPass(passId), routeId });
      },
    }),
  };
}

/** The name of a use of a pass under its key; undefined: its answer is never seen here. */
export function nameUse(passId: string, { plan, route, request }: PassUse, key: DrawKey): UseName | undefined {
  return request.asker === undefined ? { passId, planId: plan.id, routeId: route.id, key } : undefined;
}

/** What such a request shows, in place of a payment: its pass and its key. */
function shownBy({ passId, planId, routeId, key }: UseName): PresentedRequest {
  const { sha256, method, targetSha256 } = key;
  return { credentialSha256: hash('sha256', JSON.stringify([passId, planId, routeId, sha256])), method, targetSha256 };
}
