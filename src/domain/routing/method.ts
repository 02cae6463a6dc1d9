// The request methods that this program knows: the seven common ones and what the operator adds. The proxy answers any
// other with 501, so a route for another method protects nothing: writers of routes ask `refuseMethod` first.
import { suggest } from '../suggest.ts';

const DEFAULT_METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];
const NEVER = new Set(['TRACE', 'CONNECT']);

/** The methods a proxy lets in; never TRACE or CONNECT. */
export function allowedMethods(added: readonly string[] = []): ReadonlySet<string> {
  return new Set([...DEFAULT_METHODS, ...added].filter((method) => !NEVER.has(method)));
}

/**
 * Says what is wrong with `method` (upper-cased) of a route, without a subject; undefined: `allowed` has it, or it is
 * `*` for any.
 */
export function refuseMethod(method: string, allowed: ReadonlySet<string>): string | undefined {
  if (method === '*' || allowed.has(method)) return undefined;
  const why = 'is answered with 501, so such a route would protect nothing';
  if (NEVER.has(method)) return `${why}; take the route out`;
  const meant = suggest(method, allowed);
  if (meant !== undefined) return `${why}; did you mean ${meant}?`;
  return `${why}; write ${[...allowed].slice(0, DEFAULT_METHODS.length).join(', ')}, * for any, or add it to proxy.methods`;
}
