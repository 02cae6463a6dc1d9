// `tollgate/client` against a real registry: what a call resolves to, pages, events that resume, and what it does not let happen.
import { once } from 'node:events';
import { createServer, request, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { createTollgate, TollgateError, type TollgateClient } from '../../src/client/client.ts';
import { claimOf } from '../cases/claims.ts';
import { LIST, SDK_KEY, startRegistry, token, type Kit } from '../registry/kit.ts';

let kit: Kit;
let tollgate: TollgateClient;
let sdk: TollgateClient;
beforeAll(async () => {
  kit = await startRegistry();
  const baseUrl = `http://127.0.0.1:${kit.port}/`;
  tollgate = createTollgate({ baseUrl, token: () => token({ now: kit.clock.now() }) });
  sdk = createTollgate({ baseUrl: new URL(baseUrl), token: SDK_KEY });
});
afterAll(() => kit.close());

const closing: (() => Promise<unknown> | void)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

/** A server of the test's own, which answers what a registry would not. */
async function startServer(answer: RequestListener): Promise<string> {
  const server = createServer(answer);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  closing.push(() => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const ROUTE = '/v1/billing/protected-routes/{id}';
const make = async (route_pattern: string): Promise<string> => {
  const { data, error } = await tollgate.POST(LIST, { body: { route_pattern, method: 'GET', amount: '0.10' } });
  if (error) throw new Error(error.detail);
  return data.id;
};

describe('calls', () => {
  test('behaviour: a route is made, read, changed and deleted, each answer as data beside its response', async () => {
    const id = await make('/client/a');
    const read = await tollgate.GET(ROUTE, { params: { id } });
    expect([read.data?.route_pattern, read.error, read.response.status]).toEqual(['/client/a', undefined, 200]);
    const etag = read.response.headers.get('ETag') ?? '';
    const changed = await tollgate.PATCH(ROUTE, {
      params: { id },
      body: { amount: '2' },
      headers: { 'If-Match': etag },
    });
    expect(changed.data?.amount).toBe('2');
    const lost = await tollgate.PATCH(ROUTE, { params: { id }, body: { amount: '3' }, headers: { 'If-Match': etag } });
    expect([lost.data, lost.error?.code, lost.response.status]).toEqual([undefined, 'precondition_failed', 412]);
    const gone = await tollgate.DELETE(ROUTE, { params: { id } });
    expect([gone.data, gone.error, gone.response.status]).toEqual([undefined, undefined, 204]);
    expect((await tollgate.DELETE(ROUTE, { params: { id } })).error).toMatchObject({ code: 'not_found', status: 404 });
  });

  test('behaviour: a conditional read of what did not change has neither data nor an error', async () => {
    const id = await make('/client/same');
    const { response } = await tollgate.GET(ROUTE, { params: { id } });
    const headers = { 'If-None-Match': response.headers.get('ETag') ?? '' };
    const again = await tollgate.GET(ROUTE, { params: { id }, headers });
    expect([again.response.status, again.data, again.error]).toEqual([304, undefined, undefined]);
  });

  test('behaviour: a query takes numbers and leaves out what is undefined; a file comes as text', async () => {
    const list = await tollgate.GET(LIST, { query: { limit: 1, q: undefined } });
    expect(list.data?.data).toHaveLength(1);
    const csv = await tollgate.GET('/v1/billing/charges.csv', { query: { from: '2026-01-01', to: '2026-01-02' } });
    expect(csv.data).toMatch(/^id,status,/);
  });

  test('behaviour: a credential is asked for with each call, and none is sent if there is none', async () => {
    expect((await tollgate.GET(LIST)).response.status).toBe(200);
    kit.clock.advance(120_000);
    expect((await tollgate.GET(LIST)).response.status).toBe(200);
    const nobody = createTollgate({ baseUrl: `http://127.0.0.1:${kit.port}` });
    expect((await nobody.GET('/v1/health')).data?.status).toBe('ok');
    expect((await nobody.GET(LIST)).error?.code).toBe('credentials_missing');
    expect((await sdk.GET('/v1/protected-routes/routes')).data?.length).toBeGreaterThan(0);
  });

  test('behaviour: the page of a gateway is an error as well, with the status and a code of its own', async () => {
    const baseUrl = await startServer((_, res) =>
      res.writeHead(502, { 'Content-Type': 'text/html' }).end('<h1>Bad</h1>'),
    );
    const { data, error, response } = await createTollgate({ baseUrl }).GET('/v1/health');
    expect([data, error?.code, error?.status, response.status]).toEqual([undefined, 'unknown', 502, 502]);
    expect(error?.detail).toBe('The answer was 502, and no problem of a registry.');
  });

  test('behaviour: a call that nobody answers, or that is given up, rejects as fetch does', async () => {
    await expect(createTollgate({ baseUrl: 'http://127.0.0.1:1' }).GET('/v1/health')).rejects.toThrow(TypeError);
    const signal = AbortSignal.abort(new Error('given up'));
    await expect(tollgate.GET(LIST, { signal })).rejects.toThrow('given up');
  });

  test('attack: an id that would lead to another path is sent as one segment, or not at all', async () => {
    const asked: string[] = [];
    const baseUrl = await startServer((req, res) => {
      asked.push(req.url ?? '');
      res.writeHead(204).end();
    });
    const client = createTollgate({ baseUrl });
    for (const id of ['a/../../api-keys/b', '%2e%2e', '..%2f', 'a?b#c', 'a\\b'])
      await client.DELETE('/v1/api-keys/{id}', { params: { id } });
    expect(asked).toEqual([
      '/v1/api-keys/a%2F..%2F..%2Fapi-keys%2Fb',
      '/v1/api-keys/%252e%252e',
      '/v1/api-keys/..%252f',
      '/v1/api-keys/a%3Fb%23c',
      '/v1/api-keys/a%5Cb',
    ]);
    for (const id of ['', '.', '..'])
      await expect(client.DELETE('/v1/api-keys/{id}', { params: { id } })).rejects.toThrow(TypeError);
    expect(asked).toHaveLength(5);
  });

  test('attack: a credential does not follow a redirect', async () => {
    const seen: (string | undefined)[] = [];
    const elsewhere = await startServer((req, res) => {
      seen.push(req.headers.authorization);
      res.end('{}');
    });
    const baseUrl = await startServer((_, res) => res.writeHead(307, { Location: `${elsewhere}/v1/health` }).end());
    await expect(createTollgate({ baseUrl, token: 'a secret' }).GET('/v1/health')).rejects.toThrow(TypeError);
    expect(seen).toEqual([]);
  });
});

describe('pages', () => {
  test('behaviour: every page of a list comes, by its cursor, until none is left', async () => {
    for (let at = 0; at < 7; at += 1) await make(`/paged/${at}`);
    const sizes: number[] = [];
    const seen = new Set<string>();
    for await (const { data, next_cursor } of tollgate.pages(LIST, { query: { q: '/paged/', limit: 3 } })) {
      sizes.push(data.length);
      for (const { id } of data) seen.add(id);
      expect(next_cursor === null).toBe(sizes.length === 3);
    }
    expect([sizes, seen.size]).toEqual([[3, 3, 1], 7]);
  });

  test('behaviour: a problem on the way is thrown with what the registry said', async () => {
    const pages = tollgate.pages(LIST, { query: { cursor: 'nonsense' } });
    const error = await pages.next().catch((thrown: unknown) => thrown);
    if (!(error instanceof TollgateError)) throw new Error('it did not throw');
    expect([error.problem.code, error.response.status, error.message]).toEqual([
      'malformed',
      400,
      error.problem.detail,
    ]);
  });
});

describe('events', () => {
  test('behaviour: changes come as they happen, typed, and leaving the loop ends the stream', async () => {
    const seen: string[] = [];
    const stream = sdk.events('/v1/protected-routes/events');
    const first = stream.next();
    await expect.poll(() => kit.registry.connections().streams).toBe(1);
    const id = await make('/told');
    for (let event = await first; event.done !== true; event = await stream.next()) {
      if (event.value.type === 'route.created') seen.push(event.value.data.id);
      if (seen.includes(id)) break;
    }
    await stream.return();
    expect(seen).toEqual([id]);
    await expect.poll(() => kit.registry.connections().streams).toBe(0);
  });

  test('behaviour: a stream that breaks off is opened again where it ended, and nothing is missed or told twice', async () => {
    // Between client and registry: it cuts every connection after the first two events.
    let cuts = 0;
    let opened = 0;
    const resumed: (string | undefined)[] = [];
    const baseUrl = await startServer((req, res) => {
      const last = req.headers['last-event-id'];
      resumed.push(typeof last === 'string' ? last : undefined);
      const asked = request({ host: '127.0.0.1', port: kit.port, path: req.url, headers: req.headers }, (from) => {
        res.writeHead(from.statusCode ?? 500, from.headers);
        opened += 1;
        let told = 0;
        from.on('data', (chunk: Buffer) => {
          res.write(chunk);
          told += chunk.toString().match(/^event: charge$/gm)?.length ?? 0;
          if (told >= 2 && cuts < Math.min(opened, 2)) {
            cuts += 1;
            setImmediate(() => res.destroy());
          }
        });
        from.on('error', () => undefined);
      });
      asked.on('error', () => undefined);
      res.on('close', () => asked.destroy());
      asked.end();
    });
    const client = createTollgate({ baseUrl, token: () => token({ now: kit.clock.now() }) });
    const wanted = Array.from({ length: 6 }, (_, at) => claimOf(500 + at, { payer: 50 + at }));
    const stream = client.events('/v1/billing/charges/events');
    const told: string[] = [];
    const first = stream.next();
    await expect.poll(() => opened).toBe(1);
    const makeTwo = async (): Promise<void> => {
      for (const claim of wanted.slice(told.length, told.length + 2))
        await kit.ledger.claim(claim, { owner: 'one', leaseMs: 60_000, maxUnsettledPerPayer: 8 });
    };
    await makeTwo();
    for (let event = await first; event.done !== true; event = await stream.next()) {
      if (event.value.type === 'charge') told.push(event.value.data.id);
      if (told.length === wanted.length) break;
      // The next two happen while it is away.
      if (event.value.type === 'charge' && told.length % 2 === 0) await makeTwo();
    }
    await stream.return();
    expect(told.toSorted()).toEqual(wanted.map(({ id }) => id).toSorted());
    expect(cuts).toBe(2);
    expect(resumed.slice(0, 3)).toEqual([undefined, expect.stringMatching(/^\d+$/), expect.stringMatching(/^\d+$/)]);
  });

  test('behaviour: a stream that was never opened throws what the registry said, and so does one that is refused later', async () => {
    const refused = await createTollgate({ baseUrl: `http://127.0.0.1:${kit.port}`, token: 'nonsense' })
      .events('/v1/billing/charges/events')
      .next()
      .catch((thrown: unknown) => thrown);
    expect(refused instanceof TollgateError && refused.problem.code).toBe('credentials_invalid');
    let asked = 0;
    const baseUrl = await startServer((_, res) => {
      asked += 1;
      if (asked === 1)
        res.writeHead(200, { 'Content-Type': 'text/event-stream' }).end('retry: 1\nid: 7\nevent: reset\ndata: {}\n\n');
      else if (asked === 2) res.writeHead(503).end();
      else
        res
          .writeHead(403, { 'Content-Type': 'application/problem+json' })
          .end('{"code":"scope_insufficient","detail":"No."}');
    });
    const stream = createTollgate({ baseUrl }).events('/v1/billing/charges/events');
    expect((await stream.next()).value).toEqual({ type: 'reset', id: '7', data: {} });
    const later = await stream.next().catch((thrown: unknown) => thrown);
    expect([later instanceof TollgateError && later.problem.code, asked]).toEqual(['scope_insufficient', 3]);
  });

  test('behaviour: events are read whole however their bytes arrive', async () => {
    const text =
      ': hello\r\n\r\nid: 1\r\nevent: charge\r\ndata: {"a":\r\ndata: "é"}\r\n\r\nevent: skipped\ndata:{"count":2}\n\ndata\n\n';
    const bytes = Buffer.from(text);
    const baseUrl = await startServer((_, res) => {
      res.writeHead(200, { 'Content-Type': 'text/event-stream' });
      let at = 0;
      const next = (): void => {
        if (at < bytes.length) res.write(bytes.subarray(at, (at += 1)), () => setImmediate(next));
      };
      next();
    });
    const stream = createTollgate({ baseUrl }).events('/v1/billing/charges/events');
    const told = [(await stream.next()).value, (await stream.next()).value, (await stream.next()).value];
    await stream.return();
    expect(told).toEqual([
      { type: 'charge', id: '1', data: { a: 'é' } },
      { type: 'skipped', id: '1', data: { count: 2 } },
      { type: 'message', id: '1', data: '' },
    ]);
  });

  test('behaviour: a signal ends a stream that waits, and one that waits to be opened again', async () => {
    let asked = 0;
    const baseUrl = await startServer((_, res) => {
      asked += 1;
      res.writeHead(200, { 'Content-Type': 'text/event-stream' });
      if (asked === 1) res.end('retry: 600000\nevent: reset\ndata: {}\n\n');
      else res.write(': hello\n\n');
    });
    const client = createTollgate({ baseUrl });
    for (const isPaused of [true, false]) {
      const leaving = new AbortController();
      const stream = client.events('/v1/billing/charges/events', { signal: leaving.signal });
      if (isPaused) await stream.next();
      const waiting = stream.next().catch((thrown: unknown) => thrown);
      await expect.poll(() => asked).toBe(isPaused ? 1 : 2);
      leaving.abort(new Error('leaving'));
      expect(await waiting).toEqual(new Error('leaving'));
    }
  });
});
