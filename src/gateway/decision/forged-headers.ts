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

const BELIEVED: ReadonlySet<string> = new Set(['x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto']);
const METHOD_OVERRIDES: ReadonlySet<string> = new Set(['x-http-method', 'x-http-method-override', 'x-method-override']);
const OURS = 'tollgate-';

/** Finds a header that speaks in our name or rewrites the request; undefined: there is none. */
export function findForged(
  raw: readonly string[],
  { ownPrefix, ours, allowed }: ForgedHeaderRules,
): string | undefined {
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const name = (raw[i] ?? '').toLowerCase();
    const folded = fold(name);
    if (folded.startsWith(OURS)) {
      if (!ours.has(name)) return name;
    } else if (rewritesRequest(folded)) {
      const isOwn = BELIEVED.has(name) || (ownPrefix !== undefined && name.startsWith(ownPrefix) && name === folded);
      if (!isOwn && !allowed.has(name)) return name;
    }
  }
  return undefined;
}

/** Finds a header by which a framework takes the request for one of another method; undefined: there is none. */
export function findMethodOverride(raw: readonly string[], allowed: ReadonlySet<string>): string | undefined {
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const name = (raw[i] ?? '').toLowerCase();
    if (METHOD_OVERRIDES.has(fold(name)) && !allowed.has(name)) return name;
  }
  return undefined;
}

function fold(name: string): string {
  return name.replace(/[^a-z0-9]/g, '-');
}
