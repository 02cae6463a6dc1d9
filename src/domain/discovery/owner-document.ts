// The part of an owner's OpenAPI document that may be told to everybody: its operations with what they need to stand by
// themselves, and the components that they refer to. Links, callbacks and servers stay away: they name other operations,
// or a way around the paywall. Bounded, and plain data: it crosses to threads and processes as JSON.
import type { OwnerMethod } from './operation.ts';
import { createCopier, entriesOf, withoutLinks, type Components, type Copier } from './reference-copier.ts';
import { isPlain, memberOf } from './schema-references.ts';

type PlainObject = Readonly<Record<string, unknown>>;

export type OwnerDocument = {
  /** The version of OpenAPI. */
  readonly openapi: string;
  readonly title: string | undefined;
  readonly version: string | undefined;
  readonly operations: readonly OwnerOperation[];
  /** Components by section and name. */
  readonly components: Components;
};

export type OwnerOperation = {
  readonly method: OwnerMethod;
  /** Path from the root of the host, as the document writes it. */
  readonly path: string;
  readonly parameters: readonly OwnerParameter[];
  readonly requestBody: unknown;
  readonly responses: PlainObject;
  /** Security requirements; undefined if the document says nothing about them. */
  readonly security: unknown;
  /** Summary, description and the other members. */
  readonly rest: PlainObject;
};
type OwnerParameter = { readonly in: string; readonly name: string; readonly value: unknown };

/** An operation as it stands in the document. */
export type WrittenOperation = {
  readonly method: OwnerMethod;
  readonly path: string;
  readonly item: unknown;
  readonly operation: PlainObject;
};

type OwnerReading = {
  readonly owner: OwnerDocument;
  /** Operations without room. */
  readonly left: number;
};

const MOST_PARAMETERS = 256;
const TITLE_LETTERS = 128;
const VERSION_LETTERS = 64;
const NOT_TOLD = new Set(
  'parameters requestBody responses security servers callbacks x-payment-info summary description operationId tags'.split(
    ' ',
  ),
);
const STATUS = /^(?:[1-5](?:\d\d|XX)|default)$/i;

/** Reads the part that may be told. `document` has no internal members any more. */
export function readOwnerDocument(document: unknown, written: readonly WrittenOperation[]): OwnerReading {
  const copier = createCopier(document);
  const operations: OwnerOperation[] = [];
  let left = 0;
  for (const each of written) {
    const operation = copier.attempt(() => readOperation(each, document, copier));
    if (operation === undefined) left++;
    else operations.push(operation);
  }
  const info = memberOf(document, 'info');
  const openapi = String(memberOf(document, 'openapi'));
  return {
    owner: {
      openapi: openapi.startsWith('3.0.') && openapi.length <= VERSION_LETTERS ? openapi : '3.1.0',
      title: wordsOf(memberOf(info, 'title'), TITLE_LETTERS),
      version: wordsOf(memberOf(info, 'version'), VERSION_LETTERS),
      operations,
      components: copier.components(),
    },
    left,
  };
}

function wordsOf(value: unknown, most: number): string | undefined {
  const text = typeof value === 'number' ? String(value) : value;
  if (typeof text !== 'string') return undefined;
  const words = text
    .replace(/[\u0000-\u001f\u007f]+/g, ' ')
    .trim()
    .slice(0, most)
    .toWellFormed();
  return words === '' ? undefined : words;
}

function readOperation(
  { method, path, item, operation }: WrittenOperation,
  document: unknown,
  copier: Copier,
): OwnerOperation {
  const { copy, follow } = copier;
  const security = readSecurity(memberOf(operation, 'security') ?? memberOf(document, 'security'), copier);
  return {
    method,
    path,
    parameters: readParameters(operation, item, copier),
    requestBody: readBody(follow(memberOf(operation, 'requestBody')), copier),
    responses: readResponses(memberOf(operation, 'responses'), copier),
    security,
    rest: {
      ...textsOf(item, ['summary', 'description']),
      ...textsOf(operation, ['summary', 'description', 'operationId']),
      ...tagsOf(memberOf(operation, 'tags')),
      ...entriesOf(operation, (name) => !NOT_TOLD.has(name), copy),
    },
  };
}

function textsOf(holder: unknown, names: readonly string[]): PlainObject {
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = memberOf(holder, name);
      return typeof value === 'string' && value !== '' ? [[name, value]] : [];
    }),
  );
}

function tagsOf(value: unknown): PlainObject {
  const tags = Array.isArray(value) ? value.filter((tag) => typeof tag === 'string') : [];
  return tags.length === 0 ? {} : { tags };
}

/** Copies the operation's parameters before the path's, written out: many readers follow no reference here. */
function readParameters(operation: PlainObject, item: unknown, { copy, follow }: Copier): readonly OwnerParameter[] {
  const found = new Map<string, OwnerParameter>();
  for (const holder of [operation, item]) {
    const listed = memberOf(holder, 'parameters');
    for (const each of Array.isArray(listed) ? listed.slice(0, MOST_PARAMETERS) : []) {
      const parameter = follow(each);
      const [place, name] = [memberOf(parameter, 'in'), memberOf(parameter, 'name')];
      if (typeof place !== 'string' || typeof name !== 'string' || found.has(`${place} ${name}`)) continue;
      found.set(`${place} ${name}`, { in: place, name, value: copy(parameter) });
    }
  }
  return [...found.values()];
}

function readBody(body: unknown, { copy }: Copier): unknown {
  const content = memberOf(body, 'content');
  if (!isPlain(body) || !isPlain(content)) return undefined;
  const media = entriesOf(content, (name) => isPlain(memberOf(content, name)), copy);
  return { ...entriesOf(body, (name) => name !== 'content' && name !== '$ref', copy), content: media };
}

function readResponses(responses: unknown, { copy }: Copier): PlainObject {
  if (!isPlain(responses)) return {};
  return Object.fromEntries(
    Object.entries(responses).flatMap(([status, response]) => {
      if (status === '402' || !STATUS.test(status) || !isPlain(response)) return [];
      return [[status, withDescription(copy(withoutLinks(response)))]];
    }),
  );
}

/** A response has to have one. */
function withDescription(response: unknown): unknown {
  if (!isPlain(response) || typeof response['$ref'] === 'string' || typeof response['description'] === 'string')
    return response;
  return { description: '', ...response };
}

function readSecurity(value: unknown, { copy, use }: Copier): unknown {
  if (!Array.isArray(value)) return undefined;
  const requirements = value.filter(isPlain).map((requirement) =>
    entriesOf(
      requirement,
      (name) => Array.isArray(requirement[name]),
      (scopes) => (Array.isArray(scopes) ? scopes.filter((scope) => typeof scope === 'string') : []),
    ),
  );
  for (const requirement of requirements) for (const name of Object.keys(requirement)) use('securitySchemes', name);
  return copy(requirements);
}
