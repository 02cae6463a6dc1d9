// A redirect as the page for people gets it. Scripts cannot read where a redirect leads, and following it would carry the
// payment along. So a request with `Tollgate-Page: 1` gets a paid redirect as a document that names its place. Programs get
// the redirect itself, and it is charged, kept and counted as that.
import type { OwnResponse } from '../host/respond.ts';

const TYPE = 'application/vnd.tollgate.redirect+json';

/** Headers that speak about the body of the redirect, or of its place, and not of the document. */
const DROPPED = /^(?:location|refresh|etag|last-modified|accept-ranges|age|content-.*)$/i;

/**
 * The document that names the place of a redirect; undefined for every other response. `base`: the URL that was asked for.
 */
export function redirectDocument(status: number, headers: readonly string[], base: string): OwnResponse | undefined {
  if (status < 300 || status > 399 || status === 304) return undefined;
  const at = headers.findIndex((name, i) => i % 2 === 0 && name.toLowerCase() === 'location');
  const place = headers[at + 1];
  if (at < 0 || place === undefined) return undefined;
  // A place that is no URL is told as it is: the page shows it as text.
  const location = URL.canParse(place, base) ? new URL(place, base).href : place;
  const kept = headers.filter((_, i) => !DROPPED.test(headers[i - (i % 2)] ?? ''));
  return { status: 200, headers: [...kept, 'Content-Type', TYPE], body: JSON.stringify({ status, location }) };
}
