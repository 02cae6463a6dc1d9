// The dashboard's endpoints (interface section 4.1, and POST, which Tollgate adds): people look at routes and
// change them one at a time. A change is answered only after everything in this process works with it.
import type { z } from 'zod';
import { problem } from '../../domain/problem.ts';
import { toWire, type Route, type RouteInput, type RoutePatch } from '../../domain/routing/route.ts';
import { authorOf } from '../auth/author.ts';
import { emptyResponse, jsonResponse, fail, type EndpointCall, type EndpointOutcome } from '../http/endpoint.ts';
import { isUnmodified, mayChange, routeEtag } from '../http/preconditions.ts';
import { routeResponse, logWrite, refusalOf } from './route-responses.ts';
import { writeCursor, type changesQuery, type listQuery, type routeParams } from '../http/schemas.ts';
import type { Services } from '../http/services.ts';

type Params = z.output<typeof routeParams>;

export function listRoutes(
  { query }: EndpointCall<unknown, z.output<typeof listQuery>>,
  { routes: stored }: Services,
): EndpointOutcome {
  const { limit, cursor, status, method, source, q } = query;
  const { routes, nextBefore } = stored.list({ limit, before: cursor, status, method, source, q });
  return jsonResponse(200, {
    data: routes.map(toWire),
    next_cursor: nextBefore === undefined ? null : writeCursor(nextBefore),
  });
}

export async function getRoute(
  { params, headers }: EndpointCall<Params>,
  { routes }: Services,
): Promise<EndpointOutcome> {
  const route = await routes.seek(params.id);
  if (!route) return unknownRoute();
  const etag = routeEtag(route);
  return isUnmodified(headers, etag) ? emptyResponse(304, ['ETag', etag]) : routeResponse(200, route);
}

export async function createRoute(
  call: EndpointCall<unknown, unknown, RouteInput>,
  services: Services,
): Promise<EndpointOutcome> {
  const created = await services.routes.create({ input: call.body, by: authorOf(call) });
  if (created.kind !== 'created') return fail(refusalOf(created));
  logWrite('route created', { after: created.route }, call.principal, services);
  return routeResponse(201, created.route, true);
}

export async function patchRoute(
  call: EndpointCall<Params, unknown, RoutePatch>,
  services: Services,
): Promise<EndpointOutcome> {
  const may = (route: Route): boolean => mayChange(call.headers, routeEtag(route));
  const patched = await services.routes.patch(call.params.id, call.body, authorOf(call), may);
  switch (patched.kind) {
    case 'updated':
      logWrite('route updated', { before: patched.before, after: patched.route }, call.principal, services);
      return routeResponse(200, patched.route);
    case 'unchanged':
      return routeResponse(200, patched.route);
    case 'gone':
      return unknownRoute();
    case 'refused':
      return changedMeanwhile();
    case 'conflict':
    case 'invalid':
      return fail(refusalOf(patched));
    default:
      return patched satisfies never;
  }
}

export async function deleteRoute(call: EndpointCall<Params>, services: Services): Promise<EndpointOutcome> {
  const may = (route: Route): boolean => mayChange(call.headers, routeEtag(route));
  const removed = await services.routes.remove(call.params.id, authorOf(call), may);
  switch (removed.kind) {
    case 'removed': {
      const note = services.isDeclared(removed.route)
        ? 'the configuration declares it, so the next start makes it again; pausing switches it off'
        : undefined;
      logWrite('route deleted', { before: removed.route }, call.principal, services, note);
      return emptyResponse(204);
    }
    case 'gone':
      return unknownRoute();
    case 'refused':
      return changedMeanwhile();
    default:
      return removed satisfies never;
  }
}

/** Lists the changes of a route, also of one that was deleted, for as long as they are kept. */
export async function listChanges(
  { params, query }: EndpointCall<Params, z.output<typeof changesQuery>>,
  { routes }: Services,
): Promise<EndpointOutcome> {
  const { changes, nextBefore } = await routes.history(params.id, query.cursor, query.limit);
  if (changes.length === 0 && (await routes.seek(params.id)) === undefined) return unknownRoute();
  return jsonResponse(200, {
    data: changes.map(({ at, by, before, after }) => ({ at, by: by.slice(by.indexOf(':') + 1), before, after })),
    next_cursor: nextBefore === undefined ? null : writeCursor(nextBefore),
  });
}

function unknownRoute(): EndpointOutcome {
  return fail(problem('not_found', 'There is no route with this id.'));
}

function changedMeanwhile(): EndpointOutcome {
  return fail(
    problem('precondition_failed', 'The route is not as your condition says; read it again before you change it.'),
  );
}
