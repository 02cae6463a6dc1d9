// What the origin tells of what it sells: which operations, under which paths, at which price, with which components, and
// what is left out of a document that is too large.
import { describe, expect, test } from 'vitest';
import { LLMS_PATH, MOST_BYTES, renderPublication } from '../../../src/domain/discovery/publication.ts';
import type { OmittedOperation } from '../../../src/domain/discovery/sold-operations.ts';
import type { PassTerms } from '../../../src/domain/selling/pass.ts';
import { route } from '../../cases/routes.ts';
import { publishText, type Told } from './publish-kit.ts';
import { threadMs } from '../../support/thread-time.ts';

const ORIGIN = 'https://api.example.com';
const ITEM = '/items/{id}: { get: { operationId: item, responses: { "200": { description: OK } } } }';

function document(paths: string, more = ''): string {
  return `openapi: 3.1.0\ninfo: { title: T, version: "7" }\npaths:\n  ${paths}\n${more}`;
}

const priced = ({ document: { paths } }: Told): string[] =>
  Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(
      ([method, operation]) => `${method.toUpperCase()} ${path} ${operation['x-payment-info'].price.amount}`,
    ),
  );
const why = ({ report }: Told): OmittedOperation['why'][] => report.leftOut.map((each) => each.why);

describe('which operations are told', () => {
  test('behaviour: operations that an active route protects are told, at the price of the most specific one', () => {
    const told = publishText(document(ITEM), ['GET /items/* 0.10', 'GET /items/:id 0.20']);
    expect(priced(told)).toEqual(['GET /items/{id} 0.20']);
  });

  test('behaviour: an operation that a narrower pattern protects stands under the narrower path, without its parameter', () => {
    const told = publishText(
      document(
        ITEM.replace(
          'responses',
          'parameters: [{ name: id, in: path, required: true, schema: { type: integer } }], responses',
        ),
      ),
      ['GET /items/special 0.50'],
    );
    expect(priced(told)).toEqual(['GET /items/special 0.50']);
    expect(JSON.stringify(told.document.paths)).not.toContain('"in":"path"');
  });

  test('behaviour: an operation under two paths has two prices and one operationId', () => {
    const told = publishText(document(ITEM), ['GET /items/:id 0.10', 'GET /items/special 0.50']);
    expect(priced(told)).toEqual(['GET /items/{id} 0.10', 'GET /items/special 0.50']);
    expect(told.text.match(/"operationId":"item"/g)).toHaveLength(1);
  });

  test('behaviour: a free path among paid ones is not told', () => {
    const told = publishText(document(ITEM), ['GET /items/:id 0.10', 'GET /items/free 0.10 paused']);
    expect(priced(told)).toEqual(['GET /items/{id} 0.10']);
    expect(why(told)).toEqual(['paused']);
  });

  test('behaviour: a route for any method stands as the methods of the document, without one as GET and POST', () => {
    expect(priced(publishText(document(ITEM), ['* /items/:id 0.10']))).toEqual(['GET /items/{id} 0.10']);
    expect(priced(publishText(undefined, ['* /items/:id 0.10']))).toEqual([
      'GET /items/{id} 0.10',
      'POST /items/{id} 0.10',
    ]);
  });

  test('behaviour: a wildcard is told by its operations, and left out without one', () => {
    expect(priced(publishText(document(ITEM), ['GET /* 0.10']))).toEqual(['GET /items/{id} 0.10']);
    const none = publishText(undefined, ['GET /a/* 0.10', 'GET /b/:c 0.10']);
    expect(priced(none)).toEqual(['GET /b/{c} 0.10']);
    expect(none.report.leftOut).toEqual([{ method: 'GET', pattern: '/a/*', why: 'wildcard' }]);
  });

  test('behaviour: a pattern beside an operation of the same shape stands under the path of the operation', () => {
    const told = publishText(document(ITEM), ['GET /items/:id 0.10', 'POST /items/:name 0.20']);
    expect(priced(told)).toEqual(['GET /items/{id} 0.10', 'POST /items/{id} 0.20']);
    expect(told.document.paths['/items/{id}']?.['post']?.['parameters']).toEqual([
      { name: 'id', in: 'path', required: true, schema: { type: 'string' } },
    ]);
  });

  test.each([
    ['/items/*', 'GET /items/:id 0.10'],
    ['/items/:x', 'GET /items/:id 0.10'],
    ['/items/special', 'GET /items/special 0.10'],
    ['/ITEMS/special/', 'GET /items/special 0.10'],
    ['/*', 'GET /items/* 0.10'],
  ])('behaviour: exclude %s keeps %s away', (exclude, rule) => {
    const told = publishText(document(ITEM), [rule], [exclude]);
    expect(priced(told)).toEqual([]);
    expect(told.text).not.toContain('item"');
  });

  test('behaviour: a route that nobody can pay, that has no method of OpenAPI or that never applies is left out and said', () => {
    const told = publishText(undefined, ['GET /a 0.10', 'PROPFIND /b 0.10'], [], (each) => each.pattern !== '/a');
    expect([priced(told), why(told)]).toEqual([[], ['unpayable', 'method']]);
  });

  test('behaviour: the server of the document counts, and paths stand from the root of the host', () => {
    const text = `openapi: 3.0.2\nservers: [{ url: "https://x.example/v1/" }]\npaths: { /a: { get: {} } }\n`;
    const told = publishText(text, ['GET /v1/a 0.10']);
    expect([priced(told), told.document.openapi]).toEqual([['GET /v1/a 0.10'], '3.0.2']);
    expect(told.document.servers).toEqual([{ url: ORIGIN }]);
  });
});

describe('what is told of an operation', () => {
  test('behaviour: an operation’s price, protocol, 402 and security stand beside what the owner wrote', () => {
    const told = publishText(
      document(
        '/a: { get: { summary: A, tags: [x], responses: { "200": { description: OK }, "402": { description: mine } } } }',
      ),
      ['GET /a 0.10'],
    );
    expect(told.document.paths['/a']?.['get']).toEqual({
      summary: 'A',
      tags: ['x'],
      parameters: [expect.objectContaining({ name: 'PAYMENT-SIGNATURE', in: 'header' })],
      responses: {
        '200': { description: 'OK' },
        '402': { description: 'Payment required', headers: { 'PAYMENT-REQUIRED': expect.anything() } },
      },
      security: [],
      'x-payment-info': { price: { mode: 'fixed', currency: 'USD', amount: '0.10' }, protocols: [{ x402: {} }] },
    });
  });

  test("behaviour: the owner's security stands, with the schemes that it names and no other", () => {
    const told = publishText(
      document(
        '/a: { get: { security: [{ key: [] }] } }\n  /b: { get: {} }',
        'security: [{ other: [] }]\ncomponents: { securitySchemes: { key: { type: apiKey, in: header, name: K }, other: { type: http, scheme: basic }, third: { type: http, scheme: basic } } }',
      ),
      ['GET /a 0.10'],
    );
    expect(told.document.paths['/a']?.['get']?.['security']).toEqual([{ key: [] }]);
    expect(Object.keys(told.document.components?.['securitySchemes'] ?? {})).toEqual(['key']);
  });

  test('behaviour: passes of a plan are told beside the price of a request, and in its place where that is not sold', () => {
    const [hundred, day, dear, credit]: readonly PassTerms[] = [
      { id: 'hundred', amount: '0.50', kind: 'uses', uses: 100, validMs: 1, scope: 'plan' },
      { id: 'day', amount: '2.00', kind: 'seconds', seconds: 86_400, validMs: 1, scope: 'plan' },
      { id: 'dear', amount: '3.00', kind: 'credit', credit: '0.05', validMs: 1, scope: 'plan' },
      { id: 'money', amount: '5.00', kind: 'credit', credit: '5.50', validMs: 1, scope: 'plan' },
    ] as const;
    if (hundred === undefined || day === undefined || dear === undefined || credit === undefined)
      throw new Error('none');
    const prices = new Map([
      ['both', { price: undefined, single: true, passes: [hundred, dear] }],
      ['only', { price: undefined, single: false, passes: [day, credit] }],
    ]);
    const routes = [
      { ...route('GET /both 0.10'), planId: 'both' },
      { ...route('GET /only 0.10'), planId: 'only' },
      route('GET /single 0.10'),
    ];
    const { document: written, llms, report } = publishText(undefined, routes, [], undefined, { prices });
    const priceOf = (path: string): unknown => written.paths[path]?.['get']?.['x-payment-info'].price;
    // What a 402 asks first.
    expect(priceOf('/both')).toEqual({ mode: 'fixed', currency: 'USD', amount: '0.10' });
    expect(priceOf('/only')).toEqual({ mode: 'fixed', currency: 'USD', amount: '2.00' });
    expect(report.operations.map(({ amount }) => amount)).toEqual(['0.10', '2.00', '0.10']);
    expect(llms).toContain(': GET /both, 0.10 USD per request, or 0.50 USD for 100 requests\n');
    expect(llms).toContain(': GET /only, 2.00 USD for 1 day, or 5.00 USD for requests worth 5.50 USD\n');
    expect(llms).toContain(': GET /single, 0.10 USD per request\n');
    expect(llms).toContain('Requests are paid one by one or by passes');
    expect(llms).toMatch(/\n4\. A pass is .*`extra\.pass`.*`Tollgate-Pass`/);
    expect(JSON.stringify(written.info)).toContain('sell a pass for many requests');
    const without = publishText(undefined, ['GET /single 0.10'], [], undefined, { prices });
    expect(without.llms).toContain('Each request is paid by itself');
    expect(without.llms + without.text).not.toMatch(/pass for|Tollgate-Pass/);
  });

  test('behaviour: a coin of a currency is told as the currency', () => {
    const currency = (written: string): unknown =>
      publishText(undefined, [`GET /a 0.10 ${written}`]).document.paths['/a']?.['get']?.['x-payment-info'].price
        .currency;
    expect([currency('USDC'), currency('EUR'), currency('EURC'), currency('WEIRD')]).toEqual([
      'USD',
      'EUR',
      'EUR',
      undefined,
    ]);
  });

  test('behaviour: a customer id is asked for where the route takes nobody without one', () => {
    const told = publishText(undefined, ['GET /a 0.10 named']);
    expect(told.document.paths['/a']?.['get']?.['parameters']).toEqual([
      expect.objectContaining({ name: 'X-Customer-Id', in: 'header', required: true }),
    ]);
  });
});

describe('what an owner keeps to themselves', () => {
  const SECRET = `/a:
    x-internal-owner: SECRET
    get:
      X-Internal: SECRET
      x-internal-notes: { deep: SECRET }
      parameters: [{ name: X-Internal-Token, in: header, description: SECRET }, { name: q, in: query, x-internal-x: SECRET }]
      requestBody: { content: { application/json: { x-internal: SECRET, schema: { $ref: "#/components/schemas/x-internal-body" } } } }
      responses:
        "200":
          description: OK
          links: { next: { operationId: hidden-SECRET } }
          headers: { x-internal-trace: { description: SECRET } }
          content: { application/json: { schema: { $ref: "#/components/schemas/Shown" } } }
      callbacks: { on: { "{$request.body#/url}": { post: { summary: SECRET } } } }
      servers: [{ url: "https://SECRET.example" }]
      x-payment-info: { SECRET: 1 }`;
  const COMPONENTS = `components:
  schemas:
    x-internal-body: { description: SECRET }
    Shown: { type: object, required: [a, x-internal-b], properties: { a: { type: string, x-internal-sql: SECRET }, x-internal-b: { type: string } } }
    Unused: { description: SECRET }`;

  test('attack: members named x-internal, links, callbacks, servers and unused components are not told', () => {
    const told = publishText(document(SECRET, COMPONENTS), ['GET /a 0.10', 'POST /b 0.10']);
    expect(told.text).not.toMatch(/SECRET|x-internal/i);
    expect(told.document.components).toEqual({
      schemas: { Shown: { type: 'object', required: ['a'], properties: { a: { type: 'string' } } } },
    });
  });

  test('attack: no member named x-internal is told in a 402 either', () => {
    const told = publishText(document(SECRET, COMPONENTS), ['GET /a 0.10']);
    expect(JSON.stringify(told.api.operations)).not.toMatch(/SECRET|x-internal/i);
  });
});

describe('references', () => {
  const answers = (schema: string): string =>
    `/a: { get: { responses: { "200": { description: OK, content: { application/json: { schema: ${schema} } } } } } }\n  /secret: { get: { summary: SECRET, responses: { "200": { description: OK, content: { application/json: { schema: { title: inner } } } } } } }`;
  const schemaOf = (told: Told): unknown => {
    const responses = told.document.paths['/a']?.['get']?.['responses'] as
      | Record<string, { content: Record<string, { schema: unknown }> }>
      | undefined;
    return responses?.['200']?.content['application/json']?.schema;
  };

  test('behaviour: components come along over any number of others, and those of a discriminator', () => {
    const told = publishText(
      document(
        answers('{ $ref: "#/components/schemas/Pet" }'),
        'components: { schemas: { Pet: { oneOf: [{ $ref: "#/components/schemas/Cat" }], discriminator: { propertyName: kind, mapping: { dog: "#/components/schemas/Dog", cat: Cat, fox: "https://elsewhere.example/SECRET" } } }, Cat: { title: cat }, Dog: { $ref: "#/components/schemas/Tail" }, Tail: { title: tail }, Other: {} } }',
      ),
      ['GET /a 0.10'],
    );
    expect(Object.keys(told.document.components?.['schemas'] ?? {}).toSorted()).toEqual(['Cat', 'Dog', 'Pet', 'Tail']);
    expect(told.text).not.toContain('SECRET');
  });

  test('behaviour: a component that holds itself stays a reference', () => {
    const told = publishText(
      document(
        answers('{ $ref: "#/components/schemas/Tree" }'),
        'components: { schemas: { Tree: { properties: { child: { $ref: "#/components/schemas/Tree" } } } } }',
      ),
      ['GET /a 0.10'],
    );
    expect(told.document.components).toEqual({
      schemas: { Tree: { properties: { child: { $ref: '#/components/schemas/Tree' } } } },
    });
  });

  test('behaviour: a reference out of the document, to nothing, or to what is not told is cut or written out', () => {
    for (const outside of ['other.yaml#/SECRET', 'https://SECRET.example/', '#/components/schemas/SECRET', '#/SECRET'])
      expect(schemaOf(publishText(document(answers(`{ $ref: "${outside}" }`)), ['GET /a 0.10'])), outside).toEqual({});
    const inner = '#/paths/~1secret/get/responses/200/content/application~1json/schema';
    expect(schemaOf(publishText(document(answers(`{ $ref: "${inner}" }`)), ['GET /a 0.10']))).toEqual({
      title: 'inner',
    });
  });

  test('attack: circles outside the components are cut', () => {
    const self = '#/paths/~1a/get/responses/200/content/application~1json/schema';
    const told = publishText(document(answers(`{ properties: { again: { $ref: "${self}" } } }`)), ['GET /a 0.10']);
    expect(JSON.stringify(schemaOf(told)).length).toBeLessThan(200);
  });

  test('attack: references that double with each step leave their operation out and no other', () => {
    const steps = Array.from(
      { length: 40 },
      (_, index) => `  S${index}: { a: { $ref: "#/x/S${index + 1}" }, b: { $ref: "#/x/S${index + 1}" } }`,
    ).join('\n');
    const started = threadMs();
    const told = publishText(
      document(
        '/a: { get: { requestBody: { content: { application/json: { schema: { $ref: "#/x/S0" } } } } } }\n  /b: { get: {} }',
        `x:\n${steps}\n  S40: { title: end }\n`,
      ),
      ['GET /a 0.10', 'GET /b 0.10'],
    );
    expect(threadMs() - started).toBeLessThan(10_000);
    expect(Object.values(told.document.paths['/a']?.['get'] ?? {})).not.toContain('end');
    expect(told.document.paths['/b']?.['get']).toBeDefined();
    expect(told.api.remarks.map(({ message }) => message)).toContain(
      'holds more than can be published; 1 operations are left out',
    );
  });
});

describe('the documents', () => {
  test('behaviour: the document has title, version, contact and guidance on top, and links to the text beside it', () => {
    const { document: told } = publishText(document(ITEM), ['GET /items/:id 0.10'], [], undefined, {
      contact: 'owner@example.com',
      docsUrl: 'https://docs.example.com',
    });
    expect(told).toMatchObject({
      openapi: '3.1.0',
      info: { title: 'T', version: '7', contact: { email: 'owner@example.com' }, 'x-guidance': expect.any(String) },
      'x-service-info': { docs: { homepage: 'https://docs.example.com', llms: `${ORIGIN}${LLMS_PATH}` } },
      'x-agentcash-guidance': { llmsTxtUrl: `${ORIGIN}${LLMS_PATH}` },
    });
  });

  test('behaviour: if there is no document and no title, the host is the title', () => {
    const told = publishText(undefined, ['GET /a 0.10']);
    expect(told.document.info).toMatchObject({ title: 'api.example.com', version: '1.0.0' });
    expect(told.llms.startsWith('# api.example.com\n')).toBe(true);
  });

  test('behaviour: the text names each operation with its URL and price, the ways and how to pay', () => {
    const told = publishText(document('/a: { get: { summary: "An [odd] one" } }'), ['GET /a 0.10', 'GET /b/:c 2 USDC']);
    expect(told.llms).toContain(`- [An \\[odd\\] one](${ORIGIN}/a): GET /a, 0.10 USD per request\n`);
    expect(told.llms).toContain(`- [GET /b/{c}](${ORIGIN}/b/{c}): GET /b/{c}, 2 USDC per request\n`);
    expect(told.llms).toMatch(/x402 version 2[\s\S]*PAYMENT-REQUIRED[\s\S]*PAYMENT-SIGNATURE[\s\S]*base-sepolia USDC/);
    expect(told.llms.endsWith(`: ${ORIGIN}/openapi.json\n`)).toBe(true);
  });

  test('behaviour: 200 operations are listed in the text, and one more is counted', () => {
    const rules = Array.from({ length: 201 }, (_, index) => `GET /p${String(index).padStart(3, '0')} 0.10`);
    const { llms } = publishText(undefined, rules);
    expect(llms.match(/^- \[/gm)).toHaveLength(200);
    expect(llms).toContain('There are 1 more.');
  });

  test("behaviour: the owner's own text stands as it is", () => {
    expect(publishText(undefined, ['GET /a 0.10'], [], undefined, { llms: 'mine\n' }).llms).toBe('mine\n');
  });

  test('behaviour: the order in which routes come changes nothing', () => {
    const rules = ['GET /b 0.10', 'GET /a/:x 0.20', '* /c 0.30', 'GET /items/* 0.40'];
    const one = publishText(document(ITEM), rules);
    const other = publishText(document(ITEM), rules.toReversed());
    expect(other.publication.digest).toBe(one.publication.digest);
  });

  test('behaviour: a document with another price has another digest', () => {
    const digest = (rule: string): string => publishText(undefined, [rule]).publication.digest;
    expect(digest('GET /a 0.10')).not.toBe(digest('GET /a 0.11'));
  });

  test('attack: names that JavaScript knows stay names', () => {
    const told = publishText(
      document(
        '/__proto__: { get: { responses: { "200": { $ref: "#/components/responses/__proto__" } } } }',
        'components: { responses: { __proto__: { description: odd } } }',
      ),
      ['GET /__proto__ 0.10', 'GET /constructor/:prototype 0.10'],
    );
    expect(priced(told)).toEqual(['GET /__proto__ 0.10', 'GET /constructor/{prototype} 0.10']);
    expect(told.text).toContain('odd');
  });
});

describe('a document that is too large', () => {
  const words = 'x'.repeat(2_000);
  const large = (count: number, schema: string, body: string): string =>
    document(
      Array.from(
        { length: count },
        (_, index) =>
          `/p${String(index).padStart(4, '0')}: { post: { summary: S, requestBody: { content: { application/json: { schema: { title: "body-${body}" } } } }, responses: { "200": { description: OK, content: { application/json: { schema: { title: "answer-${schema}" } } } } } } }`,
      ).join('\n  '),
    );
  const sized = (told: Told): number => Buffer.byteLength(told.text);

  test('behaviour: a document that is too large loses the schemas of its responses first', () => {
    const told = publishText(large(480, words, 'b'), ['POST /* 0.10']);
    expect([told.report.without, told.report.cut]).toEqual([{ responses: true, bodies: false }, 0]);
    expect(told.text).toContain('body-b');
    expect(told.text).not.toContain('answer-');
    expect(sized(told)).toBeLessThanOrEqual(MOST_BYTES);
  });

  test('behaviour: a document that is still too large loses its request bodies next', () => {
    const told = publishText(large(480, words, words), ['POST /* 0.10']);
    expect([told.report.without, told.report.cut]).toEqual([{ responses: true, bodies: true }, 0]);
    expect(told.text).not.toMatch(/body-|answer-/);
    expect(priced(told)).toHaveLength(480);
  });

  test('behaviour: a document that is still too large loses operations at last, from its end, as many as it takes', () => {
    const rules = Array.from({ length: 4_000 }, (_, index) => `GET /p${String(index).padStart(4, '0')} 0.10`);
    const told = publishText(undefined, rules);
    const kept = priced(told).length;
    expect(told.report.cut).toBe(4_000 - kept);
    expect(priced(told)).toEqual(rules.slice(0, kept).map((rule) => rule));
    expect(sized(told)).toBeLessThanOrEqual(MOST_BYTES);
    expect(sized(told)).toBeGreaterThan(MOST_BYTES - 4_000);
  });

  test('behaviour: a document cut to its limit has room for the longest origin too', () => {
    const rules = Array.from({ length: 4_000 }, (_, index) => `GET /p${String(index).padStart(4, '0')} 0.10`);
    const { publication } = publishText(undefined, rules);
    const origin = `https://${'h'.repeat(255)}:65535`;
    const { openapi } = renderPublication(publication, origin);
    expect(Buffer.byteLength(openapi)).toBeLessThanOrEqual(MOST_BYTES);
    JSON.parse(openapi);
  });
});

test('behaviour: a route that covers a path of ours is named', () => {
  const taken = (rule: string): unknown => publishText(undefined, [rule]).report.taken;
  expect(taken('GET /openapi.json 0.10')).toEqual([{ path: '/openapi.json', by: 'the route GET /openapi.json' }]);
  expect(taken('POST /llms.txt 0.10')).toEqual([{ path: '/llms.txt', by: 'the route POST /llms.txt' }]);
  expect(taken('GET /llms.txt 0.10 paused')).toEqual([{ path: '/llms.txt', by: 'the route GET /llms.txt' }]);
  expect(taken('GET /other 0.10')).toEqual([]);
});
