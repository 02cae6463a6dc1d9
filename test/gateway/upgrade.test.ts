// WebSocket handshakes over raw sockets: nothing raw before the upstream's 101, and every other answer like any other.
import { once } from 'node:events';
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { ResponseVerdict } from '../../src/gateway/outcome.ts';
import { readWhatCame } from '../support/loop-turns.ts';
import { headerOf, openRaw, type RawClient } from '../support/raw-client.ts';
import { OK, startRawUpstream, type RawUpstream, type Script } from '../support/raw-upstream.ts';
import { startSmallGateway, type SmallGateway, type SmallGatewayOptions } from '../support/small-gateway.ts';

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

const SWITCH =
  'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n';
const switches: Script = (_, socket) => void socket.write(SWITCH);

function handshake(path = '/free/ws', ...lines: string[]): string {
  const head = [
    `GET ${path} HTTP/1.1`,
    'Host: h',
    'Connection: keep-alive, Upgrade',
    'Upgrade: WebSocket',
    'Sec-WebSocket-Version: 13',
    'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
    ...lines,
  ];
  return `${head.join('\r\n')}\r\n\r\n`;
}

type Stage = { upstream: RawUpstream; gateway: SmallGateway; client: RawClient };

async function stage(script: Script, options: Partial<SmallGatewayOptions> = {}): Promise<Stage> {
  const upstream = await startRawUpstream(script);
  closers.push(upstream.close);
  const gateway = await startSmallGateway({ upstream: upstream.url, timeouts: { idleMs: 30_000 }, ...options });
  closers.push(gateway.close);
  const client = await openRaw(gateway.port);
  closers.push(client.close);
  return { upstream, gateway, client };
}

const heard = async (upstream: RawUpstream, text: string): Promise<void> => {
  let all = '';
  upstream.ignore();
  upstream.sockets[0]?.on('data', (chunk: Buffer) => {
    all += chunk.toString('latin1');
  });
  await vi.waitFor(() => expect(all).toContain(text), { interval: 5 });
};

const until = (check: () => void): Promise<void> => vi.waitFor(check, { interval: 5, timeout: 30_000 });

describe('a handshake that the upstream takes', () => {
  it('behaviour: a 101 crosses, then bytes cross both ways', async () => {
    const { upstream, gateway, client } = await stage(switches);
    client.send(handshake());
    const answer = await client.answer();
    expect([answer.status, headerOf(answer, 'upgrade'), headerOf(answer, 'connection')]).toEqual([
      101,
      'websocket',
      'Upgrade',
    ]);
    expect(headerOf(answer, 'sec-websocket-accept')).toBe('s3pPLMBiTxaQ9kYGzzhZRbK+xOo=');
    const [seen] = upstream.requests;
    if (seen === undefined) throw new Error('nothing arrived');
    expect([headerOf(seen, 'upgrade'), headerOf(seen, 'connection')]).toEqual(['websocket', 'Upgrade']);
    expect(headerOf(seen, 'sec-websocket-key')).toBe('dGhlIHNhbXBsZSBub25jZQ==');
    upstream.sockets[0]?.write('from the upstream');
    await client.until('from the upstream');
    const arrived = heard(upstream, 'from the client');
    client.send('from the client');
    await arrived;
    expect(gateway.outcomes).toMatchObject([{ kind: 'delivered', status: 101 }]);
    expect(gateway.listener.inFlight()).toBe(1);
    client.close();
    await until(() => expect(gateway.listener.inFlight()).toBe(0));
  });

  it('attack: bytes that the client sends before the 101 do not reach the upstream before it', async () => {
    const { upstream, client } = await stage(() => undefined);
    const early = 'GET /v1/export HTTP/1.1\r\nHost: h\r\n\r\n';
    client.send(handshake() + early);
    await until(() => expect(upstream.requests).toHaveLength(1));
    client.send(early);
    // A request of another client goes to and fro meanwhile.
    const other = await openRaw(client.socket.remotePort ?? 0);
    upstream.script((_, socket) => void socket.write(OK));
    other.send('GET /free/a HTTP/1.1\r\nHost: h\r\n\r\n');
    expect((await other.answer()).status).toBe(200);
    other.close();
    expect(upstream.requests.map(({ target }) => target)).toEqual(['/free/ws', '/free/a']);
    const arrived = heard(upstream, early + early);
    upstream.sockets[0]?.write(SWITCH);
    expect((await client.answer()).status).toBe(101);
    await arrived;
  });

  it('attack: bytes behind a handshake do not reach the upstream at all if the answer is not 101', async () => {
    const { upstream, client } = await stage(() => undefined);
    client.send(`${handshake()}GET /v1/export HTTP/1.1\r\nHost: h\r\n\r\n`);
    await until(() => expect(upstream.requests).toHaveLength(1));
    upstream.sockets[0]?.write(OK);
    const answer = await client.answer();
    expect([answer.status, headerOf(answer, 'connection'), answer.body.toString()]).toEqual([200, 'close', 'ok']);
    expect(await client.closed).toBe('fin');
    expect(upstream.requests).toHaveLength(1);
  });

  it('behaviour: bytes that come with the 101 reach the client after it', async () => {
    const { client } = await stage((_, socket) => void socket.write(`${SWITCH}hello`));
    client.send(handshake());
    expect((await client.answer()).status).toBe(101);
    await client.until('hello');
    expect(client.received()).toMatch(/\r\n\r\nhello$/);
  });

  it.each(['end', 'resetAndDestroy'] as const)(
    'behaviour: an upstream that leaves its tunnel (%s) closes the client',
    async (how) => {
      const { upstream, gateway, client } = await stage(switches);
      client.send(handshake());
      await client.answer();
      upstream.sockets[0]?.[how]();
      await client.closed;
      await until(() => expect(gateway.listener.inFlight()).toBe(0));
    },
  );

  it.each(['end', 'resetAndDestroy'] as const)(
    'behaviour: a client that leaves its tunnel (%s) closes the upstream',
    async (how) => {
      const { upstream, client } = await stage(switches);
      client.send(handshake());
      await client.answer();
      const [socket] = upstream.sockets;
      if (socket === undefined) throw new Error('no connection');
      client.socket[how]();
      await once(socket, 'close');
    },
  );

  it('behaviour: a tunnel without a byte is closed in time, one that is used is not', async () => {
    const { upstream, gateway, client } = await stage(switches, { timeouts: { idleMs: 1_000 } });
    const silent = await openRaw(gateway.port);
    closers.push(silent.close);
    for (const one of [client, silent]) {
      one.send(handshake());
      await one.answer();
    }
    const writing = setInterval(() => upstream.sockets[0]?.write('.'), 10);
    closers.push(() => clearInterval(writing));
    expect(await Promise.race([client.closed.then(() => 'used'), silent.closed.then(() => 'silent')])).toBe('silent');
    clearInterval(writing);
    await client.closed;
  });

  it('behaviour: a megabyte each way arrives whole through a tunnel', async () => {
    const { upstream, client } = await stage(switches);
    client.send(handshake());
    await client.answer();
    const size = 1024 * 1024;
    upstream.ignore();
    let received = 0;
    upstream.sockets[0]?.on('data', (chunk: Buffer) => {
      received += chunk.length;
    });
    client.send(Buffer.alloc(size, 'c'));
    upstream.sockets[0]?.write(Buffer.alloc(size, 'u'));
    await until(() => expect(received).toBe(size));
    await until(() => expect(client.received().split('u').length - 1).toBeGreaterThanOrEqual(size));
  });
});

describe('a handshake that is not taken', () => {
  it('behaviour: a handshake that costs something is answered 402, and the connection ends', async () => {
    const { upstream, client } = await stage(switches);
    client.send(handshake('/v1/export'));
    const answer = await client.answer();
    expect([answer.status, headerOf(answer, 'connection')]).toEqual([402, 'close']);
    expect(await client.closed).toBe('fin');
    expect(upstream.requests).toHaveLength(0);
  });

  it('behaviour: the answer of an upstream that knows no WebSocket crosses whole, however long', async () => {
    const size = 4 * 1024 * 1024;
    const { client, gateway } = await stage((_, socket) => {
      socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${size}\r\n\r\n`);
      socket.write(Buffer.alloc(size, 'x'));
    });
    client.send(handshake());
    const answer = await client.answer();
    expect([answer.status, answer.body.length, headerOf(answer, 'connection')]).toEqual([200, size, 'close']);
    await client.closed;
    await until(() => expect(gateway.outcomes).toMatchObject([{ kind: 'delivered', status: 200 }]));
    await until(() => expect(gateway.listener.inFlight()).toBe(0));
  });

  it.each<[string, string]>([
    ['a 101 for another protocol', SWITCH.replace('websocket', 'h2c')],
    ['a 101 without Upgrade', 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n\r\n'],
    ['garbage', 'hello, I am not HTTP\r\n\r\n'],
  ])('behaviour: an answer to a handshake by %s is 502', async (_, bytes) => {
    const { client, upstream } = await stage((_request, socket) => void socket.write(bytes));
    client.send(handshake());
    expect((await client.answer()).status).toBe(502);
    expect(await client.closed).toBe('fin');
    expect(upstream.requests).toHaveLength(1);
  });

  it.each<[string, Script]>([
    ['closes', (_, socket) => void socket.end()],
    ['resets', (_, socket) => void socket.resetAndDestroy()],
  ])('behaviour: an upstream that %s in a handshake is 502, asked once', async (_, script) => {
    const { client, upstream } = await stage(script);
    client.send(handshake());
    expect((await client.answer()).status).toBe(502);
    expect(upstream.requests).toHaveLength(1);
  });

  it('behaviour: an upstream that is silent at a handshake is 504', async () => {
    const { client } = await stage(() => undefined, { timeouts: { headersMs: 60 } });
    client.send(handshake());
    expect((await client.answer()).status).toBe(504);
  });

  it('behaviour: a client that goes in a handshake: the upstream is let go', async () => {
    const { client, upstream, gateway } = await stage(() => undefined);
    client.send(handshake());
    await until(() => expect(upstream.requests).toHaveLength(1));
    const [socket] = upstream.sockets;
    if (socket === undefined) throw new Error('no connection');
    client.socket.resetAndDestroy();
    await once(socket, 'close');
    await until(() => expect(gateway.outcomes).toMatchObject([{ kind: 'client_gone' }]));
  });

  it.each(['Upgrade: h2c', 'Upgrade: websocket, h2c', 'Upgrade: foo'])(
    'attack: a request with %s is a request like others, the last one of its connection',
    async (line) => {
      const { client, upstream } = await stage((_, socket) => void socket.write(OK));
      // The parser loses what comes in the same packet: without the end the client would wait for ever.
      const next = 'GET /free/b HTTP/1.1\r\nHost: h\r\n\r\n';
      client.send(`GET /free/a HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\n${line}\r\n\r\n${next}`);
      const answer = await client.answer();
      expect([answer.status, headerOf(answer, 'connection')]).toEqual([200, 'close']);
      expect(upstream.requests[0]?.head).not.toMatch(/^upgrade:/im);
      expect(await client.closed).toBe('fin');
      expect(upstream.requests).toHaveLength(1);
    },
  );

  it.each(['POST', 'HEAD', 'OPTIONS'])('attack: a handshake by %s is a request like others', async (method) => {
    const { client, upstream } = await stage(switches);
    client.send(handshake().replace('GET', method));
    expect((await client.answer(method === 'HEAD')).status).toBe(502);
    expect(upstream.requests[0]?.head).not.toMatch(/^upgrade:/im);
  });
});

describe('a 101 that is held', () => {
  const held = (): {
    told: () => number;
    decide: (verdict: ResponseVerdict) => void;
    options: Partial<SmallGatewayOptions>;
  } => {
    const waiting: ((verdict: ResponseVerdict) => void)[] = [];
    return {
      told: () => waiting.length,
      decide: (verdict) => waiting[0]?.(verdict),
      options: { beforeResponse: () => new Promise((resolve) => waiting.push(resolve)) },
    };
  };

  it('behaviour: neither a held 101 nor a byte behind it crosses before the verdict; the added headers come with the 101', async () => {
    const { told, decide, options } = held();
    const { client, upstream } = await stage((_, socket) => void socket.write(`${SWITCH}early`), options);
    client.send(`${handshake()}eager`);
    await until(() => expect(told()).toBe(1));
    expect(client.received()).toBe('');
    const arrived = heard(upstream, 'eager');
    decide({ kind: 'stream', headers: ['PAYMENT-RESPONSE', 'receipt'] });
    const answer = await client.answer();
    expect([answer.status, headerOf(answer, 'payment-response')]).toEqual([101, 'receipt']);
    await client.until('early');
    await arrived;
  });

  it('behaviour: a held 101 whose settlement is refused: the client gets the refusal, the upstream is let go', async () => {
    const { told, decide, options } = held();
    const { client, upstream, gateway } = await stage(switches, options);
    client.send(handshake());
    await until(() => expect(told()).toBe(1));
    const [socket] = upstream.sockets;
    if (socket === undefined) throw new Error('no connection');
    decide({ kind: 'replace', response: { status: 402, headers: [], body: 'no' } });
    const answer = await client.answer();
    expect([answer.status, headerOf(answer, 'connection')]).toEqual([402, 'close']);
    await once(socket, 'close');
    expect(gateway.outcomes).toMatchObject([{ kind: 'replaced', status: 402 }]);
  });

  it('behaviour: an upstream that dies while its 101 is held is 502', async () => {
    const { told, decide, options } = held();
    const { client, upstream, gateway } = await stage(switches, options);
    client.send(handshake());
    await until(() => expect(told()).toBe(1));
    const [socket] = upstream.sockets;
    if (socket === undefined) throw new Error('no connection');
    socket.resetAndDestroy();
    await once(socket, 'close');
    await readWhatCame();
    decide({ kind: 'stream', headers: [] });
    expect((await client.answer()).status).toBe(502);
    expect(gateway.outcomes).toMatchObject([{ kind: 'failed', headersSent: false }]);
  });

  it('behaviour: a client that dies while a 101 is held: the upstream is let go', async () => {
    const { told, decide, options } = held();
    const { client, upstream, gateway } = await stage(switches, options);
    client.send(handshake());
    await until(() => expect(told()).toBe(1));
    const [socket] = upstream.sockets;
    if (socket === undefined) throw new Error('no connection');
    client.socket.resetAndDestroy();
    await until(() => expect(gateway.listener.inFlight()).toBe(0));
    decide({ kind: 'stream', headers: [] });
    await once(socket, 'close');
    expect(gateway.outcomes).toMatchObject([{ kind: 'client_gone' }]);
  });
});
