// GET /v1/billing/attention: what needs somebody, worst first.
import { z } from 'zod';
import { ATTENTION_CODES, type AttentionEntry } from '../../domain/attention/attention.ts';
import { jsonResponse, type EndpointCall, type EndpointOutcome } from '../http/endpoint.ts';
import { documented } from '../http/schemas.ts';
import type { Services } from '../http/services.ts';
import { viewAttention } from '../store/attention-values.ts';

const attentionView = z.object({
  code: z.enum(ATTENTION_CODES),
  severity: z.enum(['page', 'ticket']),
  subject: z.string().nullable(),
  detail: z.string(),
  since: z.iso.datetime(),
  count: z.int().min(1),
  link: z.string().nullable(),
});
export const attentionList = z.object({ data: z.array(attentionView), checked_at: z.iso.datetime() });

documented.add(attentionView, {
  id: 'Attention',
  description:
    'Something that needs somebody. `detail` says what is and what to do; `link` is a path of the desk; `since` when the first process found it.',
});
documented.add(attentionList, { id: 'AttentionList' });

export async function listAttention(_call: EndpointCall, { attention, clock }: Services): Promise<EndpointOutcome> {
  const entries: readonly AttentionEntry[] = await attention();
  return jsonResponse(200, { data: entries.map(viewAttention), checked_at: new Date(clock.now()).toISOString() });
}
