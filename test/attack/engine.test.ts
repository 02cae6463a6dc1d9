// What a forwarder can get wrong, by number: nineteen findings about http-proxy-3 2.0.1, held against ours. Here the target
// is handed over as it came in, without our canonical form in front, so that what the forwarder itself would do with it
// shows.
import { afterEach, expect, it, vi } from 'vitest';
import type { End } from '../../src/gateway/outcome.ts';
import { mintPermit } from '../../src/domain/decide.ts';
import { headerOf, openRaw, type RawClient } from '../support/raw-client.ts';
import { OK, startRawUpstream, type RawUpstream, type Script } from '../support/raw-upstream.ts';
import { startSmallGateway } from '../support/small-gateway.ts';

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

type Stage = { upstream: RawUpstream; outcomes: readonly End[]; port: number; client: () => Promise<RawClient> };

/** Everything is forwarded, to exactly the target that was asked for. */
async function stage(script?: Script): Promise<Stage> {
  const upstream = await startRawUpstream(script);
  closers.push(upstream.close);
  const gateway = await startSmallGateway({
    upstream: upstream.url,
    timeouts: { connectMs: 1000, headersMs: 200, idleMs: 200 },
    permit: mintPermit('unprotected', undefined, ['Tollgate-Charge-Id', 'real']),
    publicUrl: 'https://api.example.com',
    asIs: true,
  });
  closers.push(gateway.close);
  const client = async (): Promise<RawClient> => {
    const opened = await openRaw(gateway.port);
    closers.push(opened.close);
    return opened;
  };
  return { upstream, outcomes: gateway.outcomes, port: gateway.port, client };
}

const ask = (target: string, ...lines: string[]): string =>
  `${[`GET ${target} HTTP/1.1`, 'Host: h', ...lines].join('\r\n')}\r\n\r\n`;

it.each([
  '/v1/./reports/q3',
  '/free/../v1/export',
  '/free/%2e%2e/v1/export',
  '/free/.%2e/v1/export',
  '/v1\\reports\\q3',
  '/free/..\\v1/export',
  '/v1/export#x',
  '//v1//export',
  '/a?b=/../c',
  'http://evil/v1/export',
])('attack: 1 the target %s is not read again', async (target) => {
  const { upstream, client } = await stage();
  const one = await client();
  one.send(ask(target));
  expect((await one.answer()).status).toBe(200);
  expect(upstream.requests[0]?.target).toBe(target);
});

it.each(['/\\', 'http://[/x', 'http://a:99999/x', 'http://%/x', '//'])(
  'attack: 2 the target %s throws nothing',
  async (target) => {
    const { client } = await stage();
    const one = await client();
    one.send(ask(target));
    expect((await one.answer()).status).toBe(200);
  },
);

it.each(['DELETE', 'OPTIONS', 'GET', 'HEAD'])(
  'attack: 3 the body of a chunked %s is no second request',
  async (method) => {
    const bodyless = OK.replace('\r\n\r\nok', '\r\n\r\n');
    const { upstream, client } = await stage(
      (seen, socket) => void socket.write(seen.method === 'HEAD' ? bodyless : OK),
    );
    const hidden = ask('/v1/export');
    for (let i = 0; i < 2; i++) {
      const one = await client();
      one.send(
        `${method} /free HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n${hidden.length.toString(16)}\r\n${hidden}\r\n0\r\n\r\n`,
      );
      expect((await one.answer(method === 'HEAD')).status).toBe(200);
    }
    expect(upstream.requests.map((seen) => [seen.method, seen.target, seen.body.toString()])).toEqual([
      [method, '/free', hidden],
      [method, '/free', hidden],
    ]);
    expect(upstream.sockets).toHaveLength(1);
  },
);

it('attack: 4 a WebSocket handshake does not go around the request handler', async () => {
  const { upstream, client } = await stage();
  const one = await client();
  one.send(ask('/v1/export', 'Connection: Upgrade', 'Upgrade: websocket'));
  expect((await one.answer()).status).toBe(200);
  expect(upstream.requests[0]?.head).not.toMatch(/^(upgrade|connection):/im);
});

it('attack: 5 Expect changes nothing about the headers', async () => {
  const { upstream, client } = await stage();
  const one = await client();
  one.send(
    'POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nExpect: 100-continue\r\nTollgate-Charge-Id: forged\r\n\r\n',
  );
  expect((await one.answer()).status).toBe(100);
  one.send('hi');
  expect((await one.answer()).status).toBe(200);
  const [seen] = upstream.requests;
  expect(seen && [headerOf(seen, 'tollgate-charge-id'), headerOf(seen, 'expect')]).toEqual(['real', undefined]);
});

it('attack: 6 hop-by-hop headers end here, and nothing of the request comes back in the answer', async () => {
  const { upstream, client } = await stage(
    (_, socket) => void socket.write(OK.replace('\r\n', '\r\nConnection: keep-alive, X-A\r\nX-A: 1\r\n')),
  );
  const one = await client();
  one.send(
    ask(
      '/a',
      'Connection: keep-alive, tollgate-charge-id, x-b',
      'X-B: 1',
      'Keep-Alive: timeout=1',
      'TE: trailers',
      'Proxy-Authorization: x',
    ),
  );
  const answer = await one.answer();
  expect([headerOf(answer, 'connection'), headerOf(answer, 'x-a')]).toEqual(['keep-alive', undefined]);
  const [seen] = upstream.requests;
  expect(seen?.headers.map(([name]) => name)).toEqual([
    'Host',
    'X-Forwarded-For',
    'X-Forwarded-Proto',
    'X-Forwarded-Host',
    'X-Request-Id',
    'Tollgate-Charge-Id',
  ]);
});

it('attack: 7 X-Forwarded-* of a client are not added to', async () => {
  const { upstream, client } = await stage();
  const one = await client();
  one.send(ask('/a', 'X-Forwarded-For: 6.6.6.6', 'X-Forwarded-Host: evil', 'Forwarded: for=6.6.6.6'));
  await one.answer();
  expect(upstream.requests[0]?.head).not.toMatch(/6\.6\.6\.6|evil/);
});

it.each(['end', 'resetAndDestroy'] as const)(
  'attack: 8 an upstream that goes in the middle (%s) leaves nobody hanging',
  async (how) => {
    const { upstream, outcomes, client } = await stage(
      (_, socket) => void socket.write('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf'),
    );
    const one = await client();
    one.send(ask('/a'));
    await one.until('half');
    upstream.sockets[0]?.[how]();
    await one.closed;
    expect(outcomes).toMatchObject([{ kind: 'failed', headersSent: true }]);
  },
);

it('attack: 9 an upstream that never answers is given up', async () => {
  const { client } = await stage(() => undefined);
  const one = await client();
  one.send(ask('/a'));
  expect(JSON.parse((await one.answer()).body.toString())).toMatchObject({ code: 'upstream_timeout' });
});

it('attack: 10 a 101 that nobody asked for is an error, a 103 crosses', async () => {
  const { upstream, client } = await stage(
    (_, socket) =>
      void socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\nraw'),
  );
  const one = await client();
  one.send(ask('/a'));
  expect((await one.answer()).status).toBe(502);
  upstream.script((_, socket) => void socket.write(`HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n${OK}`));
  one.send(ask('/a'));
  expect((await one.answer()).status).toBe(103);
  expect((await one.answer()).status).toBe(200);
});

it('attack: 11 a 204 with a body leaves no header and no byte behind', async () => {
  const { upstream, client } = await stage(
    (_, socket) => void socket.write('HTTP/1.1 204 No Content\r\nContent-Length: 3\r\n\r\nabc'),
  );
  const one = await client();
  one.send(ask('/a'));
  const answer = await one.answer();
  expect([answer.status, headerOf(answer, 'content-length')]).toEqual([204, undefined]);
  upstream.script((_, socket) => void socket.write(OK));
  one.send(ask('/b'));
  expect((await one.answer()).body.toString()).toBe('ok');
  expect(one.received()).not.toContain('abc');
});

it('behaviour: 12 a client that goes is reported once, and its upstream connection is closed', async () => {
  const { upstream, outcomes, client } = await stage(() => undefined);
  const one = await client();
  one.send('POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nhalf');
  await vi.waitFor(() => expect(upstream.requests).toHaveLength(1), { interval: 5 });
  one.socket.resetAndDestroy();
  await vi.waitFor(() => expect(upstream.sockets[0]?.destroyed).toBe(true), { interval: 5 });
  expect(outcomes).toMatchObject([{ kind: 'client_gone', status: undefined, kept: undefined }]);
});

it('behaviour: 13 an error that the engine reports does not end the process', async () => {
  const { upstream, client } = await stage();
  await upstream.close();
  const one = await client();
  one.send(ask('/a'));
  expect((await one.answer()).status).toBe(502);
});

it('attack: 14 a redirect is passed on, not followed', async () => {
  const { upstream, client } = await stage(
    (_, socket) => void socket.write('HTTP/1.1 302 Found\r\nLocation: /v1/export\r\nContent-Length: 0\r\n\r\n'),
  );
  const one = await client();
  one.send(ask('/free'));
  const answer = await one.answer();
  expect([answer.status, headerOf(answer, 'location')]).toEqual([302, '/v1/export']);
  expect(upstream.requests).toHaveLength(1);
});

it('behaviour: 15 repeated headers stay repeated, with their case', async () => {
  const { upstream, client } = await stage(
    (_, socket) => void socket.write(OK.replace('\r\n', '\r\nX-aB: 1\r\nx-Ab: 2\r\n')),
  );
  const one = await client();
  one.send(ask('/a', 'AUTHorization: one', 'authorization: two'));
  const answer = await one.answer();
  expect(answer.headers.filter(([name]) => /^x-ab$/i.test(name))).toEqual([
    ['X-aB', '1'],
    ['x-Ab', '2'],
  ]);
  expect(upstream.requests[0]?.headers.filter(([name]) => /^auth/i.test(name))).toEqual([
    ['AUTHorization', 'one'],
    ['authorization', 'two'],
  ]);
});

it('attack: 16 HTTP/2.0 written on an HTTP/1 connection gets no treatment of its own', async () => {
  const { upstream, client } = await stage();
  const one = await client();
  one.send('GET /a HTTP/2.0\r\nHost: h\r\nConnection: x-b\r\nX-B: 1\r\n\r\n');
  expect((await one.answer()).status).toBe(200);
  expect([upstream.requests[0]?.version, upstream.requests[0]?.head.includes('X-B')]).toEqual(['HTTP/1.1', false]);
});

it('behaviour: 17 cookies cross as they are', async () => {
  const { client } = await stage(
    (_, socket) =>
      void socket.write(OK.replace('\r\n', '\r\nSet-Cookie: a=1; Domain=constructor; Path=/x; domain=b\r\n')),
  );
  const one = await client();
  one.send(ask('/a'));
  expect(headerOf(await one.answer(), 'set-cookie')).toBe('a=1; Domain=constructor; Path=/x; domain=b');
});

it.each([201, 301, 302, 303, 307, 308])(
  'attack: 18 a %i that leads to the upstream leads to us instead',
  async (status) => {
    const { upstream, client } = await stage();
    upstream.script(
      (_, socket) =>
        void socket.write(
          `HTTP/1.1 ${status} X\r\nLocation: ${upstream.url.origin}/v1/export?a#b\r\nContent-Length: 0\r\n\r\n`,
        ),
    );
    const one = await client();
    one.send(ask('/a'));
    expect(headerOf(await one.answer(), 'location')).toBe('https://api.example.com/v1/export?a#b');
  },
);

it('attack: 19 the fetch path is never taken', async () => {
  vi.stubEnv('FORCE_FETCH_PATH', 'true');
  closers.push(() => vi.unstubAllEnvs());
  const fetched = vi.spyOn(globalThis, 'fetch');
  const { upstream, client } = await stage();
  const one = await client();
  one.send(ask('/free/../v1/export'));
  expect((await one.answer()).status).toBe(200);
  expect(upstream.requests[0]?.target).toBe('/free/../v1/export');
  expect(fetched).not.toHaveBeenCalled();
});
