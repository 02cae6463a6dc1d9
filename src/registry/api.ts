// The interface as one table: the router, validation, the OpenAPI document and the tests all read it, so that none of
// them can know an endpoint that the others do not. Interface section 4; what is ours is in CONTRACT section 2.
import { z } from 'zod';
import { serveDocument, serveHealth } from './about.ts';
import type { Auth } from './credentials.ts';
import { createRoute, deleteRoute, getRoute, listRoutes, patchRoute } from './dashboard.ts';
import { endpoint, JSON_TYPE, MERGE_PATCH_TYPE, type Endpoint } from './endpoint.ts';
import { ROUTES_PATH } from './route-answers.ts';
import {
  createBody,
  health,
  listQuery,
  matchAnswer,
  matchQuery,
  nothing,
  patchBody,
  registerBody,
  routeList,
  routeParams,
  routeSet,
} from './schemas.ts';
import { routeWire } from '../domain/route.ts';
import { answerMatch, registerRoute, serveRoutes, streamEvents } from './sdk.ts';
import type { Services } from './services.ts';

const DASHBOARD: Auth = { kind: 'jwt' };
const SDK: Auth = { kind: 'api_key', scope: 'sdk' };
const ANYONE: Auth = { kind: 'none' };

const noBody = { body: nothing, mediaTypes: [] };
const takesNothing = { params: nothing, query: nothing, ...noBody };

export const API: readonly Endpoint<Services>[] = [
  endpoint({
    method: 'GET',
    path: ROUTES_PATH,
    id: 'listRoutes',
    summary: 'Routes, newest first, a page at a time',
    auth: DASHBOARD,
    params: nothing,
    query: listQuery,
    ...noBody,
    answers: { 200: { description: 'A page of routes', schema: routeList } },
    problems: [],
    handler: listRoutes,
  }),
  endpoint({
    method: 'POST',
    path: ROUTES_PATH,
    id: 'createRoute',
    summary: 'Make a route',
    auth: DASHBOARD,
    params: nothing,
    query: nothing,
    body: createBody,
    mediaTypes: [JSON_TYPE],
    answers: { 201: { description: 'The route', schema: routeWire, headers: ['Location', 'ETag'] } },
    problems: ['duplicate'],
    handler: createRoute,
  }),
  endpoint({
    method: 'GET',
    path: `${ROUTES_PATH}/{id}`,
    id: 'getRoute',
    summary: 'One route',
    auth: DASHBOARD,
    params: routeParams,
    query: nothing,
    ...noBody,
    requestHeaders: ['If-None-Match'],
    answers: {
      200: { description: 'The route', schema: routeWire, headers: ['ETag'] },
      304: { description: 'Unchanged', headers: ['ETag'] },
    },
    problems: [],
    handler: getRoute,
  }),
  endpoint({
    method: 'PATCH',
    path: `${ROUTES_PATH}/{id}`,
    id: 'patchRoute',
    summary: 'Change a route',
    auth: DASHBOARD,
    params: routeParams,
    query: nothing,
    body: patchBody,
    mediaTypes: [JSON_TYPE, MERGE_PATCH_TYPE],
    requestHeaders: ['If-Match', 'If-None-Match'],
    answers: { 200: { description: 'The route as it is now', schema: routeWire, headers: ['ETag'] } },
    problems: ['duplicate', 'precondition_failed'],
    handler: patchRoute,
  }),
  endpoint({
    method: 'DELETE',
    path: `${ROUTES_PATH}/{id}`,
    id: 'deleteRoute',
    summary: 'Delete a route',
    auth: DASHBOARD,
    params: routeParams,
    query: nothing,
    ...noBody,
    requestHeaders: ['If-Match', 'If-None-Match'],
    answers: { 204: { description: 'Deleted' } },
    problems: ['precondition_failed'],
    handler: deleteRoute,
  }),
  endpoint({
    method: 'GET',
    path: '/v1/protected-routes/routes',
    id: 'getRouteSet',
    summary: 'All routes, active and paused, as one set',
    auth: SDK,
    ...takesNothing,
    requestHeaders: ['If-None-Match'],
    answers: {
      200: { description: 'All routes', schema: routeSet, headers: ['ETag', 'Tollgate-Registry', 'Tollgate-Revision'] },
      304: { description: 'Unchanged', headers: ['ETag', 'Tollgate-Registry', 'Tollgate-Revision'] },
    },
    problems: [],
    handler: serveRoutes,
  }),
  endpoint({
    method: 'POST',
    path: '/v1/protected-routes/routes/register',
    id: 'registerRoute',
    summary: 'Make a route where there is none with this method and pattern',
    auth: SDK,
    params: nothing,
    query: nothing,
    body: registerBody,
    mediaTypes: [JSON_TYPE],
    answers: {
      200: { description: 'The stored route, unchanged', schema: routeWire, headers: ['Location', 'ETag'] },
      201: { description: 'The new route', schema: routeWire, headers: ['Location', 'ETag'] },
    },
    problems: ['duplicate'],
    handler: registerRoute,
  }),
  endpoint({
    method: 'GET',
    path: '/v1/protected-routes/match',
    id: 'matchRoute',
    summary: 'Which route a request would meet',
    auth: SDK,
    params: nothing,
    query: matchQuery,
    ...noBody,
    answers: { 200: { description: 'The match, or that there is none', schema: matchAnswer } },
    problems: [],
    handler: answerMatch,
  }),
  endpoint({
    method: 'GET',
    path: '/v1/protected-routes/events',
    id: 'streamEvents',
    summary: 'Changes of routes as they happen (Server-Sent Events)',
    auth: SDK,
    ...takesNothing,
    requestHeaders: ['Last-Event-ID'],
    answers: {
      200: {
        description: 'Events route.created, route.updated, route.deleted and reset; their id is the revision',
        schema: z.string(),
        mediaType: 'text/event-stream',
        headers: ['Tollgate-Registry', 'Tollgate-Revision'],
      },
    },
    problems: ['too_many_requests'],
    handler: streamEvents,
  }),
  endpoint({
    method: 'GET',
    path: '/v1/health',
    id: 'getHealth',
    summary: 'Whether the registry is there',
    auth: ANYONE,
    ...takesNothing,
    answers: { 200: { description: 'It is', schema: health } },
    problems: [],
    handler: serveHealth,
  }),
  ...['/v1/openapi.json', '/openapi.json'].map((path) =>
    endpoint<typeof nothing, typeof nothing, typeof nothing, Services>({
      method: 'GET',
      path,
      id: path === '/openapi.json' ? 'getDocument' : 'getVersionedDocument',
      summary: 'This document',
      auth: ANYONE,
      ...takesNothing,
      answers: { 200: { description: 'An OpenAPI 3.1 document', schema: z.record(z.string(), z.unknown()) } },
      problems: [],
      handler: serveDocument,
    }),
  ),
];
