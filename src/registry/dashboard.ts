// The dashboard's endpoints (interface section 4.1, and POST, which Tollgate adds): people look at routes and
// change them one at a time. A change is answered only after everything in this process works with it.
import type { z } from 'zod';
import { problem } from '../domain/problem.ts';
import { toWire, type RouteInput, type RoutePatch } from '../domain/route.ts';
import { writerOf } from './credentials.ts';
import { answerEmpty, answerJson, fail, type EndpointCall, type EndpointOutcome } from './endpoint.ts';
import { isUnmodified, mayChange, routeEtag } from './preconditions.ts';
import { answerRoute, logWrite, refusalOf } from './route-answers.ts';
import { writeCursor, type changesQuery, type listQuery, type routeParams } from './schemas.ts';
import type { Services } from './services.ts';

type Params = z.output<typeof routeParams>;

export function listRoutes(
  { query }: EndpointCall<unknown, z.output<typeof listQuery>>,
  { list }: Services,
): EndpointOutcome {
  const { limit, cursor, status, method, source, q } = query;
  const { routes, nextBefore } = list({ limit, before: cursor, status, method, source, q });
  return answerJson(200, {
    data: routes.map(toWire),
    next_cursor: nextBefore === undefined ? null : writeCursor(nextBefore),
  });
}

export function getRoute({ params, headers }: EndpointCall<Params>, { book }: Services): EndpointOutcome {
  const route = book.get(params.id);
  if (!route) return unknownRoute();
  const etag = routeEtag(route);
  return isUnmodified(headers, etag) ? answerEmpty(304, ['ETag', etag]) : answerRoute(200, route);
}

export function createRoute(call: EndpointCall<unknown, unknown, RouteInput>, services: Services): EndpointOutcome {
  const created = services.book.create({ input: call.body, by: writerOf(call.principal) });
  if (created.kind !== 'created') return fail(refusalOf(created));
  logWrite('route created', { after: created.route }, call.principal, services);
  return answerRoute(201, created.route, true);
}

export function patchRoute(call: EndpointCall<Params, unknown, RoutePatch>, services: Services): EndpointOutcome {
  const route = services.book.get(call.params.id);
  if (!route) return unknownRoute();
  if (!mayChange(call.headers, routeEtag(route))) return changedMeanwhile();
  const patched = services.book.patch(route, call.body, writerOf(call.principal));
  switch (patched.kind) {
    case 'updated':
      logWrite('route updated', { before: route, after: patched.route }, call.principal, services);
      return answerRoute(200, patched.route);
    case 'unchanged':
      return answerRoute(200, patched.route);
    case 'gone':
      return unknownRoute();
    case 'conflict':
    case 'invalid':
      return fail(refusalOf(patched));
    default:
      return patched satisfies never;
  }
}

export function deleteRoute(call: EndpointCall<Params>, services: Services): EndpointOutcome {
  const route = services.book.get(call.params.id);
  if (!route) return unknownRoute();
  if (!mayChange(call.headers, routeEtag(route))) return changedMeanwhile();
  if (!services.book.remove(route, writerOf(call.principal))) return unknownRoute();
  const note = services.isDeclared(route)
    ? 'the configuration declares it, so the next start makes it again; pausing switches it off'
    : undefined;
  logWrite('route deleted', { before: route }, call.principal, services, note);
  return answerEmpty(204);
}

/** Also of a route that was deleted, for as long as its changes are kept. */
export function listChanges(
  { params, query }: EndpointCall<Params, z.output<typeof changesQuery>>,
  { book, history }: Services,
): EndpointOutcome {
  const { changes, nextBefore } = history(params.id, query.cursor, query.limit);
  if (changes.length === 0 && book.get(params.id) === undefined) return unknownRoute();
  return answerJson(200, {
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
