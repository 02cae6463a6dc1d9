// Headers that a client has forged. The proxy that asks forwards them by itself, so they cannot be dropped here: a request with one
// of them is refused. Names are compared folded, because CGI, WSGI, Rack and PHP read `X_A`, `X.A` and `X-A` as one.
import { rewritesRequest } from '../header-rules.ts';

export type ForgedHeaderRules = {
  /** Prefix of rewriting headers that the proxy writes itself. */
  readonly ownPrefix: string | undefined;
  /** Lower-cased names of ours that the proxy sends, or its client may send. */
  readonly ours: ReadonlySet<string>;
  /** Lower-cased names that the operator lets in. */
  readonly allowed: ReadonlySet<string>;
};

/** What a header does that its request may not; `override`: not on paths that some route protects. */
export type Forgery = 'forged' | 'override' | undefined;

const BELIEVED: ReadonlySet<string> = new Set(['x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto']);
const METHOD_OVERRIDES: ReadonlySet<string> = new Set(['x-http-method', 'x-http-method-override', 'x-method-override']);
const OURS = 'tollgate-';

/**
 * Tells whether a header speaks in our name or rewrites the request (`forged`), or makes a framework take the request for one of
 * another method (`override`). `name` is lower-case.
 */
export function forgeryOf(name: string, { ownPrefix, ours, allowed }: ForgedHeaderRules): Forgery {
  const folded = fold(name);
  if (folded.startsWith(OURS)) return ours.has(name) ? undefined : 'forged';
  if (allowed.has(name)) return undefined;
  if (METHOD_OVERRIDES.has(folded)) return 'override';
  if (!rewritesRequest(folded)) return undefined;
  const isOwn = BELIEVED.has(name) || (ownPrefix !== undefined && name.startsWith(ownPrefix) && name === folded);
  return isOwn ? undefined : 'forged';
}

function fold(name: string): string {
  return name.replace(/[^a-z0-9]/g, '-');
}
