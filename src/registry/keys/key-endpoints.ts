// Endpoints about API keys: what there is, making one and revoking one. People use them; an API key makes and revokes none.
import type { z } from 'zod';
import { problem, type Problem } from '../../domain/problem.ts';
import { createApiKey, TooManyKeys } from '../auth/api-keys.ts';
import { causeOf } from '../auth/author.ts';
import { configuredHolder, storedHolder } from '../auth/key-uses.ts';
import { describePrincipal, subjectOf } from '../auth/credentials.ts';
import { emptyResponse, fail, jsonResponse, type EndpointCall, type EndpointOutcome } from '../http/endpoint.ts';
import type { Services } from '../http/services.ts';
import type { StoredKey } from '../store/ports.ts';
import type { keyBody, keyParams, KeyView } from './key-schemas.ts';

/** Lists the keys of the configuration, which only its file can take away, then those of the store, oldest first. */
export async function listKeys(_call: EndpointCall, { apiKeys, configuredKeys }: Services): Promise<EndpointOutcome> {
  const [stored, uses] = await Promise.all([apiKeys.list(), apiKeys.uses()]);
  const configured = configuredKeys().map(({ name, scopes }): KeyView => ({
    ...{ id: null, name, scopes: [...scopes], where: 'configuration', created_at: null, created_by: null },
    ...{ last_used_at: hourOf(uses.get(configuredHolder(name))), revoked_at: null },
  }));
  const data = [...configured, ...stored.map((key) => viewKey(key, uses.get(storedHolder(key.id))))];
  return jsonResponse(200, { data });
}

export async function createKey(
  call: EndpointCall<unknown, unknown, z.output<typeof keyBody>>,
  { apiKeys, random, clock, log }: Services,
): Promise<EndpointOutcome> {
  const { body, principal } = call;
  const wanted = { ...body, by: subjectOf(principal), cause: causeOf(call) };
  const made = await createApiKey(apiKeys, wanted, { random, now: clock.now }).catch(refusalOf);
  if ('code' in made) return fail(made);
  const { stored, key } = made;
  log.info('api key created', { id: stored.id, name: stored.name, by: describePrincipal(principal) });
  return jsonResponse(201, { ...viewKey(stored, undefined), key }, ['Cache-Control', 'no-store']);
}

export async function revokeKey(
  call: EndpointCall<z.output<typeof keyParams>>,
  { apiKeys, clock, log }: Services,
): Promise<EndpointOutcome> {
  const { params, principal } = call;
  const outcome = await apiKeys.revoke(params.id, new Date(clock.now()).toISOString(), causeOf(call));
  switch (outcome) {
    case 'revoked':
      log.info('api key revoked', { id: params.id, by: describePrincipal(principal) });
      return emptyResponse(204);
    case 'already_revoked':
      return emptyResponse(204);
    case 'unknown':
      return fail(problem('not_found', 'There is no API key with this id.'));
    default:
      return outcome satisfies never;
  }
}

function refusalOf(error: unknown): Problem {
  if (error instanceof TooManyKeys) return problem('too_many_keys', error.message);
  throw error;
}

function viewKey({ id, name, scopes, ...key }: StoredKey, usedAt: number | undefined): KeyView {
  return {
    ...{ id, name, scopes: [...scopes], where: 'store', created_at: key.createdAt, created_by: key.createdBy },
    ...{ last_used_at: hourOf(usedAt), revoked_at: key.revokedAt },
  };
}

function hourOf(at: number | undefined): string | null {
  return at === undefined ? null : new Date(at).toISOString();
}
