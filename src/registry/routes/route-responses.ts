// The answers about one route that dashboard and SDK endpoints share, and the log line that every write leaves.
import { problem, type Problem } from '../../domain/problem.ts';
import { toWire, type Route } from '../../domain/routing/route.ts';
import type { FullRegistry, InvalidRoute } from './registry-routes.ts';
import { describePrincipal, type Principal } from '../auth/credentials.ts';
import { jsonResponse, invalidBody, type EndpointOutcome } from '../http/endpoint.ts';
import { routeEtag } from '../http/preconditions.ts';
import type { Services } from '../http/services.ts';
import type { Conflict } from '../store/ports.ts';

export const ROUTES_PATH = '/v1/billing/protected-routes';

/** Answers with a route. `location` says where it can be read, for answers to a registration or a creation. */
export function routeResponse(status: 200 | 201, route: Route, location = false): EndpointOutcome {
  const etag = routeEtag(route);
  return jsonResponse(status, toWire(route), [
    ...(location ? ['Location', `${ROUTES_PATH}/${route.id}`] : []),
    'ETag',
    etag,
  ]);
}

/** Says why a route was not made. */
export function refusalOf(refusal: Conflict | InvalidRoute | FullRegistry): Problem {
  switch (refusal.kind) {
    case 'conflict': {
      const { id, method, pattern } = refusal.existing;
      const detail = `The route ${method} ${pattern} has the same method and, but for spelling, the same pattern; change that one.`;
      return problem('duplicate', detail, { members: { existing_id: id } });
    }
    case 'invalid':
      return invalidBody(refusal.errors);
    case 'full':
      return problem('invalid', `This registry holds its limit of ${refusal.limit} routes; delete some first.`);
    default:
      return refusal satisfies never;
  }
}

/** Logs who changed a price, from what to what. */
export function logWrite(
  msg: string,
  { before, after }: { readonly before?: Route; readonly after?: Route },
  principal: Principal,
  { log }: Services,
  note?: string,
): void {
  const route = after ?? before;
  log.info(msg, {
    route_id: route?.id,
    by: describePrincipal(principal),
    before: before === undefined ? null : toWire(before),
    after: after === undefined ? null : toWire(after),
    ...(note === undefined ? {} : { note }),
  });
}
