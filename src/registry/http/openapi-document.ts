// The OpenAPI 3.1 document, made from the table of endpoints and the schemas that validate: so it is always true.
import { z } from 'zod';
import { PROBLEMS, type ProblemCode } from '../../domain/problem.ts';
import type { Auth } from '../auth/credentials.ts';
import type { ResponseSpec, Endpoint } from './endpoint.ts';
import { EXPLAINED } from './examples.ts';
import { exampleOfProblem } from './problem-examples.ts';
import { componentsOf, schemaOf, writtenSchema, type Json } from './schema-conversion.ts';
import { problemBody } from './schemas.ts';

/** Meanings of the header parameters and answer headers of this interface. */
const HEADERS: Readonly<Record<string, string>> = {
  'If-Match': 'Change the route only if its ETag is one of these, or `*`.',
  'If-None-Match': 'For reads: answer 304 if the ETag is one of these. For changes: refuse then.',
  'Last-Event-ID': 'Resume after the event with this id.',
  ETag: 'A strong entity tag.',
  'Content-Disposition': 'The name of the file.',
  Location: 'Where the route can be read.',
  'Tollgate-Registry': 'The id of this registry.',
  'Tollgate-Revision':
    'A number that grows with every change of a route. In a request: what the client has; it is not answered with less, unless the store has less.',
};

/** Tags by prefix: the first whose prefix a path has is its tag. */
const TAGS = [
  { name: 'dashboard', prefix: '/v1/billing/protected-routes', description: 'Routes, for people: with a JWT.' },
  { name: 'charges', prefix: '/v1/billing/', description: 'What was paid, for people: with a JWT.' },
  { name: 'sdk', prefix: '/v1/protected-routes/', description: 'Routes, for SDKs and sidecars: with an API key.' },
  { name: 'ledger', prefix: '/v1/ledger/', description: 'Charges of sidecars: with an API key of the scope `ledger`.' },
  { name: 'desk', prefix: '/desk/', description: 'Signing in to the page for owners.' },
  { name: 'desk-links', prefix: '/v1/desk-links', description: 'Links to the page for owners.' },
  { name: 'house', prefix: '/v1/api-keys', description: 'API keys, for people: with a JWT.' },
  { name: 'audit', prefix: '/v1/audit', description: 'Who changed what, for people: with a JWT.' },
  { name: 'receivers', prefix: '/v1/receivers', description: 'Where money goes, for people: with a JWT.' },
  { name: 'sidecars', prefix: '/v1/sidecars', description: 'Sidecars of this registry, for people: with a JWT.' },
  {
    name: 'webhooks',
    prefix: '/v1/webhooks',
    description: 'Events on their way to other programs, for people: with a JWT.',
  },
  { name: 'about', prefix: '/', description: 'What this registry is, for anyone.' },
] as const;

/** A JSON value. `api` is the table in api.ts; `origin` that of the registry, `/` if it is where the document comes from. */
export function describeApi<S>(api: readonly Endpoint<S>[], version: string, origin = '/'): Json {
  const paths: Record<string, Record<string, Json>> = {};
  for (const endpoint of api)
    (paths[endpoint.path] ??= {})[endpoint.method.toLowerCase()] = describeOperation(endpoint);
  return {
    openapi: '3.1.0',
    info: { title: 'Tollgate registry', version, license: { name: 'MIT', identifier: 'MIT' } },
    servers: serversOf(origin),
    tags: TAGS.map(({ name, description }) => ({ name, description })),
    security: [],
    paths,
    components: {
      schemas: componentsOf(),
      examples: Object.fromEntries(
        api.flatMap(problemsOf).map((code) => [code, { summary: PROBLEMS[code].title, value: exampleOfProblem(code) }]),
      ),
      securitySchemes: {
        jwt: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT', description: 'A dashboard token.' },
        api_key: { type: 'http', scheme: 'bearer', description: 'An API key with the scope that the operation names.' },
        desk: {
          type: 'apiKey',
          in: 'header',
          name: 'Tollgate-Desk',
          description: 'The key of a session of the desk, beside its cookie, from the desk’s own page.',
        },
      },
    },
  };
}

/** The document as text, for each origin under which the registry is asked. */
export function writeDocuments<S>(api: readonly Endpoint<S>[], version: string): (origin: string) => string {
  const described = describeApi(api, version);
  let last = { origin: '/', text: JSON.stringify(described) };
  return (origin) => {
    if (last.origin !== origin) last = { origin, text: JSON.stringify({ ...described, servers: serversOf(origin) }) };
    return last.text;
  };
}

function serversOf(origin: string): readonly Json[] {
  return [{ url: origin, description: 'This registry.' }];
}

function describeOperation<S>(endpoint: Endpoint<S>): Json {
  const { description, body, answer: example } = EXPLAINED[endpoint.id] ?? {};
  const answers = Object.entries(endpoint.responses).map(
    ([status, answer]) => [status, describeResponse(answer, example)] as const,
  );
  // A redirect has no answer of its own: who follows it gets that of another place.
  const isRedirect = !answers.some(([status]) => status.startsWith('2'));
  const elsewhere = isRedirect ? [['default', { description: 'What is answered where it leads.' }] as const] : [];
  return {
    operationId: endpoint.id,
    tags: TAGS.filter(({ prefix }) => endpoint.path.startsWith(prefix))
      .slice(0, 1)
      .map(({ name }) => name),
    summary: endpoint.summary,
    ...(description === undefined ? {} : { description }),
    security: securityOf(endpoint.auth),
    parameters: [
      ...parametersOf('path', endpoint.params),
      ...parametersOf('query', endpoint.query),
      ...(endpoint.requestHeaders ?? []).map((name) => ({
        name,
        in: 'header',
        description: HEADERS[name],
        schema: { type: 'string' },
      })),
    ],
    ...(endpoint.mediaTypes.length > 0
      ? { requestBody: { required: true, content: contentOf(endpoint.body, endpoint.mediaTypes, body) } }
      : {}),
    responses: Object.fromEntries([...answers, ...describeProblems(problemsOf(endpoint)), ...elsewhere]),
  };
}

function describeResponse({ description, schema, mediaType, headers, events }: ResponseSpec, example: unknown): Json {
  const described = (headers ?? []).map((name) => [name, { description: HEADERS[name], schema: { type: 'string' } }]);
  return {
    description,
    ...(headers ? { headers: Object.fromEntries(described) } : {}),
    ...(schema ? { content: contentOf(schema, [mediaType ?? 'application/json'], example) } : {}),
    ...(events ? { 'x-events': mapValues(events, schemaOf) } : {}),
  };
}

function mapValues<A, B>(of: Readonly<Record<string, A>>, change: (value: A) => B): Readonly<Record<string, B>> {
  return Object.fromEntries(Object.entries(of).map(([name, value]) => [name, change(value)]));
}

/** Lists the problems of an endpoint: what it takes says what it can refuse; the row adds the rest. */
function problemsOf<S>({
  auth,
  params,
  mediaTypes,
  problems,
  ignoresUnknownQuery,
}: Endpoint<S>): readonly ProblemCode[] {
  return [
    ...(auth.kind === 'none' ? [] : (['malformed', 'credentials_missing', 'credentials_invalid'] as const)),
    ...(auth.kind === 'none' ? [] : (['scope_insufficient'] as const)),
    ...(auth.kind === 'jwt' || auth.kind === 'session' ? (['host_refused', 'origin_refused'] as const) : []),
    ...(Object.keys(params.shape).length > 0 ? (['not_found'] as const) : []),
    ...(ignoresUnknownQuery === undefined || mediaTypes.length > 0 ? (['malformed'] as const) : []),
    ...(mediaTypes.length > 0 ? (['body_too_large', 'media_type_unsupported', 'invalid'] as const) : []),
    ...problems,
    'internal',
    'registry_unavailable',
  ];
}

function describeProblems(codes: readonly ProblemCode[]): [string, Json][] {
  const byStatus = Map.groupBy(new Set(codes), (code) => PROBLEMS[code].status);
  return [...byStatus].map(([status, group]) => [
    String(status),
    {
      description: group.map((code) => `\`${code}\`: ${PROBLEMS[code].title}`).join('; '),
      content: {
        'application/problem+json': {
          schema: schemaOf(problemBody),
          examples: Object.fromEntries(group.map((code) => [code, { $ref: `#/components/examples/${code}` }])),
        },
      },
    },
  ]);
}

function securityOf(auth: Auth): readonly Json[] {
  switch (auth.kind) {
    case 'none':
      return [];
    case 'jwt':
      return auth.alone ? [{ jwt: [] }] : [{ jwt: [] }, { desk: [] }];
    case 'session':
      return [{ desk: [] }];
    case 'api_key':
      return [{ api_key: [auth.scope] }];
    default:
      return auth satisfies never;
  }
}

function parametersOf(place: 'path' | 'query', schema: z.ZodObject): Json[] {
  const described = writtenSchema(schema);
  const required = new Set(Array.isArray(described['required']) ? described['required'] : []);
  const properties = z.record(z.string(), z.unknown()).parse(described['properties'] ?? {});
  return Object.entries(properties).map(([name, property]) => ({
    name,
    in: place,
    required: place === 'path' || required.has(name),
    schema: property,
  }));
}

function contentOf(schema: z.ZodType, mediaTypes: readonly string[], example?: unknown): Json {
  const content = { schema: schemaOf(schema), ...(example === undefined ? {} : { example }) };
  return Object.fromEntries(mediaTypes.map((mediaType) => [mediaType, content]));
}
