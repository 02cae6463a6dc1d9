// Asks the facilitators of a way what they take of its kind. For what has to be known before a way is offered.
// Source: x402 facilitator API, /supported.
import type { Way } from '../../../domain/payment/way.ts';
import { callService, urlBelow } from '../service-call.ts';
import { readSupportedAnswer, type Kind } from './facilitator-wire.ts';
import { ANSWER_LIMITS, MAX_ANSWER_BYTES, type FacilitatorDeps } from './facilitators.ts';

/** Kinds of version 2, those of the first facilitator first. One that is away lists none. */
export async function askSupported(
  way: Way,
  { services, authorize, fetch }: Pick<FacilitatorDeps, 'services' | 'authorize' | 'fetch'>,
): Promise<readonly Kind[]> {
  const kinds: Kind[] = [];
  for (const { url: base, auth, headers: own, timeouts } of services(way)?.facilitators ?? []) {
    const url = urlBelow(base, 'supported');
    const headers = auth === undefined ? own : { ...own, Authorization: await authorize(auth, 'GET', new URL(url)) };
    const limits = { maxBytes: MAX_ANSWER_BYTES, limits: ANSWER_LIMITS, timeoutMs: timeouts.verifyMs };
    const reply = await callService({ method: 'GET', url, headers, body: undefined, ...limits }, fetch);
    const said = reply.kind === 'reply' ? readSupportedAnswer(reply.status, reply.body) : undefined;
    const isMeant = ({ x402Version, scheme, network }: Kind): boolean =>
      x402Version === 2 && scheme === way.scheme && network === way.network;
    kinds.push(...(said ?? []).filter(isMeant));
  }
  return kinds;
}
