// Reads queries of the registry's endpoints. What cannot be read exactly is refused with what would be right.
import type { z } from 'zod';
import { problem, type Problem } from '../problem.ts';
import { suggest } from '../suggest.ts';

/** The parameters in `names`, and the names of others. One that stands twice could be read in two ways, so it is refused. */
export function readQuery(
  query: string,
  names: ReadonlySet<string>,
): { readonly values: Readonly<Record<string, string>>; readonly unknown: readonly string[] } | Problem {
  const values = new Map<string, string>();
  const unknown = new Set<string>();
  for (const pair of query.split('&')) {
    const equals = pair.indexOf('=');
    const name = decode(equals < 0 ? pair : pair.slice(0, equals));
    if (!names.has(name)) {
      if (pair !== '') unknown.add(name);
      continue;
    }
    if (values.has(name)) return problem('malformed', `The query has ${name} more than once.`);
    values.set(name, equals < 0 ? '' : decode(pair.slice(equals + 1)));
  }
  return { values: Object.fromEntries(values), unknown: [...unknown] };
}

const MAX_NAMES = 5;
const MAX_NAME = 64;

/** Refuses with 400 a query that holds the names `unknown`; `known` are taken. */
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

/** Refuses with 400 parameters that a schema does not take. */
export function badQuery(error: z.ZodError): Problem {
  const issue = error.issues[0];
  const name = String(issue?.path[0] ?? '');
  if (issue?.code === 'invalid_type') return problem('malformed', `The query needs ${name}.`);
  return problem('malformed', `The query's ${name} is not valid: ${sentence(issue?.message ?? '')}`);
}

/** Makes `text` a sentence: with a capital and a full stop. */
export function sentence(text: string): string {
  return `${text.slice(0, 1).toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? '' : '.'}`;
}

/**
 * Decodes as forms do, but leaves escapes that are malformed or not UTF-8 as they are. `match` is asked about paths of
 * any bytes, and must judge them as the proxy does.
 */
function decode(text: string): string {
  const spaced = text.replaceAll('+', ' ');
  try {
    return decodeURIComponent(spaced);
  } catch {
    return spaced.replace(/%[0-7][0-9A-Fa-f]/g, decodeURIComponent);
  }
}
