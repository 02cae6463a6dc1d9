// An operation of an OpenAPI document in the words of bazaar: an example of request and answer, and a schema that
// describes both and fits the example. Examples are the document's own; none is made up. Source: x402 extension
// `bazaar`.
import { takes } from './json-schema.ts';
import { isPlain, memberOf, type References } from './schema-references.ts';

/** Description in bazaar's words: its `info` and `schema`. */
export type Description = { readonly info: Info; readonly schema: object };
export type Info = { readonly input: Input; readonly output?: { readonly type: 'json'; readonly example: unknown } };
type Input = { readonly type: 'http'; readonly method: string; readonly [name: string]: unknown };

export const METHODS = ['GET', 'HEAD', 'DELETE', 'POST', 'PUT', 'PATCH'] as const;
/** A method that an operation of a document is read for. */
export type OwnerMethod = (typeof METHODS)[number];
export const WITH_BODY: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH']);
const MAX_PARAMETERS = 256;

type PlainObject = Readonly<Record<string, unknown>>;

/** Describes an operation by its method alone, if its description cannot be shown. */
export function describeMethod(method: string): Description {
  return { info: { input: { type: 'http', method } }, schema: schemaOf(method, {}, undefined) };
}

/**
 * Describes an operation without a description. Indexes skip what has no input, be it empty, or no answer. `names` are
 * those of the path's parameters.
 */
export function describeUnknown(method: string, names: readonly string[]): Description {
  const properties = Object.fromEntries(names.map((name) => [name, { type: 'string' }]));
  const schemas = names.length === 0 ? {} : { pathParams: { type: 'object', properties } };
  return {
    info: { input: { type: 'http', method, ...(names.length === 0 ? {} : { pathParams: {} }), queryParams: {} } },
    schema: schemaOf(method, { ...schemas, queryParams: NO_PARAMETERS }, {}),
  };
}

const NO_PARAMETERS = { type: 'object', properties: {} };

/** Describes an operation; undefined if it is too large to be shown, or its examples are not as its schemas say. */
export function describeOperation(
  method: string,
  pathItem: unknown,
  operation: unknown,
  references: References,
): Description | undefined {
  const parameters = parametersOf(pathItem, operation, references);
  if (parameters === undefined) return undefined;
  const body = WITH_BODY.has(method) ? bodyOf(operation, references) : undefined;
  const answer = answerOf(operation, references);
  const query = parameters.filter((parameter) => memberOf(parameter, 'in') === 'query');
  const inPath = parameters.filter((parameter) => memberOf(parameter, 'in') === 'path');
  const inlined = references.inline(
    schemaOf(
      method,
      {
        ...(query.length > 0
          ? { queryParams: membersOf(query, references) }
          : body === undefined && { queryParams: NO_PARAMETERS }),
        ...(body === undefined
          ? {}
          : { bodyType: { type: 'string', enum: [body.bodyType] }, body: memberOf(body.media, 'schema') ?? {} }),
        ...(inPath.length === 0 ? {} : { pathParams: membersOf(inPath, references) }),
      },
      memberOf(answer, 'schema') ?? {},
    ),
  );
  if (!isPlain(inlined)) return undefined;
  const schema = { $schema: SCHEMA, ...inlined };
  const described = memberOf(memberOf(memberOf(schema, 'properties'), 'input'), 'properties');
  const example = (media: unknown, of: unknown): readonly unknown[] => exampleOf(media, of, references);
  const members = (name: string, of: readonly unknown[]): PlainObject => {
    const shown = examplesOf(of, memberOf(described, name), example);
    return shown === undefined ? {} : { [name]: shown };
  };
  const [sent] = body === undefined ? [] : example(body.media, memberOf(described, 'body'));
  const output = memberOf(memberOf(schema, 'properties'), 'output');
  const [answered] = answer === undefined ? [] : example(answer, memberOf(memberOf(output, 'properties'), 'example'));
  const info = {
    input: {
      type: 'http',
      method,
      ...members('queryParams', query),
      ...(body === undefined ? {} : { bodyType: body.bodyType, ...(sent === undefined ? {} : { body: sent }) }),
      ...members('pathParams', inPath),
    },
    ...(answered === undefined ? {} : { output: { type: 'json', example: answered } }),
  };
  const copied = references.copy(info);
  if (copied === undefined) return undefined;
  // The check reads the JSON that will be written: JSON has no infinity.
  const description: Description = JSON.parse(JSON.stringify({ info: copied, schema }));
  return !holdsReference(description.schema) && takes(description.schema, description.info) ? description : undefined;
}

/** Keeps in `description` those parameters of the path that are among `names`. */
export function withPathParameters(description: Description, names: readonly string[]): Description {
  const { info, schema } = description;
  const properties = memberOf(schema, 'properties');
  const input = memberOf(properties, 'input');
  const described = memberOf(input, 'properties');
  const ofPath = memberOf(described, 'pathParams');
  if (!isPlain(properties) || !isPlain(input) || !isPlain(described) || !isPlain(ofPath)) return description;
  const only = (value: unknown): PlainObject =>
    Object.fromEntries(Object.entries(isPlain(value) ? value : {}).filter(([name]) => names.includes(name)));
  const { pathParams: shown, ...rest } = info.input;
  const { pathParams: _, ...others } = described;
  const kept = only(ofPath['properties']);
  const isLeft = Object.keys(kept).length > 0;
  const required = ((ofPath['required'] ?? []) as readonly string[]).filter((name) => names.includes(name));
  const pathParams = { ...ofPath, properties: kept, ...('required' in ofPath ? { required } : {}) };
  return {
    info: {
      ...info,
      input: { ...(rest as Input), ...(isLeft && shown !== undefined ? { pathParams: only(shown) } : {}) },
    },
    schema: {
      ...schema,
      properties: { ...properties, input: { ...input, properties: isLeft ? { ...others, pathParams } : others } },
    },
  };
}

const SCHEMA = 'https://json-schema.org/draft/2020-12/schema';

function schemaOf(method: string, input: PlainObject, example: unknown): object {
  return {
    $schema: SCHEMA,
    type: 'object',
    properties: {
      input: {
        type: 'object',
        properties: { type: { type: 'string', const: 'http' }, method: { type: 'string', enum: [method] }, ...input },
        required: ['type', 'method', ...('bodyType' in input ? ['bodyType'] : [])],
        additionalProperties: false,
      },
      ...(example === undefined
        ? {}
        : { output: { type: 'object', properties: { type: { type: 'string' }, example }, required: ['type'] } }),
    },
    required: ['input'],
  };
}

/** Lists the parameters of the operation before those of its path; undefined if there are more than can be shown. */
function parametersOf(pathItem: unknown, operation: unknown, { follow }: References): readonly unknown[] | undefined {
  const found = new Map<string, unknown>();
  for (const holder of [operation, pathItem]) {
    const parameters = memberOf(holder, 'parameters');
    if (!Array.isArray(parameters)) continue;
    if (parameters.length > MAX_PARAMETERS) return undefined;
    for (const each of parameters as unknown[]) {
      const parameter = follow(each);
      const name = `${String(memberOf(parameter, 'in'))} ${String(memberOf(parameter, 'name'))}`;
      if (typeof memberOf(parameter, 'name') === 'string' && !found.has(name)) found.set(name, parameter);
    }
  }
  return [...found.values()];
}

function nameOf(parameter: unknown): string {
  return String(memberOf(parameter, 'name'));
}

/** Parameters as the members of one object. */
function membersOf(parameters: readonly unknown[], { follow }: References): object {
  const required = parameters.filter((parameter) => memberOf(parameter, 'required') === true).map(nameOf);
  const schemas = parameters.map((parameter) => {
    const [media] = Object.values(asPlain(memberOf(parameter, 'content')));
    return [nameOf(parameter), memberOf(parameter, 'schema') ?? memberOf(follow(media), 'schema') ?? {}] as const;
  });
  return {
    type: 'object',
    properties: Object.fromEntries(schemas),
    ...(required.length === 0 ? {} : { required }),
  };
}

/** Collects the examples of parameters that have one; undefined: none has, or one that is needed has none. */
function examplesOf(
  parameters: readonly unknown[],
  schema: unknown,
  example: (media: unknown, of: unknown) => readonly unknown[],
): PlainObject | undefined {
  const shown = parameters.flatMap((parameter) => {
    const name = nameOf(parameter);
    return example(parameter, memberOf(memberOf(schema, 'properties'), name)).map((value) => [name, value] as const);
  });
  const examples = Object.fromEntries(shown);
  const required = memberOf(schema, 'required');
  const isWhole = !Array.isArray(required) || required.every((name) => Object.hasOwn(examples, String(name)));
  return shown.length > 0 && isWhole ? examples : undefined;
}

type Body = { readonly bodyType: 'json' | 'form-data' | 'text'; readonly media: unknown };

const BODY_TYPES = [
  ['json', /^application\/(?:[^;]*\+)?json\b/i],
  ['form-data', /^(?:multipart\/form-data|application\/x-www-form-urlencoded)\b/i],
  ['text', /^text\//i],
] as const;

function bodyOf(operation: unknown, { follow }: References): Body | undefined {
  const content = memberOf(follow(memberOf(operation, 'requestBody')), 'content');
  for (const [bodyType, isType] of BODY_TYPES) {
    const media = mediaOf(content, isType);
    if (media !== undefined) return { bodyType, media: follow(media) };
  }
  return undefined;
}

/** JSON that a first answer of success holds. */
function answerOf(operation: unknown, { follow }: References): unknown {
  const responses = asPlain(memberOf(operation, 'responses'));
  const first = Object.keys(responses).find((status) => /^2(?:\d\d|XX)$/i.test(status));
  return first && follow(mediaOf(memberOf(follow(responses[first]), 'content'), BODY_TYPES[0][1]));
}

function mediaOf(content: unknown, isType: RegExp): unknown {
  return Object.entries(asPlain(content)).find(([type]) => isType.test(type))?.[1];
}

/** Finds the example of a media type: one value, or none. */
function exampleOf(media: unknown, schema: unknown, { follow }: References): readonly unknown[] {
  const own = memberOf(media, 'example');
  if (own !== undefined) return [own];
  const [named] = Object.values(asPlain(memberOf(media, 'examples')));
  const value = memberOf(follow(named), 'value');
  return value === undefined ? exampleOfSchema(schema) : [value];
}

function exampleOfSchema(schema: unknown): readonly unknown[] {
  const listed = memberOf(memberOf(schema, 'examples'), 0);
  const chosen = memberOf(memberOf(schema, 'enum'), 0);
  const said = [memberOf(schema, 'example'), listed, memberOf(schema, 'const'), memberOf(schema, 'default'), chosen];
  const first = said.find((value) => value !== undefined);
  if (first !== undefined) return [first];
  const items = memberOf(schema, 'items');
  if (items !== undefined) return exampleOfSchema(items).map((item) => [item]);
  const properties = Object.entries(asPlain(memberOf(schema, 'properties')));
  const shown = properties.flatMap(([name, of]) => exampleOfSchema(of).map((value) => [name, value] as const));
  const required = memberOf(schema, 'required');
  const isWhole = !Array.isArray(required) || required.every((name) => shown.some(([given]) => given === name));
  return shown.length > 0 && isWhole ? [Object.fromEntries(shown)] : [];
}

function asPlain(value: unknown): PlainObject {
  return isPlain(value) ? value : {};
}

/** Tells whether a reference stands anywhere in `value`: readers of a schema look for them even in examples. */
function holdsReference(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return Object.entries(value).some(
    ([name, member]) => /^\$(?:ref|id|anchor|dynamicRef|dynamicAnchor)$/.test(name) || holdsReference(member),
  );
}
