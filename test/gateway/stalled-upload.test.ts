// Uploads that come late, stop half-way or come in very many pieces: what the upstream sees of them, whose fault their end
// is, and that one of them does not hold the others up. Time is an argument.
import { createServer, type IncomingMessage } from 'node:http';
import { connect, createServer as createNetServer, type Socket } from 'node:net';
import { once } from 'node:events';
import { describe, expect, it, vi } from 'vitest';
import { createWriteBatch } from '../../src/host/write-batch.ts';
import { createPool } from '../../src/http/pool.ts';
import type { Transport } from '../../src/http/transport.ts';
import { OK, startRawUpstream, type RawUpstream } from '../support/raw-upstream.ts';
import { createStages, head, outcomeOf } from '../support/stages.ts';

const { stage, onEnd } = createStages();
const UPLOAD = head('POST', 'Content-Length: 10');

describe('a client that stops in its upload', () => {
  it('behaviour: a client that stops in its upload is told so, and it is not the upstream that failed', async () => {
    const { client, gateway } = await stage(() => undefined, { timeouts: { uploadMs: 60, headersMs: 30_000 } });
    const stopped = await client();
    stopped.send(`${UPLOAD}half`);
    const answer = await stopped.answer();
    expect([answer.status, JSON.parse(answer.body.toString())]).toMatchObject([408, { code: 'request_timeout' }]);
    expect(await outcomeOf(gateway)).toMatchObject({ kind: 'client_gone', upload: 'stalled', status: undefined });
  });

  it('behaviour: a client that leaves in its upload is no failure of the upstream either', async () => {
    const { client, gateway, upstream } = await stage(() => undefined);
    const leaving = await client();
    leaving.send(`${UPLOAD}half`);
    await vi.waitFor(() => expect(upstream.requests).toHaveLength(1), { interval: 5 });
    leaving.close();
    expect(await outcomeOf(gateway)).toMatchObject({ kind: 'client_gone', upload: 'broken_off', headSent: false });
    const early = await client();
    early.send(UPLOAD);
    await vi.waitFor(() => expect(gateway.forwards()).toBe(2), { interval: 5 });
    early.close();
    expect(await outcomeOf(gateway, 1)).toMatchObject({ kind: 'client_gone', upload: 'broken_off', headSent: false });
    expect(upstream.requests).toHaveLength(1);
  });

  it('behaviour: a client that stops in its upload after the upstream began to answer is not ended: it may have nothing more to say', async () => {
    const { client, upstream } = await stage(() => undefined, { timeouts: { uploadMs: 40 } });
    let answering: Socket | undefined;
    upstream.onHead((_request, socket) => {
      answering = socket;
      socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n');
    });
    const listening = await client();
    listening.send(`${UPLOAD}half`);
    await listening.until('ok');
    await new Promise((resolve) => void setTimeout(resolve, 120));
    answering?.write('0\r\n\r\n');
    expect((await listening.answer()).body.toString()).toBe('ok');
  });
});

describe('an upload, by a clock of its own', () => {
  const SECOND = 1000;

  type Uploading = {
    readonly client: Socket;
    readonly body: IncomingMessage;
    readonly upstream: RawUpstream;
    readonly events: readonly string[];
    /** Some seconds go by, and are noticed. */
    readonly pass: (seconds: number) => Promise<void>;
  };

  /** A POST of `length` bytes whose head alone came. */
  async function uploading(length: number): Promise<Uploading> {
    const upstream = await startRawUpstream();
    onEnd(upstream.close);
    let now = 0;
    let looks = 0;
    const transport: Transport = createPool({
      upstream: upstream.url,
      // Looked at every few milliseconds, as the shortest of them asks for.
      timeouts: { connectMs: 40, headersMs: 100 * SECOND, idleMs: 300 * SECOND, uploadMs: 30 * SECOND },
      maxSockets: 10,
      writeBatch: createWriteBatch(),
      now: () => {
        looks++;
        return now;
      },
    });
    onEnd(transport.close);
    const server = createServer();
    onEnd(() => server.close());
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const address = server.address();
    if (address === null || typeof address === 'string') throw new Error('no port');
    const client = connect(address.port, '127.0.0.1');
    onEnd(() => client.destroy());
    client.write(`POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: ${length}\r\n\r\n`);
    const [body] = (await once(server, 'request')) as [IncomingMessage];
    const events: string[] = [];
    const headers = ['Host', 'h', 'Content-Length', String(length)];
    transport.send(
      { method: 'POST', target: '/a', headers, body, upgrade: false },
      {
        onInformation: () => undefined,
        onHead: (status) => void events.push(`head ${status}`),
        onData: () => undefined,
        onEnd: () => void events.push('end'),
        onUpgrade: () => undefined,
        onFailure: ({ code }) => void events.push(code),
      },
    );
    const pass = async (seconds: number): Promise<void> => {
      now += seconds * SECOND;
      const before = looks;
      await vi.waitFor(() => expect(events.length > 0 || looks > before + 4).toBe(true), {
        interval: 5,
        timeout: 30_000,
      });
    };
    return { client, body, upstream, events, pass };
  }

  it('behaviour: an upload takes a connection when its first byte is there, and sends it with the head', async () => {
    const { client, upstream, events, pass } = await uploading(2);
    await pass(0.4);
    expect(upstream.sockets).toHaveLength(0);
    client.write('hi');
    await vi.waitFor(() => expect(events).toEqual(['head 200', 'end']), { interval: 5 });
    expect(upstream.requests.map(({ body }) => body.toString())).toEqual(['hi']);
  });

  it('behaviour: an upload without a byte takes a connection after a second', async () => {
    const { upstream, events, pass } = await uploading(2);
    await pass(1);
    await vi.waitFor(() => expect(upstream.requests).toHaveLength(1), { interval: 5 });
    expect(upstream.requests[0]?.whole).toBe(false);
    expect(events).toEqual([]);
  });

  it('behaviour: an upload may be quiet for as long as is configured, again and again, and no longer', async () => {
    const { client, body, upstream, events, pass } = await uploading(4);
    client.write('a');
    await vi.waitFor(() => expect(upstream.requests).toHaveLength(1), { interval: 5 });
    for (const piece of ['b', 'c']) {
      await pass(0);
      await pass(29);
      expect(events).toEqual([]);
      const came = once(body, 'data');
      client.write(piece);
      await came;
    }
    await pass(0);
    await pass(31);
    expect(events).toEqual(['upload_stalled']);
    expect(upstream.requests[0]?.whole).toBe(false);
  });

  it('behaviour: an upload is not quiet while the upstream does not take the bytes that are there', async () => {
    const size = 64 * 1024 * 1024;
    const { client, body, upstream, events, pass } = await uploading(size);
    upstream.onHead((_request, socket) => void socket.pause());
    client.write(Buffer.alloc(size));
    await vi.waitFor(() => expect(body.isPaused()).toBe(true), { interval: 5, timeout: 30_000 });
    await vi.waitFor(() => expect(upstream.requests).toHaveLength(1), { interval: 5 });
    await pass(0);
    await pass(40);
    await pass(40);
    expect(events).toEqual([]);
    // Else the time-out for an upstream that takes nothing ends it, and says so.
    await pass(300);
    expect(events).toEqual(['upstream_timeout']);
  });
});

describe('an upload of very many pieces', () => {
  const PIECES = 200_000;

  it('attack: an upload of very many pieces leaves in few writes and reads one buffer a turn, so that others are served in between', async () => {
    let body = 0;
    let chunks = 0;
    const server = createServer((req, res) => {
      req.on('data', (chunk: Buffer) => {
        body += chunk.length;
        chunks++;
      });
      req.on('end', () => res.end('done'));
    });
    onEnd(() => {
      server.closeAllConnections();
      server.close();
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const address = server.address();
    if (address === null || typeof address === 'string') throw new Error('no port');
    let request: IncomingMessage | undefined;
    const { client } = await stage(undefined, {
      upstream: new URL(`http://127.0.0.1:${address.port}`),
      onRequest: (req) => (request = req),
    });
    const sender = await client();
    let most = 0;
    let last = 0;
    let watching = true;
    const watch = (): void => {
      const read = request?.socket.bytesRead ?? 0;
      most = Math.max(most, read - last);
      last = read;
      if (watching) setImmediate(watch);
    };
    watch();
    sender.socket.write(`${head('POST', 'Transfer-Encoding: chunked')}${'1\r\nx\r\n'.repeat(PIECES)}0\r\n\r\n`);
    // As long as it takes: others use the machine as well.
    await vi.waitFor(() => expect(sender.received()).toContain('done'), { interval: 20, timeout: 60_000 });
    watching = false;
    expect(body).toBe(PIECES);
    expect(chunks).toBeLessThan(PIECES / 100);
    expect(most).toBeLessThanOrEqual(64 * 1024);
  }, 180_000);
});

describe('an upload of a gigabyte from a fast client to a slow upstream', () => {
  const GIGABYTE = 1024 ** 3;
  const PIECE = Buffer.alloc(1024 * 1024, 'x');
  /** The kernel's buffers are most of it; of the body itself next to nothing may be held. */
  const HELD_AT_MOST = 64 * 1024 * 1024;

  it.each([
    ['of a known length', `Content-Length: ${GIGABYTE}`, '', ''],
    ['chunked', 'Transfer-Encoding: chunked', `${PIECE.length.toString(16)}\r\n`, '\r\n'],
  ])(
    'attack: an upload of a gigabyte, %s, is read no faster than the upstream takes it',
    async (_name, framing, before, after) => {
      let taken = 0;
      // It takes some megabytes, then rests. It answers what it has read whole: closed with bytes unread, it would be reset.
      const upstream = createNetServer((socket) => {
        let rested = 0;
        let headBytes = 0;
        let tail = '';
        socket.on('error', () => undefined);
        socket.on('data', (bytes: Buffer) => {
          if (taken === 0) headBytes = bytes.indexOf('\r\n\r\n') + 4;
          taken += bytes.length;
          tail = (tail + bytes.subarray(-5).toString('latin1')).slice(-5);
          if (taken - headBytes >= GIGABYTE && (after === '' || tail === '0\r\n\r\n')) {
            socket.end(OK);
          } else if (taken - rested >= 8 * 1024 * 1024) {
            rested = taken;
            socket.pause();
            setTimeout(() => socket.resume(), 2);
          }
        });
      });
      onEnd(() => upstream.close());
      await once(upstream.listen(0, '127.0.0.1'), 'listening');
      const address = upstream.address();
      if (address === null || typeof address === 'string') throw new Error('no port');
      let request: IncomingMessage | undefined;
      const { client } = await stage(undefined, {
        upstream: new URL(`http://127.0.0.1:${address.port}`),
        onRequest: (req) => (request = req),
      });
      const { socket, answer } = await client();
      let held = 0;
      socket.write(head('POST', framing));
      for (let sent = 0; sent < GIGABYTE; sent += PIECE.length) {
        socket.write(before);
        socket.write(PIECE);
        if (!socket.write(after)) await once(socket, 'drain');
        held = Math.max(held, (request?.socket.bytesRead ?? 0) - taken);
      }
      if (framing.includes('chunked')) socket.write('0\r\n\r\n');
      expect((await answer()).status).toBe(200);
      expect(held).toBeLessThan(HELD_AT_MOST);
    },
    90_000,
  );
});

it('behaviour: a client is told 100 before the upstream is asked for anything', async () => {
  const { client, upstream } = await stage((_request, socket) => void socket.write(OK));
  const waiting = await client();
  waiting.send(head('POST', 'Content-Length: 2', 'Expect: 100-continue'));
  expect((await waiting.answer()).status).toBe(100);
  expect(upstream.sockets).toHaveLength(0);
  waiting.send('hi');
  expect((await waiting.answer()).status).toBe(200);
});
