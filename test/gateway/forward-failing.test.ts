// What becomes of every way in which the client or the upstream can fail while a request is forwarded.
import { once } from 'node:events';
import { describe, expect, it, vi } from 'vitest';
import { headerOf } from '../support/raw-client.ts';
import { OK, startRawUpstream, type Script } from '../support/raw-upstream.ts';
import type { SmallGateway } from '../support/small-gateway.ts';
import { createStages, GET, head, outcomeOf } from '../support/stages.ts';

const { stage, onEnd } = createStages();

describe('a client that goes away', () => {
  it('behaviour: a client that leaves before an answer has its upstream connection closed', async () => {
    const { upstream, gateway, client } = await stage(() => undefined);
    const one = await client();
    one.send(GET);
    await vi.waitFor(() => expect(upstream.requests).toHaveLength(1), { interval: 5 });
    one.close();
    const [socket] = upstream.sockets;
    if (socket === undefined) throw new Error('no connection');
    await once(socket, 'close');
    expect(await outcomeOf(gateway)).toMatchObject({
      kind: 'client_gone',
      status: undefined,
      headSent: false,
      upload: 'whole',
    });
  });

  it('behaviour: a client that leaves in the middle of an upload: the upstream sees it break off, never end', async () => {
    const { upstream, gateway, client } = await stage();
    const one = await client();
    one.send(`${head('POST', 'Transfer-Encoding: chunked')}5\r\nhello\r\n`);
    await vi.waitFor(() => expect(upstream.requests).toHaveLength(1), { interval: 5 });
    one.close();
    const [socket] = upstream.sockets;
    if (socket === undefined) throw new Error('no connection');
    await once(socket, 'close');
    expect(upstream.requests[0]?.whole).toBe(false);
    expect((await outcomeOf(gateway)).kind).toBe('client_gone');
  });

  it('behaviour: a client that leaves in the middle of an answer has its upstream connection closed', async () => {
    const { upstream, gateway, client } = await stage(
      (_, socket) => void socket.write('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf'),
    );
    const one = await client();
    one.send(GET);
    await one.until('half');
    one.close();
    const [socket] = upstream.sockets;
    if (socket === undefined) throw new Error('no connection');
    await once(socket, 'close');
    expect(await outcomeOf(gateway)).toMatchObject({
      kind: 'client_gone',
      status: 200,
      headSent: true,
      upload: 'whole',
    });
  });

  it('attack: one packet of pipelined requests does not become as many requests upstream', async () => {
    const { upstream, gateway, client } = await stage(() => undefined);
    const one = await client();
    one.send(GET.repeat(40));
    await vi.waitFor(() => expect(upstream.requests).toHaveLength(1), { interval: 5 });
    one.close();
    await outcomeOf(gateway);
    expect(gateway.forwards()).toBe(1);
    expect(upstream.requests).toHaveLength(1);
  });
});

describe('an upstream that fails', () => {
  const failed = async (gateway: SmallGateway): Promise<[string, boolean]> => {
    const outcome = await outcomeOf(gateway);
    return outcome.kind === 'failed' ? [outcome.code, outcome.headersSent] : [outcome.kind, false];
  };

  it('behaviour: an upstream that nobody listens for is answered 502', async () => {
    const { upstream, gateway, client } = await stage();
    await upstream.close();
    const one = await client();
    one.send(GET);
    expect((await one.answer()).status).toBe(502);
    expect(await failed(gateway)).toEqual(['upstream_unreachable', false]);
    // And the client's connection goes on.
    one.send(GET);
    expect((await one.answer()).status).toBe(502);
  });

  it.each<[string, Script]>([
    ['closes at once', (_, socket) => void socket.end()],
    ['resets at once', (_, socket) => void socket.resetAndDestroy()],
    ['closes in the middle of its head', (_, socket) => void socket.end('HTTP/1.1 200 OK\r\nContent-Le')],
    ['speaks something else', (_, socket) => void socket.end('SSH-2.0-OpenSSH_9.9\r\n')],
    ['sends garbage', (_, socket) => void socket.end(Buffer.alloc(200, 0xff))],
    [
      'sends two lengths',
      (_, socket) => void socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok'),
    ],
    [
      'sends length and coding',
      (_, socket) =>
        void socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n'),
    ],
    [
      'folds a header',
      (_, socket) => void socket.write('HTTP/1.1 200 OK\r\nX-A: b\r\n c\r\nContent-Length: 2\r\n\r\nok'),
    ],
    [
      'puts a NUL into a value',
      (_, socket) => void socket.write('HTTP/1.1 200 OK\r\nX-A: b\0c\r\nContent-Length: 2\r\n\r\nok'),
    ],
    [
      'puts a bare LF into a value',
      (_, socket) => void socket.write('HTTP/1.1 200 OK\r\nX-A: b\nX-B: c\r\nContent-Length: 2\r\n\r\nok'),
    ],
    [
      'sends an enormous head',
      (_, socket) => void socket.write(`HTTP/1.1 200 OK\r\nX-A: ${'a'.repeat(100_000)}\r\n\r\n`),
    ],
    ['answers 000', (_, socket) => void socket.write('HTTP/1.1 000 Nothing\r\nContent-Length: 0\r\n\r\n')],
    [
      'switches protocols unasked',
      (_, socket) =>
        void socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n'),
    ],
    ['answers 101 without an upgrade', (_, socket) => void socket.write('HTTP/1.1 101 Switching Protocols\r\n\r\n')],
  ])('behaviour: an upstream that %s is answered 502, and asked once', async (_, script) => {
    const { upstream, gateway, client } = await stage(script);
    const one = await client();
    one.send(head('POST', 'Content-Length: 0'));
    const answer = await one.answer();
    expect(answer.status).toBe(502);
    expect(headerOf(answer, 'content-type')).toBe('application/problem+json');
    expect(await failed(gateway)).toEqual(['upstream_unreachable', false]);
    expect(upstream.requests).toHaveLength(1);
    // Nothing of it stays for the next one.
    upstream.script((_request, socket) => void socket.write(OK));
    one.send(GET);
    expect((await one.answer()).body.toString()).toBe('ok');
  });

  it.each<[string, string]>([
    ['a length', 'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf'],
    ['chunks', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n'],
  ])(
    'behaviour: FIN and RST of the upstream in the middle of a body with %s cut the client off, and no time-out does',
    async (_, bytes) => {
      for (const how of ['end', 'resetAndDestroy'] as const) {
        for (const request of [GET, 'GET /free/a HTTP/1.0\r\n\r\n']) {
          const { upstream, gateway, client } = await stage((_request, socket) => void socket.write(bytes));
          const one = await client();
          one.send(request);
          await one.until('half');
          upstream.sockets[0]?.[how]();
          // An HTTP/1.0 client would take an orderly end for the end of the body.
          expect(await one.closed).toBe(request === GET ? 'fin' : 'reset');
          expect(one.received()).not.toContain('0\r\n\r\n');
          expect(await failed(gateway)).toEqual(['upstream_unreachable', true]);
        }
      }
    },
  );

  it('behaviour: a chunk of the upstream that is broken cuts the client off', async () => {
    const { client, gateway } = await stage(
      (_, socket) => void socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\nxyz\r\n'),
    );
    const one = await client();
    one.send(GET);
    await one.closed;
    expect(one.received()).not.toContain('0\r\n\r\n');
    expect((await outcomeOf(gateway)).kind).toBe('failed');
  });

  it.each<[string, string, number, string]>([
    ['a second answer', `${OK}HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nstray`, 200, 'ok'],
    ['garbage after its answer', `${OK}stray stray`, 200, 'ok'],
    ['a 204 with a body', 'HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nstray', 204, ''],
    ['a 304 with a body', 'HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\nstray', 304, ''],
    [
      'a 204 with chunks',
      'HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nstray\r\n0\r\n\r\n',
      204,
      '',
    ],
  ])('attack: %s from the upstream is delivered to nobody', async (_, bytes, status, body) => {
    const { upstream, client } = await stage((_request, socket) => void socket.write(bytes));
    const one = await client();
    one.send(GET);
    const answer = await one.answer();
    expect([answer.status, answer.body.toString()]).toEqual([status, body]);
    upstream.script(
      (request, socket) =>
        void socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${request.target.length}\r\n\r\n${request.target}`),
    );
    for (const target of ['/free/1', '/free/2', '/free/3']) {
      const two = await client();
      two.send(`GET ${target} HTTP/1.1\r\nHost: h\r\n\r\n`);
      expect((await two.answer()).body.toString()).toBe(target);
      expect(two.received()).not.toContain('stray');
    }
    expect(one.received()).not.toContain('stray');
  });

  it('attack: an answer to nothing, on an idle connection, is delivered to nobody', async () => {
    const { upstream, client } = await stage();
    const one = await client();
    one.send(GET);
    expect((await one.answer()).status).toBe(200);
    const [socket] = upstream.sockets;
    if (socket === undefined) throw new Error('no connection');
    socket.write('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nstray');
    await once(socket, 'close');
    one.send(GET);
    expect((await one.answer()).body.toString()).toBe('ok');
    expect(upstream.sockets).toHaveLength(2);
  });

  it('behaviour: an early answer to an upload is delivered, and the rest of the upload goes nowhere', async () => {
    const { upstream, client } = await stage();
    upstream.onHead((request, socket) => {
      if (request.method === 'POST') socket.write('HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nbig');
    });
    const one = await client();
    const size = 1024 * 1024;
    one.send(`${head('POST', `Content-Length: ${size}`)}begin`);
    expect((await one.answer()).body.toString()).toBe('big');
    await vi.waitFor(() => expect(upstream.sockets[0]?.destroyed).toBe(true), { interval: 5 });
    one.send('x'.repeat(size - 5));
    one.send(GET);
    expect((await one.answer()).body.toString()).toBe('ok');
    expect(upstream.requests.map(({ method, whole }) => [method, whole])).toEqual([
      ['POST', false],
      ['GET', true],
    ]);
    expect(upstream.sockets).toHaveLength(2);
  });
});

describe('time-outs', () => {
  it('behaviour: an upstream that does not answer in time is 504', async () => {
    const { gateway, client } = await stage(() => undefined, { timeouts: { headersMs: 60 } });
    const one = await client();
    one.send(GET);
    expect((await one.answer()).status).toBe(504);
    expect(await outcomeOf(gateway)).toMatchObject({ kind: 'failed', code: 'upstream_timeout', headersSent: false });
  });

  it('behaviour: an upstream that does not answer in time after an upload is 504, also on a connection that was used before', async () => {
    const { upstream, client } = await stage(undefined, { timeouts: { headersMs: 60 } });
    const one = await client();
    one.send(GET);
    expect((await one.answer()).status).toBe(200);
    upstream.script(() => undefined);
    one.send(`${head('POST', 'Content-Length: 2')}hi`);
    expect((await one.answer()).status).toBe(504);
    expect(upstream.sockets).toHaveLength(1);
  });

  it('behaviour: a request that gets no free connection in time is 504', async () => {
    const { client } = await stage(() => undefined, { maxSockets: 1, timeouts: { connectMs: 60 } });
    const busy = await client();
    busy.send(GET);
    const one = await client();
    one.send(GET);
    expect((await one.answer()).status).toBe(504);
  });

  it('behaviour: an upstream that cannot be connected to in time is 504', async () => {
    // The connection is accepted, but nobody there speaks TLS.
    const silent = await startRawUpstream();
    silent.ignore();
    onEnd(silent.close);
    const { client, gateway } = await stage(undefined, {
      upstream: new URL(`https://127.0.0.1:${silent.port}`),
      timeouts: { connectMs: 60 },
    });
    const one = await client();
    one.send(GET);
    expect((await one.answer()).status).toBe(504);
    expect(await outcomeOf(gateway)).toMatchObject({ kind: 'failed', code: 'upstream_timeout' });
  });

  it('behaviour: an answer that stops in the middle is cut off', async () => {
    const { gateway, client } = await stage(
      (_, socket) => void socket.write('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf'),
      { timeouts: { idleMs: 60, headersMs: 30_000 } },
    );
    const one = await client();
    one.send(GET);
    expect(await one.closed).toBe('fin');
    expect(await outcomeOf(gateway)).toMatchObject({ kind: 'failed', code: 'upstream_timeout', headersSent: true });
  });

  it('behaviour: neither a slow stream nor a long upload is cut off while it moves', async () => {
    const { upstream, client } = await stage(
      (_, socket) => void socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n'),
      { timeouts: { idleMs: 150, headersMs: 150 } },
    );
    const one = await client();
    one.send(head('POST', 'Content-Length: 10'));
    for (let i = 0; i < 10; i++) {
      await new Promise((resolve) => setTimeout(resolve, 30));
      one.send('x');
    }
    await one.until('chunked');
    for (let i = 0; i < 10; i++) {
      await new Promise((resolve) => setTimeout(resolve, 30));
      upstream.sockets[0]?.write('1\r\ny\r\n');
    }
    upstream.sockets[0]?.write('0\r\n\r\n');
    expect((await one.answer()).body.toString()).toBe('yyyyyyyyyy');
  });

  it('behaviour: a pooled connection that idled is closed by us, and none is left with a time-out of an earlier request', async () => {
    const { upstream, gateway, client } = await stage(undefined, { timeouts: { headersMs: 50, idleMs: 50 } });
    const one = await client();
    one.send(GET);
    expect((await one.answer()).status).toBe(200);
    await new Promise((resolve) => setTimeout(resolve, 120));
    one.send(GET);
    expect((await one.answer()).status).toBe(200);
    expect(upstream.sockets).toHaveLength(1);
    expect(gateway.outcomes.map(({ kind }) => kind)).toEqual(['delivered', 'delivered']);
  });
});

describe('a pooled connection that the upstream closed', () => {
  /** Answers once, and closes when the second request arrives. */
  const closesAfterOne = (): { script: Script; lost: () => number } => {
    const used = new Set<unknown>();
    let lost = 0;
    return {
      lost: () => lost,
      script: (_, socket) => {
        if (used.has(socket)) {
          lost++;
          socket.resetAndDestroy();
        } else {
          used.add(socket);
          socket.write(OK);
        }
      },
    };
  };

  it.each(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE'])(
    'behaviour: %s without a body is sent once more, on a new connection, if the upstream closed a pooled one',
    async (method) => {
      const { script, lost } = closesAfterOne();
      const { upstream, gateway, client } = await stage(script);
      const one = await client();
      one.send(GET);
      expect((await one.answer()).status).toBe(200);
      one.send(head(method));
      expect((await one.answer(method === 'HEAD')).status).toBe(200);
      expect(lost()).toBe(1);
      expect(upstream.sockets).toHaveLength(2);
      expect(gateway.outcomes).toHaveLength(2);
    },
  );

  it.each([
    ['POST', []],
    ['PATCH', []],
    ['PUT', ['Content-Length: 2']],
  ])('behaviour: %s with %j is not sent twice if the upstream closed the pooled connection', async (method, lines) => {
    const { script, lost } = closesAfterOne();
    const { client } = await stage(script);
    const one = await client();
    one.send(GET);
    expect((await one.answer()).status).toBe(200);
    one.send(`${head(method, ...lines)}${lines.length > 0 ? 'hi' : ''}`);
    expect((await one.answer()).status).toBe(502);
    expect(lost()).toBe(1);
  });

  it('behaviour: a request is not sent twice if a byte of an answer was there, or if its connection was new', async () => {
    const { upstream, client } = await stage();
    const one = await client();
    one.send(GET);
    expect((await one.answer()).status).toBe(200);
    upstream.script((_, socket) => {
      socket.write('H', () => socket.resetAndDestroy());
    });
    one.send(GET);
    expect((await one.answer()).status).toBe(502);
    expect(upstream.requests).toHaveLength(2);
    one.send(GET);
    expect((await one.answer()).status).toBe(502);
    expect(upstream.requests).toHaveLength(3);
  });

  it('behaviour: the second attempt does not take another connection that may be dead as well', async () => {
    const { script, lost } = closesAfterOne();
    const held: (() => void)[] = [];
    const { upstream, client } = await stage((_, socket) => void held.push(() => socket.write(OK)));
    const clients = [await client(), await client(), await client()];
    for (const one of clients) one.send(GET);
    await vi.waitFor(() => expect(held).toHaveLength(3), { interval: 5 });
    for (const answer of held) answer();
    for (const one of clients) expect((await one.answer()).status).toBe(200);
    const used = new Set<unknown>(upstream.sockets);
    upstream.script((request, socket) => (used.has(socket) ? void socket.resetAndDestroy() : script(request, socket)));
    clients[0]?.send(GET);
    expect((await clients[0]?.answer())?.status).toBe(200);
    expect([upstream.requests.length, upstream.sockets.length, lost()]).toEqual([5, 4, 0]);
  });

  it('behaviour: the second attempt fails for good', async () => {
    const { upstream, client } = await stage();
    const one = await client();
    one.send(GET);
    expect((await one.answer()).status).toBe(200);
    upstream.script((_, socket) => void socket.resetAndDestroy());
    one.send(GET);
    expect((await one.answer()).status).toBe(502);
    expect(upstream.requests).toHaveLength(3);
  });
});
