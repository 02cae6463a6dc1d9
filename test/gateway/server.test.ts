// The listener by itself: its limits at the limit and one past it, its time-outs, and how it ends.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { LISTENER_REFUSALS } from '../../src/domain/problem.ts';
import { createLog, type LogFields } from '../../src/host/log.ts';
import type { ListenerHandlers } from '../../src/host/client-connection.ts';
import { createListener, type Listener, type ListenerOptions } from '../../src/host/server.ts';
import { headerOf, openRaw, type RawClient } from '../support/raw-client.ts';

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

type Options = { limits?: Partial<ListenerOptions['limits']>; timeouts?: Partial<ListenerOptions['timeouts']> };
type Stage = { listener: Listener; port: number; lines: LogFields[]; client: () => Promise<RawClient> };

async function stage(
  request: ListenerHandlers['request'],
  options: Options = {},
  upgrade?: ListenerHandlers['upgrade'],
): Promise<Stage> {
  const lines: LogFields[] = [];
  const listener = createListener(
    {
      name: 'test',
      listen: { host: '127.0.0.1', port: 0 },
      limits: { headers: 8192, connections: 100, ...options.limits },
      timeouts: { headersMs: 5000, idleMs: 5000, ...options.timeouts },
      refusals: LISTENER_REFUSALS,
      log: createLog(
        'debug',
        (line) => void lines.push(JSON.parse(line) as LogFields),
        () => 0,
      ),
    },
    { request, ...(upgrade && { upgrade }) },
  );
  const { port } = await listener.start();
  closers.push(() => listener.drain(0, 0));
  const client = async (): Promise<RawClient> => {
    const opened = await openRaw(port);
    closers.push(opened.close);
    return opened;
  };
  return { listener, port, lines, client };
}

const GET = 'GET / HTTP/1.1\r\nHost: h\r\n\r\n';
const hello = (_: IncomingMessage, res: ServerResponse): void => void res.end('hello');
const until = (check: () => void): Promise<void> => vi.waitFor(check, { interval: 5, timeout: 30_000 });

describe('what it refuses by itself', () => {
  it.each([
    ['bytes that are not HTTP', 'hello\r\n\r\n', 400, 'request_malformed'],
    ['no Host', 'GET / HTTP/1.1\r\n\r\n', 400, 'request_malformed'],
    ['another expectation', 'GET / HTTP/1.1\r\nHost: h\r\nExpect: tea\r\n\r\n', 417, 'expectation_failed'],
    ['CONNECT', 'CONNECT h:1 HTTP/1.1\r\nHost: h\r\n\r\n', 501, 'method_unsupported'],
    ['too many headers', `GET / HTTP/1.1\r\nHost: h\r\nX: ${'x'.repeat(9000)}\r\n\r\n`, 431, 'headers_too_large'],
    ['too long a target', `GET /${'x'.repeat(9000)} HTTP/1.1\r\nHost: h\r\n\r\n`, 414, 'target_too_long'],
  ])('refuses: a request with %s', async (_, bytes, status, code) => {
    const { client } = await stage(hello);
    const one = await client();
    one.send(bytes);
    const answer = await one.answer();
    expect([answer.status, headerOf(answer, 'content-type')]).toEqual([status, 'application/problem+json']);
    expect(JSON.parse(answer.body.toString())).toMatchObject({ status, code, type: `/problems/${code}` });
    expect(await one.closed).toBe('fin');
  });

  it('behaviour: headers up to the limit are read', async () => {
    const { client } = await stage(hello);
    const one = await client();
    one.send(`GET / HTTP/1.1\r\nHost: h\r\nX: ${'x'.repeat(8192 - 60)}\r\n\r\n`);
    expect((await one.answer()).status).toBe(200);
  });

  it('attack: a request whose headers come slowly is answered 408', async () => {
    const { client } = await stage(hello, { timeouts: { headersMs: 120 } });
    const silent = await client();
    const slow = await client();
    slow.send('GET / HTTP/1.1\r\n');
    const timer = setInterval(() => slow.send('X: y\r\n'), 20);
    closers.push(() => clearInterval(timer));
    const answer = await slow.answer();
    clearInterval(timer);
    expect(answer.status).toBe(408);
    expect((await silent.answer()).status).toBe(408);
    await slow.closed;
  });

  it('attack: one connection more than the limit is closed at once', async () => {
    const { client, lines } = await stage(hello, { limits: { connections: 3 } });
    const held = [await client(), await client(), await client()];
    for (const one of held) {
      one.send(GET);
      expect((await one.answer()).status).toBe(200);
    }
    const more = await client();
    await more.closed;
    held[0]?.close();
    await until(() => expect(lines.filter(({ msg }) => msg === 'connection limit reached')).toHaveLength(1));
    await vi.waitFor(
      async () => {
        const again = await client();
        again.send(GET);
        expect((await again.answer()).status).toBe(200);
      },
      { interval: 10 },
    );
  });

  it('attack: --insecure-http-parser does not weaken the parser', async () => {
    const script = `
      import { createListener } from ${JSON.stringify(new URL('../../src/host/server.ts', import.meta.url).href)};
      import { LISTENER_REFUSALS } from ${JSON.stringify(new URL('../../src/domain/problem.ts', import.meta.url).href)};
      const log = { debug() {}, info() {}, warn() {}, error() {}, enabled: () => false };
      const listener = createListener(
        { name: 'child', listen: { host: '127.0.0.1', port: 0 }, limits: { headers: 8192, connections: 10 }, timeouts: { headersMs: 5000, idleMs: 5000 }, refusals: LISTENER_REFUSALS, log },
        { request: (req, res) => res.end('accepted') },
      );
      console.log((await listener.start()).port);
    `;
    const child = spawn(process.execPath, ['--insecure-http-parser', '--input-type=module', '-e', script]);
    closers.push(async () => {
      const gone = once(child, 'exit');
      child.kill();
      await gone;
    });
    const [port] = (await once(child.stdout, 'data')) as [Buffer];
    const one = await openRaw(Number(port.toString()));
    closers.push(one.close);
    one.send('POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n');
    expect((await one.answer()).status).toBe(400);
  });
});

describe('one connection', () => {
  it('behaviour: requests that were sent at once are handled one after the other, in order', async () => {
    const waiting: ServerResponse[] = [];
    const { client, listener } = await stage((req, res) => {
      res.setHeader('X-Target', req.url ?? '');
      waiting.push(res);
    });
    const one = await client();
    one.send(['/1', '/2', '/3'].map((target) => GET.replace('/ ', `${target} `)).join(''));
    for (const target of ['/1', '/2', '/3']) {
      await until(() => expect(waiting).toHaveLength(1));
      expect(listener.inFlight()).toBe(1);
      waiting.shift()?.end();
      expect(headerOf(await one.answer(), 'x-target')).toBe(target);
    }
    await until(() => expect(listener.inFlight()).toBe(0));
  });

  it('attack: a client that sends more requests at once than anybody needs has its connection ended', async () => {
    const { client } = await stage(() => undefined);
    const one = await client();
    one.send(GET.repeat(66));
    await one.closed;
  });

  it('behaviour: a request that waits behind a connection that died is never handled', async () => {
    let handled = 0;
    const { client, listener } = await stage(() => void handled++);
    const one = await client();
    one.send(GET.repeat(3));
    await until(() => expect(handled).toBe(1));
    one.close();
    await until(() => expect(listener.inFlight()).toBe(0));
    expect(handled).toBe(1);
  });

  it('attack: CONNECT behind a request that is being answered puts nothing into its answer', async () => {
    const { client } = await stage((_, res) => void res.write('half'));
    const one = await client();
    one.send(GET);
    await one.until('half');
    one.send('CONNECT h:1 HTTP/1.1\r\nHost: h\r\n\r\n');
    await one.closed;
    expect(one.received()).not.toContain('501');
  });

  it('attack: garbage behind a request that is being answered is refused after its answer', async () => {
    let res: ServerResponse | undefined;
    const { client } = await stage((_, given) => {
      res = given;
    });
    const one = await client();
    one.send(GET);
    await until(() => expect(res).toBeDefined());
    one.send('garbage\r\n\r\n');
    one.send('more garbage\r\n\r\n');
    res?.end('whole');
    expect((await one.answer()).body.toString()).toBe('whole');
    expect((await one.answer()).status).toBe(400);
    await one.closed;
  });

  it('attack: an upload that breaks off in bad chunks never ends for its handler', async () => {
    let ended = false;
    let aborted = false;
    const { client } = await stage((req) => {
      req.on('end', () => {
        ended = true;
      });
      req.on('close', () => {
        aborted = !req.complete;
      });
      req.resume();
    });
    const one = await client();
    one.send('POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n');
    one.send('zz\r\n');
    expect((await one.answer()).status).toBe(400);
    await one.closed;
    await until(() => expect(aborted).toBe(true));
    expect(ended).toBe(false);
  });

  it('behaviour: a handler that throws is answered 500, and the process goes on', async () => {
    const { client, lines } = await stage(() => {
      throw new Error('defect');
    });
    const one = await client();
    one.send(GET);
    expect((await one.answer()).status).toBe(500);
    expect(lines.some(({ level, error }) => level === 'error' && error === 'defect')).toBe(true);
  });

  it('behaviour: an upload that stops is ended, one that moves is not', async () => {
    // Time goes by only where the test says so.
    let now = performance.now();
    const clock = vi.spyOn(performance, 'now').mockImplementation(() => now);
    closers.push(() => clock.mockRestore());
    let came = 0;
    const { client } = await stage(
      (req, res) => {
        req.on('data', (bytes: Buffer) => void (came += bytes.length));
        req.on('end', () => res.end('whole'));
      },
      { timeouts: { idleMs: 120 } },
    );
    const stops = await client();
    stops.send('POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nhel');
    const moves = await client();
    moves.send('POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 8\r\n\r\n');
    await until(() => expect(came).toBe('hel'.length));
    for (let i = 1; i <= 8; i++) {
      now += 60;
      moves.send('x');
      await until(() => expect(came).toBe('hel'.length + i));
    }
    expect((await moves.answer()).body.toString()).toBe('whole');
    await stops.closed;
    expect(stops.received()).toBe('');
  });

  it('behaviour: a client that does not read its answer is ended, one that waits for it is not', async () => {
    const waiting: ServerResponse[] = [];
    const { client, listener, port } = await stage(
      (req, res) => {
        if (req.url === '/big') res.end(Buffer.alloc(64 * 1024 * 1024));
        else waiting.push(res);
      },
      { timeouts: { idleMs: 100 } },
    );
    const patient = await client();
    patient.send(GET);
    const deaf = connect(port, '127.0.0.1');
    deaf.pause();
    deaf.on('error', () => undefined);
    deaf.write(GET.replace('/ ', '/big '));
    await until(() => expect(listener.inFlight()).toBe(2));
    await until(() => expect(listener.inFlight()).toBe(1));
    let received = 0;
    deaf.on('data', (chunk: Buffer) => {
      received += chunk.length;
    });
    deaf.resume();
    await once(deaf, 'close');
    expect(received).toBeLessThan(64 * 1024 * 1024);
    waiting[0]?.end('late');
    expect((await patient.answer()).body.toString()).toBe('late');
  });

  it('attack: an upload that goes on after its answer is dropped, and not for ever', async () => {
    const enough = (_: IncomingMessage, res: ServerResponse): void => void res.end('enough');
    const { client } = await stage(enough);
    const impatient = await stage(enough, { timeouts: { lingerMs: 100 } });
    const endless = await impatient.client();
    endless.send('POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n\r\n');
    expect((await endless.answer()).body.toString()).toBe('enough');
    const timer = setInterval(() => endless.send('x'), 10);
    closers.push(() => clearInterval(timer));
    const brief = await client();
    brief.send('POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n');
    expect((await brief.answer()).body.toString()).toBe('enough');
    brief.send(`hi${GET}`);
    expect((await brief.answer()).body.toString()).toBe('enough');
    await endless.closed;
    brief.send(GET);
    expect((await brief.answer()).body.toString()).toBe('enough');
  });

  it.each([
    ['a body that was not read', 'POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n\r\n', 402],
    ['chunks that were not read', 'POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n', 402],
    ['what is no HTTP', 'nonsense\r\n\r\n', 400],
  ])('behaviour: an answer that ends the connection before %s is not lost to a reset', async (_, head, status) => {
    const { port } = await stage((_req, res) => void res.writeHead(402, ['Connection', 'close']).end('pay'));
    const client = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    closers.push(() => client.destroy());
    let received = '';
    client.on('data', (chunk: Buffer) => (received += chunk.toString('latin1')));
    client.write(head);
    await once(client, 'end');
    // The client is not done yet: a closed socket would answer each of these with a reset.
    for (let i = 0; i < 20; i++) {
      await new Promise<void>((resolve, reject) => {
        client.write('x'.repeat(1000), (error) => (error ? reject(error) : setImmediate(resolve)));
      });
    }
    const closed = once(client, 'close');
    client.end();
    expect(await closed).toEqual([false]);
    expect(received).toMatch(`HTTP/1.1 ${status}`);
  });

  it.each([
    ['the last answer', 'POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n\r\n'],
    ['what was no HTTP', 'nonsense\r\n\r\n'],
  ])('attack: a client that never stops sending behind %s is cut off', async (_, head) => {
    const { port } = await stage((_req, res) => void res.writeHead(402, ['Connection', 'close']).end('pay'), {
      timeouts: { lingerMs: 100 },
    });
    const client = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    closers.push(() => client.destroy());
    const closed = new Promise((resolve) => client.on('error', () => undefined).on('close', resolve));
    client.resume().write(head);
    await new Promise((resolve) => client.on('end', resolve));
    const timer = setInterval(() => client.write('x'), 10);
    closers.push(() => clearInterval(timer));
    await closed;
  });

  it('behaviour: Expect reaches the handler and no 100 is sent unasked', async () => {
    const { client } = await stage((_, res) => void res.writeHead(402).end());
    const one = await client();
    one.send('POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nExpect: 100-Continue\r\n\r\n');
    const answer = await one.answer();
    expect([answer.status, headerOf(answer, 'connection')]).toEqual([402, 'close']);
  });

  it('behaviour: an upgrade reaches its handler only where there is one', async () => {
    const ask = 'GET /ws HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n';
    const without = await (await stage(hello)).client();
    without.send(ask);
    expect((await without.answer()).status).toBe(200);
    const sockets: Socket[] = [];
    const { client, listener } = await stage(hello, {}, (_, socket) => void sockets.push(socket));
    const one = await client();
    one.send(ask);
    await until(() => expect(sockets).toHaveLength(1));
    expect(listener.inFlight()).toBe(1);
    sockets[0]?.destroy();
    await until(() => expect(listener.inFlight()).toBe(0));
  });
});

describe('the end', () => {
  it('behaviour: on closing, answers ask for the end, idle connections are closed, and requests in flight are finished', async () => {
    const waiting: ServerResponse[] = [];
    const { client, listener, port } = await stage((req, res) => {
      if (req.url === '/slow') waiting.push(res);
      else res.end('quick');
    });
    const idle = await client();
    idle.send(GET);
    expect(headerOf(await idle.answer(), 'connection')).toBe('keep-alive');
    const never = await client();
    const begun = await client();
    begun.send('GET / HTTP/1.1\r\nHost');
    const busy = await client();
    busy.send(GET.replace('/ ', '/slow '));
    await until(() => expect(waiting).toHaveLength(1));
    let drained = false;
    const drain = listener.drain(100, 30_000).then(() => {
      drained = true;
    });
    // During the delay everything is served.
    const late = await client();
    late.send(GET);
    const answer = await late.answer();
    expect([answer.body.toString(), headerOf(answer, 'connection')]).toEqual(['quick', 'close']);
    await late.closed;
    await idle.closed;
    await never.closed;
    await begun.closed;
    await expect(openRaw(port)).rejects.toThrow();
    expect(drained).toBe(false);
    waiting[0]?.end('finished');
    const last = await busy.answer();
    expect([last.body.toString(), headerOf(last, 'connection')]).toEqual(['finished', 'close']);
    await drain;
  });

  it('behaviour: a connection that has brought no request yet may bring one while the listener closes', async () => {
    const { client, listener, port } = await stage(hello, { timeouts: { freshMs: 60_000 } });
    const fresh = await client();
    await until(() => expect(listener.connections()).toBe(1));
    const drain = listener.drain(0, 120_000);
    await expect(openRaw(port)).rejects.toThrow();
    fresh.send(GET);
    const answer = await fresh.answer();
    expect([answer.body.toString(), headerOf(answer, 'connection')]).toEqual(['hello', 'close']);
    await drain;
  });

  it('behaviour: an answer that had begun when the listener closes is finished, and then its connection closed', async () => {
    let res: ServerResponse | undefined;
    const { client, listener } = await stage((_, given) => {
      res = given;
      res.write('begun ');
    });
    const one = await client();
    one.send(GET);
    await one.until('begun');
    const drain = listener.drain(0, 30_000);
    res?.end('and finished');
    expect((await one.answer()).body.toString()).toBe('begun and finished');
    await one.closed;
    await drain;
  });

  it('behaviour: a connection that is left at the deadline of closing is cut off', async () => {
    const { client, listener } = await stage(
      () => undefined,
      {},
      () => undefined,
    );
    const one = await client();
    one.send(GET);
    const two = await client();
    two.send('GET /ws HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
    await until(() => expect(listener.inFlight()).toBe(2));
    await listener.drain(10, 60);
    await one.closed;
    await two.closed;
    expect(listener.inFlight()).toBe(0);
  });

  it('behaviour: a port that is taken rejects the start', async () => {
    const { port } = await stage(hello);
    const log = createLog(
      'error',
      () => undefined,
      () => 0,
    );
    const options = {
      name: 'b',
      limits: { headers: 8192, connections: 1 },
      timeouts: { headersMs: 1000, idleMs: 1000 },
      refusals: LISTENER_REFUSALS,
      log,
    };
    const second = createListener({ ...options, listen: { host: '127.0.0.1', port } }, { request: hello });
    await expect(second.start()).rejects.toThrow(/EADDRINUSE/);
  });

  it('behaviour: listening is logged with listener, address and port', async () => {
    const { lines, port } = await stage(hello);
    expect(lines).toContainEqual({
      ts: expect.any(String),
      level: 'info',
      msg: 'listening',
      listener: 'test',
      address: '127.0.0.1',
      port,
    });
  });
});
