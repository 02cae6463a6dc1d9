import { describe, expect, test } from 'vitest';
import { createDiscovery } from '../../../src/domain/discovery/listing.ts';
import { readJson } from '../../../src/gateway/rails/service-call.ts';
import { route } from '../../cases/routes.ts';
import { bazaarOf, discoveryOf, patternOf } from './kit.ts';

const NONE = 'openapi: 3.0.0\n';
const listed = (text: string, asked: string, pattern: string, exclude: readonly string[] = []) => {
  const [method = '', path = ''] = asked.split(' ');
  return discoveryOf(text, exclude).listingOf(route(`${pattern} 0.10`), method, path);
};
const template = (pattern: string): string | undefined =>
  bazaarOf(listed(NONE, `GET ${pattern}`, `GET ${pattern}`))?.routeTemplate;

describe('routeTemplate', () => {
  test.each([
    ['/reports/q3', '/reports/q3'],
    ['/reports/:id', '/reports/:id'],
    ['/reports/{id:int}', '/reports/:id'],
    ['/files/*', '/files/:path'],
    ['/files/*rest', '/files/:path'],
    ['/files/:path/*', '/files/:path/:path2'],
    ['/*', '/:path'],
    ['/café/%28a%29', '/caf%C3%A9/%28a%29'],
    ['/a!b', '/a%21b'],
    ['/', undefined],
    ['/a..b', undefined],
    ['/100%25', undefined],
  ])('behaviour: the template of %s is %s', (pattern, expected) => {
    expect(template(pattern)).toBe(expected);
  });

  test('attack: if a route has no template, no path of a request takes its place', () => {
    expect(listed(NONE, 'GET /a..b/4711', 'GET /a..b/:account')).toBeUndefined();
    expect(discoveryOf(NONE).standingOf(route('GET /a..b/:account 0.10'))).toBe('hidden');
  });
});

describe('which requests are listed', () => {
  test.each(['GET', 'HEAD', 'DELETE', 'POST', 'PUT', 'PATCH'])(
    'behaviour: a %s is listed by its method and template, with an input that indexes take',
    (method) => {
      const bazaar = bazaarOf(listed(NONE, `${method} /a/b`, '* /a/*'));
      expect(bazaar).toEqual({
        info: { input: { type: 'http', method, pathParams: {}, queryParams: {} } },
        schema: {
          $schema: 'https://json-schema.org/draft/2020-12/schema',
          type: 'object',
          properties: {
            input: {
              type: 'object',
              properties: {
                type: { type: 'string', const: 'http' },
                method: { type: 'string', enum: [method] },
                pathParams: { type: 'object', properties: { path: { type: 'string' } } },
                queryParams: { type: 'object', properties: {} },
              },
              required: ['type', 'method'],
              additionalProperties: false,
            },
            output: {
              type: 'object',
              properties: { type: { type: 'string' }, example: {} },
              required: ['type'],
            },
          },
          required: ['input'],
        },
        routeTemplate: '/a/:path',
      });
    },
  );

  test('behaviour: a plain path has no path parameters, and no name that JavaScript knows is one', () => {
    expect(bazaarOf(listed(NONE, 'GET /a', 'GET /a'))?.info).toEqual({
      input: { type: 'http', method: 'GET', queryParams: {} },
    });
    const odd = bazaarOf(listed(NONE, 'GET /a/1/2', 'GET /a/:constructor/:id'));
    expect(odd?.schema.properties['input']?.['properties']).toMatchObject({
      pathParams: { type: 'object', properties: { id: { type: 'string' } } },
    });
  });

  test('behaviour: an operation without query and answer has an empty input and answer, which indexes ask for', () => {
    const bazaar = bazaarOf(
      listed('openapi: 3.0.0\npaths: { /a: { get: {} }, /b: { post: {} } }\n', 'GET /a', 'GET /a'),
    );
    expect(bazaar?.schema.properties).toMatchObject({
      input: { properties: { queryParams: { type: 'object', properties: {} } } },
      output: { properties: { example: {} } },
    });
  });

  test('behaviour: a request of another method, or of one that its route does not name, is not listed', () => {
    expect(listed(NONE, 'OPTIONS /a', '* /a')).toBeUndefined();
    expect(listed(NONE, 'PROPFIND /a', 'PROPFIND /a')).toBeUndefined();
    expect(listed(NONE, 'POST /a', 'GET /a')).toBeUndefined();
    expect(discoveryOf(NONE).standingOf(route('OPTIONS /a 0.10'))).toBe('hidden');
  });

  test.each([
    ['/internal/*', '/internal/*', '/internal/x'],
    ['/internal/*', '/internal/:id', '/internal/x'],
    ['/internal/*', '/Internal/x', '/Internal/x'],
    ['/internal/*', '/internal', '/internal'],
    ['/:a/secret', '/b/secret', '/b/secret'],
    ['/*', '/', '/'],
    ['/a', '/a', '/a'],
  ])('behaviour: exclude %s keeps %s out', (exclude, pattern, path) => {
    expect(listed(NONE, `GET ${path}`, `GET ${pattern}`, [exclude])).toBeUndefined();
    expect(discoveryOf(NONE, [exclude]).standingOf(route(`GET ${pattern} 0.10`))).toBe('hidden');
  });

  test.each([
    ['/internal/*', '/internals', '/internals'],
    ['/a', '/a/:b', '/a/b'],
    ['/a/b', '/a/:b', '/a/c'],
    ['/:a/x', '/b/y', '/b/y'],
  ])('behaviour: exclude %s keeps %s in', (exclude, pattern, path) => {
    expect(listed(NONE, `GET ${path}`, `GET ${pattern}`, [exclude])).toBeDefined();
    expect(discoveryOf(NONE, [exclude]).standingOf(route(`GET ${pattern} 0.10`))).toBe('unknown');
  });

  test('attack: a listing of a wider route tells no path that is excluded in any reading', () => {
    for (const path of [
      '/internal',
      '/internal/x',
      '/INTERNAL/x',
      '/internal;a/x',
      '/%69nternal/x',
      '/int%C4%B1ernal/../internal',
    ])
      expect(listed(NONE, `GET ${path}`, 'GET /*', ['/internal/*']), path).toBeUndefined();
    expect(listed(NONE, 'GET /public', 'GET /*', ['/internal/*'])).toBeDefined();
  });
});

describe('the operation of a request', () => {
  const PATHS = `openapi: 3.0.0
paths:
  /r/{id}: { get: { parameters: [{ name: a, in: query, example: any }] } }
  /r/latest: { get: { parameters: [{ name: a, in: query, example: latest }] } }
  /r/{id}.csv: { get: { parameters: [{ name: a, in: query, example: csv }] } }
  /r/{id}/{part}: { get: { parameters: [{ name: a, in: query, example: part }] } }
  /r/latest/x: { post: {} }
  /caf%C3%A9: { get: { parameters: [{ name: a, in: query, example: escaped }] } }
`;
  test.each([
    ['/r/1', 'any'],
    ['/r/latest', 'latest'],
    ['/r/latest/', 'latest'],
    ['/r/1.csv', 'csv'],
    ['/r/.csv', 'any'],
    ['/r/1/2', 'part'],
    ['/r/latest/x', 'part'],
    ['/caf%C3%A9', 'escaped'],
    ['/r', undefined],
    ['/r/1/2/3', undefined],
  ])('behaviour: the operation of GET %s is that with %s', (path, example) => {
    const bazaar = bazaarOf(listed(PATHS, `GET ${path}`, 'GET /*'));
    expect(bazaar?.info.input['queryParams']).toEqual(example === undefined ? {} : { a: example });
  });

  test.each([
    ['GET /r/:id', true],
    ['GET /r/other', true],
    ['GET /*', true],
    ['* /r/latest/x', true],
    ['POST /r/latest/x', true],
    ['POST /r/:id', false],
    ['GET /r', false],
    ['GET /r/a/b/c', false],
    ['GET /café', true],
    ['GET /none/*', false],
  ])('behaviour: whether route %s has an operation: %s', (pattern, has) => {
    expect(discoveryOf(PATHS).standingOf(route(`${pattern} 0.10`))).toBe(has ? 'known' : 'unknown');
  });
});

describe('limits', () => {
  /** A bazaar whose example of an answer has a text of this length. */
  const long = (length: number) =>
    listed(
      `openapi: 3.0.0\npaths: { /a: { get: { responses: { "200": { content: { application/json: { schema: { type: string }, example: ${'x'.repeat(length)} } } } } } } }\n`,
      'GET /a',
      'GET /a',
    );

  test('behaviour: a listing of 4 KiB is told whole, one byte more leaves method and template', () => {
    const room = 4096 - Buffer.byteLength(long(1)?.bazaar[0] ?? '') + 1;
    expect(room).toBeGreaterThan(3_000);
    expect(Buffer.byteLength(long(room)?.bazaar[0] ?? '')).toBe(4096);
    expect(bazaarOf(long(room))?.info.output?.example).toBe('x'.repeat(room));
    expect(bazaarOf(long(room + 1))?.info).toEqual({ input: { type: 'http', method: 'GET' } });
    expect(bazaarOf(long(1_000_000))?.info).toEqual({ input: { type: 'http', method: 'GET' } });
  });

  test('behaviour: the second form of a listing is the first without the example of the answer', () => {
    const { bazaar = [] } = long(5) ?? {};
    const [whole = '', less = '', ...more] = bazaar;
    expect(more).toEqual([]);
    const { info, ...rest } = JSON.parse(whole);
    expect(JSON.parse(less)).toEqual({ info: { input: info.input }, ...rest });
    expect(listed(NONE, 'GET /a', 'GET /a')?.bazaar).toHaveLength(1);
  });

  test('attack: a listing that a client gives back with its payment stays within what is read of one', () => {
    const nested = (depth: number): string => `${'{ properties: { a: '.repeat(depth)}{}${' } }'.repeat(depth)}`;
    const deep = (depth: number) =>
      listed(
        `openapi: 3.0.0\npaths: { /a: { get: { responses: { "200": { content: { application/json: { schema: ${nested(depth)}, example: {} } } } } } } }\n`,
        'GET /a',
        'GET /a',
      );
    for (const [depth, isShown] of [
      [4, true],
      [5, false],
      [12, false],
    ] as const) {
      const bazaar = deep(depth)?.bazaar[0] ?? '';
      const credential = Buffer.from(`{"extensions":{"bazaar":${bazaar}},"payload":{"authorization":{}}}`);
      expect(readJson(credential, { depth: 16, nodes: 2048, string: 8192 }).ok).toBe(true);
      expect(bazaarOf(deep(depth))?.info.output !== undefined, `${depth}`).toBe(isShown);
    }
  });

  test('behaviour: a listing is the same object for the same request, and not for another operation', () => {
    const discovery = discoveryOf('openapi: 3.0.0\npaths: { /a/b: { get: {} } }\n');
    const any = route('GET /a/* 0.10');
    const first = discovery.listingOf(any, 'GET', '/a/b');
    expect(discovery.listingOf(any, 'GET', '/a/b')).toBe(first);
    expect(discovery.listingOf(any, 'GET', '/a/c')).not.toBe(first);
  });

  test('behaviour: a listing tells the service as it is configured', () => {
    const service = { serviceName: 'Example Weather', tags: ['weather'], iconUrl: 'https://example.com/i.png' };
    const discovery = createDiscovery({ service, exclude: [patternOf('/x')], operations: [] });
    expect(discovery.listingOf(route('GET /a 0.10'), 'GET', '/a')?.service).toEqual(service);
  });
});
