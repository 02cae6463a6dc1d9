// Calls to a facilitator or a node: what is written, what is read, when a call is made again, and of which failures it is
// certain that nothing was sent. The other side is a socket, so that it can do anything.
import { createServer, type Server, type Socket } from 'node:net';
import { createServer as createSecureServer, type TlsOptions } from 'node:tls';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterEach, describe, expect, test } from 'vitest';
import { callService, urlBelow, type JsonReply, type ServiceCall } from '../../../src/gateway/rails/service-call.ts';
import { CERTIFICATE, KEY } from '../../support/certificate.ts';
import { deadUrl, fakeTime } from './kit.ts';

const LIMITS = { depth: 4, nodes: 16, string: 64 };
const ANSWER = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}';
const REPLY: JsonReply = { kind: 'reply', status: 200, body: {}, slow: false, headers: expect.any(Headers) };
setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

type Seen = { readonly url: string; readonly requests: string[]; readonly sockets: Socket[] };

/** A server that is only a socket: `answer` is told every request, head and body in one. */
async function serve(answer: (socket: Socket, request: string) => void, secure?: TlsOptions): Promise<Seen> {
  const seen: { requests: string[]; sockets: Socket[] } = { requests: [], sockets: [] };
  const serveSocket = (socket: Socket): void => {
    let request = '';
    seen.sockets.push(socket);
    socket.on('error', () => undefined);
    socket.on('data', (bytes) => {
      request += bytes.toString('latin1');
      const head = request.indexOf('\r\n\r\n');
      const length = /^content-length: (\d+)/im.exec(request)?.[1] ?? '0';
      // What is no request is told as it comes.
      if (request.startsWith('POST ') && (head < 0 || request.length < head + 4 + Number(length))) return;
      seen.requests.push(request);
      request = '';
      answer(socket, seen.requests.at(-1) ?? '');
    });
  };
  const server =
    secure === undefined
      ? createServer(serveSocket)
      : createSecureServer({ key: KEY, cert: CERTIFICATE, ...secure }, serveSocket);
  server.on('tlsClientError', () => undefined);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closing.push(() => closeServer(server, seen.sockets));
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  return { ...seen, url: `${secure === undefined ? 'http' : 'https'}://127.0.0.1:${port}` };
}

function closeServer(server: Server, sockets: readonly Socket[]): Promise<void> {
  for (const socket of sockets) socket.destroy();
  return new Promise((resolve) => void server.close(() => resolve()));
}

const secured = (url: string): string => url.replace('http:', 'https:');

function call(url: string, changes: Partial<ServiceCall> = {}): Promise<JsonReply> {
  const limits = { timeoutMs: 5000, maxBytes: 64, limits: LIMITS };
  return callService(
    { method: 'POST', url: urlBelow(url, 'settle'), headers: {}, body: '{"a":1}', ...limits, ...changes },
    fetch,
  );
}

describe('what is written', () => {
  test('behaviour: a call is one request, framed by the client, with the configured headers', async () => {
    const seen = await serve((socket) => socket.write(ANSWER));
    const headers = {
      Authorization: 'Bearer s3cret',
      'User-Agent': 'shop',
      'content-length': '9',
      'Transfer-Encoding': 'chunked',
      'Keep-Alive': 'timeout=1',
      Host: 'elsewhere',
    };
    expect(await call(`${seen.url}/x402/?key=1#top`, { body: '{"a":"é"}', headers })).toEqual(REPLY);
    const [head = '', body] = seen.requests[0]?.split('\r\n\r\n') ?? [];
    const [line, ...fields] = head.split('\r\n');
    expect(line).toBe('POST /x402/settle HTTP/1.1');
    const named = fields.map((field) => field.toLowerCase());
    for (const field of [
      `host: ${new URL(seen.url).host}`,
      'content-type: application/json',
      'accept: application/json',
      'accept-encoding: identity',
      'authorization: bearer s3cret',
      'user-agent: shop',
      'content-length: 10',
    ]) {
      expect(named).toContain(field);
    }
    expect(named.filter((field) => /^(?:content-length|host|transfer-encoding|keep-alive)/.test(field)).length).toBe(2);
    expect(Buffer.from(body ?? '', 'latin1').toString()).toBe('{"a":"é"}');
  });

  test('refuses: a configured header that would end the line', async () => {
    const seen = await serve((socket) => socket.write(ANSWER));
    await expect(call(seen.url, { headers: { A: 'b\r\nC: d' } })).rejects.toThrow();
    expect(seen.requests).toEqual([]);
  });
});

describe('connections', () => {
  /** Fetch takes a connection again a turn of the event loop after the response ended. */
  const untilIdle = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));

  test('behaviour: a kept connection carries call after call', async () => {
    const seen = await serve((socket) => socket.write(ANSWER));
    for (const _ of [1, 2, 3]) {
      expect(await call(seen.url)).toEqual(REPLY);
      await untilIdle();
    }
    expect(seen.sockets.length).toBe(1);
  });

  test('attack: bytes after a response never become the next response', async () => {
    const forged = 'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"no":""}';
    const seen = await serve((socket) => socket.write(seen.sockets.length === 1 ? ANSWER + forged : ANSWER));
    expect(await call(seen.url)).toEqual(REPLY);
    expect(await call(seen.url)).toEqual(REPLY);
    expect(seen.sockets.length).toBe(2);
  });

  test('behaviour: a kept connection that died may have carried the call: it is not sent again', async () => {
    const seen = await serve((socket) => {
      if (seen.requests.length === 1) socket.write(ANSWER);
      else socket.resetAndDestroy();
    });
    await call(seen.url);
    await untilIdle();
    expect(await call(seen.url)).toMatchObject({ kind: 'failed', sent: true });
    expect([seen.requests.length, seen.sockets.length]).toEqual([2, 1]);
  });

  test('behaviour: a call that may be repeated is made once more when its connection broke, and only then', async () => {
    const seen = await serve((socket) => {
      if (seen.requests.length % 2 === 1) socket.resetAndDestroy();
      else socket.write(ANSWER);
    });
    expect(await call(seen.url, { mayRepeat: () => true })).toEqual(REPLY);
    expect(await call(seen.url, { mayRepeat: async () => false })).toMatchObject({ kind: 'failed', sent: true });
    expect(seen.requests.length).toBe(3);
    const asked: string[] = [];
    const mayRepeat = (): boolean => asked.push('again') > 0;
    expect(await call(await deadUrl(), { mayRepeat })).toMatchObject({ kind: 'failed', sent: false });
    const broken = await serve((socket) => socket.resetAndDestroy());
    expect(await call(broken.url, { mayRepeat })).toMatchObject({ kind: 'failed', sent: true });
    expect([asked.length, broken.requests.length]).toEqual([1, 2]);
  });
});

describe('whether a byte was sent', () => {
  /** What happens to a call, by a real socket. */
  type Case = readonly [what: string, url: () => Promise<string>];
  const at = async (answer: (socket: Socket) => void, secure?: TlsOptions): Promise<string> =>
    (await serve(answer, secure)).url;

  test.each<Case>([
    ['refused', deadUrl],
    ['a name that does not resolve', async () => 'http://does-not-exist.invalid'],
    ['an address that nothing leads to', async () => 'http://255.255.255.255:8080'],
    ['a port that fetch refuses', async () => 'http://127.0.0.1:6667'],
    ['TLS: it speaks something else', async () => secured(await at((socket) => socket.end('HTTP/1.1 400\r\n\r\n')))],
    ['TLS: it is somebody else', () => at((socket) => socket.write(ANSWER), {})],
    ['TLS: it closes in the handshake', async () => secured(await at((socket) => socket.end()))],
    [
      'TLS: no version in common',
      () =>
        at((socket) => socket.write(ANSWER), {
          maxVersion: 'TLSv1.1',
          minVersion: 'TLSv1',
          ciphers: 'DEFAULT@SECLEVEL=0',
        }),
    ],
    [
      'TLS: no cipher in common',
      () => at((socket) => socket.write(ANSWER), { maxVersion: 'TLSv1.2', ciphers: 'PSK-AES128-CBC-SHA' }),
    ],
  ])('behaviour: nothing was sent to a service that cannot be reached: %s', async (_, url) => {
    expect(await call(await url())).toMatchObject({ kind: 'failed', sent: false, slow: true });
  });

  test('behaviour: nothing was sent by a call that did not connect within the time that fetch gives', async () => {
    const cause = Object.assign(new Error('Connect Timeout Error'), { code: 'UND_ERR_CONNECT_TIMEOUT' });
    const limits = { timeoutMs: 5000, maxBytes: 64, limits: LIMITS };
    const reply = callService({ method: 'POST', url: 'http://a.test', headers: {}, body: '{}', ...limits }, () =>
      Promise.reject(new TypeError('fetch failed', { cause })),
    );
    expect(await reply).toMatchObject({ kind: 'failed', sent: false, slow: true });
  });

  test.each<Case>([
    ['closed before the response', () => at((socket) => socket.end())],
    ['reset before the response', () => at((socket) => socket.resetAndDestroy())],
    ['reset in the TLS handshake', async () => secured(await at((socket) => socket.resetAndDestroy()))],
    ['closed in the response', () => at((socket) => void socket.end(ANSWER.slice(0, -1)))],
    ['a response that is not HTTP', () => at((socket) => void socket.write('hello\r\n\r\n'))],
    ['a length that is too long', () => at((socket) => void socket.write(ANSWER.replace(': 2', ': 65')))],
    ['a body that is too long', () => at((socket) => void socket.end(`HTTP/1.0 200 OK\r\n\r\n"${'x'.repeat(80)}"`))],
    [
      'a redirect',
      () => at((socket) => void socket.write('HTTP/1.1 307 T\r\nLocation: /\r\nContent-Length: 0\r\n\r\n')),
    ],
  ])('behaviour: a call may have been sent if it ended so: %s', async (_, url) => {
    expect(await call(await url())).toMatchObject({ kind: 'failed', sent: true });
  });
});

describe('time', () => {
  test.each([
    ['before the head', ''],
    ['in the body', ANSWER.slice(0, -1)],
  ])('behaviour: a call that is out of time %s may have been sent, and its connection is gone', async (_, start) => {
    const time = fakeTime();
    const gone = Promise.withResolvers<void>();
    const arrived = Promise.withResolvers<void>();
    const seen = await serve((socket) => {
      socket.on('close', () => gone.resolve());
      if (start !== '') socket.write(start);
      arrived.resolve();
    });
    const reply = call(seen.url);
    await arrived.promise;
    time.advance(5000);
    expect(await reply).toMatchObject({ kind: 'failed', sent: true, slow: true });
    await gone.promise;
  });

  test('behaviour: an abort ends a body that is being read, after a garbage collection too', async () => {
    const gone = Promise.withResolvers<void>();
    const arrived = Promise.withResolvers<void>();
    const seen = await serve((socket) => {
      socket.on('close', () => gone.resolve());
      socket.write(ANSWER.slice(0, -1), () => arrived.resolve());
    });
    const impatient = new AbortController();
    const reply = call(seen.url, { signal: impatient.signal });
    await arrived.promise;
    collectGarbage();
    impatient.abort();
    expect(await reply).toMatchObject({ kind: 'failed', sent: true, slow: true });
    await gone.promise;
  });
});
