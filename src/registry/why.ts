// GET /v1/billing/why/{id}: what became of a charge, a request or a transaction, in the words of whoever runs this registry:
// the refusals are those of a proxy, and a proxy may be another process.
import { z } from 'zod';
import { problem } from '../domain/problem.ts';
import { chargeView } from './charge-schemas.ts';
import { answerJson, fail, type Call, type Outcome } from './endpoint.ts';
import { withLedger } from './ledger-api.ts';
import { documented } from './schemas.ts';
import type { Services } from './services.ts';

export const whyParams = z.object({ id: z.string().regex(/^[\x21-\x7e\u2026]{1,256}$/) });

/** What the id of a 402 says; all null but the first where it was signed with none of the secrets that are known here. */
const quote = z.object({
  signed_here: z.boolean(),
  route_id: z.string().nullable(),
  route_method: z.string().nullable(),
  route_pattern: z.string().nullable(),
  method: z.string().nullable(),
  amount: z.string().nullable(),
  currency: z.string().nullable(),
  issued_at: z.string().nullable(),
  expires_at: z.string().nullable(),
  expired: z.boolean().nullable(),
});

export const whyAnswer = z.object({
  id: z.string(),
  /** Newest first. */
  charges: z.array(chargeView),
  /** What the id of a 402 says. */
  quote: quote.nullable(),
  /** Of the last 10,000 refusals of this process, newest first. */
  refusals: z.array(
    z.object({
      at: z.string(),
      request_id: z.string(),
      method: z.string(),
      path: z.string(),
      status: z.int(),
      outcome: z.string(),
      reason: z.string().nullable(),
      route_id: z.string().nullable(),
      route_pattern: z.string().nullable(),
      charge_id: z.string().nullable(),
    }),
  ),
  /** The proxies are other processes: each is asked by `tollgate why` beside it. */
  refusals_elsewhere: z.boolean(),
  /** The ledger is a registry's, which is asked for a request id or a transaction. */
  ledger_elsewhere: z.boolean(),
});
documented.add(whyAnswer, { id: 'Why', description: 'What became of a charge, a request or a transaction.' });
export type WhyAnswer = z.infer<typeof whyAnswer>;

export function isEmpty({ charges, quote: said, refusals }: WhyAnswer): boolean {
  return charges.length === 0 && said === null && refusals.length === 0;
}

export const ASK_THE_PROXY =
  'Refusals are remembered by the process whose proxy refused: run `tollgate why ID` beside that sidecar.';

export function answerWhy({ params }: Call<z.output<typeof whyParams>>, services: Services): Promise<Outcome> {
  return withLedger(services, async () => {
    const answer = await services.why(params.id);
    if (!isEmpty(answer)) return answerJson(200, answer);
    const nothing = 'No charge, quote or remembered refusal has this id.';
    return fail(problem('not_found', answer.refusals_elsewhere ? `${nothing} ${ASK_THE_PROXY}` : nothing));
  });
}
