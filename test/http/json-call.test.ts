// One JSON call against services that answer what no service should, over TCP and over a Unix socket.
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type RequestListener, type Server } from 'node:http';
import { createServer as createRawServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterEach, describe, expect, it } from 'vitest';
import { systemSchedule } from '../../src/host/clock.ts';
import { createWriteBatch } from '../../src/host/write-batch.ts';
import { createJsonCall, type JsonCall, type JsonRequest } from '../../src/http/json-call.ts';
import { createPool } from '../../src/http/pool.ts';

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

const MAX_BYTES = 100;
const GET: JsonRequest = { method: 'GET', target: '/a', headers: ['Host', 'h'], withinMs: 5000 };

function callerOf(port: number, socketPath?: string): JsonCall {
  const transport = createPool({
    ...{ upstream: new URL(`http://127.0.0.1:${port}`), writeBatch: createWriteBatch(), maxSockets: 10 },
    timeouts: { connectMs: 5000, headersMs: 5000, idleMs: 5000 },
    ...(socketPath === undefined ? {} : { socketPath }),
  });
  closers.push(transport.close);
  return createJsonCall({ transport, maxBytes: MAX_BYTES, schedule: systemSchedule });
}

const DATE_MS = Date.UTC(2026, 0, 1);

function serve(handler: RequestListener): Server {
  const server = createServer((req, res) => {
    res.setHeader('Date', new Date(DATE_MS).toUTCString());
    handler(req, res);
  });
  closers.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return server;
}

async function stage(handler: RequestListener): Promise<JsonCall> {
  const server = serve(handler);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return callerOf((server.address() as AddressInfo).port);
}

/** Reads the request, and answers with its method, target, content type and body. */
const echo: RequestListener = (req, res) => {
  let body = '';
  req.on('data', (chunk: Buffer) => (body += chunk.toString()));
  req.on('end', () => res.end(JSON.stringify([req.method, req.url, req.headers['content-type'], body])));
};

describe('a JSON call', () => {
  it('behaviour: a JSON call sends JSON and reads JSON', async () => {
    const call = await stage(echo);
    expect(await call({ ...GET, method: 'POST', json: { a: 'é' } })).toMatchObject({
      kind: 'response',
      status: 200,
      dateMs: DATE_MS,
      json: ['POST', '/a', 'application/json', '{"a":"é"}'],
    });
    expect(await call(GET)).toMatchObject({ json: ['GET', '/a', null, ''] });
  });

  it('behaviour: a JSON call goes over a Unix socket', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'tollgate-socket-'));
    closers.push(() => rmSync(folder, { recursive: true }));
    const socketPath = join(folder, 's');
    await once(serve(echo).listen(socketPath), 'listening');
    const json = { much: 'x'.repeat(10) };
    expect(await callerOf(9, socketPath)({ ...GET, method: 'PATCH', json })).toMatchObject({
      status: 200,
      json: ['PATCH', '/a', 'application/json', JSON.stringify(json)],
    });
  });

  it.each<[string, number, unknown]>([
    [
      'a body of the limit',
      MAX_BYTES,
      { kind: 'response', status: 200, dateMs: DATE_MS, json: 'x'.repeat(MAX_BYTES - 2) },
    ],
    ['one byte more', MAX_BYTES + 1, { kind: 'unusable', status: 200, detail: 'more than 100 bytes' }],
  ])('refuses: an answer of more than the limit: %s', async (_name, size, expected) => {
    const text = JSON.stringify('x'.repeat(size - 2));
    const withLength = await stage((_req, res) => res.end(text));
    expect(await withLength(GET)).toMatchObject(expected as object);
    const chunked = await stage((_req, res) => {
      res.write(text.slice(0, 50));
      res.end(text.slice(50));
    });
    expect(await chunked(GET)).toMatchObject(expected as object);
  });

  it.each<[string, RequestListener, unknown]>([
    ['no JSON', (_req, res) => res.end('<html>'), { kind: 'unusable', status: 200, detail: 'no JSON' }],
    [
      'a redirect',
      (_req, res) => res.writeHead(307, { Location: 'http://127.0.0.1:9' }).end('{}'),
      { kind: 'response', status: 307, dateMs: DATE_MS, json: {} },
    ],
    [
      'an encoding',
      (_req, res) => res.writeHead(200, { 'Content-Encoding': 'gzip' }).end(gzipSync('{}')),
      { kind: 'unusable', status: 200, detail: 'an encoding that was not asked for' },
    ],
  ])('refuses: an answer that is %s is told as it is', async (_name, handler, expected) => {
    expect(await (await stage(handler))(GET)).toMatchObject(expected as object);
  });

  it('behaviour: a failed call says that nothing was sent if nothing listens, and that it may have been if the connection broke', async () => {
    const server = createRawServer();
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const { port } = server.address() as AddressInfo;
    await new Promise((resolve) => server.close(resolve));
    expect(await callerOf(port)(GET)).toMatchObject({ kind: 'failed', sent: false });
    const call = await stage((req) => void req.socket.destroy());
    expect(await call({ ...GET, method: 'POST', json: {} })).toMatchObject({ kind: 'failed', sent: true });
  });

  it('behaviour: a call has one deadline, for the body as well', async () => {
    const silent = await stage(() => undefined);
    const stuck = await stage((_req, res) => void res.write('{'));
    for (const call of [silent, stuck])
      expect(await call({ ...GET, withinMs: 50 })).toEqual({
        kind: 'failed',
        detail: 'it did not answer in time',
        sent: true,
      });
  });
});
