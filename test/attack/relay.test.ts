// What http-proxy-3 2.0.1 gets wrong when it relays, held against `sync.listen`, which relays with it: the registry sees one
// request for each one that was sent, and the caller sees what the registry sent, or that it broke off.
import { afterEach, expect, it, vi } from 'vitest';
import { startRelayStage, type RelayStage, type RelayStageOptions } from '../gateway/sync/relay/relay-stage.ts';
import { headerOf, openRaw, type RawClient } from '../support/raw-client.ts';
import { OK, startRawUpstream, type RawUpstream, type Script } from '../support/raw-upstream.ts';

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

type Stage = { readonly registry: RawUpstream; readonly relay: RelayStage; readonly client: RawClient };

async function stage(script?: Script, options: RelayStageOptions = {}): Promise<Stage> {
  const registry = await startRawUpstream(script);
  closers.push(registry.close);
  const relay = await startRelayStage(registry.url.origin, { good: false, ...options });
  closers.push(relay.close);
  const client = await openRaw(relay.port);
  closers.push(client.close);
  return { registry, relay, client };
}

const ask = (target: string, ...lines: string[]): string =>
  `${[`GET ${target} HTTP/1.1`, 'Host: h', ...lines].join('\r\n')}\r\n\r\n`;

it.each(['/v1/a?b=/../c', '/v1/a?b?c', '/v1/a/?%2F=//', '/v1/a?b=\\&c=%zz'])(
  'attack: the target %s is not read again',
  async (target) => {
    const { registry, client } = await stage();
    client.send(ask(target));
    expect((await client.answer()).status).toBe(200);
    expect(registry.requests[0]?.target).toBe(target);
  },
);

it.each(['DELETE', 'OPTIONS', 'GET', 'POST'])(
  'attack: the body of a chunked %s is no second request',
  async (method) => {
    const { registry, client } = await stage();
    const hidden = ask('/v1/billing/protected-routes');
    client.send(
      `${method} /v1/x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n${hidden.length.toString(16)}\r\n${hidden}\r\n0\r\n\r\n`,
    );
    expect((await client.answer()).status).toBe(200);
    expect(registry.requests.map((seen) => [seen.method, seen.target, seen.body.toString()])).toEqual([
      [method, '/v1/x', hidden],
    ]);
  },
);

it('attack: requests of two callers never share a connection to the registry', async () => {
  const { registry, relay, client } = await stage((_, socket) => void socket.write(`${OK}${OK}`));
  const other = await openRaw(relay.port);
  closers.push(other.close);
  for (const one of [client, other]) {
    one.send(ask('/v1/x'));
    expect((await one.answer()).body.toString()).toBe('ok');
  }
  expect(registry.sockets).toHaveLength(2);
});

it('behaviour: repeated headers stay repeated, with their case, both ways', async () => {
  const { registry, client } = await stage(
    (_, socket) => void socket.write(OK.replace('\r\n', '\r\nX-aB: 1\r\nx-Ab: 2\r\n')),
  );
  client.send(ask('/v1/x', 'AUTHorization: one', 'X-N: \u00e9', 'authorization: two'));
  const answer = await client.answer();
  expect(answer.headers.filter(([name]) => /^x-ab$/i.test(name))).toEqual([
    ['X-aB', '1'],
    ['x-Ab', '2'],
  ]);
  expect(registry.requests[0]?.headers.filter(([name]) => /^(?:auth|x-n)/i.test(name))).toEqual([
    ['AUTHorization', 'one'],
    ['AUTHorization', 'two'],
    ['X-N', '\u00e9'],
  ]);
});

it('attack: Expect changes nothing about the headers', async () => {
  const { registry, client } = await stage();
  client.send(
    'POST /v1/x HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nExpect: 100-continue\r\nX-Forwarded-For: 6.6.6.6\r\n\r\n',
  );
  expect((await client.answer()).status).toBe(100);
  client.send('hi');
  expect((await client.answer()).status).toBe(200);
  const [seen] = registry.requests;
  expect(seen && [headerOf(seen, 'x-forwarded-for'), headerOf(seen, 'expect'), `${seen.body}`]).toEqual([
    undefined,
    undefined,
    'hi',
  ]);
});

it.each(['end', 'resetAndDestroy'] as const)(
  'attack: a registry that goes in the middle (%s) leaves nobody hanging',
  async (how) => {
    const { registry, client } = await stage(
      (_, socket) => void socket.write('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf'),
    );
    client.send(ask('/v1/x'));
    await client.until('half');
    registry.sockets[0]?.[how]();
    await client.closed;
  },
);

it.each([
  ['nothing', ''],
  ['half a head', 'HTTP/1.1 200 OK\r\n'],
  ['no HTTP', 'SSH-2.0-x\r\n\r\n'],
  ['a 101 that nobody asked for', 'HTTP/1.1 101 X\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\nraw'],
  ['two lengths', 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok'],
  ['a length beside a coding', 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n'],
])('refuses: a registry that answers with %s is away', async (_, bytes) => {
  const { client, relay } = await stage((_request, socket) => void socket.write(bytes));
  client.send(ask('/v1/x'));
  expect((await client.answer()).status).toBe(503);
  await expect.poll(() => relay.api.inFlight()).toBe(0);
});

it('attack: a redirect is passed on, not followed, whatever the environment says', async () => {
  vi.stubEnv('FORCE_FETCH_PATH', 'true');
  closers.push(() => vi.unstubAllEnvs());
  const fetched = vi.spyOn(globalThis, 'fetch');
  const { registry, client } = await stage(
    (_, socket) => void socket.write('HTTP/1.1 307 X\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n'),
  );
  client.send(ask('/v1/x'));
  const answer = await client.answer();
  expect([answer.status, headerOf(answer, 'location')]).toEqual([307, 'http://127.0.0.1:1/']);
  expect(registry.requests).toHaveLength(1);
  expect(fetched).not.toHaveBeenCalled();
});

it('behaviour: an event stream through the relay is open before its first byte, flows, and ends when its caller leaves', async () => {
  const { registry, client, relay } = await stage(
    (_, socket) => void socket.write('HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n'),
  );
  client.send(ask('/v1/protected-routes/events'));
  await client.until('text/event-stream\r\n');
  registry.sockets[0]?.write('data: 1\n\n');
  await client.until('data: 1');
  client.socket.resetAndDestroy();
  await vi.waitFor(() => expect(registry.sockets[0]?.destroyed).toBe(true), { interval: 5 });
  expect(relay.api.inFlight()).toBe(0);
});

it('refuses: an upload that breaks off never looks whole to the registry', async () => {
  const { registry, client } = await stage(() => undefined);
  client.send('POST /v1/x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n');
  await vi.waitFor(() => expect(registry.sockets[0]?.bytesRead).toBeGreaterThan(0), { interval: 5 });
  client.socket.end();
  await vi.waitFor(() => expect(registry.sockets[0]?.destroyed).toBe(true), { interval: 5 });
  expect(registry.requests.map(({ whole }) => whole)).toEqual([false]);
});
