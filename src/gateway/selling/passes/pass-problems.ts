// Problems of ours about passes that are good: what stands in their way now.
import { problem, type Problem } from '../../../domain/problem.ts';

const LEDGER_SECONDS = 5;
const IN_USE_SECONDS = 1;

export function ledgerAway(): Problem {
  const detail = 'Uses of passes cannot be recorded right now, so none is drawn. Send the same request again later.';
  return problem('ledger_unavailable', detail, { retryAfter: LEDGER_SECONDS });
}

export function inUse(): Problem {
  const detail = 'What is left of this pass is reserved for requests that are under way. Send the same request again.';
  return problem('pass_in_use', detail, { retryAfter: IN_USE_SECONDS });
}

/** `asked`: a proxy asks again for one request, which has no key of its own. */
export function conflict(asked: boolean): Problem {
  const detail = asked
    ? 'The proxy in front asked about this request too often. Send it as a new one.'
    : 'This Idempotency-Key stands for another request, or was sent four times already. Take a new one.';
  return problem('idempotency_conflict', detail);
}
