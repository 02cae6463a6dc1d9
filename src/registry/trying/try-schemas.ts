// Schemas of the endpoint that tries a request.
import { z } from 'zod';
import { matchBody, documented } from '../http/schemas.ts';
import { routeWire } from '../../domain/routing/route.ts';

export const tryBody = z.object({
  target: z.string().nullable(),
  problem: z.object({ status: z.int(), code: z.string(), detail: z.string() }).nullable(),
  matched: matchBody.shape.matched,
  payment_required: matchBody.shape.payment_required,
  route: routeWire.nullable(),
  params: matchBody.shape.params,
  because: z.array(
    z.object({ route_id: z.uuid(), route_pattern: z.string(), method: z.string(), wins: z.boolean(), why: z.string() }),
  ),
  plan: z.object({ id: z.string(), decides: z.string() }).nullable(),
  answer: z
    .object({
      status: z.int(),
      headers: z.array(z.array(z.string())),
      body: z.union([z.string(), z.record(z.string(), z.unknown())]),
    })
    .nullable(),
  reason: z.string().nullable(),
  curl: z.string().nullable(),
});
export type TryBody = z.output<typeof tryBody>;

documented.add(tryBody, {
  id: 'Try',
  description:
    'What the proxy would do with a request. `answer` is null if it goes upstream, or with `reason` if this process cannot say.',
});
