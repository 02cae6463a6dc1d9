// `sync.listen` over real HTTP: the sidecar's listener in front of our own registry, of one that is away, and of one that
// shows what arrived there.
import { createServer, request, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import {
  FEED,
  LIST,
  MATCH,
  openEvents,
  REGISTER,
  SDK_KEY,
  startRegistry,
  token,
  type Ask,
  type Kit,
  type Reply,
} from '../../../registry/kit.ts';
import { ROUTES, startRelayStage, type RelayStage, type RelayStageOptions } from './relay-stage.ts';
import { claimOf } from '../../../cases/claims.ts';
import { openRaw, type RawClient } from '../../../support/raw-client.ts';
import { startRawUpstream } from '../../../support/raw-upstream.ts';

const closers: (() => void | Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close();
});

const startRelay = async (registryUrl: string, options: RelayStageOptions = {}): Promise<RelayStage> => {
  const relay = await startRelayStage(registryUrl, options);
  closers.push(relay.close);
  return relay;
};

async function startServer(handle: RequestListener): Promise<string> {
  const server = createServer(handle);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closers.push(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** A client of the relay in front of a registry that answers these bytes. */
async function behindBytes(bytes: string, breaksOff: boolean): Promise<RawClient> {
  const registry = await startRawUpstream((_request, socket) => {
    socket.write(bytes, 'latin1');
    if (breaksOff) socket.end();
  });
  closers.push(registry.close);
  const client = await openRaw((await startRelay(registry.url.origin)).port);
  closers.push(client.close);
  return client;
}

async function startKit(): Promise<Kit> {
  const kit = await startRegistry();
  closers.push(kit.close);
  return kit;
}

type Mirrored = {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
};
const parse = ({ body }: Reply): unknown => JSON.parse(body.toString());

/** Shows in its answer what arrived. */
const mirror: RequestListener = (req, res) => {
  const chunks: Buffer[] = [];
  req.on('data', (chunk: Buffer) => chunks.push(chunk));
  req.on('end', () => {
    res.setHeader('content-type', 'application/json');
    res.end(
      JSON.stringify({
        method: req.method,
        url: req.url,
        headers: req.headers,
        body: Buffer.concat(chunks).toString(),
      }),
    );
  });
};

async function nobody(): Promise<string> {
  const url = await startServer(mirror);
  await closers.pop()?.();
  return url;
}

describe('while the registry is there', () => {
  test('behaviour: every endpoint of the relay answers as the registry does, with the caller’s own credentials', async () => {
    const kit = await startKit();
    const relay = await startRelay(`http://127.0.0.1:${kit.port}`);
    const jwt = await token();
    const body = { route_pattern: '/new', method: 'GET', amount: '0.10' };
    const made = await relay.ask('POST', REGISTER, { auth: SDK_KEY, body });
    expect(made).toMatchObject({
      status: 201,
      json: { route_pattern: '/new' },
      headers: { location: expect.stringContaining(LIST) as string },
    });
    const asks: [string, string, Ask][] = [
      ['GET', FEED, { auth: SDK_KEY }],
      ['HEAD', FEED, { auth: SDK_KEY }],
      ['GET', FEED, {}],
      ['GET', FEED, { auth: jwt }],
      ['GET', `${MATCH}?path=/new&method=GET`, { auth: SDK_KEY }],
      ['GET', `${LIST}?limit=1`, { auth: jwt }],
      ['GET', `${LIST}/${made.json.id}`, { auth: jwt }],
      ['PATCH', `${LIST}/${made.json.id}`, { auth: jwt, body: {} }],
      ['DELETE', `${LIST}/${made.json.id}`, { auth: SDK_KEY }],
      ['GET', '/v1/billing/charges?q=chg_test-none', { auth: jwt }],
      ['GET', '/v1/billing/charges/chg_none/history', { auth: jwt }],
      ['GET', '/v1/billing/charges.csv?from=2026-01-01&to=2026-02-01', { auth: jwt }],
      ['GET', '/openapi.json', {}],
      ['GET', '/v1/nothing', { auth: SDK_KEY }],
      ['OPTIONS', FEED, {}],
    ];
    for (const [method, path, ask] of asks) {
      const [there, here] = [await kit.ask(method, path, ask), await relay.ask(method, path, ask)];
      const { date: _there, ...expected } = there.headers;
      const { date: _here, ...headers } = here.headers;
      expect([method, path, here.status, headers, here.body.toString()]).toEqual([
        method,
        path,
        there.status,
        expected,
        there.body.toString(),
      ]);
    }
    const etag = (await relay.ask('GET', FEED, { auth: SDK_KEY })).headers.etag ?? '';
    expect((await relay.ask('GET', FEED, { auth: SDK_KEY, headers: { 'If-None-Match': etag } })).status).toBe(304);
    expect((await relay.ask('DELETE', `${LIST}/${made.json.id}`, { auth: jwt })).status).toBe(204);
  });

  test('behaviour: events flow through the relay as they happen, and end when the sidecar stops', async () => {
    const kit = await startKit();
    // The store writes before a stream of charges is opened, which takes its time beside other load.
    const relay = await startRelay(`http://127.0.0.1:${kit.port}`, { timeouts: { headersMs: 30_000 } });
    const events = await openEvents(relay.port, { Authorization: `Bearer ${SDK_KEY}` });
    expect(events.status).toBe(200);
    await kit.sdk('POST', REGISTER, { body: { route_pattern: '/new', method: 'GET', amount: '0.10' } });
    expect(await events.next()).toMatchObject({ event: 'route.created', data: { route_pattern: '/new' } });
    const charges = await openEvents(
      relay.port,
      { Authorization: `Bearer ${await token()}` },
      '/v1/billing/charges/events',
    );
    await charges.until('\nid: ');
    await kit.ledger.claim(claimOf(1), { owner: 'o', leaseMs: 1000, maxUnsettledPerPayer: 8 });
    expect(await charges.next()).toMatchObject({ event: 'charge', data: { id: 'chg_test-1', status: 'claimed' } });
    relay.api.endStreams();
    await Promise.all([events.closed, charges.closed]);
  });

  test('attack: headers that belong to a connection or claim who is calling do not go on, and our key is not lent', async () => {
    const relay = await startRelay(await startServer(mirror));
    const asked = await relay.ask('POST', '/v1/protected-routes/routes/register?x=%2F', {
      body: { a: 1 },
      headers: {
        Connection: 'close, X-Mine',
        'X-Mine': '1',
        'Keep-Alive': 'x',
        TE: 'trailers',
        'Proxy-Authorization': 'x',
        'X-Forwarded-For': '1.2.3.4',
        Forwarded: 'for=1',
        'X-Tenant': 't',
      },
    });
    const arrived = parse(asked) as Mirrored;
    expect(arrived).toMatchObject({
      method: 'POST',
      url: '/v1/protected-routes/routes/register?x=%2F',
      body: '{"a":1}',
      headers: { 'x-tenant': 't', 'content-length': '7' },
    });
    for (const name of [
      'authorization',
      'x-mine',
      'keep-alive',
      'te',
      'proxy-authorization',
      'x-forwarded-for',
      'forwarded',
    ])
      expect(arrived.headers[name]).toBeUndefined();
    expect(arrived.headers['host']).not.toBe(`127.0.0.1:${relay.port}`);
  });

  test('behaviour: a registry below a path is reached below that path', async () => {
    const relay = await startRelay(`${await startServer(mirror)}/tenants/a`);
    expect((await relay.ask('GET', '/v1/health')).json).toMatchObject({ url: '/tenants/a/v1/health' });
  });

  test('attack: nothing but the interface is relayed, in no spelling', async () => {
    let arrived = 0;
    const relay = await startRelay(await startServer((_req, res) => void res.end(String(++arrived))));
    const paths = [
      '/',
      '/v1',
      '/v1/',
      '/admin',
      '/v1/../admin',
      '/v1/./x',
      '/v1/%2e%2e/admin',
      '/v1/..%2fadmin',
      '/v1//x',
      '//v1/x',
      '/v1/a\\..\\b',
      '/openapi.json/../x',
      '/openapi.yaml',
      'http://other.example.com/v1/health',
      '/v1/x;y',
      '/metrics',
    ];
    for (const path of paths) {
      const raw = await openRaw(relay.port);
      raw.send(`GET ${path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`);
      expect([path, (await raw.answer()).status]).toEqual([path, 404]);
      raw.close();
    }
    expect(arrived).toBe(0);
  });

  test('behaviour: relayed bodies at the limit go on, one byte more is 413, announced or not', async () => {
    const relay = await startRelay(await startServer(mirror), { limits: { body: 100_000 } });
    const chunked = { 'Transfer-Encoding': 'chunked' };
    for (const headers of [{}, chunked]) {
      expect(
        (parse(await relay.ask('POST', '/v1/x', { body: Buffer.alloc(100_000, 'a'), headers })) as Mirrored).body,
      ).toHaveLength(100_000);
      expect(await relay.ask('POST', '/v1/x', { body: Buffer.alloc(100_001, 'a'), headers })).toMatchObject({
        status: 413,
        json: { code: 'body_too_large' },
      });
    }
  });

  test('behaviour: one relayed request more than the limit is 503, and room is there again when one ends', async () => {
    const held: (() => void)[] = [];
    const relay = await startRelay(await startServer((_req, res) => void held.push(() => res.end('done'))), {
      limits: { relayed: 2 },
    });
    const waiting = [relay.ask('GET', '/v1/a'), relay.ask('GET', '/v1/b')];
    await expect.poll(() => held.length).toBe(2);
    expect(await relay.ask('GET', '/v1/c')).toMatchObject({ status: 503, headers: { 'retry-after': '1' } });
    for (const end of held.splice(0)) end();
    expect((await Promise.all(waiting)).map(({ status }) => status)).toEqual([200, 200]);
    const again = relay.ask('GET', '/v1/d');
    await expect.poll(() => held.length).toBe(1);
    held[0]?.();
    expect((await again).status).toBe(200);
  });

  test('behaviour: bytes of a header outside ASCII arrive as they were sent', async () => {
    const client = await behindBytes('HTTP/1.1 200 OK\r\nX-Name: caf\u00e9\r\nContent-Length: 2\r\n\r\nok', false);
    client.send(`GET ${FEED} HTTP/1.1\r\nHost: h\r\n\r\n`);
    expect((await client.answer()).headers).toContainEqual(['X-Name', 'caf\u00e9']);
  });

  test.each(['1.0', '1.1'])('attack: an answer that breaks off never looks whole to HTTP/%s', async (version) => {
    const client = await behindBytes('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n', true);
    client.send(`GET ${FEED} HTTP/${version}\r\nHost: h\r\n\r\n`);
    expect([await client.closed, client.received().includes('0\r\n\r\n')]).toEqual([
      version === '1.0' ? 'reset' : 'fin',
      false,
    ]);
  });

  test('behaviour: a caller that goes away ends its request to the registry', async () => {
    const gone = Promise.withResolvers<void>();
    const relay = await startRelay(
      await startServer((_req, res) => {
        res.writeHead(200).write('x');
        res.on('close', gone.resolve);
      }),
    );
    const req = request({ host: '127.0.0.1', port: relay.port, path: '/v1/x', agent: false }, () => req.destroy());
    req.on('error', () => undefined);
    req.end();
    await gone.promise;
  });
});

describe('while the registry is away', () => {
  const own = { auth: SDK_KEY };

  test('behaviour: routes are answered from the last good set while the registry is away, with its names and its age', async () => {
    const relay = await startRelay(await nobody());
    const answer = await relay.ask('GET', FEED, own);
    expect(answer).toMatchObject({
      status: 200,
      headers: {
        'tollgate-registry': 'reg-a',
        'tollgate-revision': '7',
        age: '90',
        'content-type': 'application/json',
      },
    });
    const wires = parse(answer) as Record<string, unknown>[];
    expect(wires.map((wire) => wire['route_pattern'])).toEqual(['/reports/*', '/reports/:id', '/café']);
    expect(Object.keys(wires[0] ?? {})).toHaveLength(14);
    expect(await relay.ask('HEAD', `${FEED}/`, own)).toMatchObject({
      status: 200,
      headers: { 'content-length': String(answer.body.length) },
    });
    expect(await relay.ask('GET', FEED, { ...own, headers: { 'If-None-Match': '"x", W/"seven"' } })).toMatchObject({
      status: 304,
      headers: { etag: '"seven"' },
    });
  });

  test('behaviour: match is answered by the proxy’s matcher while the registry is away', async () => {
    const relay = await startRelay(await nobody());
    const match = async (path: string, method: string): Promise<unknown> =>
      (await relay.ask('GET', `${MATCH}?${new URLSearchParams({ path, method })}`, own)).json;
    expect(await match('/reports/7', 'post')).toMatchObject({
      matched: true,
      payment_required: true,
      route: { amount: '0.50' },
      params: { id: '7' },
    });
    expect(await match('/caf\u00e9', 'GET')).toMatchObject({ matched: true, payment_required: false });
    expect(await match('/free', 'GET')).toEqual({ matched: false, payment_required: false, route: null, params: {} });
    expect(await match('/a/../b', 'GET')).toMatchObject({ ambiguous: true });
  });

  test('behaviour: every query of match is read as the registry reads it', async () => {
    const kit = await startKit();
    for (const made of ROUTES)
      await kit.sdk('POST', REGISTER, {
        body: { route_pattern: made.pattern, method: made.method, amount: made.amount, status: made.status },
      });
    const relay = await startRelay(await nobody());
    const queries = [
      '',
      'path=/reports/1',
      'method=GET',
      'path=reports&method=GET',
      'path=/reports/1&method=GET',
      'method=GET&path=%2Freports%2F1',
      'path=/reports/1&path=/b&method=GET',
      'path=/reports/a+b&method=GET',
      'path=/caf%C3%A9&method=GET',
      'path=/reports/%ff&method=GET',
      'path=/reports/%zz&method=GET',
      'path=/reports/1%3Fq%3D1&method=get',
      'path=/reports/1&method=GE%20T',
      'path=/reports/1&method=%00',
      'path&method=GET',
      'p%61th=/reports/1&method=GET&other=1',
      'path=/reports/1&method=&x',
      '&&path=/reports/1&method=GET&',
      'path=/reports/1=2&method=GET',
    ];
    for (const query of queries) {
      const [there, here] = [
        await kit.sdk('GET', `${MATCH}?${query}`),
        await relay.ask('GET', `${MATCH}?${query}`, own),
      ];
      const essence = (reply: Reply): unknown => {
        const { code, matched, payment_required, ambiguous, params, route } = parse(reply) as Record<string, unknown>;
        const pattern = (route as { route_pattern: string } | null)?.route_pattern;
        return [query, reply.status, code, matched, payment_required, ambiguous, params, pattern];
      };
      expect(essence(here)).toEqual(essence(there));
    }
  });

  test('attack: only the sidecar’s own key is answered while the registry is away; whose other keys are good nobody here knows', async () => {
    const relay = await startRelay(await nobody());
    const strangers: Ask[] = [
      {},
      { auth: `${SDK_KEY}x` },
      { auth: SDK_KEY.slice(0, -1) },
      { auth: '' },
      { auth: await token() },
      { headers: { Authorization: SDK_KEY } },
      { headers: { Authorization: `Basic ${SDK_KEY}` } },
      { headers: { Authorization: [`Bearer ${SDK_KEY}`, 'Bearer x'] } },
    ];
    for (const path of [FEED, `${MATCH}?path=/reports/1&method=GET`]) {
      for (const stranger of strangers) {
        expect(await relay.ask('GET', path, stranger)).toMatchObject({
          status: 503,
          headers: { 'retry-after': '5', 'content-type': 'application/problem+json' },
          json: { code: 'registry_unavailable' },
        });
      }
    }
  });

  test('refuses: everything else while the registry is away, with Retry-After; nothing is registered here', async () => {
    const relay = await startRelay(await nobody());
    for (const [method, path] of [
      ['POST', REGISTER],
      ['POST', FEED],
      ['GET', LIST],
      ['DELETE', `${LIST}/x`],
      ['GET', '/v1/health'],
      ['GET', '/openapi.json'],
      ['GET', '/v1/protected-routes/events'],
      ['GET', `${FEED}/x`],
    ] as const) {
      const body = method === 'POST' ? { body: {} } : {};
      expect([path, await relay.ask(method, path, { ...own, ...body })]).toMatchObject([
        path,
        { status: 503, headers: { 'retry-after': '5' } },
      ]);
    }
  });

  test('refuses: requests while the registry is away if there is no last good set to answer from', async () => {
    const relay = await startRelay(await nobody(), { good: false });
    expect((await relay.ask('GET', FEED, own)).status).toBe(503);
  });

  test.each([502, 503, 504])(
    'behaviour: an answer of %i from the registry counts as a registry that is away',
    async (status) => {
      const relay = await startRelay(await startServer((_req, res) => void res.writeHead(status).end('<html>')));
      expect((await relay.ask('GET', FEED, own)).status).toBe(200);
      expect(await relay.ask('GET', '/v1/health', own)).toMatchObject({
        status: 503,
        json: { code: 'registry_unavailable' },
      });
    },
  );

  test('behaviour: a registry that accepts and says nothing costs its time-out once; then the sync knows', async () => {
    let arrived = 0;
    const relay = await startRelay(await startServer(() => void arrived++), { timeouts: { headersMs: 500 } });
    expect((await relay.ask('GET', FEED, own)).status).toBe(200);
    expect(arrived).toBe(1);
    relay.away = true;
    expect((await relay.ask('GET', FEED, own)).status).toBe(200);
    expect(arrived).toBe(1);
    expect((await relay.ask('GET', LIST, own)).status).toBe(503);
    expect(arrived).toBe(2);
  });

  test('behaviour: a caller who reaches the registry again tells the sync', async () => {
    const relay = await startRelay(await startServer(mirror));
    relay.away = true;
    expect((await relay.ask('GET', '/v1/health')).status).toBe(200);
    expect(relay.nudges()).toBe(1);
  });
});
