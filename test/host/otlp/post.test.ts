// The client of a collector, against a real one on loopback: what it sends, and which answers are worth another try.
import { createServer } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { gzipSync, gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { systemSchedule } from '../../../src/host/clock.ts';
import type { PostResult } from '../../../src/host/otlp/exporter.ts';
import { createPost, type PostClient } from '../../../src/host/otlp/post.ts';

const NOW = Date.parse('2026-11-25T12:00:00Z');
let url = '';
let client: PostClient;
let answer: (number: number) => { status: number; headers?: Record<string, string>; body?: string } | 'hold' | 'drop';
const seen: { url: string; headers: Record<string, unknown>; body: string }[] = [];
const server = createServer((req, res) => {
  const chunks: Buffer[] = [];
  req.on('data', (chunk: Buffer) => chunks.push(chunk));
  req.on('end', () => {
    // Its client does not wait until it is read.
    if (req.url === '/impatient') return;
    seen.push({ url: req.url ?? '', headers: req.headers, body: gunzipSync(Buffer.concat(chunks)).toString() });
    const told = answer(seen.length);
    if (told === 'drop') req.socket.destroy();
    else if (told !== 'hold') res.writeHead(told.status, told.headers).end(told.body);
  });
});

const clientOf = (to: string, timeoutMs?: number): PostClient =>
  createPost({
    ...{ url: to, headers: { Authorization: 'Bearer of-the-test' }, userAgent: 'tollgate/1' },
    ...{ schedule: systemSchedule, now: () => NOW },
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
  });

beforeAll(async () => {
  await once(server.listen(0, '127.0.0.1'), 'listening');
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  client = clientOf(`${url}/v1/traces`);
});
afterAll(() => {
  client.close();
  server.closeAllConnections();
  server.close();
});

const post = (from: PostClient, signal = new AbortController().signal): Promise<PostResult> =>
  from.post(gzipSync('{"spans":[]}'), signal);

test('behaviour: a batch is posted as compressed JSON, with the headers of the operator', async () => {
  answer = () => ({ status: 200, body: '{}' });
  expect(await post(client)).toEqual({ kind: 'taken', rejected: 0 });
  expect(seen.at(-1)).toMatchObject({
    url: '/v1/traces',
    body: '{"spans":[]}',
    headers: {
      'content-type': 'application/json',
      'content-encoding': 'gzip',
      authorization: 'Bearer of-the-test',
      'user-agent': 'tollgate/1',
    },
  });
});

test.each([
  ['a success in part', 200, {}, '{"partialSuccess":{"rejectedSpans":"3"}}', { kind: 'taken', rejected: 3 }],
  ['a success without JSON', 202, {}, 'thanks', { kind: 'taken', rejected: 0 }],
  ['429 with seconds', 429, { 'retry-after': '7' }, '', { kind: 'again', waitMs: 7000 }],
  ['503 with a date', 503, { 'retry-after': 'Wed, 25 Nov 2026 12:00:05 GMT' }, '', { kind: 'again', waitMs: 5000 }],
  ['502', 502, {}, '', { kind: 'again', waitMs: undefined }],
  ['504 with nonsense', 504, { 'retry-after': 'soon' }, '', { kind: 'again', waitMs: undefined }],
  ['400', 400, {}, '', { kind: 'refused' }],
  ['401', 401, {}, '', { kind: 'refused' }],
  ['500', 500, {}, '', { kind: 'refused' }],
  ['a redirect', 307, { location: '/elsewhere' }, '', { kind: 'refused' }],
])('behaviour: %s means what OTLP says', async (_name, status, headers, body, result) => {
  answer = () => ({ status, headers, body });
  expect(await post(client)).toMatchObject(result);
  expect(seen.at(-1)?.url).toBe('/v1/traces');
});

test('behaviour: a collector that is not there, drops the connection or says nothing may be asked again', async () => {
  const gone = createServer();
  await once(gone.listen(0, '127.0.0.1'), 'listening');
  const { port } = gone.address() as AddressInfo;
  await new Promise((resolve) => gone.close(resolve));
  const absent = clientOf(`http://127.0.0.1:${port}/v1/traces`);
  expect(await post(absent)).toMatchObject({ kind: 'again', why: 'the collector cannot be reached (ECONNREFUSED)' });
  answer = () => 'drop';
  expect(await post(client)).toMatchObject({ kind: 'again' });
  answer = () => 'hold';
  const impatient = clientOf(`${url}/impatient`, 20);
  expect(await post(impatient)).toMatchObject({ kind: 'again', why: 'the collector did not answer in time' });
  const stop = new AbortController();
  const before = seen.length;
  const stopped = post(client, stop.signal);
  await expect.poll(() => seen.length).toBe(before + 1);
  stop.abort();
  expect(await stopped).toMatchObject({ kind: 'again' });
  for (const each of [absent, impatient]) each.close();
});

test('refuses: to read an answer without an end', async () => {
  answer = () => ({ status: 200, body: `{"partialSuccess":{"rejectedSpans":1},"rest":"${'x'.repeat(1 << 20)}"}` });
  expect(await post(client)).toEqual({ kind: 'taken', rejected: 0 });
});
