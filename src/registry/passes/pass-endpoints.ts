// Endpoints about passes: those that were sold, what is left of them, and the end of one before its time. Revoking gives no
// money back; a refund of a pass's whole price revokes it by itself.
import type { z } from 'zod';
import { problem } from '../../domain/problem.ts';
import { causeOf } from '../auth/author.ts';
import { describePrincipal } from '../auth/credentials.ts';
import { withPasses, type passParams } from '../charges/draw-endpoints.ts';
import { fail, jsonResponse, type EndpointCall, type EndpointOutcome } from '../http/endpoint.ts';
import { writeCursor } from '../http/schemas.ts';
import type { Services } from '../http/services.ts';
import type { passList, passesQuery } from './pass-schemas.ts';
import { viewPass } from './pass-view.ts';

export function listPasses(
  { query }: EndpointCall<unknown, z.output<typeof passesQuery>>,
  services: Services,
): Promise<EndpointOutcome> {
  return withPasses(services, async (passes, { spelling, now }) => {
    const { limit, cursor: before, plan, pass: terms, payer, live } = query;
    const spelled = payer && spelling.identifier(payer);
    // One more than asked for says whether there is a page after this one.
    const found = await passes.list({ plan, terms, payer: spelled, live, before, limit: limit + 1 });
    const shown = found.slice(0, limit);
    const last = found.length > limit ? shown.at(-1) : undefined;
    return jsonResponse(200, {
      data: shown.map((each) => viewPass(each, now(), services.networks)),
      next_cursor: last === undefined ? null : writeCursor(last.seq),
    } satisfies z.input<typeof passList>);
  });
}

export function getPass(
  { params }: EndpointCall<z.output<typeof passParams>>,
  services: Services,
): Promise<EndpointOutcome> {
  return withPasses(services, async (passes, { now }) => {
    const found = await passes.get(params.id);
    return found === undefined ? fail(UNKNOWN) : jsonResponse(200, viewPass(found, now(), services.networks));
  });
}

export function revokePass(
  call: EndpointCall<z.output<typeof passParams>>,
  services: Services,
): Promise<EndpointOutcome> {
  const { networks, log } = services;
  return withPasses(services, async (passes, { now }) => {
    const before = await passes.get(call.params.id);
    const after = before && (await passes.revoke(call.params.id, causeOf(call)));
    if (before === undefined || after === undefined) return fail(UNKNOWN);
    const { pass } = after;
    if (before.book.revokedAt === null)
      log.info('pass revoked', {
        ...{ pass_id: pass.passId, charge_id: pass.chargeId, plan: pass.planId, pass: pass.termsId },
        ...{ payer: pass.payer, by: describePrincipal(call.principal) },
      });
    return jsonResponse(200, viewPass(after, now(), networks));
  });
}

const UNKNOWN = problem('not_found', 'There is no pass with this id.');
