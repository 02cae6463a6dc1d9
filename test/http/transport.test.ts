// The contract of the seam in http/transport.ts, for every transport there is. What a request means is tested
// in forward.test.ts; here is what whoever writes another transport has to keep.
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import { connect, type Socket } from 'node:net';
import { Readable } from 'node:stream';
import {
  createServer as createSecureServer,
  getCACertificates,
  setDefaultCACertificates,
  type TLSSocket,
} from 'node:tls';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { createWriteBatch } from '../../src/host/write-batch.ts';
import { giveBack } from '../../src/http/response-reader.ts';
import { createPool } from '../../src/http/pool.ts';
import type {
  PoolOptions,
  Transport,
  UpstreamCall,
  UpstreamListener,
  UpstreamRequest,
} from '../../src/http/transport.ts';
import { CERTIFICATE, KEY } from '../support/certificate.ts';
import { OK, startRawUpstream, type RawUpstream, type Script } from '../support/raw-upstream.ts';
import { steadyPoolClock } from '../support/steady-clock.ts';

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

type Recorded = UpstreamListener & {
  readonly events: string[];
  readonly over: Promise<void>;
  readonly body: () => string;
};

function recorder(onHead?: () => void): Recorded {
  const events: string[] = [];
  const chunks: Buffer[] = [];
  let finish: () => void = () => undefined;
  const over = new Promise<void>((resolve) => {
    finish = resolve;
  });
  const last = (event: string): void => {
    events.push(event);
    finish();
  };
  return {
    events,
    over,
    body: () => Buffer.concat(chunks).toString(),
    onInformation: (status) => void events.push(`information ${status}`),
    onHead: (status) => {
      events.push(`head ${status}`);
      onHead?.();
    },
    onData: (chunk) => {
      chunks.push(chunk);
      if (events.at(-1) !== 'data') events.push('data');
    },
    onEnd: () => last('end'),
    onUpgrade: (_, socket) => {
      socket.destroy();
      last('upgrade');
    },
    onFailure: ({ code }) => last(code),
  };
}

const GET: UpstreamRequest = { method: 'GET', target: '/a', headers: ['Host', 'h'], body: undefined, upgrade: false };
const SWITCH = 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n';

describe.each<[string, (options: PoolOptions) => Transport]>([['the pool', createPool]])('%s', (_, create) => {
  async function stage(
    script?: Script,
    timeouts: Partial<PoolOptions['timeouts']> = {},
    maxSockets = 100,
  ): Promise<{ upstream: RawUpstream; transport: Transport }> {
    const upstream = await startRawUpstream(script);
    closers.push(upstream.close);
    const all = { connectMs: 1000, headersMs: 1000, idleMs: 1000, ...timeouts };
    const transport = create({
      ...{ upstream: upstream.url, timeouts: all, now: steadyPoolClock(all) },
      maxSockets,
      writeBatch: createWriteBatch(),
    });
    closers.push(transport.close);
    return { upstream, transport };
  }

  it('behaviour: a call hears head, data and end, in this order, and none of them before send returned', async () => {
    const { transport } = await stage();
    const listener = recorder();
    transport.send(GET, listener);
    expect(listener.events).toEqual([]);
    await listener.over;
    expect(listener.events).toEqual(['head 200', 'data', 'end']);
    expect(listener.body()).toBe('ok');
  });

  it('attack: an answer that was there before the request left is nobody’s', async () => {
    const { upstream, transport } = await stage();
    const first = recorder();
    transport.send(GET, first);
    await first.over;
    const second = recorder();
    // From a timer: what the upstream says is read before what is sent in the same turn leaves.
    await new Promise<void>((resolve) => {
      setTimeout(() => {
        upstream.sockets[0]?.write(OK.replace('ok', 'no'));
        transport.send(GET, second);
        resolve();
      }, 1);
    });
    await second.over;
    expect(second.events).toEqual(['head 200', 'data', 'end']);
    expect(second.body()).toBe('ok');
    expect(upstream.sockets).toHaveLength(2);
  });

  it('attack: a body that came in pieces before it is sent goes out whole, and the connection serves the next request', async () => {
    const { upstream, transport } = await stage();
    const bodies: IncomingMessage[] = [];
    const server = createServer((request) => void bodies.push(request));
    closers.push(() => server.close());
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const address = server.address();
    if (address === null || typeof address === 'string') throw new Error('no port');
    const client = connect(address.port, '127.0.0.1');
    closers.push(() => client.destroy());
    client.write('POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 3000\r\n\r\n');
    await vi.waitFor(() => expect(bodies).toHaveLength(1), { interval: 5 });
    for (const [piece, there] of [
      ['a'.repeat(1448), 1448],
      ['b'.repeat(1552), 3000],
    ] as const) {
      client.write(piece);
      await vi.waitFor(() => expect(bodies[0]?.readableLength).toBe(there), { interval: 5 });
    }
    const posted = recorder();
    const headers = ['Host', 'h', 'Content-Length', '3000'];
    const send = { method: 'POST', target: '/a', headers, body: bodies[0], upgrade: false };
    transport.send(send, posted);
    await posted.over;
    const next = recorder();
    transport.send(GET, next);
    await next.over;
    expect(posted.events).toEqual(['head 200', 'data', 'end']);
    expect(next.body()).toBe('ok');
    expect(upstream.requests.map(({ method, body }) => [method, body.toString()])).toEqual([
      ['POST', 'a'.repeat(1448) + 'b'.repeat(1552)],
      ['GET', ''],
    ]);
  });

  it.each<[string, Partial<UpstreamRequest>]>([
    ['a target with a space', { target: '/a b' }],
    ['a value with a line break', { headers: ['Host', 'h', 'X-A', 'b\r\nX-B: c'] }],
    ['a name that is none', { headers: ['Host', 'h', 'X A', 'b'] }],
    ['a method that is none', { method: 'G ET' }],
  ])('refuses: a request with %s is a failure, thrown nowhere and sent to nobody', async (_name, wrong) => {
    const { upstream, transport } = await stage();
    const listener = recorder();
    transport.send({ ...GET, ...wrong }, listener);
    expect(listener.events).toEqual([]);
    await listener.over;
    expect(listener.events).toEqual(['upstream_unreachable']);
    expect(upstream.requests).toHaveLength(0);
  });

  it('behaviour: after abort a call hears nothing, whenever it comes', async () => {
    const { upstream, transport } = await stage((_request, socket) => void socket.write(OK));
    const early = recorder();
    transport.send(GET, early).abort();
    let call: UpstreamCall | undefined;
    const late = recorder(() => call?.abort());
    call = transport.send(GET, late);
    const paused = recorder(() => calls[0]?.pause());
    const calls = [transport.send(GET, paused)];
    await vi.waitFor(() => expect(paused.events).toEqual(['head 200']), { interval: 5 });
    calls[0]?.abort();
    const other = recorder();
    transport.send(GET, other);
    await other.over;
    await new Promise((resolve) => setTimeout(resolve, 30));
    expect([early.events, late.events, paused.events]).toEqual([[], ['head 200'], ['head 200']]);
    expect(upstream.requests.length).toBeGreaterThanOrEqual(3);
  });

  it('behaviour: abort closes a connection whose answer is not whole', async () => {
    const { upstream, transport } = await stage(
      (_request, socket) => void socket.write('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf'),
    );
    const listener = recorder();
    const call = transport.send(GET, listener);
    await vi.waitFor(() => expect(listener.body()).toBe('half'), { interval: 5 });
    const [socket] = upstream.sockets;
    if (socket === undefined) throw new Error('no connection');
    call.abort();
    await once(socket, 'close');
    expect(listener.events).toEqual(['head 200', 'data']);
  });

  it('behaviour: a paused call hears nothing, has no time-out, and goes on where it stopped', async () => {
    const { transport } = await stage(undefined, { idleMs: 40, headersMs: 40 });
    const calls: UpstreamCall[] = [];
    const listener = recorder(() => calls[0]?.pause());
    calls.push(transport.send(GET, listener));
    await vi.waitFor(() => expect(listener.events).toEqual(['head 200']), { interval: 5 });
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(listener.events).toEqual(['head 200']);
    calls[0]?.resume();
    await listener.over;
    expect(listener.events).toEqual(['head 200', 'data', 'end']);
  });

  it('behaviour: a call that fails hears of exactly one failure', async () => {
    for (const bytes of ['', 'garbage\r\n\r\n', 'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf']) {
      const { transport } = await stage((_request, socket) => void socket.write(bytes, () => socket.resetAndDestroy()));
      const listener = recorder();
      transport.send(GET, listener);
      await listener.over;
      await new Promise((resolve) => setTimeout(resolve, 20));
      expect(listener.events.filter((event) => event.startsWith('upstream_'))).toHaveLength(1);
      expect(listener.events.at(-1)).toMatch(/^upstream_/);
    }
  });

  it('behaviour: a 101 crosses only if it was asked for', async () => {
    const { transport } = await stage((_request, socket) => void socket.write(SWITCH));
    const asked = recorder();
    transport.send(
      { ...GET, upgrade: true, headers: [...GET.headers, 'Connection', 'Upgrade', 'Upgrade', 'websocket'] },
      asked,
    );
    await asked.over;
    expect(asked.events).toEqual(['upgrade']);
    const unasked = recorder();
    transport.send(GET, unasked);
    await unasked.over;
    expect(unasked.events).toEqual(['upstream_unreachable']);
  });

  it('behaviour: a connection that is used often gathers no listeners', async () => {
    const warned = vi.fn();
    process.on('warning', warned);
    closers.push(() => process.removeListener('warning', warned));
    const { upstream, transport } = await stage();
    for (let i = 0; i < 30; i++) {
      const listener = recorder();
      transport.send(GET, listener);
      await listener.over;
    }
    await new Promise(setImmediate);
    expect(upstream.sockets).toHaveLength(1);
    expect(warned).not.toHaveBeenCalled();
  });

  it('behaviour: an answer that goes on past the total time is a time-out, however it flows; without a total it goes on', async () => {
    const script: Script = (_request, socket) => {
      socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n');
      const drip = setInterval(() => socket.write('1\r\nx\r\n'), 10);
      socket.on('close', () => clearInterval(drip));
    };
    const limited = await stage(script, { totalMs: 100 });
    const late = recorder();
    limited.transport.send(GET, late);
    await late.over;
    expect(late.events).toEqual(['head 200', 'data', 'upstream_timeout']);
    const unlimited = await stage(script);
    const free = recorder();
    const call = unlimited.transport.send(GET, free);
    await vi.waitFor(() => expect(free.body().length).toBeGreaterThan(20), { interval: 5 });
    expect(free.events).toEqual(['head 200', 'data']);
    call.abort();
  });

  it('attack: bytes that an upstream sends unasked end the connection and reach nobody', async () => {
    const { upstream, transport } = await stage();
    const first = recorder();
    transport.send(GET, first);
    await first.over;
    const [socket] = upstream.sockets;
    if (socket === undefined) throw new Error('no connection');
    socket.write('HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nstolen');
    await once(socket, 'close');
    const second = recorder();
    transport.send(GET, second);
    await second.over;
    expect(second.body()).toBe('ok');
    expect(upstream.sockets).toHaveLength(2);
  });

  it('attack: the bytes that a listener was given are not overwritten by another response', async () => {
    const size = 3 * 1024 * 1024;
    const { transport } = await stage((request, socket) => {
      socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${size}\r\n\r\n`);
      socket.write(Buffer.alloc(size, request.target.slice(1)));
    });
    const bodies = await Promise.all(
      ['a', 'b', 'c', 'd'].map((name, index) => {
        const held: Buffer[] = [];
        return new Promise<[string, Buffer]>((resolve, reject) => {
          transport.send(
            { ...GET, target: `/${name}` },
            {
              onInformation: () => undefined,
              onHead: () => undefined,
              onData: (chunk) => {
                // Half of them keep all of it until the end; the others give the memory back at once, and twice.
                held.push(index % 2 === 0 ? chunk : Buffer.from(chunk));
                for (let times = index % 2 === 0 ? 0 : 2; times > 0; times--) giveBack(chunk);
              },
              onEnd: () => resolve([name, Buffer.concat(held)]),
              onUpgrade: () => undefined,
              onFailure: ({ detail }) => reject(new Error(detail)),
            },
          );
        });
      }),
    );
    for (const [name, body] of bodies) expect(body.equals(Buffer.alloc(size, name))).toBe(true);
  });

  it('behaviour: tunnels count among the connections until they close', async () => {
    const { upstream, transport } = await stage((_request, socket) => void socket.write(SWITCH), { connectMs: 60 }, 1);
    const tunnel: Socket[] = [];
    const listener = { ...recorder(), onUpgrade: (_: string[], socket: Socket) => void tunnel.push(socket) };
    transport.send({ ...GET, upgrade: true }, listener);
    await vi.waitFor(() => expect(tunnel).toHaveLength(1), { interval: 5 });
    const late = recorder();
    transport.send(GET, late);
    await late.over;
    expect(late.events).toEqual(['upstream_timeout']);
    upstream.script((_request, socket) => void socket.write(OK));
    const next = recorder();
    transport.send(GET, next);
    tunnel[0]?.destroy();
    await next.over;
    expect(next.events).toEqual(['head 200', 'data', 'end']);
  });

  it('attack: the name that TLS asks for and verifies is the configured host, whatever Host says', async () => {
    const names: (string | false | null)[] = [];
    const server = createSecureServer({ key: KEY, cert: CERTIFICATE }, (socket: TLSSocket) => {
      names.push(socket.servername);
      socket.on('error', () => undefined);
      socket.on('data', () => socket.write(OK));
    });
    const before = getCACertificates('default');
    setDefaultCACertificates([...before, CERTIFICATE]);
    closers.push(() => {
      setDefaultCACertificates(before);
      server.close();
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const address = server.address();
    if (address === null || typeof address === 'string') throw new Error('no port');
    for (const [host, name] of [
      ['localhost', 'localhost'],
      ['127.0.0.1', false],
    ] as const) {
      const transport = create({
        ...{ upstream: new URL(`https://${host}:${address.port}`), maxSockets: 10, writeBatch: createWriteBatch() },
        timeouts: { connectMs: 1000, headersMs: 1000, idleMs: 1000 },
      });
      closers.push(transport.close);
      names.length = 0;
      for (const claimed of ['localhost', 'other.example', '127.0.0.1']) {
        const listener = recorder();
        transport.send({ ...GET, headers: ['Host', claimed] }, listener);
        await listener.over;
        expect(listener.events).toEqual(['head 200', 'data', 'end']);
      }
      // One connection served all of them.
      expect(names).toEqual([name]);
    }
  });

  it.each([
    ['https', 'http', createSecureServer({ key: KEY, cert: CERTIFICATE })],
    ['http', 'https', createServer()],
  ])(
    'behaviour: an upstream that speaks %s is asked over %s: the failure names the mistake',
    async (speaks, asked, server) => {
      closers.push(() => server.close());
      await once(server.listen(0, '127.0.0.1'), 'listening');
      const address = server.address();
      if (address === null || typeof address === 'string') throw new Error('no port');
      const transport = create({
        ...{
          upstream: new URL(`${asked}://127.0.0.1:${address.port}`),
          maxSockets: 10,
          writeBatch: createWriteBatch(),
        },
        timeouts: { connectMs: 1000, headersMs: 1000, idleMs: 1000 },
      });
      closers.push(transport.close);
      const detail = await new Promise<string>((resolve) => {
        transport.send(GET, { ...recorder(), onFailure: (failure) => resolve(failure.detail) });
      });
      expect(detail).toContain(`does the upstream speak ${speaks}, not ${asked}?`);
    },
  );

  it.each([
    ['as a stream of its own', (): Readable => Readable.from([Buffer.from('a'), Buffer.from('bc')])],
    ['empty', (): Readable => Readable.from([])],
  ])('behaviour: a chunked body, %s, goes out whole', async (_name, makeBody) => {
    const { upstream, transport } = await stage();
    const headers = ['Host', 'h', 'Transfer-Encoding', 'chunked'];
    for (let i = 0; i < 2; i++) {
      const listener = recorder();
      transport.send({ method: 'POST', target: '/a', headers, body: makeBody(), upgrade: false }, listener);
      await listener.over;
      expect(listener.events).toEqual(['head 200', 'data', 'end']);
    }
    expect(upstream.sockets).toHaveLength(1);
    expect(upstream.requests.every(({ whole }) => whole)).toBe(true);
  });

  it.each([
    ['more', 'abcd'],
    ['less', 'ab'],
  ])('refuses: a body with %s than it announced; the connection is not used again', async (_name, text) => {
    const { upstream, transport } = await stage();
    const headers = ['Host', 'h', 'Content-Length', '3'];
    const body = Readable.from([Buffer.from(text)]);
    const listener = recorder();
    transport.send({ method: 'POST', target: '/a', headers, body, upgrade: false }, listener);
    await listener.over;
    expect(listener.events).toEqual(['upload_broken_off']);
    expect(upstream.requests.some(({ whole }) => whole)).toBe(false);
  });

  it('behaviour: a call that is under way fails when the transport is closed, and so does one that waits', async () => {
    const { transport } = await stage(() => undefined);
    const under = recorder();
    transport.send(GET, under);
    const closed = transport.close();
    await under.over;
    await closed;
    expect(under.events).toEqual(['upstream_unreachable']);
  });

  it('behaviour: closing the transport ends every connection', async () => {
    const { upstream, transport } = await stage();
    const listener = recorder();
    transport.send(GET, listener);
    await listener.over;
    const [socket] = upstream.sockets;
    if (socket === undefined) throw new Error('no connection');
    await transport.close();
    if (!socket.destroyed) await once(socket, 'close');
  });
});
