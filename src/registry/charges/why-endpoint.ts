// GET /v1/billing/why/{id}: what became of a charge, a request or a transaction, as far as the process of this registry
// knows. Refusals are known to the proxy that refused, which may be another process.
import type { z } from 'zod';
import { problem } from '../../domain/problem.ts';
import type { WhyReport, whyParams } from './charge-schemas.ts';
import { jsonResponse, fail, type EndpointCall, type EndpointOutcome } from '../http/endpoint.ts';
import { withLedger } from './ledger-endpoints.ts';
import type { Services } from '../http/services.ts';

export function isEmpty({ charges, quote: said, refusals }: WhyReport): boolean {
  return charges.length === 0 && said === null && refusals.length === 0;
}

export const ASK_THE_PROXY =
  'Refusals are remembered by the process whose proxy refused: run `tollgate why ID` beside that sidecar.';

export function answerWhy(
  { params }: EndpointCall<z.output<typeof whyParams>>,
  services: Services,
): Promise<EndpointOutcome> {
  return withLedger(services, async () => {
    const answer = await services.why(params.id);
    if (!isEmpty(answer)) return jsonResponse(200, answer);
    const nothing = 'No charge, quote or remembered refusal has this id.';
    return fail(problem('not_found', answer.refusals_elsewhere ? `${nothing} ${ASK_THE_PROXY}` : nothing));
  });
}
