// The endpoints of SDKs and sidecars (interface section 4.2, and events, which Tollgate adds). They give the whole set
// of routes, its changes as they happen, and the route that a request would meet, by the proxy's own matcher. An
// application registers its routes here at every boot.
import type { IncomingHttpHeaders } from 'node:http';
import { matchRoute } from '../../domain/explanation.ts';
import { problem } from '../../domain/problem.ts';
import { describePrincipal } from '../auth/credentials.ts';
import {
  emptyResponse,
  jsonResponse,
  fail,
  JSON_TYPE,
  type EndpointCall,
  type EndpointOutcome,
} from '../http/endpoint.ts';
import { acceptsGzip, type FeedName } from '../stream/feed.ts';
import { originOf } from '../desk/desk-host.ts';
import { isUnmodified } from '../http/preconditions.ts';
import { routeResponse, logWrite, refusalOf } from './route-responses.ts';
import type { RouteInput } from '../../domain/routing/route.ts';
import type { MatchQuery } from '../../domain/routing/match-query.ts';

import type { Services } from '../http/services.ts';

const MAX_LOGGED_NAMES = 20;
const MAX_LOGGED_LENGTH = 64;
const STREAM_RETRY_SECONDS = 60;
/** A Last-Event-ID that is not one of ours: no log reaches back to it, so the client is told to read everything again. */
const UNREADABLE_ID = -1;
const REVISION = /^\d{1,15}$/;
const LOCALHOST = /^https?:\/\/localhost(?::|$)/;

export async function serveRoutes(
  call: EndpointCall,
  { feed, routes, sidecars, wholeSets }: Services,
): Promise<EndpointOutcome> {
  const { headers } = call;
  sidecars.polled(call);
  await routes.reach(knownRevision(headers));
  const zips = acceptsGzip(headers['accept-encoding']);
  const headersOf = ({ revision, etag, zippedEtag }: FeedName, zipped: boolean): string[] => [
    ...['Cache-Control', 'private, no-cache', 'Vary', 'Accept-Encoding', 'ETag', zipped ? zippedEtag : etag],
    ...['Tollgate-Registry', routes.registryId, 'Tollgate-Revision', String(revision)],
  ];
  // The set itself is made for those alone who get it.
  const name = feed.name();
  if (isUnmodified(headers, name.etag)) return emptyResponse(304, headersOf(name, false));
  if (isUnmodified(headers, name.zippedEtag)) return emptyResponse(304, headersOf(name, true));
  const body = await feed.current();
  const sent = await wholeSets.take(body.plain.length);
  if (typeof sent !== 'function') return fail(sent);
  try {
    const zipped = zips ? await body.zipped() : undefined;
    const coding = zipped ? ['Content-Encoding', 'gzip'] : [];
    return {
      kind: 'response',
      status: 200,
      headers: [...headersOf(body, zipped !== undefined), 'Content-Type', JSON_TYPE, ...coding],
      body: zipped ?? body.plain,
      sent,
    };
  } catch (error) {
    sent();
    throw error;
  }
}

/** The revision that a sidecar has by its own word; 0 if it names none. */
function knownRevision(headers: IncomingHttpHeaders): number {
  const named = [headers['tollgate-revision'], headers['last-event-id']];
  return Math.max(0, ...named.map((value) => (typeof value === 'string' && REVISION.test(value) ? Number(value) : 0)));
}

export async function registerRoute(
  call: EndpointCall<unknown, unknown, Omit<RouteInput, 'plan_id'>>,
  services: Services,
): Promise<EndpointOutcome> {
  if (call.ignored.length > 0) {
    const members = call.ignored.slice(0, MAX_LOGGED_NAMES).map((name) => name.slice(0, MAX_LOGGED_LENGTH));
    services.log.warn('members of a registration were ignored', { members, by: describePrincipal(call.principal) });
  }
  const registered = { ...call.body, plan_id: null };
  const created = await services.registrations.add(registered, call.principal, call.headers);
  if ('code' in created) return fail(created);
  if (created.kind === 'created') {
    logWrite('route registered', { after: created.route }, call.principal, services);
    return routeResponse(201, created.route, true);
  }
  // The very same pattern is a boot like any other: what the dashboard changed since stays.
  const known = created.kind === 'conflict' && created.existing.pattern === call.body.route_pattern;
  return known ? routeResponse(200, created.existing, true) : fail(refusalOf(created));
}

export function answerMatch({ query }: EndpointCall<unknown, MatchQuery>, services: Services): EndpointOutcome {
  const { path, method } = query;
  const question = { method, path, rules: services.matchRules(), nowMs: services.clock.now() };
  return jsonResponse(200, matchRoute(services.snapshot(), question));
}

export async function streamEvents(
  call: EndpointCall,
  { streams, sidecars, routes }: Services,
): Promise<EndpointOutcome> {
  const { headers, principal } = call;
  await routes.reach(knownRevision(headers));
  if (!streams.hasRoom(principal)) {
    return fail(
      problem('too_many_requests', 'There are as many event streams as there may be; poll the routes instead.', {
        // A connection that waits to ask again would be one less for everybody else.
        retryAfter: STREAM_RETRY_SECONDS,
        headers: { Connection: 'close' },
      }),
    );
  }
  const id = headers['last-event-id'];
  const lastSeen = id === undefined || id === '' ? undefined : REVISION.test(String(id)) ? Number(id) : UNREADABLE_ID;
  return {
    kind: 'stream',
    headers: [
      ...['Content-Type', 'text/event-stream', 'Cache-Control', 'no-store', 'X-Accel-Buffering', 'no'],
      ...['Tollgate-Registry', routes.registryId, 'Tollgate-Revision', String(routes.head().revision)],
    ],
    open: (res) => {
      res.once('close', sidecars.connected(call));
      streams.open(res, principal, lastSeen);
    },
  };
}

/** Serves the health to anyone, like the document below. */
export function serveHealth(_call: EndpointCall, { version, clock }: Services): EndpointOutcome {
  return jsonResponse(200, { status: 'ok', version, timestamp: new Date(clock.now()).toISOString() });
}

/** Serves the document, which names this registry by the origin that people open, or as the caller named it. */
export async function serveDocument(
  { headers, peer }: EndpointCall,
  { desk, document }: Services,
): Promise<EndpointOutcome> {
  const publicUrl = desk?.settings()?.publicUrl;
  const asked = { url: '', headersDistinct: { host: [headers.host ?? ''] }, socket: { localPort: peer.localPort } };
  const origin = publicUrl ?? originOf(asked, { publicUrl });
  // Linters take `localhost` for a server that was left in by mistake: `/` leads there as well.
  const isNamed = typeof origin === 'string' && !LOCALHOST.test(origin);
  const body = await document(isNamed ? origin : '/');
  return { kind: 'response', status: 200, headers: ['Content-Type', JSON_TYPE], body };
}
