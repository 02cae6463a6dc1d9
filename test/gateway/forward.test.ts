// Forwarding over raw sockets where everything goes well: bodies both ways, streams, heads, TLS.
import { createServer, type IncomingMessage } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { describe, expect, it, vi } from 'vitest';
import { CERTIFICATE, KEY } from '../support/certificate.ts';
import { headerOf, openRaw } from '../support/raw-client.ts';
import { OK } from '../support/raw-upstream.ts';
import { startSmallGateway } from '../support/small-gateway.ts';
import { createStages, GET, head } from '../support/stages.ts';

const { stage, onEnd } = createStages();

describe('a request that goes well', () => {
  it('behaviour: a connection to the upstream is used again', async () => {
    const { upstream, gateway, client } = await stage();
    for (let i = 0; i < 5; i++) {
      const one = await client();
      one.send(GET);
      expect((await one.answer()).body.toString()).toBe('ok');
      one.close();
    }
    expect(upstream.requests).toHaveLength(5);
    expect(upstream.sockets).toHaveLength(1);
    expect(gateway.outcomes.map(({ kind }) => kind)).toEqual(Array.from({ length: 5 }, () => 'delivered'));
  });

  it('behaviour: requests of many clients at once take no more upstream connections than allowed, and nobody is lost', async () => {
    const { upstream, client } = await stage(undefined, { maxSockets: 2 });
    const clients = await Promise.all(Array.from({ length: 8 }, client));
    for (const one of clients) one.send(GET);
    for (const one of clients) expect((await one.answer()).status).toBe(200);
    expect(upstream.sockets.length).toBeLessThanOrEqual(2);
    expect(upstream.requests).toHaveLength(8);
  });

  it.each([
    ['GET', '', 'none'],
    ['GET', 'Content-Length: 2', 'length'],
    ['POST', 'Content-Length: 2', 'length'],
    ['PATCH', 'Transfer-Encoding: chunked', 'chunked'],
    ['DELETE', 'Transfer-Encoding: chunked', 'chunked'],
    ['OPTIONS', 'Content-Length: 2', 'length'],
  ])('behaviour: %s with %s crosses with its body', async (method, framing, kind) => {
    const { upstream, client } = await stage();
    const one = await client();
    const body = { none: '', length: 'hi', chunked: '1\r\nh\r\n1\r\ni\r\n0\r\n\r\n' }[kind] ?? '';
    one.send(head(method, ...(framing === '' ? [] : [framing])) + body);
    expect((await one.answer()).status).toBe(200);
    expect(upstream.requests[0]?.method).toBe(method);
    expect(upstream.requests[0]?.body.toString()).toBe(kind === 'none' ? '' : 'hi');
  });

  it('behaviour: server-sent events flow one by one to the client', async () => {
    const { upstream, client } = await stage((_, socket) => {
      socket.write('HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n');
    });
    const one = await client();
    one.send(GET);
    // The head arrives before there is any event.
    await one.until('text/event-stream');
    for (const event of ['data: 1\n\n', 'data: 2\n\n', 'data: 3\n\n']) {
      upstream.sockets[0]?.write(`9\r\n${event}\r\n`);
      await one.until(event);
    }
    upstream.sockets[0]?.write('0\r\n\r\n');
    expect((await one.answer()).body.toString()).toBe('data: 1\n\ndata: 2\n\ndata: 3\n\n');
  });

  it('behaviour: the head of an upload is there before its body', async () => {
    const { upstream, client } = await stage();
    const one = await client();
    one.send(head('POST', 'Content-Length: 4'));
    // It waits a second for the first byte of its body.
    await vi.waitFor(() => expect(upstream.requests).toHaveLength(1), { interval: 5, timeout: 30_000 });
    upstream.sockets[0]?.write(OK);
    expect((await one.answer()).status).toBe(200);
  });

  it.each([
    ['HEAD', 'HTTP/1.1 200 OK\r\nContent-Length: 1234\r\n\r\n', 200, '1234'],
    ['HEAD', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n', 200, undefined],
    ['GET', 'HTTP/1.1 204 No Content\r\n\r\n', 204, undefined],
    ['GET', 'HTTP/1.1 304 Not Modified\r\nETag: "a"\r\nContent-Length: 1234\r\n\r\n', 304, '1234'],
  ])(
    'behaviour: %s answered without a body keeps both connections usable (%j)',
    async (method, bytes, status, length) => {
      const { upstream, client } = await stage((_, socket) => void socket.write(bytes));
      const one = await client();
      for (let i = 0; i < 3; i++) {
        one.send(head(method));
        const answer = await one.answer(method === 'HEAD');
        expect(answer.status).toBe(status);
        expect(headerOf(answer, 'content-length')).toBe(length);
        expect(answer.framing).toBe('none');
      }
      expect(upstream.sockets).toHaveLength(1);
    },
  );

  it('behaviour: a body that ends with its connection is whole for a client of either version', async () => {
    const { client } = await stage((_, socket) => void socket.end('HTTP/1.1 200 OK\r\n\r\nto the end'));
    const one = await client();
    one.send(GET);
    const answer = await one.answer();
    expect([answer.framing, answer.body.toString()]).toEqual(['chunked', 'to the end']);
    const old = await client();
    old.send('GET /free/a HTTP/1.0\r\n\r\n');
    const ancient = await old.answer();
    expect([ancient.framing, ancient.body.toString()]).toEqual(['close', 'to the end']);
    expect(await old.closed).toBe('fin');
  });

  it('behaviour: an answer of 103 crosses with its links, other 1xx do not', async () => {
    const { client } = await stage((_, socket) => {
      socket.write('HTTP/1.1 102 Processing\r\n\r\n');
      socket.write(
        'HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload, </b.js>; rel=preload\r\nX-Secret: 1\r\n\r\n',
      );
      socket.write('HTTP/1.1 100 Continue\r\n\r\n');
      socket.write(OK);
    });
    const one = await client();
    one.send(GET);
    const hints = await one.answer();
    expect([hints.status, hints.headers]).toEqual([103, [['Link', '</a.css>; rel=preload, </b.js>; rel=preload']]]);
    expect((await one.answer()).status).toBe(200);
    const old = await client();
    old.send('GET /free/a HTTP/1.0\r\n\r\n');
    expect((await old.answer()).status).toBe(200);
  });

  it('behaviour: bytes from 0x80 and a Content-Disposition in an answer cross unchanged', async () => {
    const bytes =
      'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-A: \xe9\r\nContent-Disposition: attachment; filename="\xe4\xb8\xad"\r\n\r\nok';
    const { client } = await stage((_, socket) => void socket.write(bytes, 'latin1'));
    const one = await client();
    one.send(GET);
    const answer = await one.answer();
    expect(headerOf(answer, 'x-a')).toBe('\xe9');
    expect(headerOf(answer, 'content-disposition')).toBe('attachment; filename="\xe4\xb8\xad"');
    expect(answer.body.toString()).toBe('ok');
  });

  it('behaviour: a body of unknown length that comes in many pieces arrives whole', async () => {
    const pieces = Array.from({ length: 200 }, (_, i) => 'x'.repeat(1 + ((i * 37) % 900)));
    const { client } = await stage((_, socket) => {
      socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n');
      for (const piece of pieces) socket.write(`${piece.length.toString(16)}\r\n${piece}\r\n`);
      socket.write('0\r\nX-Trailer: dropped\r\n\r\n');
    });
    const one = await client();
    one.send(GET);
    const answer = await one.answer();
    expect(answer.body.toString()).toBe(pieces.join(''));
    expect(one.received()).not.toContain('dropped');
  });

  it('behaviour: FORCE_FETCH_PATH changes nothing', async () => {
    vi.stubEnv('FORCE_FETCH_PATH', 'true');
    onEnd(() => vi.unstubAllEnvs());
    const fetched = vi.spyOn(globalThis, 'fetch');
    const { upstream, client } = await stage();
    const one = await client();
    one.send('GET /free/a%7Eb?x=%7E HTTP/1.1\r\nHost: h\r\n\r\n');
    expect((await one.answer()).status).toBe(200);
    expect(upstream.requests[0]?.target).toBe('/free/a~b?x=%7E');
    expect(fetched).not.toHaveBeenCalled();
  });
});

describe('an upstream that speaks TLS', () => {
  const secure = async (): Promise<URL> => {
    const server = createSecureServer({ key: KEY, cert: CERTIFICATE }, (req, res) => res.end(req.url));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onEnd(() => {
      server.closeAllConnections();
      server.close();
    });
    const address = server.address();
    return new URL(`https://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`);
  };

  it('refuses: an upstream certificate that nobody vouches for: 502', async () => {
    const { client } = await stage(undefined, { upstream: await secure() });
    const one = await client();
    one.send(GET);
    expect((await one.answer()).status).toBe(502);
  });

  it('behaviour: an upstream with a trusted certificate is forwarded to, on a connection that is used again', async () => {
    const before = getCACertificates('default');
    setDefaultCACertificates([...before, CERTIFICATE]);
    onEnd(() => setDefaultCACertificates(before));
    const { client } = await stage(undefined, { upstream: await secure() });
    const one = await client();
    for (let i = 0; i < 3; i++) {
      one.send(GET);
      expect((await one.answer()).body.toString()).toBe('/free/a');
    }
  });
});

it('behaviour: an IPv6 upstream and a name are reached', async () => {
  const seen: (string | undefined)[] = [];
  const server = createServer((req: IncomingMessage, res) => {
    seen.push(req.url);
    res.end('six');
  });
  await new Promise<void>((resolve) => server.listen(0, '::', resolve));
  onEnd(() => server.close());
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  for (const host of ['[::1]', 'localhost']) {
    const gateway = await startSmallGateway({ upstream: new URL(`http://${host}:${port}`) });
    onEnd(gateway.close);
    const one = await openRaw(gateway.port);
    onEnd(one.close);
    one.send(GET);
    expect((await one.answer()).body.toString()).toBe('six');
  }
  expect(seen).toEqual(['/free/a', '/free/a']);
});
