// The query of `GET /v1/protected-routes/match`, for whoever answers it in the registry's place: a sidecar whose registry
// is away. It must read every query as the registry does (registry/request.ts), or the two would answer about different
// paths; test/gateway/sync/relay-api.test.ts asks both the same questions.
import { problem, type Problem } from './problem.ts';
import { suggest } from './suggest.ts';

export type MatchQuery = { readonly method: string; readonly path: string };

const METHOD = /^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,32}$/;

const NAMES = ['path', 'method'];

/** `query`: without the `?`. Problem: `malformed`, of other parameters too. */
export function readMatchQuery(query: string): MatchQuery | Problem {
  const values = new Map<string, string>();
  const unknown: string[] = [];
  for (const pair of query.split('&')) {
    const equals = pair.indexOf('=');
    const name = decode(equals < 0 ? pair : pair.slice(0, equals));
    if (!NAMES.includes(name)) {
      if (pair !== '') unknown.push(name);
      continue;
    }
    if (values.has(name)) return problem('malformed', `The query has ${name} more than once.`);
    values.set(name, equals < 0 ? '' : decode(pair.slice(equals + 1)));
  }
  if (unknown.length > 0) return unknownParameters(unknown, NAMES);
  const path = values.get('path');
  const method = values.get('method');
  if (path === undefined) return problem('malformed', 'The query needs path.');
  if (method === undefined) return problem('malformed', 'The query needs method.');
  if (!path.startsWith('/')) return problem('malformed', "The query's path is not valid: it starts with a slash.");
  if (!METHOD.test(method)) return problem('malformed', "The query's method is not valid: an HTTP method such as GET.");
  return { method, path };
}

const MAX_NAMES = 5;
const MAX_NAME = 64;

/** 400 for a query that holds `unknown` names where `known` ones are taken. */
export function unknownParameters(unknown: readonly string[], known: readonly string[]): Problem {
  const named = unknown.slice(0, MAX_NAMES).map((name) => {
    const meant = suggest(name, known);
    return `${name.slice(0, MAX_NAME).toWellFormed()}${meant === undefined ? '' : ` (did you mean ${meant}?)`}`;
  });
  const takes = known.length === 0 ? 'none' : known.join(', ');
  const more = unknown.length > MAX_NAMES ? ' and others' : '';
  return problem(
    'malformed',
    `The query has parameters that are not known here: ${named.join(', ')}${more}. It takes ${takes}.`,
  );
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
