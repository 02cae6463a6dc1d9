// The query of `GET /v1/protected-routes/match`, for whoever answers it in the registry's place: a sidecar whose registry
// is away. It must read every query as the registry does (registry/request.ts), or the two would answer about different
// paths; test/gateway/sync/relay-api.test.ts asks both the same questions.
import { problem, type Problem } from './problem.ts';

export type MatchQuery = { readonly method: string; readonly path: string };

const METHOD = /^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,32}$/;

/** `query`: without the `?`. Other parameters are ignored. Problem: `malformed`. */
export function readMatchQuery(query: string): MatchQuery | Problem {
  const values = new Map<string, string>();
  for (const pair of query.split('&')) {
    const equals = pair.indexOf('=');
    const name = decode(equals < 0 ? pair : pair.slice(0, equals));
    if (name !== 'path' && name !== 'method') continue;
    if (values.has(name)) return problem('malformed', `The query has ${name} more than once.`);
    values.set(name, equals < 0 ? '' : decode(pair.slice(equals + 1)));
  }
  const path = values.get('path');
  const method = values.get('method');
  if (path === undefined) return problem('malformed', 'The query needs path.');
  if (method === undefined) return problem('malformed', 'The query needs method.');
  if (!path.startsWith('/')) return problem('malformed', "The query's path is not valid: it starts with a slash.");
  if (!METHOD.test(method)) return problem('malformed', "The query's method is not valid: an HTTP method such as GET.");
  return { method, path };
}

/** As forms are decoded; escapes that are malformed or no UTF-8 stay, because `match` is asked about paths of any bytes. */
function decode(text: string): string {
  const spaced = text.replaceAll('+', ' ');
  try {
    return decodeURIComponent(spaced);
  } catch {
    return spaced.replace(/%[0-7][0-9A-Fa-f]/g, decodeURIComponent);
  }
}
