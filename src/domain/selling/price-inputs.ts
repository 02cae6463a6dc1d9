// Reads from a request what its price depends on. What is priced must be what the API reads: a name that stands twice, in
// two spellings, or only in another spelling than the plan's is refused, because frameworks disagree about which one
// counts. So is a value that is not UTF-8. The body is never read.
import { problem, type Problem } from '../problem.ts';
import { foldName, foldStem } from './fold-name.ts';
import { ambiguous, inputsOf, nameInput, type PlanPrice, type PriceInputs } from './price.ts';

/** A request as its price reads it. */
export type PricedRequest = {
  /** The query with its question mark, as it is forwarded; empty: there is none. */
  readonly query: string;
  /** Flat name, value pairs, as they came. */
  readonly rawHeaders: readonly string[];
  /** Headers that a Connection header names, which do not go upstream, in lower case. */
  readonly droppedHeaders: ReadonlySet<string> | undefined;
  /** Reads the values of the pattern's parameters, decoded. */
  readonly params: () => Readonly<Record<string, string>>;
  /** The Content-Length; undefined: the request has none, or none that is known here. */
  readonly length: string | undefined;
};

/** Reads the inputs of one plan. */
export type InputReader = (request: PricedRequest) => PriceInputs | Problem;

/** Largest value of an input in bytes. */
export const MOST_VALUE_BYTES = 256;

/** Names of one kind: each by what it folds to. */
type Names = ReadonlyMap<string, string>;

export function createInputReader(price: PlanPrice): InputReader {
  const inputs = inputsOf(price);
  const namesOf = (kind: 'query' | 'header' | 'param'): readonly string[] =>
    inputs.flatMap((input) => (input.kind === kind ? [input.name] : []));
  const folded = (names: readonly string[], fold: (name: string) => string): Names =>
    new Map(names.map((name) => [fold(name), name]));
  const hasAll = (of: 'query' | 'param'): boolean => inputs.some((input) => input.kind === 'all' && input.of === of);
  const [queries, headers] = [folded(namesOf('query'), foldName), folded(namesOf('header'), foldHeader)];
  const params = namesOf('param');
  const [allQueries, allParams] = [hasAll('query'), hasAll('param')];
  const length = inputs.some(({ kind }) => kind === 'length');
  const named = inputs.filter(({ kind }) => kind !== 'all').map(nameInput);

  return (request) => {
    const read = new Map<string, string | undefined>(named.map((name) => [name, undefined]));
    if (length) {
      if (request.length === undefined)
        return problem('length_required', 'What this request costs depends on its length: send a Content-Length.');
      read.set('length', request.length);
    }
    const refusal =
      (queries.size > 0 || allQueries ? readQuery(read, request.query, queries, allQueries) : undefined) ??
      (headers.size > 0 ? readHeaders(read, request, headers) : undefined) ??
      (params.length > 0 || allParams ? readParams(read, request.params(), allParams ? undefined : params) : undefined);
    return refusal ?? read;
  };
}

type Read = Map<string, string | undefined>;

function readQuery(read: Read, query: string, names: Names, all: boolean): Problem | undefined {
  if (query.length < 2) return undefined;
  const seen = new Set<string>();
  for (const part of query.slice(1).split('&')) {
    if (part === '') continue;
    if (part.includes(';')) {
      // A semicolon separates parameters for some: each piece is a parameter of its own there.
      const name = part
        .split(';')
        .map(nameOf)
        .find((each) => all || names.has(foldName(each)) || names.has(foldStem(each)));
      if (name !== undefined) return ambiguous('its query has a semicolon, which separates parameters for some');
      continue;
    }
    const written = nameOf(part);
    const fold = foldName(written);
    const meant = names.get(fold) ?? names.get(foldStem(written));
    if (meant === undefined && !all) continue;
    if (meant !== undefined && meant !== written)
      return ambiguous(`its query has another spelling of ${meant}; send it once, spelled like this`);
    const name = meant ?? decode(written);
    if (name === undefined) return ambiguous('its query has a name that is not UTF-8');
    if (seen.has(fold)) return ambiguous(`its query has ${show(name)} more than once`);
    seen.add(fold);
    const value = decode(part.slice(written.length + 1));
    if (value === undefined) return ambiguous(`the value of ${show(name)} in its query is not UTF-8`);
    const refusal = add(read, `query.${name}`, value);
    if (refusal !== undefined) return refusal;
  }
  return undefined;
}

/** Name of a parameter as it is written. */
function nameOf(part: string): string {
  const equals = part.indexOf('=');
  return equals < 0 ? part : part.slice(0, equals);
}

/** CGI, WSGI, Rack and PHP read `X_A`, `X.A` and `X-A` as one. */
function foldHeader(name: string): string {
  return name.toLowerCase().replace(/[^a-z0-9]/g, '-');
}

function readHeaders(read: Read, { rawHeaders, droppedHeaders }: PricedRequest, names: Names): Problem | undefined {
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const given = rawHeaders[i] ?? '';
    const meant = names.get(foldHeader(given));
    if (meant === undefined) continue;
    const name = `header.${meant}`;
    if (given.toLowerCase() !== meant)
      return ambiguous(`it has another spelling of the header ${meant}; send it once, spelled like this`);
    if (read.get(name) !== undefined) return ambiguous(`it has the header ${meant} more than once`);
    if (droppedHeaders?.has(meant) === true)
      return ambiguous(`its Connection header names ${meant}, which your API would not get`);
    const value = decodeBytes(rawHeaders[i + 1] ?? '');
    if (value === undefined) return ambiguous(`the value of the header ${meant} is not UTF-8`);
    const refusal = add(read, name, value);
    if (refusal !== undefined) return refusal;
  }
  return undefined;
}

/** Reads a header's bytes, one character each, as UTF-8; undefined: they are not. */
function decodeBytes(bytes: string): string | undefined {
  if (/^[\x20-\x7e]*$/.test(bytes)) return bytes;
  const text = Buffer.from(bytes, 'latin1').toString();
  return text.includes('\ufffd') ? undefined : text;
}

/** Reads parameters of the pattern; `names` undefined: all of them. */
function readParams(
  read: Read,
  params: ReturnType<PricedRequest['params']>,
  names: readonly string[] | undefined,
): Problem | undefined {
  for (const name of names ?? Object.keys(params)) {
    const value = Object.hasOwn(params, name) ? params[name] : undefined;
    if (value === undefined) continue;
    if (CUT_SEGMENT.test(value)) return ambiguous(`the value of ${name} in its path is cut off by some`);
    const refusal = add(read, `param.${name}`, value);
    if (refusal !== undefined) return refusal;
  }
  return undefined;
}

/** A segment that routers shorten: parameters behind a semicolon, dots and spaces around it. */
const CUT_SEGMENT = /[;\u0000-\u001f\u007f-\u009f\ufffd]|^[ .]|[ .]$/;

function add(read: Read, name: string, value: string): Problem | undefined {
  if (Buffer.byteLength(value) > MOST_VALUE_BYTES)
    return ambiguous(`the value of ${show(name)} is longer than ${MOST_VALUE_BYTES} bytes`);
  read.set(name, value);
  return undefined;
}

/** Decodes as forms do; undefined: it is not UTF-8. */
function decode(text: string): string | undefined {
  if (!text.includes('%') && !text.includes('+')) return text;
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    return undefined;
  }
}

const SHOWN = 64;

function show(name: string): string {
  return name.replace(/[^\x20-\x7e]/g, '?').slice(0, SHOWN);
}

/** Writes inputs as one text, the same for the same inputs in whatever order they came. Null: the request has none. */
export function writeInputs(inputs: PriceInputs, further: Readonly<Record<string, string | null>> = {}): string {
  const pairs: (readonly [string, string | null | undefined])[] = [...inputs, ...Object.entries(further)];
  // The names of a plan are in this order already.
  if (pairs.some(([name], at) => at > 0 && name < (pairs[at - 1]?.[0] ?? '')))
    pairs.sort(([a], [b]) => (a < b ? -1 : 1));
  let text = '';
  for (const [name, value] of pairs)
    text += `${text === '' ? '' : ','}[${JSON.stringify(name)},${JSON.stringify(value ?? null)}]`;
  return `[${text}]`;
}

/** Inputs of a text of `writeInputs`, for people: those that the request has. */
export function showInputs(text: string): Readonly<Record<string, string>> {
  const pairs: unknown = JSON.parse(text);
  return Object.fromEntries(
    (Array.isArray(pairs) ? pairs : []).flatMap((pair: unknown): [string, string][] => {
      if (!Array.isArray(pair)) return [];
      const [name, value]: unknown[] = pair;
      return typeof name === 'string' && typeof value === 'string' ? [[name, value]] : [];
    }),
  );
}
