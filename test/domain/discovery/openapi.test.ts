import { describe, expect, test } from 'vitest';
import { route } from '../../cases/routes.ts';
import { bazaarOf, descriptionOf, discoveryOf, readText, type Bazaar } from './kit.ts';
import { threadMs } from '../../support/thread-time.ts';

const SCHEMA = 'https://json-schema.org/draft/2020-12/schema';

/** The bazaar of one operation. */
function shown(text: string, asked = 'GET /reports/q3', pattern = asked): Bazaar | undefined {
  const [method = '', path = ''] = asked.split(' ');
  return bazaarOf(discoveryOf(text).listingOf(route(`${pattern} 0.10`), method, path));
}

/** A document with one operation for GET /reports/q3. */
const one = (operation: string, version = '3.0.3'): string =>
  `openapi: ${version}\npaths:\n  /reports/q3:\n    get: ${operation}\n`;
const answers = (schema: string, example = '1', version = '3.0.3'): string =>
  one(
    `{ responses: { "200": { content: { application/json: { schema: ${schema}, example: ${example} } } } } }`,
    version,
  );
/** What is left of the schema of an answer. */
const schemaOfAnswer = (bazaar: Bazaar | undefined): unknown =>
  (bazaar?.schema.properties['output']?.['properties'] as Record<string, unknown> | undefined)?.['example'];

const WHOLE = `
openapi: 3.1.0
servers: [{ url: "https://api.example.com/v1" }]
paths:
  /weather/{city}:
    parameters:
      - { name: city, in: path, required: true, schema: { type: string }, example: oslo }
    get:
      parameters:
        - $ref: "#/components/parameters/Days"
        - { name: X-Trace, in: header, schema: { type: string }, example: secret }
      responses:
        200:
          content:
            application/json:
              schema: { $ref: "#/components/schemas/Forecast" }
    post:
      requestBody:
        content:
          application/json:
            schema:
              type: object
              required: [text]
              properties: { text: { type: string, example: "It rains" }, stars: { type: integer } }
      responses: { 201: { description: Made } }
components:
  parameters:
    Days: { name: days, in: query, schema: { type: integer, minimum: 1, default: 3 } }
  schemas:
    Forecast:
      type: object
      required: [celsius]
      properties: { celsius: { type: number, examples: [11.5] }, note: { type: [string, "null"] } }
`;

describe('an operation', () => {
  test('behaviour: a GET is shown with its query, its path and its answer', () => {
    expect(shown(WHOLE, 'GET /v1/weather/oslo', 'GET /v1/weather/:city')).toEqual({
      info: {
        input: { type: 'http', method: 'GET', queryParams: { days: 3 }, pathParams: { city: 'oslo' } },
        output: { type: 'json', example: { celsius: 11.5 } },
      },
      schema: {
        $schema: SCHEMA,
        type: 'object',
        properties: {
          input: {
            type: 'object',
            properties: {
              type: { type: 'string', const: 'http' },
              method: { type: 'string', enum: ['GET'] },
              queryParams: { type: 'object', properties: { days: { type: 'integer', minimum: 1, default: 3 } } },
              pathParams: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
            },
            required: ['type', 'method'],
            additionalProperties: false,
          },
          output: {
            type: 'object',
            properties: {
              type: { type: 'string' },
              example: {
                type: 'object',
                required: ['celsius'],
                properties: { celsius: { type: 'number', examples: [11.5] }, note: { type: ['string', 'null'] } },
              },
            },
            required: ['type'],
          },
        },
        required: ['input'],
      },
      routeTemplate: '/v1/weather/:city',
    });
  });

  test('behaviour: a POST is shown with its body', () => {
    const bazaar = shown(WHOLE, 'POST /v1/weather/oslo', 'POST /v1/weather/:city');
    expect(bazaar?.info).toEqual({
      input: {
        type: 'http',
        method: 'POST',
        bodyType: 'json',
        body: { text: 'It rains' },
        pathParams: { city: 'oslo' },
      },
    });
  });

  test('behaviour: parameters of the path that the pattern names otherwise are left out', () => {
    const bazaar = shown(WHOLE, 'GET /v1/weather/oslo', 'GET /v1/weather/:place');
    expect(bazaar?.info.input).not.toHaveProperty('pathParams');
    expect(bazaar?.schema.properties['input']).not.toHaveProperty('properties.pathParams');
    expect(bazaar?.routeTemplate).toBe('/v1/weather/:place');
  });

  test('behaviour: a description in JSON says the same as in YAML', () => {
    const document = {
      openapi: '3.0.0',
      paths: {
        '/reports/q3': { get: { parameters: [{ name: 'a', in: 'query', schema: { type: 'string' }, example: 'x' }] } },
      },
    };
    const yaml = one('{ parameters: [{ name: a, in: query, schema: { type: string }, example: x }] }', '3.0.0');
    expect(shown(JSON.stringify(document, null, 2))).toEqual(shown(yaml));
    expect(shown(yaml)?.info.input).toMatchObject({ queryParams: { a: 'x' } });
  });

  test.each([
    ['multipart/form-data', 'form-data'],
    ['application/x-www-form-urlencoded', 'form-data'],
    ['text/plain; charset=utf-8', 'text'],
    ['application/vnd.api+json', 'json'],
  ])('behaviour: a body of %s is %s', (type, bodyType) => {
    const text = `openapi: 3.0.0\npaths: { /a: { put: { requestBody: { content: { "${type}": { example: x } } } } } }`;
    expect(shown(text, 'PUT /a')?.info.input).toMatchObject({ bodyType, body: 'x' });
  });

  test('behaviour: an example that is needed and missing is not made up', () => {
    const input = shown(one('{ parameters: [{ name: a, in: query, required: true, schema: { type: string } }] }'));
    expect(input?.info.input).toEqual({ type: 'http', method: 'GET' });
    expect(input?.schema.properties['input']).toMatchObject({
      properties: { queryParams: { properties: { a: { type: 'string' } }, required: ['a'] } },
    });
  });

  test('behaviour: an example that is not as its schema says leaves method and template', () => {
    for (const text of [
      answers('{ type: string }', '1'),
      answers('{ type: string, pattern: "(" }', 'a'),
      answers('{ type: string, properties: { constructor: {} } }', 'a'),
      answers('{ type: file }', 'a'),
      answers('{ type: object, example: { $ref: "#/a" } }', '{}'),
      answers('{ minimum: 0, exclusiveMinimum: true }', '1', '3.1.0'),
      answers('{ $ref: "#/paths" }', '.inf'),
    ]) {
      expect(shown(text)?.info, text).toEqual({ input: { type: 'http', method: 'GET' } });
      expect(shown(text)?.schema.properties).not.toHaveProperty('output');
    }
  });
});

describe('schemas', () => {
  test.each([
    ['nullable', '{ type: integer, nullable: true }', { type: ['integer', 'null'] }],
    ['nullable without a type', '{ nullable: true, title: A }', { title: 'A' }],
    ['not nullable', '{ type: integer, nullable: false }', { type: 'integer' }],
    ['an exclusive minimum', '{ minimum: 0, exclusiveMinimum: true }', { exclusiveMinimum: 0 }],
    ['an inclusive maximum', '{ maximum: 9, exclusiveMaximum: false }', { maximum: 9 }],
    ['an exclusive bound of nothing', '{ exclusiveMaximum: true }', {}],
    [
      'other words',
      '{ example: 1, xml: { name: a }, x-own: 1, format: int32 }',
      { example: 1, xml: { name: 'a' }, 'x-own': 1, format: 'int32' },
    ],
    ['inside', '{ anyOf: [{ type: integer, nullable: true }] }', { anyOf: [{ type: ['integer', 'null'] }] }],
    [
      'a property with the name of a word',
      '{ properties: { nullable: { type: string } } }',
      { properties: { nullable: { type: 'string' } } },
    ],
  ])('behaviour: a schema of 3.0 is turned into 3.1: %s', (_, schema, expected) => {
    expect(schemaOfAnswer(shown(answers(schema)))).toEqual(expected);
  });

  test('behaviour: references of a schema are followed, and cut if they lead back', () => {
    const components = `components:
  schemas:
    Tree: { type: object, properties: { name: { type: string }, child: { $ref: "#/components/schemas/Tree" } } }
    Both: { allOf: [{ $ref: "#/components/schemas/Tree" }, { $ref: "#/components/schemas/a~1b%20c" }] }
    "a/b c": { maxProperties: 3 }\n`;
    const tree = { type: 'object', properties: { name: { type: 'string' }, child: {} } };
    const text = answers('{ $ref: "#/components/schemas/Both" }', '{}') + components;
    expect(schemaOfAnswer(shown(text))).toEqual({ allOf: [tree, { maxProperties: 3 }] });
    expect(descriptionOf(text).remarks).toEqual([]);
  });

  test('behaviour: members beside a reference are read in OpenAPI 3.1, and not in 3.0', () => {
    const of = (version: string): string =>
      `${answers('{ $ref: "#/components/schemas/A", title: B }', '1', version)}components: { schemas: { A: { type: integer } } }\n`;
    expect(schemaOfAnswer(shown(of('3.0.3')))).toEqual({ type: 'integer' });
    expect(schemaOfAnswer(shown(of('3.1.0')))).toEqual({ title: 'B', allOf: [{ type: 'integer' }] });
  });

  test('behaviour: references outside, or to nothing, are named with their lines and read as anything', () => {
    const text = `openapi: 3.0.0
paths:
  /a:
    get:
      responses:
        "200":
          content:
            application/json:
              schema:
                properties:
                  one: { $ref: "other.yaml#/A" }
                  two: { $ref: "https://example.com/b.json" }
                  three:
                    $ref: "#/components/schemas/Missing"
`;
    const { remarks, operations } = descriptionOf(text);
    const outside = 'refers to something outside this file, which is not read; write it into the file';
    expect(remarks).toEqual([
      { line: 11, message: outside },
      { line: 12, message: outside },
      { line: 14, message: 'refers to nothing in this file' },
    ]);
    expect(operations).toHaveLength(1);
    expect(schemaOfAnswer(shown(text, 'GET /a'))).toEqual({ properties: { one: {}, two: {}, three: {} } });
  });
});

describe('servers', () => {
  test.each([
    ['{ url: "https://api.example.com/v1/" }', '/v1/a'],
    ['{ url: /v2 }', '/v2/a'],
    ['{ url: "https://api.example.com" }', '/a'],
    ['{ url: "https://{host}/{base}", variables: { host: { default: h }, base: { default: v3 } } }', '/v3/a'],
    ['{ url: "http://[bad" }', '/a'],
    ['{ description: none }', '/a'],
  ])('behaviour: the server %s puts its path in front of its operations', (server, path) => {
    const { operations } = descriptionOf(
      `openapi: 3.0.0\nservers: [${server}, { url: /other }]\npaths: { /a: { get: {} } }\n`,
    );
    expect(operations.map((each) => each.path)).toEqual([path]);
  });
});

describe('documents that cannot be used', () => {
  test.each([
    ['openapi: 2.0.0\n', 1],
    ['info: {}\nopenapi: 4.0.0\n', 2],
    ['swagger: "2.0"\n', 1],
    ['- a\n', 1],
    ['just text\n', 1],
    ['', 1],
  ])('refuses: %j as an OpenAPI document', (text, line) => {
    expect(readText(text)).toEqual({ line, message: 'is no OpenAPI document of version 3.0 or 3.1' });
  });

  test('refuses: a document whose YAML is not valid, at its line', () => {
    expect(readText('openapi: 3.0.0\npaths: {\n  /a: [\n')).toMatchObject({
      line: expect.any(Number),
      message: expect.stringMatching(/^is not valid YAML/),
    });
  });

  test('behaviour: whatever else is in a document is passed over', () => {
    for (const paths of [
      '1',
      '[]',
      '{ /a: 1 }',
      '{ a: { get: {} } }',
      '{ /a: { get: 1 } }',
      '{ /a: { get: { parameters: 1, responses: 1 } } }',
      '{ /a: { $ref: "#/paths/~1a" } }',
    ])
      expect(descriptionOf(`openapi: 3.0.0\npaths: ${paths}\n`).remarks, paths).toEqual([]);
  });
});

describe('hostile documents', () => {
  test('attack: references that double with each step make no more than what could be shown', () => {
    const doubling = Array.from({ length: 40 }, (_, index) => {
      const next = `{ $ref: "#/components/schemas/S${index + 1}" }`;
      return `    S${index}: { properties: { a: ${next}, b: ${next} } }`;
    });
    const text = `${answers('{ $ref: "#/components/schemas/S0" }', '{}')}components:\n  schemas:\n${doubling.join('\n')}\n    S40: { type: string }\n`;
    const started = threadMs();
    expect(shown(text)?.info).toEqual({ input: { type: 'http', method: 'GET' } });
    expect(threadMs() - started).toBeLessThan(5_000);
  });

  test('attack: a chain of references, and a circle of them, come to an end', () => {
    const chain = Array.from(
      { length: 5_000 },
      (_, index) => `    P${index}: { $ref: "#/components/parameters/P${index + 1}" }`,
    );
    const text = `${one('{ parameters: [{ $ref: "#/components/parameters/P0" }, { $ref: "#/components/parameters/A" }] }')}components:
  parameters:
    A: { $ref: "#/components/parameters/B" }
    B: { $ref: "#/components/parameters/A" }
${chain.join('\n')}\n`;
    expect(shown(text)?.info.input).toEqual({ type: 'http', method: 'GET' });
  });

  test('attack: names that JavaScript knows change nothing and are not shown', () => {
    const text = answers(
      '{ properties: { __proto__: { type: string }, toString: { type: string } } }',
      '{ "__proto__": "x" }',
    );
    expect(shown(text)?.info).toEqual({ input: { type: 'http', method: 'GET' } });
    expect(({} as Record<string, unknown>)['type']).toBeUndefined();
    const pointing = answers('{ $ref: "#/constructor/prototype" }', '1') + 'components: {}\n';
    expect(descriptionOf(pointing).remarks).toEqual([{ line: 4, message: 'refers to nothing in this file' }]);
  });

  test('attack: no variable of the environment is filled into a document', () => {
    const text = one('{ parameters: [{ name: a, in: query, schema: { type: string }, example: "${PATH}" }] }');
    expect(shown(text)?.info.input).toMatchObject({ queryParams: { a: '${PATH}' } });
  });

  test('behaviour: 5,000 operations of a document are read, one more is left out and said', () => {
    const paths = (count: number): string =>
      Array.from({ length: count }, (_, index) => `  /p${index}: { get: {} }`).join('\n');
    expect(descriptionOf(`openapi: 3.0.0\npaths:\n${paths(5_000)}\n`)).toMatchObject({
      remarks: [],
      operations: { length: 5_000 },
    });
    const more = descriptionOf(`openapi: 3.0.0\npaths:\n${paths(5_001)}\n`);
    expect(more.operations).toHaveLength(5_000);
    expect(more.remarks).toEqual([{ line: 2, message: 'holds more than 5000 operations; the rest is left out' }]);
  });

  test('behaviour: an operation of 256 parameters is read; with one more its method alone is shown', () => {
    const parameters = (count: number): string =>
      Array.from({ length: count }, (_, index) => `{ name: p${index}, in: header }`).join(', ');
    const shownWith = (count: number): unknown =>
      shown(one(`{ parameters: [{ name: a, in: query, example: x }, ${parameters(count - 1)}] }`))?.info.input;
    expect(shownWith(256)).toMatchObject({ queryParams: { a: 'x' } });
    expect(shownWith(257)).toEqual({ type: 'http', method: 'GET' });
  });

  test('behaviour: a path of 512 characters is read, a longer one is passed over', () => {
    const of = (length: number): number =>
      descriptionOf(`openapi: 3.0.0\npaths: { "/${'a'.repeat(length - 1)}": { get: {} } }\n`).operations.length;
    expect([of(512), of(513)]).toEqual([1, 0]);
  });

  test('behaviour: 20 references that cannot be read are named, of more the number is said', () => {
    const of = (count: number): readonly string[] =>
      descriptionOf(
        `openapi: 3.0.0\npaths:\n${Array.from({ length: count }, (_, index) => `  /p${index}: { $ref: "other.yaml#/${index}" }`).join('\n')}\n`,
      ).remarks.map(({ line, message }) => `${line} ${message}`);
    expect(of(20)).toHaveLength(20);
    expect(of(22)).toHaveLength(21);
    expect(of(22).at(-1)).toBe('22 and 2 more references like these');
  });
});
