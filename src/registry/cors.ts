// Cross-origin access for a dashboard that is served from elsewhere: only for origins that the configuration names, and
// never with cookies, which this interface does not know.
import type { IncomingMessage } from 'node:http';

const EXPOSED = 'ETag, Location, Retry-After, Tollgate-Registry, Tollgate-Revision, WWW-Authenticate';
const ALLOWED = 'Authorization, Content-Type, If-Match, If-None-Match, Last-Event-ID';
const PREFLIGHT_SECONDS = '600';

/** Headers for every answer to `req`: flat name, value pairs. */
export function corsHeaders(req: IncomingMessage, origins: readonly string[]): readonly string[] {
  if (origins.length === 0) return [];
  if (origins.includes('*')) return ['Access-Control-Allow-Origin', '*', 'Access-Control-Expose-Headers', EXPOSED];
  const origin = req.headers.origin;
  if (origin === undefined || !origins.includes(origin)) return ['Vary', 'Origin'];
  return ['Vary', 'Origin', 'Access-Control-Allow-Origin', origin, 'Access-Control-Expose-Headers', EXPOSED];
}

/** What an answer to a preflight adds. `allow`: the methods of the path. */
export function preflightHeaders(req: IncomingMessage, allow: string): readonly string[] {
  if (req.headers['access-control-request-method'] === undefined) return [];
  return [
    ...['Access-Control-Allow-Methods', allow, 'Access-Control-Allow-Headers', ALLOWED],
    ...['Access-Control-Max-Age', PREFLIGHT_SECONDS],
  ];
}
