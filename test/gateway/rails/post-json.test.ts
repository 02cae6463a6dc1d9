// Calls to a facilitator over connections of our own: what is written, when a connection carries another call, and of
// which failures it is certain that nothing was sent.
import { createServer, type Server, type Socket } from 'node:net';
import { createServer as createSecureServer } from 'node:tls';
import { afterEach, describe, expect, test } from 'vitest';
import { startDeadline } from '../../../src/gateway/rails/deadline.ts';
import type { JsonReply } from '../../../src/gateway/rails/http-json.ts';
import { createJsonPosts, type JsonPosts } from '../../../src/gateway/rails/post-json.ts';
import { CERTIFICATE, KEY } from '../../support/certificate.ts';
import { deadUrl, fakeTime } from './kit.ts';

const LIMITS = { depth: 4, nodes: 16, string: 64 };
const ANSWER = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}';
const NOTHING_SENT = { kind: 'failed', sent: false };
const MAYBE_SENT = { kind: 'failed', sent: true };

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

type Seen = { readonly url: string; readonly requests: string[]; readonly sockets: Socket[] };

/** A server that is only a socket: `answer` is told every request, head and body in one. */
async function serve(answer: (socket: Socket, request: string) => void, secure = false): Promise<Seen> {
  const seen: { requests: string[]; sockets: Socket[] } = { requests: [], sockets: [] };
  const serveSocket = (socket: Socket): void => {
    seen.sockets.push(socket);
    socket.on('error', () => undefined);
    socket.on('data', (bytes) => {
      seen.requests.push(bytes.toString());
      answer(socket, bytes.toString());
    });
  };
  const server = secure ? createSecureServer({ key: KEY, cert: CERTIFICATE }, serveSocket) : createServer(serveSocket);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closing.push(() => closeServer(server, seen.sockets));
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  return { ...seen, url: `${secure ? 'https' : 'http'}://127.0.0.1:${port}` };
}

function closeServer(server: Server, sockets: readonly Socket[]): Promise<void> {
  for (const socket of sockets) socket.destroy();
  return new Promise((resolve) => void server.close(() => resolve()));
}

function start(url: string): {
  post: (body?: string, headers?: Record<string, string>) => Promise<JsonReply>;
  time: ReturnType<typeof fakeTime>;
} {
  const time = fakeTime();
  const posts: JsonPosts = createJsonPosts(url, time);
  return {
    time,
    post: async (body = '{"a":1}', headers = {}) => {
      const deadline = startDeadline(time.schedule, 5000);
      const reply = await posts('verify', { headers, body, maxBytes: 64, limits: LIMITS, deadline });
      deadline.cancel();
      return reply;
    },
  };
}

describe('what is written', () => {
  test('behaviour: one request, framed by us, with the configured headers', async () => {
    const seen = await serve((socket) => socket.write(ANSWER));
    const { post } = start(`${seen.url}/x402/`);
    const headers = { Authorization: 'Bearer s3cret', 'User-Agent': 'shop', 'content-length': '9', Host: 'elsewhere' };
    expect(await post('{"a":"é"}', headers)).toEqual({ kind: 'reply', status: 200, body: {}, slow: false });
    expect(seen.requests).toEqual([
      [
        'POST /x402/verify HTTP/1.1',
        `Host: ${new URL(seen.url).host}`,
        'Content-Type: application/json',
        'Accept: application/json',
        'Accept-Encoding: identity',
        'Authorization: Bearer s3cret',
        'User-Agent: shop',
        'Content-Length: 10',
        '',
        '{"a":"é"}',
      ].join('\r\n'),
    ]);
  });

  test('refuses: a configured header that would end the line', async () => {
    const seen = await serve((socket) => socket.write(ANSWER));
    await expect(start(seen.url).post('{}', { A: 'b\r\nC: d' })).rejects.toThrow();
    expect(seen.requests).toEqual([]);
  });
});

describe('connections', () => {
  test('behaviour: one carries call after call, until it was idle for four seconds', async () => {
    const seen = await serve((socket) => socket.write(ANSWER));
    const { post, time } = start(seen.url);
    await post();
    time.advance(3900);
    await post();
    expect(seen.sockets.length).toBe(1);
    time.advance(4000);
    await post();
    expect(seen.sockets.length).toBe(2);
  });

  test('behaviour: one that nobody takes again is closed', async () => {
    const gone = Promise.withResolvers<void>();
    const seen = await serve((socket) => void socket.on('close', gone.resolve).write(ANSWER));
    const { post, time } = start(seen.url);
    await post();
    for (let second = 0; second < 5; second++) time.advance(1000);
    await gone.promise;
    expect(time.pending()).toBe(0);
  });

  test('attack: bytes after an answer never become the next one', async () => {
    const forged = 'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"no":""}';
    const seen = await serve((socket) => socket.write(seen.sockets.length === 1 ? ANSWER + forged : ANSWER));
    const { post } = start(seen.url);
    expect(await post()).toMatchObject({ kind: 'reply', body: {} });
    expect(await post()).toMatchObject({ kind: 'reply', body: {} });
    expect(seen.sockets.length).toBe(2);
  });

  test('behaviour: as many are kept as were busy at a time', async () => {
    const seen = await serve((socket) => socket.write(ANSWER));
    const { post } = start(seen.url);
    const postAll = () => Promise.all(Array.from({ length: 150 }, () => post()));
    await postAll();
    for (const reply of await postAll()) expect(reply).toEqual({ kind: 'reply', status: 200, body: {}, slow: false });
    expect(seen.sockets).toHaveLength(150);
  });

  test('attack: bytes on an idle connection end it', async () => {
    const gone = Promise.withResolvers<void>();
    const seen = await serve((socket) => void socket.on('close', gone.resolve).write(ANSWER));
    const { post } = start(seen.url);
    await post();
    seen.sockets[0]?.write('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"no":""}');
    await gone.promise;
    expect(await post()).toMatchObject({ kind: 'reply', body: {} });
    expect(seen.sockets.length).toBe(2);
  });

  test('behaviour: calls at the same time have connections of their own', async () => {
    const seen = await serve((socket) => {
      if (seen.requests.length === 3) for (const each of seen.sockets) each.write(ANSWER);
      expect(socket.writable).toBe(true);
    });
    const { post } = start(seen.url);
    const replies = await Promise.all([post(), post(), post()]);
    expect(replies.map(({ kind }) => kind)).toEqual(['reply', 'reply', 'reply']);
    expect(seen.sockets.length).toBe(3);
  });
});

describe('failures', () => {
  test('behaviour: where nobody listens, or a name says nothing, nothing was sent', async () => {
    expect(await start(await deadUrl()).post()).toMatchObject(NOTHING_SENT);
    expect(await start('http://does-not-exist.invalid').post()).toMatchObject(NOTHING_SENT);
  });

  test('behaviour: time that runs out while connecting: nothing was sent', async () => {
    const seen = await serve((socket) => socket.write(ANSWER));
    const { post, time } = start(seen.url);
    const reply = post();
    // No connection is there before the event loop turns.
    time.advance(5000);
    expect(await reply).toMatchObject({ ...NOTHING_SENT, slow: true });
    expect(time.pending()).toBe(0);
    expect(seen.requests).toEqual([]);
  });

  test('behaviour: TLS with somebody who is not who was asked for: nothing was sent', async () => {
    const seen = await serve((socket) => socket.write(ANSWER), true);
    expect(await start(seen.url).post()).toMatchObject(NOTHING_SENT);
    expect(seen.requests).toEqual([]);
  });

  test.each<[string, (socket: Socket) => void]>([
    ['closed before the answer', (socket) => socket.end()],
    ['reset before the answer', (socket) => socket.resetAndDestroy()],
    ['closed in the answer', (socket) => void socket.end(ANSWER.slice(0, -1))],
    ['an answer that is not HTTP', (socket) => void socket.write('hello\r\n\r\n')],
    ['an answer that is too long', (socket) => void socket.write('HTTP/1.1 200 OK\r\nContent-Length: 65\r\n\r\n')],
    ['a redirect', (socket) => void socket.write('HTTP/1.1 307 T\r\nLocation: /\r\nContent-Length: 0\r\n\r\n')],
  ])('behaviour: %s: the call may have been sent', async (_, answer) => {
    const seen = await serve(answer);
    expect(await start(seen.url).post()).toMatchObject(MAYBE_SENT);
    expect(seen.requests.length).toBe(1);
  });

  test('behaviour: a connection that died while it was idle may have carried the call: it is not sent again', async () => {
    const seen = await serve((socket) => {
      if (seen.requests.length === 1) socket.write(ANSWER);
      else socket.resetAndDestroy();
    });
    const { post } = start(seen.url);
    await post();
    expect(await post()).toMatchObject(MAYBE_SENT);
    expect(seen.requests.length).toBe(2);
    expect(seen.sockets.length).toBe(1);
  });

  test('behaviour: time that runs out after the call was written: it may have been sent, and the connection is gone', async () => {
    const gone = Promise.withResolvers<void>();
    const arrived = Promise.withResolvers<void>();
    const seen = await serve((socket) => {
      socket.on('close', () => gone.resolve());
      arrived.resolve();
    });
    const { post, time } = start(seen.url);
    const reply = post();
    await arrived.promise;
    time.advance(5000);
    expect(await reply).toMatchObject({ ...MAYBE_SENT, slow: true });
    await gone.promise;
  });
});
