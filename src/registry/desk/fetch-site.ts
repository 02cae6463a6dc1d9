// The page that a request comes from, as a browser tells it (Fetch Metadata, RFC 6454). A page elsewhere cannot change what
// its browser says there; a program that is no browser may leave it out, and has no cookie of anybody.
import type { IncomingHttpHeaders } from 'node:http';
import { problem, type Problem } from '../../domain/problem.ts';

type RequestSite = { readonly method?: string | undefined; readonly headers: IncomingHttpHeaders };

/** Refuses a request that another origin's page sent; `needsProof`: one that changes something has to say where it is from. */
export function refuseForeignPage(
  { method = '', headers }: RequestSite,
  origin: string,
  needsProof: boolean,
): Problem | undefined {
  const site = headers['sec-fetch-site'];
  const { origin: from } = headers;
  const changes = method !== 'GET' && method !== 'HEAD';
  if (site !== undefined && site !== 'same-origin') return REFUSED;
  if (!changes) return undefined;
  if (from !== undefined && from !== origin) return REFUSED;
  return needsProof && site === undefined && from === undefined ? REFUSED : undefined;
}

/**
 * Refuses what is no visit of a page by somebody at a browser: a frame, a script's call or an image. `fromElsewhere`: another
 * site may lead here.
 */
export function refuseForeignVisit({ headers }: RequestSite, fromElsewhere: boolean): Problem | undefined {
  const { 'sec-fetch-site': site, 'sec-fetch-mode': mode, 'sec-fetch-dest': goal } = headers;
  const isVisit = (mode ?? 'navigate') === 'navigate' && (goal ?? 'document') === 'document';
  const isOwn = site === undefined || site === 'same-origin' || site === 'none';
  return isVisit && (isOwn || fromElsewhere) ? undefined : REFUSED_VISIT;
}

const REFUSED_VISIT = problem('origin_refused', 'Signing in begins on the desk’s own page.');
const REFUSED = problem('origin_refused', 'A session of the desk is taken from the desk’s own page alone.');
