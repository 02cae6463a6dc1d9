// The `discovery` section, and the file that it names: what is taken at each limit, and what a hostile file costs.
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { readOpenApiFile } from '../../src/config/openapi-file.ts';
import { temporaryFolder } from '../support/process.ts';
import { configOf, problemsOf } from './support.ts';

const files = temporaryFolder();
afterAll(files.remove);

const MIB = 1024 * 1024;
const SMALL = 'openapi: 3.1.0\npaths: { /a: { get: {} } }\n';
const sized = (bytes: number): string => `${SMALL}#${'x'.repeat(bytes - SMALL.length - 1)}`;

test('behaviour: an empty discovery section will do', () => {
  const config = configOf('registry: {}\ndiscovery:\n');
  expect(config.discovery).toMatchObject({ openapi: undefined, exclude: [] });
  expect(configOf('registry: {}\n').discovery).toBeUndefined();
});

test('behaviour: names, tags and pictures are taken up to their limits', () => {
  const icon = `https://example.com/${'i'.repeat(2048 - 20)}`;
  const { discovery } = configOf(
    `registry: {}\ndiscovery: { service_name: "${'x'.repeat(32)}", tags: [a, b, c, d, "${'y'.repeat(32)}"], icon_url: "${icon}", exclude: ["/a/*", "/:b"] }\n`,
  );
  expect(discovery).toMatchObject({
    serviceName: 'x'.repeat(32),
    tags: ['a', 'b', 'c', 'd', 'y'.repeat(32)],
    iconUrl: icon,
    exclude: [{ text: '/a/*' }, { text: '/:b' }],
  });
});

test('behaviour: an origin may tell of itself up to its limits', () => {
  const title = 'ü'.repeat(128);
  const contact = `${'c'.repeat(254 - 12)}@example.com`;
  const { discovery } = configOf(
    `registry: {}\ndiscovery: { serve: false, title: "${title}", contact: ${contact}, docs_url: "http://docs.example.com/a?b" }\n`,
  );
  expect(discovery).toMatchObject({ serve: false, title, contact, docsUrl: 'http://docs.example.com/a?b' });
  expect(configOf('registry: {}\ndiscovery: {}\n').discovery?.serve).toBe(true);
  expect(problemsOf(`registry: {}\ndiscovery: { contact: c${contact} }\n`)).toHaveLength(1);
});

test('behaviour: a text of 64 KiB for llms.txt is read, one byte more is not, and no bytes that are no text', () => {
  const named = (file: string): string => `registry: {}\ndiscovery: { llms_file: "${file}" }\n`;
  const most = files.write('most.txt', 'x'.repeat(65_536));
  expect(configOf(named(most)).discovery?.llms).toEqual({ file: most, text: 'x'.repeat(65_536) });
  expect(problemsOf(named(files.write('more.txt', 'x'.repeat(65_537))))).toEqual([
    '2:25 discovery.llms_file: names a file of 65537 bytes; write a file of UTF-8 text, of at most 65536 bytes',
  ]);
  const binary = path.join(files.folder, 'binary.txt');
  writeFileSync(binary, Buffer.from([0xff, 0xfe, 0, 1]));
  expect(problemsOf(named(binary))).toEqual([
    '2:25 discovery.llms_file: names a file of another kind; write a file of UTF-8 text, of at most 65536 bytes',
  ]);
});

test('behaviour: the description’s file is named from the folder of the configuration, and need not be there', () => {
  const { discovery } = configOf('registry: {}\ndiscovery: { openapi: docs/openapi.yaml }\n');
  expect(discovery?.openapi).toEqual({
    name: 'docs/openapi.yaml',
    file: expect.stringMatching(/^\/.*\/docs\/openapi\.yaml$|^\/docs\/openapi\.yaml$/),
  });
  expect(problemsOf('registry: {}\ndiscovery: { openapi: missing.yaml }\n')).toEqual([]);
});

test('behaviour: a description of 2 MiB is read, one byte more is not', async () => {
  expect(await readOpenApiFile(files.write('limit.yaml', sized(2 * MIB)))).toMatchObject({ operations: { length: 1 } });
  expect(await readOpenApiFile(files.write('above.yaml', sized(2 * MIB + 1)))).toEqual({
    line: 1,
    message: 'is larger than 2097152 bytes',
  });
});

test('refuses: a description that is missing, a folder, bytes that are no text', async () => {
  const missing = path.join(files.folder, 'missing.yaml');
  expect(await readOpenApiFile(missing)).toEqual({
    line: 1,
    message: 'cannot be read (ENOENT); check its name and permissions',
  });
  expect(await readOpenApiFile(files.folder)).toMatchObject({ line: 1, message: expect.stringContaining('EISDIR') });
  const binary = path.join(files.folder, 'binary.yaml');
  writeFileSync(binary, Buffer.from([0xff, 0xfe, 0, 1, 2, 0x80]));
  expect(await readOpenApiFile(binary)).toMatchObject({ line: expect.any(Number), message: expect.any(String) });
});

test('behaviour: a description of 200,000 values is read, one more is not, aliases counted where they are used', async () => {
  // The document, three names in it and the list are values too.
  const values = (count: number): string => `{"openapi":"3.0.0","paths":{},"x":[${'1,'.repeat(count - 5)}1]}`;
  expect(await readOpenApiFile(files.write('many.json', values(200_000)))).toMatchObject({ operations: [] });
  expect(await readOpenApiFile(files.write('more.json', values(200_001)))).toEqual({
    line: 1,
    column: 1,
    message: 'holds more than 200000 values, aliases counted where they are used; that is no OpenAPI document',
  });
});

test.each([
  [
    'aliases that double with each step',
    `a0: &a0 [x]\n${Array.from({ length: 40 }, (_, index) => `a${index + 1}: &a${index + 1} [*a${index}, *a${index}]`).join('\n')}\nopenapi: 3.0.0\n`,
    /^holds more than 200000 values/,
  ],
  ['an alias that holds itself', 'openapi: 3.0.0\npaths: &p { /a: *p }\n', undefined],
  [
    'more levels than any document has',
    `openapi: 3.0.0\npaths: ${'{ a: '.repeat(80)}1${' }'.repeat(80)}\n`,
    /^holds more than 64 levels/,
  ],
  [
    'a key named __proto__',
    'openapi: 3.0.0\n__proto__: { polluted: true }\npaths: { __proto__: { get: {} } }\n',
    undefined,
  ],
])('attack: a description with %s does no harm', async (_, text, message) => {
  const read = await readOpenApiFile(files.write('hostile.yaml', text));
  if (message === undefined) expect(read).toMatchObject({ operations: [], remarks: [] });
  else expect(read).toMatchObject({ message: expect.stringMatching(message) });
  expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
});

test('attack: a description that would need more memory than any document ends its thread alone', async () => {
  const read = await readOpenApiFile(files.write('deep.yaml', '['.repeat(2 * MIB)));
  expect(read).toMatchObject({
    line: 1,
    message: expect.stringMatching(/memory; it is not used$|seconds to read; it is not used$|^holds more than/),
  });
}, 60_000);

const EVIL = '{ type: string, pattern: "^(a+)+$" }';
const PLAIN = '{ type: string, pattern: "^a+!$" }';
const asking = (path: string, schema: string): string =>
  `  ${path}: { get: { parameters: [{ name: q, in: query, schema: ${schema}, example: "${'a'.repeat(60)}!" }] } }\n`;

test('attack: an operation whose expression never ends on its own example goes alone, and is named', async () => {
  const text = `openapi: 3.0.0\npaths:\n${asking('/good', PLAIN)}${asking('/evil', EVIL)}${asking('/too', PLAIN)}`;
  const read = await readOpenApiFile(files.write('slow.yaml', text));
  if (!('operations' in read)) throw new Error(read.message);
  expect(read.operations.map(({ path: name, description }) => [name, description !== undefined])).toEqual([
    ['/good', true],
    ['/evil', false],
    ['/too', true],
  ]);
  expect(read.remarks).toEqual([
    {
      line: 4,
      message:
        'GET /evil takes too long to judge, as an expression does that backtracks on its own example; its method and template alone are told',
    },
  ]);
});

test('attack: hundreds of operations whose expressions never end cost the others nothing', async () => {
  const evil = Array.from({ length: 300 }, (_, index) => asking(`/evil/${index}`, EVIL)).join('');
  const read = await readOpenApiFile(
    files.write('slower.yaml', `openapi: 3.0.0\npaths:\n${evil}${asking('/good', PLAIN)}`),
  );
  if (!('operations' in read)) throw new Error(read.message);
  expect(read.operations.flatMap(({ path: name, description }) => (description === undefined ? [] : [name]))).toEqual([
    '/good',
  ]);
  expect(read.remarks).toHaveLength(21);
  expect(read.remarks.at(-1)?.message).toBe('and 280 more operations like these');
}, 60_000);

test('attack: an expression that is too large to run goes alone', async () => {
  const large = '{ type: string, pattern: "^((a{500}){500}){500}$" }';
  const read = await readOpenApiFile(
    files.write('large.yaml', `openapi: 3.0.0\npaths:\n${asking('/large', large)}${asking('/good', PLAIN)}`),
  );
  if (!('operations' in read)) throw new Error(read.message);
  expect(read.operations.map(({ description }) => description !== undefined)).toEqual([false, true]);
});

test('behaviour: a reading of a description that is given up ends at once', async () => {
  const given = new AbortController();
  const reading = readOpenApiFile(files.write('given-up.yaml', SMALL), { signal: given.signal });
  given.abort();
  expect(await reading).toEqual({ line: 1, message: 'was not read to its end; it is not used' });
});

test('attack: a description that takes longer than its time is not used', async () => {
  expect(await readOpenApiFile(files.write('late.yaml', SMALL), { timeMs: 0 })).toEqual({
    line: 1,
    message: 'takes longer than 0 seconds to read; it is not used',
  });
});
