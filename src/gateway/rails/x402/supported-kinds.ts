// Reads what facilitators take from their lists of supported kinds, and answers what has to be known before a way is
// offered. Source: x402 facilitator API, /supported.
import { z } from 'zod';
import type { Way } from '../../../domain/payment/way.ts';
import { type FacilitatorDeps, requestFacilitator } from './facilitator-calls.ts';

const supportedSchema = z.object({
  kinds: z
    .array(
      z.object({ x402Version: z.number(), scheme: z.string(), network: z.string(), extra: z.unknown().optional() }),
    )
    .max(2000),
});

/** A kind of payment that a facilitator takes. */
export type Kind = z.output<typeof supportedSchema>['kinds'][number];

/** Reads an answer of /supported: the kinds of payment that it lists, or undefined if it is not such an answer. */
export function readSupportedAnswer(status: number, body: unknown): readonly Kind[] | undefined {
  const { success, data } = supportedSchema.safeParse(body);
  return success && status >= 200 && status < 300 ? data.kinds : undefined;
}

/** Asks the facilitators of `way` for their kinds of version 2, the first facilitator's first. One that is away lists none. */
export async function askSupported(
  way: Way,
  deps: Pick<FacilitatorDeps, 'services' | 'authorize' | 'fetch'>,
): Promise<readonly Kind[]> {
  const kinds: Kind[] = [];
  for (const facilitator of deps.services(way)?.facilitators ?? []) {
    const { verifyMs: timeoutMs } = facilitator.timeouts;
    const reply = await requestFacilitator(facilitator, { name: 'supported', body: undefined, timeoutMs }, deps);
    const said = reply.kind === 'reply' ? readSupportedAnswer(reply.status, reply.body) : undefined;
    const isMeant = ({ x402Version, scheme, network }: Kind): boolean =>
      x402Version === 2 && scheme === way.scheme && network === way.network;
    kinds.push(...(said ?? []).filter(isMeant));
  }
  return kinds;
}
