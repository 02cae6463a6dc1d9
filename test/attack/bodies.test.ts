// Bodies of many clients at once, through memory that is used again and again: every byte of a body is its owner's, also
// where somebody reads slowly, leaves in the middle, or is held until it has paid.
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { connect } from 'node:net';
import { describe, expect, it, vi } from 'vitest';
import { createResponseMemory, KeptResponse } from '../../src/gateway/pay/kept-responses.ts';
import { createLabs } from '../support/labs.ts';
import { openRaw, readChunks, type RawClient } from '../support/raw-client.ts';
import { answerWith, foreignTokens, inParallel, LONG, turn } from '../support/wire-lab.ts';

const { lab, onEnd } = createLabs();

const CLIENTS = LONG ? 40 : 12;
const digest = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');
/** `size` bytes that say whose they are wherever they are cut. */
const bodyOf = (token: string, size: number): Buffer<ArrayBuffer> => Buffer.alloc(size, `${token}.`);

function frame(body: Buffer<ArrayBuffer>, framing: string): Buffer<ArrayBuffer> {
  switch (framing) {
    case 'length':
      return Buffer.concat([Buffer.from(`HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n`), body]);
    case 'chunked': {
      const parts = [Buffer.from('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n')];
      // Chunks of many sizes, so that no two reads are cut alike.
      for (let at = 0, size = 1; at < body.length; at += size, size = (size * 7 + 13) % 40_000) {
        const chunk = body.subarray(at, at + Math.max(1, size));
        parts.push(Buffer.from(`${chunk.length.toString(16)}\r\n`), chunk, Buffer.from('\r\n'));
        if (size === 0) size = 1;
      }
      return Buffer.concat([...parts, Buffer.from('0\r\n\r\n')]);
    }
    default:
      return Buffer.concat([Buffer.from('HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n'), body]);
  }
}

/** A client that asks and reads nothing until it is told to; the body it gets is whole or it fails. */
async function stalled(port: number, token: string): Promise<() => Promise<Buffer>> {
  const socket = connect({ port, host: '127.0.0.1' });
  onEnd(() => socket.destroy());
  const parts: Buffer[] = [];
  socket.pause();
  socket.on('data', (part: Buffer) => parts.push(part));
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  socket.write(`GET /free/${token} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n`);
  return async () => {
    socket.resume();
    await once(socket, 'close');
    const all = Buffer.concat(parts);
    const head = all.indexOf('\r\n\r\n') + 4;
    const body = all.subarray(head);
    return /transfer-encoding: chunked/i.test(all.toString('latin1', 0, head))
      ? (readChunks(body)?.body ?? Buffer.alloc(0))
      : body;
  };
}

describe('answers', () => {
  // In one go, and in pieces that come in reads of their own.
  it.each([
    ['length', 8_000_003],
    ['length', 40_000],
    ['chunked', 8_000_003],
    ['chunked', 40_000],
    ['close', 8_000_003],
  ])(
    'attack: long answers (%s, written %i bytes at a time) to clients that stall do not mix',
    async (framing, piece) => {
      const made = await lab({ timeouts: { idleMs: 10_000 } });
      const size = 8_000_003;
      const serve = (token: string, body: Buffer<ArrayBuffer>): void =>
        made.plan(token, ({ connection: { socket } }) => {
          void (async () => {
            const bytes = frame(body, framing);
            for (let at = 0; at < bytes.length && !socket.destroyed; at += piece) {
              const goesOn = socket.write(bytes.subarray(at, at + piece));
              if (!goesOn) await Promise.race([once(socket, 'drain'), once(socket, 'close')]);
              else await turn();
            }
            if (framing === 'close') socket.end();
          })();
        });
      const slow: { body: Buffer; read: () => Promise<Buffer> }[] = [];
      for (let i = 0; i < 4; i++) {
        const token = made.token();
        const body = bodyOf(token, size + i);
        serve(token, body);
        slow.push({ body, read: await stalled(made.gateway.port, token) });
      }
      // Others read, and leave in the middle, through the same memory meanwhile.
      await inParallel(
        Array.from({ length: CLIENTS }, (_, i) => i),
        6,
        async (i) => {
          const token = made.token();
          const body = bodyOf(token, 300_000 + i);
          serve(token, body);
          const client = await openRaw(made.gateway.port);
          onEnd(client.close);
          client.send(`GET /free/${token} HTTP/1.1\r\nHost: h\r\n\r\n`);
          if (i % 4 === 3) {
            await client.until(token);
            client.socket.resetAndDestroy();
            return;
          }
          const answer = await client.answer();
          expect([answer.body.length, digest(answer.body)]).toEqual([body.length, digest(body)]);
          client.close();
        },
      );
      for (const { body, read } of slow) {
        const got = await read();
        expect([got.length, digest(got)]).toEqual([body.length, digest(body)]);
      }
      expect(made.upstream.violations).toEqual([]);
    },
  );

  it('attack: the answer that is kept for a client that left has nothing of what others got meanwhile', async () => {
    const made = await lab({ keepBytes: 100_000 });
    const token = made.token();
    const body = bodyOf(token, 60_000);
    made.plan(token, ({ connection: { socket } }) => {
      socket.write(frame(body, 'length').subarray(0, 30_000));
    });
    const client = await openRaw(made.gateway.port);
    client.send(`POST /free/${token} HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n`);
    await client.until(token);
    client.close();
    for (let i = 0; i < 5; i++) {
      const other = made.token();
      made.plan(other, ({ connection: { socket } }) => void socket.write(frame(bodyOf(other, 50_000), 'length')));
      const next = await openRaw(made.gateway.port);
      onEnd(next.close);
      next.send(`GET /free/${other} HTTP/1.1\r\nHost: h\r\n\r\n`);
      expect(digest((await next.answer()).body)).toBe(digest(bodyOf(other, 50_000)));
    }
    made.requestsOf(token)[0]?.connection.socket.write(frame(body, 'length').subarray(30_000));
    const gone = await vi.waitFor(
      () => made.gateway.outcomes.find(({ kind }) => kind === 'client_gone') ?? expect.fail('no outcome yet'),
      { interval: 2, timeout: 30_000 },
    );
    expect(gone.kind === 'client_gone' && digest(Buffer.from(gone.kept?.response().body ?? ''))).toBe(digest(body));
  });

  it('attack: held and kept answers do not mix with what others get meanwhile', async () => {
    const memory = createResponseMemory();
    const waiting: (() => void)[] = [];
    const made = await lab({
      keepBytes: 400_000,
      beforeResponse: () =>
        new Promise((resolve) =>
          waiting.push(() => resolve({ kind: 'stream', headers: [], keep: new KeptResponse(memory, 400_000) })),
        ),
    });
    const sizes = [8, 2000, 20_000, 70_000, 300_000];
    const bodies = new Map<string, Buffer>();
    const leaving: string[] = [];
    const clients: RawClient[] = [];
    for (let i = 0; i < CLIENTS * 2; i++) {
      const token = made.token();
      const body = bodyOf(token, sizes[i % sizes.length] ?? 8);
      bodies.set(token, body);
      made.plan(
        token,
        ({ connection: { socket } }) => void socket.write(frame(body, i % 2 === 0 ? 'length' : 'chunked')),
      );
      const client = await openRaw(made.gateway.port);
      onEnd(client.close);
      clients.push(client);
      client.send(`POST /free/${token} HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n`);
      if (i % 3 === 2) leaving.push(token);
    }
    await vi.waitFor(() => expect(waiting).toHaveLength(CLIENTS * 2), { interval: 2, timeout: 30_000 });
    for (const [i, client] of clients.entries()) if (i % 3 === 2) client.close();
    await turn();
    for (const go of waiting) {
      go();
      await turn();
    }
    const tokens = [...bodies.keys()];
    for (const [i, client] of clients.entries()) {
      if (i % 3 === 2) continue;
      const { body } = await client.answer();
      expect(digest(body)).toBe(digest(bodies.get(tokens[i] ?? '') ?? Buffer.alloc(0)));
    }
    await vi.waitFor(() => expect(made.gateway.outcomes).toHaveLength(CLIENTS * 2), { interval: 2, timeout: 30_000 });
    const kept = made.gateway.outcomes.flatMap((outcome) =>
      outcome.kind === 'client_gone' && outcome.kept !== undefined
        ? [digest(Buffer.from(outcome.kept.response().body))]
        : [],
    );
    const whole = leaving.map((token) => digest(bodies.get(token) ?? Buffer.alloc(0)));
    expect(kept.length).toBeGreaterThan(0);
    for (const one of kept) expect(whole).toContain(one);
    made.check();
  });
});

describe('uploads', () => {
  it.each(['length', 'chunked'])('attack: long uploads (%s) to a slow upstream do not mix', async (framing) => {
    const made = await lab({ timeouts: { idleMs: 10_000, headersMs: 10_000 } });
    const size = 200_011;
    const wrong: string[] = [];
    made.upstream.onConnection(({ socket }) => {
      const rest = setInterval(() => {
        socket.pause();
        setTimeout(() => socket.resume(), 2);
      }, 5);
      socket.on('close', () => clearInterval(rest));
    });
    await inParallel(
      Array.from({ length: CLIENTS }, (_, i) => i),
      CLIENTS,
      async (i) => {
        const token = made.token();
        const body = bodyOf(token, size + i);
        made.plan(token, (request) => {
          if (digest(request.body) !== digest(body)) wrong.push(`${token}: ${request.body.length} bytes`);
          request.connection.socket.write(answerWith(token));
        });
        const client = await openRaw(made.gateway.port);
        onEnd(client.close);
        const head = `POST /free/${token} HTTP/1.1\r\nHost: h\r\n`;
        if (framing === 'length') {
          client.send(`${head}Content-Length: ${body.length}\r\n\r\n`);
          client.send(body);
        } else {
          client.send(`${head}Transfer-Encoding: chunked\r\n\r\n`);
          client.send(
            frame(body, 'chunked').subarray(Buffer.byteLength('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n')),
          );
        }
        expect((await client.answer()).body.toString()).toBe(token);
        client.close();
      },
    );
    expect(wrong).toEqual([]);
    made.check();
  });
});

describe('one connection to the upstream for all', () => {
  it.each([0, 100, 16_384, 65_535, 65_536, 65_537, 262_144, 65_536 + 262_144])(
    'attack: bytes behind an answer that fills a read of %i bytes are not taken for the next answer',
    async (total) => {
      const made = await lab({ maxSockets: 1 });
      const head = (length: number): string => `HTTP/1.1 200 OK\r\nContent-Length: ${length}\r\n\r\n`;
      const length = Math.max(8, total - head(total).length);
      const first = made.token();
      const body = bodyOf(first, length).toString('latin1');
      made.plan(first, ({ connection: { socket, spoil } }) => {
        spoil();
        socket.write(Buffer.from(`${head(length)}${body}${answerWith('stray')}`, 'latin1'));
      });
      const clients: { token: string; client: RawClient }[] = [];
      for (let i = 0; i < 6; i++) {
        const token = i === 0 ? first : made.token();
        const client = await openRaw(made.gateway.port);
        onEnd(client.close);
        clients.push({ token, client });
        client.send(`GET /free/${token} HTTP/1.1\r\nHost: h\r\n\r\n`);
        await turn();
      }
      for (const { token, client } of clients) {
        const answer = await client.answer();
        expect(answer.status).toBe(200);
        expect(answer.body.toString('latin1')).toBe(token === first ? body : token);
        expect(foreignTokens(client.received(), [token])).toEqual([]);
        expect(client.received()).not.toContain('stray');
      }
      made.check();
    },
  );

  it.each([8, 70_000, 500_000])(
    'attack: bytes behind an answer of %i bytes that was held are not taken for the next answer',
    async (length) => {
      const made = await lab({
        maxSockets: 1,
        beforeResponse: () => new Promise((resolve) => setTimeout(resolve, 30, { kind: 'stream', headers: [] })),
      });
      const tokens = Array.from({ length: 4 }, made.token);
      const clients: RawClient[] = [];
      for (const [i, token] of tokens.entries()) {
        made.plan(token, ({ connection: { socket, spoil } }) => {
          if (i === 0) spoil();
          const body = bodyOf(token, length).toString('latin1');
          socket.write(Buffer.from(`${answerWith(body)}${i === 0 ? answerWith('stray') : ''}`, 'latin1'));
        });
        const client = await openRaw(made.gateway.port);
        onEnd(client.close);
        clients.push(client);
        client.send(`GET /free/${token} HTTP/1.1\r\nHost: h\r\n\r\n`);
        await turn();
      }
      for (const [i, client] of clients.entries()) {
        const { body } = await client.answer();
        expect(digest(body)).toBe(digest(bodyOf(tokens[i] ?? '', length)));
        expect(client.received()).not.toContain('stray');
      }
      made.check();
    },
  );
});
