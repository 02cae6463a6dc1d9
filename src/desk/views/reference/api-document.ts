// Reads an OpenAPI 3.1 document into what the reference shows: operations by tag, with an example of each body, and how a shell
// and a program call them. A document is another program's word: what is not as expected is left out.

export type ApiDocument = Readonly<Record<string, unknown>>;

export type ReferenceEntry = {
  readonly id: string;
  readonly method: string;
  readonly path: string;
  readonly tag: string;
  readonly summary: string;
  readonly description: string | null;
  readonly security: readonly string[];
  readonly parameters: readonly Parameter[];
  /** A media type object; null: it takes no body. */
  readonly body: unknown;
  readonly responses: readonly { readonly status: string; readonly about: string; readonly content: unknown }[];
  /** Its answer goes on as long as somebody reads. */
  readonly isStream: boolean;
  /** Its answer comes a page at a time. */
  readonly isList: boolean;
};

export type ReferenceGroup = {
  readonly tag: string;
  readonly about: string | null;
  readonly operations: readonly ReferenceEntry[];
};

type Parameter = { readonly name: string; readonly place: string; readonly required: boolean; readonly about: string };

const METHODS = ['get', 'post', 'patch', 'put', 'delete'];

/** Operations in whose path, name, words and parameters all of `words` stand, by tag, in the document's order. */
export function operationsOf(document: ApiDocument, words = ''): readonly ReferenceGroup[] {
  const wanted = words.toLowerCase().split(/\s+/);
  const groups = new Map<string, ReferenceEntry[]>();
  for (const [path, item] of Object.entries(membersOf(document['paths'])))
    for (const method of METHODS) {
      const raw = membersOf(item)[method];
      if (raw === undefined) continue;
      const operation = readOperation(document, path, method, membersOf(raw));
      const names = operation.parameters.map(({ name }) => name).join(' ');
      const said = `${operation.summary} ${operation.description ?? ''} ${textOf(membersOf(raw)['operationId']) ?? ''}`;
      const text = `${operation.method} ${path} ${operation.tag} ${said} ${names}`.toLowerCase();
      if (!wanted.every((word) => text.includes(word))) continue;
      groups.set(operation.tag, [...(groups.get(operation.tag) ?? []), operation]);
    }
  const tags = listOf(document['tags']).map(membersOf);
  return [...groups].map(([tag, operations]) => {
    const told = tags.find(({ name }) => name === tag);
    return { tag, about: textOf(told?.['description']), operations };
  });
}

function readOperation(document: ApiDocument, path: string, method: string, raw: ApiDocument): ReferenceEntry {
  const tags = listOf(raw['tags']);
  const security = listOf(raw['security'] ?? document['security']).flatMap((each) => Object.keys(membersOf(each)));
  const body = mediaOf(resolve(document, raw['requestBody']));
  const fine = membersOf(resolve(document, membersOf(raw['responses'])['200']));
  const answer = membersOf(resolve(document, membersOf(mediaOf(fine))['schema']));
  return {
    id: `${method} ${path}`,
    method: method.toUpperCase(),
    path,
    tag: textOf(tags[0]) ?? groupOf(path),
    summary: textOf(raw['summary']) ?? '',
    description: textOf(raw['description']),
    security: [...new Set(security)],
    parameters: listOf(raw['parameters']).map((each) => readParameter(document, each)),
    body,
    isStream: 'text/event-stream' in membersOf(fine['content']),
    isList: 'next_cursor' in membersOf(answer['properties']),
    responses: Object.entries(membersOf(raw['responses'])).map(([status, each]) => {
      const response = resolve(document, each);
      return { status, about: textOf(membersOf(response)['description']) ?? '', content: mediaOf(response) };
    }),
  };
}

function readParameter(document: ApiDocument, raw: unknown): Parameter {
  const parameter = membersOf(resolve(document, raw));
  const schema = membersOf(resolve(document, parameter['schema']));
  const choices = listOf(schema['enum']).map((each) => String(each));
  const about = [textOf(parameter['description']) ?? textOf(schema['description']), choices.join(', ')];
  return {
    name: textOf(parameter['name']) ?? '',
    place: textOf(parameter['in']) ?? '',
    required: parameter['required'] === true,
    about: about.filter((each) => each !== null && each !== '').join(' '),
  };
}

/** The first media type object of a body or a response. */
function mediaOf(of: unknown): unknown {
  return Object.values(membersOf(membersOf(of)['content']))[0] ?? null;
}

const DEEPEST = 7;

/** An example of a media type object: the one that stands there, else one made from its schema. */
export function exampleOf(media: unknown, document: ApiDocument): unknown {
  const { example, examples, schema } = membersOf(media);
  if (example !== undefined) return example;
  const named = membersOf(resolve(document, Object.values(membersOf(examples))[0]))['value'];
  if (named !== undefined) return named;
  return schema === undefined ? null : sampleOf(schema, document, 0);
}

function sampleOf(raw: unknown, document: ApiDocument, depth: number): unknown {
  const schema = membersOf(resolve(document, raw));
  const given = [
    schema['const'],
    schema['example'],
    listOf(schema['examples'])[0],
    schema['default'],
    listOf(schema['enum'])[0],
  ];
  const first = given.find((each) => each !== undefined);
  if (first !== undefined) return first;
  if (depth > DEEPEST) return null;
  const choice = listOf(schema['oneOf'])[0] ?? listOf(schema['anyOf'])[0];
  if (choice !== undefined) return sampleOf(choice, document, depth + 1);
  const parts = listOf(schema['allOf']);
  if (parts.length > 0) return Object.assign({}, ...parts.map((each) => sampleOf(each, document, depth + 1)));
  const type = Array.isArray(schema['type']) ? schema['type'][0] : schema['type'];
  if (type === 'array') return [sampleOf(schema['items'], document, depth + 1)];
  if (type === 'object' || schema['properties'] !== undefined)
    return Object.fromEntries(
      Object.entries(membersOf(schema['properties'])).map(([name, each]) => [
        name,
        sampleOf(each, document, depth + 1),
      ]),
    );
  return PLAIN[String(schema['format'] ?? type)] ?? PLAIN[String(type)] ?? null;
}

const PLAIN: Readonly<Record<string, unknown>> = {
  ...{
    string: 'text',
    integer: 0,
    number: 0,
    boolean: true,
    'date-time': '2026-01-31T12:00:00.000Z',
    date: '2026-01-31',
  },
  ...{ uuid: '7b6ff2a8-3c34-4c55-9d8e-2f3b1c0a9d11', uri: 'https://example.com' },
};

/** A command that asks the operation; what has to be filled in stands in `<...>`. */
export function curlOf(operation: ReferenceEntry, origin: string, body: unknown): string {
  const query = operation.parameters.filter(({ place, required }) => place === 'query' && required);
  const search = query.length === 0 ? '' : `?${query.map(({ name }) => `${name}=<${name}>`).join('&')}`;
  const path = operation.path.replace(/\{(\w+)\}/g, '<$1>');
  const lines = [`curl ${operation.isStream ? '-N ' : ''}'${origin}${path}${search}'`];
  if (operation.method !== 'GET') lines.push(`-X ${operation.method}`);
  if (operation.security.length > 0) lines.push("-H 'Authorization: Bearer <token>'");
  if (body !== null) {
    lines.push("-H 'Content-Type: application/json'");
    lines.push(`-d '${JSON.stringify(body).replaceAll("'", "'\\''")}'`);
  }
  return lines.join(' \\\n  ');
}

/** A call of the operation by `tollgate/client`; null if that has none. */
export function callOf({ method, path, parameters, isStream, isList }: ReferenceEntry, body: unknown): string | null {
  if (!path.startsWith('/v1/')) return null;
  const needed = (place: string): Record<string, string> =>
    Object.fromEntries(
      parameters.flatMap((each) => (each.place === place && each.required ? [[each.name, '...']] : [])),
    );
  const given = Object.entries({ params: needed('path'), query: needed('query'), ...(body === null ? {} : { body }) });
  const options = Object.fromEntries(given.filter(([, value]) => JSON.stringify(value) !== '{}'));
  const text = JSON.stringify(options, null, 2)
    .replace(/"([A-Za-z_]\w*)":/g, '$1:')
    .replaceAll("'", "\\'")
    .replaceAll('"', "'");
  const args = `('${path}'${text === '{}' ? '' : `, ${text}`})`;
  if (isStream) return `for await (const event of tollgate.events${args}) console.log(event.type, event.data);`;
  if (isList) return `for await (const page of tollgate.pages${args}) console.log(page.data);`;
  return `const { data, error } = await tollgate.${method}${args};`;
}

/** An example as people read it: what is no JSON stands as it is sent. */
export function shownExample(example: unknown): string {
  return typeof example === 'string' ? example.trimEnd() : JSON.stringify(example, null, 2);
}

function groupOf(path: string): string {
  const [, version, group] = path.split('/');
  return group ?? version ?? 'Other';
}

function resolve(document: ApiDocument, value: unknown): unknown {
  const reference = membersOf(value)['$ref'];
  if (typeof reference !== 'string' || !reference.startsWith('#/')) return value;
  let found: unknown = document;
  for (const name of reference.slice(2).split('/'))
    found = membersOf(found)[name.replaceAll('~1', '/').replaceAll('~0', '~')];
  return found;
}

function membersOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : {};
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function textOf(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}
