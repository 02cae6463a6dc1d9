// The two endpoints of signing in through an OpenID provider. Both answer a browser's visit with a redirect.
import { z } from 'zod';
import { problem } from '../../../domain/problem.ts';
import { requestIdOf } from '../../auth/author.ts';
import { fail, type EndpointCall, type EndpointOutcome } from '../../http/endpoint.ts';
import type { Services } from '../../http/services.ts';
import type { Lead } from './oidc-door.ts';

export const oidcStartQuery = z.object({ to: z.string().optional() });
/** What providers send back; the last three are read by nobody. */
export const oidcCallbackQuery = z.object({
  code: z.string().optional(),
  state: z.string().optional(),
  iss: z.string().optional(),
  error: z.string().optional(),
  error_description: z.string().optional(),
  session_state: z.string().optional(),
  scope: z.string().optional(),
});

export async function startOidc(
  { query, peer }: EndpointCall<unknown, z.output<typeof oidcStartQuery>>,
  { desk }: Services,
): Promise<EndpointOutcome> {
  return follow(await desk?.oidc.start(query.to, peer.address));
}

export async function finishOidc(
  { query, headers, peer }: EndpointCall<unknown, z.output<typeof oidcCallbackQuery>>,
  { desk }: Services,
): Promise<EndpointOutcome> {
  const { code, state, iss, error } = query;
  const given = Object.entries({ code, state, iss, error }).filter(([, value]) => value !== undefined);
  const answer = new URLSearchParams(given.map(([name, value]) => [name, value ?? '']));
  const from = { cookie: headers.cookie, address: peer.address, requestId: requestIdOf(headers) };
  return follow(await desk?.oidc.finish(answer, from));
}

function follow(lead: Lead | undefined): EndpointOutcome {
  if (lead === undefined) return fail(problem('not_found', 'There is nothing at this path.'));
  const cookies = lead.cookies.flatMap((cookie) => ['Set-Cookie', cookie]);
  return { kind: 'response', status: 303, headers: ['Location', lead.location, ...cookies], body: '' };
}
