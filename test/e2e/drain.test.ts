// A restart as an orchestrator does it: the old process is told to stop, drops out of the readiness that a client-side
// switch looks at, and finishes what it has. Nobody who keeps to that loses a request; nothing else holds the end up.
import { createHash, randomBytes } from 'node:crypto';
import { Agent, request, type IncomingMessage, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { startProcess, temporaryFolder, type TollgateProcess } from '../support/process.ts';
import { openRaw } from '../support/raw-client.ts';
import { startUpstream, type Upstream } from '../support/upstream.ts';

const CHUNK = 64 * 1024;
const files = temporaryFolder();
const running: TollgateProcess[] = [];
const held = new Set<ServerResponse>();
let upstream: Upstream;

beforeAll(async () => {
  upstream = await startUpstream((req, res) => {
    if (req.url === '/download') {
      res.write(Buffer.alloc(CHUNK, 'a'));
      held.add(res);
    } else if (req.url === '/upload') {
      let size = 0;
      req.on('data', (chunk: Buffer) => (size += chunk.length));
      req.on('end', () => res.end(String(size)));
    } else {
      req.resume();
      res.end('fine');
    }
  });
  upstream.server.on('upgrade', (req: IncomingMessage, socket: Socket) => {
    const accept = createHash('sha1')
      .update(`${req.headers['sec-websocket-key'] ?? ''}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`)
      .digest('base64');
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
    );
    socket.on('error', () => undefined).pipe(socket);
  });
});
afterEach(async () => {
  held.clear();
  await Promise.all(running.splice(0).map((tollgate) => tollgate.kill()));
});
afterAll(async () => {
  await upstream.close();
  files.remove();
});

/** `drain` is the longest it may take; `delay` how long it serves on while it is already not ready. */
async function start(name: string, { delay, drain }: { delay: string; drain: string }): Promise<TollgateProcess> {
  const file = files.write(
    `${name}.yaml`,
    [
      `proxy: { listen: 127.0.0.1:0, upstream: ${upstream.url}, timeouts: { drain_delay: ${delay}, drain: ${drain} } }`,
      `registry: { listen: 127.0.0.1:0, store: sqlite:${name}/tollgate.db }`,
      'admin: { listen: 127.0.0.1:0 }',
      `receivers: [{ id: default, network: base-sepolia, rpc_url: none, pay_to_address: "0x${'1'.repeat(40)}", facilitators: [http://127.0.0.1:1] }]`,
      'routes: [{ route_pattern: "/paid/*", method: GET, amount: "0.10" }]',
      'log: { access: false }',
    ].join('\n'),
  );
  const tollgate = await startProcess({ args: ['serve', '-c', file], listeners: ['proxy', 'registry', 'admin'] });
  running.push(tollgate);
  return tollgate;
}

async function isReady(tollgate: TollgateProcess): Promise<boolean> {
  try {
    const response = await fetch(`${tollgate.url('admin')}/readyz`);
    await response.arrayBuffer();
    return response.status === 200;
  } catch {
    return false;
  }
}

/** `onClose` is called where the answer says that its connection ends. */
function ask(agent: Agent, port: number, target: string, onClose?: () => void): Promise<string> {
  return new Promise((resolve) => {
    request({ agent, port, host: '127.0.0.1', path: target }, (res) => {
      res.resume();
      if (res.headers.connection === 'close') onClose?.();
      res.on('end', () => resolve(String(res.statusCode)));
      res.on('error', () => resolve('broken'));
    })
      .on('error', (error) => resolve(error.message))
      .end();
  });
}

describe('a restart under load', () => {
  test('behaviour: a restart under about 1,000 requests a second over keep-alive connections loses none', async () => {
    const [old, next] = await Promise.all([
      // A busy machine may take a second to look at readiness and to send the requests that it has begun.
      start('old', { delay: '4s', drain: '10s' }),
      start('new', { delay: '0s', drain: '10s' }),
    ]);
    let target = old.port('proxy');
    // The switch of the orchestrator: looks at readiness now and then and turns new requests to who is ready.
    let turnedAt: number | undefined;
    const look = setInterval(() => {
      void isReady(old).then((ready) => {
        if (ready || turnedAt !== undefined) return;
        target = next.port('proxy');
        turnedAt = performance.now();
      });
    }, 100);
    const agent = new Agent({ keepAlive: true, maxSockets: 64, scheduling: 'fifo' });
    const outcomes = new Map<string, number>();
    const pending: Promise<void>[] = [];
    // Paced from outside, so that a slow answer does not make the load go away.
    const pace = setInterval(() => {
      // What waits for a connection goes where it was sent, even when who was there is gone: on a busy machine the load is less.
      for (let i = 0; i < 10 && Object.keys(agent.requests).length === 0; i++) {
        const asked = ask(agent, target, i % 2 === 0 ? '/free' : '/paid/a');
        pending.push(asked.then((outcome) => void outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)));
      }
    }, 10);
    // Clients that stay on their connection for as long as nobody tells them that it ends.
    const stopped = new AbortController();
    const stay = async (): Promise<void> => {
      const own = new Agent({ keepAlive: true, maxSockets: 1 });
      let port = target;
      while (!stopped.signal.aborted) {
        const outcome = await ask(own, port, '/free', () => (port = target));
        outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
        await new Promise((resolve) => {
          setTimeout(resolve, 20);
        });
      }
      own.destroy();
    };
    const staying = Array.from({ length: 10 }, stay);
    const count = (): number => [...outcomes.values()].reduce((sum, more) => sum + more, 0);
    await vi.waitFor(() => expect(count()).toBeGreaterThan(500), { timeout: 30_000 });
    old.signal('SIGTERM');
    await vi.waitFor(async () => expect(await isReady(old)).toBe(false), { interval: 5 });
    expect(await old.exited).toBe(0);
    const before = count();
    await vi.waitFor(() => expect(count()).toBeGreaterThan(before + 500), { timeout: 30_000 });
    clearInterval(pace);
    clearInterval(look);
    stopped.abort();
    await Promise.all([...pending, ...staying]);
    agent.destroy();
    expect([...outcomes.keys()].sort()).toEqual(['200', '402']);
    expect(turnedAt).toBeDefined();
  });
});

describe('SIGTERM', () => {
  test('behaviour: after SIGTERM a server is not ready, serves for drain_delay, closes idle connections then and exits with 0', async () => {
    const tollgate = await start('idle', { delay: '3s', drain: '20s' });
    const idle = await Promise.all(Array.from({ length: 20 }, () => openRaw(tollgate.port('proxy'))));
    for (const client of idle.slice(0, 10)) {
      client.send('GET /free HTTP/1.1\r\nHost: h\r\n\r\n');
      expect((await client.answer()).status).toBe(200);
    }
    const since = performance.now();
    tollgate.signal('SIGTERM');
    await tollgate.line(({ msg }) => msg === 'draining');
    const verbose = await fetch(`${tollgate.url('admin')}/readyz?verbose`);
    expect(verbose.status).toBe(503);
    expect(await verbose.text()).toContain('finishing what is in flight');
    expect((await fetch(`${tollgate.url('admin')}/livez`)).status).toBe(200);
    expect(await (await fetch(`${tollgate.url('admin')}/metrics`)).text()).toMatch(/^tollgate_draining 1$/m);
    const late = await fetch(`${tollgate.url('proxy')}/free`);
    expect([late.status, late.headers.get('connection')]).toEqual([200, 'close']);
    for (const client of idle) await client.closed;
    expect(await tollgate.exited).toBe(0);
    const took = performance.now() - since;
    expect(took).toBeGreaterThan(2990);
    // Not the whole of `drain`: nothing was in flight.
    expect(took).toBeLessThan(15_000);
  });

  test('behaviour: a download, an upload and a WebSocket in flight are finished before a drain ends', async () => {
    const tollgate = await start('flying', { delay: '0s', drain: '20s' });
    const port = tollgate.port('proxy');
    const [download, upload, socket] = await Promise.all([openRaw(port), openRaw(port), openRaw(port)]);
    download.send('GET /download HTTP/1.1\r\nHost: h\r\n\r\n');
    await download.until('aaaa');
    upload.send('POST /upload HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\n');
    upload.send('b'.repeat(400));
    const key = randomBytes(16).toString('base64');
    socket.send(
      `GET /ws HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${key}\r\n\r\n`,
    );
    await socket.until('101 Switching');
    await vi.waitFor(() => expect(upstream.seen.some(({ url }) => url === '/upload')).toBe(true));

    tollgate.signal('SIGTERM');
    await tollgate.line(({ msg }) => msg === 'draining');
    // Nothing new is let in.
    await vi.waitFor(async () => {
      const refused = await fetch(`${tollgate.url('proxy')}/free`).then(
        () => false,
        () => true,
      );
      expect(refused).toBe(true);
    });
    socket.send('still here');
    await socket.until('still here');
    upload.send('b'.repeat(600));
    const stored = await upload.answer();
    expect([stored.status, stored.body.toString()]).toEqual([200, '1000']);
    for (const res of held) res.end(Buffer.alloc(CHUNK, 'z'));
    const whole = await download.answer();
    expect([whole.status, whole.body.length, whole.body.at(-1)]).toEqual([200, 2 * CHUNK, 'z'.charCodeAt(0)]);
    expect(await Promise.race([tollgate.exited, Promise.resolve('running')])).toBe('running');
    socket.socket.end();
    expect(await tollgate.exited).toBe(0);
  });

  test('behaviour: a request that does not end is cut off after drain, and the exit code is still 0', async () => {
    const tollgate = await start('stuck', { delay: '0s', drain: '400ms' });
    const download = await openRaw(tollgate.port('proxy'));
    download.send('GET /download HTTP/1.1\r\nHost: h\r\n\r\n');
    await download.until('aaaa');
    const since = performance.now();
    tollgate.signal('SIGTERM');
    await download.closed;
    expect(await tollgate.exited).toBe(0);
    const took = performance.now() - since;
    expect(took).toBeGreaterThan(390);
    // The time that is left out in a configuration is 25 s.
    expect(took).toBeLessThan(20_000);
  });

  test('behaviour: a second signal ends a drain at once', async () => {
    const tollgate = await start('twice', { delay: '20s', drain: '20s' });
    const download = await openRaw(tollgate.port('proxy'));
    download.send('GET /download HTTP/1.1\r\nHost: h\r\n\r\n');
    await download.until('aaaa');
    tollgate.signal('SIGTERM');
    await tollgate.line(({ msg }) => msg === 'draining');
    const since = performance.now();
    tollgate.signal('SIGTERM');
    expect(await tollgate.exited).toBe(143);
    expect(performance.now() - since).toBeLessThan(15_000);
    await download.closed;
  });
});
