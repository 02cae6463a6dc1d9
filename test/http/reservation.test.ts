// A connection that is kept for one request: it is had before anything is sent, serves nobody else, is given back, and is
// replaced by a new one if it died meanwhile.
import { createServer, type Server, type Socket } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { createWriteBatch } from '../../src/host/write-batch.ts';
import { createPool } from '../../src/http/pool.ts';
import { POOL_IDLE_MS } from '../../src/http/connection.ts';
import type { ReservedConnection, Transport, UpstreamRequest } from '../../src/http/transport.ts';
import { readWhatCame } from '../support/loop-turns.ts';

type Place = {
  readonly transport: Transport;
  readonly server: Server;
  readonly port: number;
  /** Connections that came, in order. */
  readonly sockets: Socket[];
  /** What each connection, by its number, was sent. */
  readonly heads: (readonly [connection: number, line: string])[];
  /** Moves the pool's clock. */
  readonly pass: (ms: number) => void;
};

const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

async function open(
  maxSockets = 100,
  connectMs = 1_000,
  accept: (socket: Socket) => void = () => undefined,
): Promise<Place> {
  const sockets: Socket[] = [];
  const heads: [number, string][] = [];
  const server = createServer((socket) => {
    const number = sockets.push(socket);
    socket.on('error', () => undefined);
    socket.on('data', (bytes) => {
      heads.push([number, bytes.toString().split('\r\n', 1)[0] ?? '']);
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
    });
    accept(socket);
  });
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  let ahead = 0;
  const transport = createPool({
    upstream: new URL(`http://127.0.0.1:${port}`),
    timeouts: { connectMs, headersMs: 2_000, idleMs: 2_000 },
    ...{ maxSockets, writeBatch: createWriteBatch(), now: () => performance.now() + ahead },
  });
  closers.push(async () => {
    await transport.close();
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  return { transport, server, port, sockets, heads, pass: (ms) => void (ahead += ms) };
}

function send({ transport }: Place, method: string, target: string, reserved?: ReservedConnection): Promise<string> {
  const request: UpstreamRequest = { method, target, headers: ['Host', 'h'], body: undefined, upgrade: false };
  return new Promise((resolve) => {
    let status = 0;
    transport.send(
      request,
      {
        onInformation: () => undefined,
        onHead: (seen) => void (status = seen),
        onData: () => undefined,
        onEnd: () => resolve(String(status)),
        onUpgrade: () => resolve('upgraded'),
        onFailure: ({ code, sent }) => resolve(`${code} ${sent ? 'sent' : 'unsent'}`),
      },
      reserved,
    );
  });
}

async function reserve({ transport }: Place, upgrade = false): Promise<ReservedConnection> {
  const reserved = await transport.reserve(upgrade);
  if ('code' in reserved) throw new Error(reserved.detail);
  return reserved;
}

const closed = (socket: Socket | undefined): Promise<void> =>
  new Promise((resolve) =>
    socket === undefined || socket.closed ? resolve() : void socket.once('close', () => resolve()),
  );

test('behaviour: a new connection is reserved without a byte, and the request goes out on it', async () => {
  const place = await open();
  const reserved = await reserve(place);
  expect([place.sockets.length, place.heads]).toEqual([1, []]);
  expect(await send(place, 'POST', '/paid', reserved)).toBe('200');
  expect(place.heads).toEqual([[1, 'POST /paid HTTP/1.1']]);
});

test('attack: nobody else is served on a reserved connection, and it serves others once it is given back', async () => {
  const place = await open();
  expect(await send(place, 'GET', '/first')).toBe('200');
  const reserved = await reserve(place);
  expect(await send(place, 'GET', '/other')).toBe('200');
  reserved.release();
  expect(await send(place, 'GET', '/next')).toBe('200');
  expect(place.heads.map(([number, line]) => `${number} ${line.split(' ')[1]}`)).toEqual([
    '1 /first',
    '2 /other',
    '1 /next',
  ]);
});

test('refuses: a reservation at an upstream that nobody listens for, and at one that accepts and closes at once', async () => {
  const place = await open();
  await new Promise((resolve) => place.server.close(resolve));
  expect(await place.transport.reserve(false)).toMatchObject({ code: 'upstream_unreachable' });
  const closing = await open(100, 1_000, (socket) => socket.destroy());
  expect(await closing.transport.reserve(false)).toMatchObject({ code: 'upstream_unreachable' });
});

test('behaviour: a reserved connection that died before its request is replaced by a new one, which counts as nothing sent if there is none', async () => {
  const place = await open();
  const [reserved, second] = [await reserve(place), await reserve(place)];
  place.sockets[0]?.destroy();
  await closed(place.sockets[0]);
  expect(await send(place, 'POST', '/paid', reserved)).toBe('200');
  expect(place.heads).toEqual([[3, 'POST /paid HTTP/1.1']]);
  for (const socket of place.sockets) socket.destroy();
  await new Promise((resolve) => place.server.close(resolve));
  await readWhatCame();
  expect(await send(place, 'POST', '/again', second)).toBe('upstream_unreachable unsent');
});

test('behaviour: a connection that was used before and is idle for long is not trusted with a request that cannot be repeated', async () => {
  const place = await open();
  expect(await send(place, 'GET', '/first')).toBe('200');
  const reserved = await reserve(place);
  // The sweep has to see it idle before the clock moves.
  await new Promise((resolve) => setTimeout(resolve, 300));
  place.pass(POOL_IDLE_MS);
  expect(await send(place, 'POST', '/paid', reserved)).toBe('200');
  expect(place.heads.map(([number]) => number)).toEqual([1, 2]);
});

test('behaviour: a reservation counts against the limit of connections, and who waits for one gets it when it is given back', async () => {
  const place = await open(1, 200);
  const reserved = await reserve(place);
  expect(await place.transport.reserve(false)).toMatchObject({ code: 'upstream_unreachable' });
  const waiting = place.transport.reserve(false);
  reserved.release();
  const next = await waiting;
  expect('code' in next).toBe(false);
  expect(place.sockets).toHaveLength(1);
});

test('behaviour: a connection reserved for an upgrade is new and is never given to others', async () => {
  const place = await open();
  expect(await send(place, 'GET', '/first')).toBe('200');
  const reserved = await reserve(place, true);
  expect(place.sockets).toHaveLength(2);
  reserved.release();
  await closed(place.sockets[1]);
  expect(await send(place, 'GET', '/next')).toBe('200');
  expect(place.heads.map(([number]) => number)).toEqual([1, 1]);
});

test('behaviour: a pool that is closed ends the reservations that are kept and those that are waited for', async () => {
  const place = await open(1, 60_000);
  await reserve(place);
  const waiting = place.transport.reserve(false);
  await place.transport.close();
  expect(await waiting).toMatchObject({ code: 'upstream_unreachable' });
  expect(await place.transport.reserve(false)).toMatchObject({ code: 'upstream_unreachable' });
});
