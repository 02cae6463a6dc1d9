// When things go wrong: an upstream that answers before it was asked everything, that leaves or breaks off at any point
// of a request with a body, that never comes to its point, and heads at the limit. Every wait is bounded.
import { describe, expect, it, vi } from 'vitest';
import { createLabs } from '../support/labs.ts';
import { headerOf, type RawAnswer, type RawClient } from '../support/raw-client.ts';
import type { StrictRequest } from '../support/strict-upstream.ts';
import { answerWith, foreignTokens, turn, type WireLab } from '../support/wire-lab.ts';
import { ANSWER_HEAD_BYTES, headOf } from './answer-cases.ts';

const { lab, client, onEnd, closeAll } = createLabs();

/** The answer, or undefined where the connection ended without a whole one. */
async function answerOrCut(one: RawClient): Promise<RawAnswer | undefined> {
  try {
    return await one.answer();
  } catch (error) {
    expect(String(error)).toMatch(/closed while/);
    return undefined;
  }
}

async function nextIsFine(made: WireLab): Promise<void> {
  const one = await client(made);
  for (let i = 0; i < 2; i++) {
    const token = made.token();
    one.send(`POST /free/${token} HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nhi`);
    expect((await one.answer()).body.toString()).toBe(token);
  }
  made.check();
}

const UPLOADS: readonly (readonly [string, string, string, string])[] = [
  ['a length', 'Content-Length: 40000', 'begin', 'x'.repeat(39_995)],
  ['chunks', 'Transfer-Encoding: chunked', '5\r\nbegin\r\n', `${'5\r\nmiddl\r\n'.repeat(1000)}0\r\n\r\n`],
];

describe.each(UPLOADS)('an upload with %s', (_, framing, begin, rest) => {
  const post = (token: string): string => `POST /free/${token} HTTP/1.1\r\nHost: h\r\n${framing}\r\n\r\n${begin}`;

  it.each(['stays', 'end', 'resetAndDestroy'] as const)(
    'attack: an answer that comes before the body is whole, and the upstream %s: the rest goes nowhere',
    async (how) => {
      const made = await lab();
      const token = made.token();
      const answered: StrictRequest[] = [];
      made.upstream.onHead((request) => {
        if (!request.target.includes(token)) return;
        answered.push(request);
        request.connection.spoil();
        request.connection.socket.write(`HTTP/1.1 413 Too Large\r\nContent-Length: 8\r\n\r\n${token}`, () => {
          if (how !== 'stays') request.connection.socket[how]();
        });
      });
      const one = await client(made);
      one.send(post(token));
      const answer = await answerOrCut(one);
      // A reset may overtake the answer.
      if (how !== 'resetAndDestroy') expect(answer?.body.toString()).toBe(token);
      await vi.waitFor(() => expect(answered[0]?.connection.closed).toBe(true), { interval: 2 });
      if (answer !== undefined) {
        const again = made.token();
        one.send(`${rest}GET /free/${again} HTTP/1.1\r\nHost: h\r\n\r\n`);
        const second = await answerOrCut(one);
        if (second !== undefined) expect(second.body.toString()).toBe(again);
        expect(foreignTokens(one.received(), [token, again])).toEqual([]);
      }
      expect(made.upstream.violations).toEqual([]);
      expect(answered.map(({ whole }) => whole)).toEqual([false]);
    },
  );

  it.each([
    ['as soon as its head is there', 'end'],
    ['as soon as its head is there', 'resetAndDestroy'],
    ['when it is whole', 'end'],
    ['when it is whole', 'resetAndDestroy'],
  ] as const)('behaviour: an upstream that leaves %s (%s): 502, asked once', async (when, how) => {
    const made = await lab();
    // On a connection that was used before, where a GET might be sent twice.
    await nextIsFine(made);
    const token = made.token();
    made.plan(token, ({ connection: { socket } }) => void socket[how]());
    const one = await client(made);
    if (when === 'when it is whole') {
      one.send(post(token) + rest);
    } else {
      made.upstream.onHead(({ target, connection: { socket } }) => {
        if (target.includes(token)) socket[how]();
      });
      one.send(post(token));
    }
    expect((await one.answer()).status).toBe(502);
    expect(made.upstream.requests.filter(({ target }) => target.includes(token))).toHaveLength(1);
  });

  it('attack: a client that leaves in the middle: the upstream sees it break off, and its connection is not used again', async () => {
    const made = await lab();
    const token = made.token();
    const one = await client(made);
    one.send(post(token));
    await vi.waitFor(() => expect(made.requestsOf(token)).toHaveLength(1), { interval: 2 });
    const [request] = made.requestsOf(token);
    request?.connection.spoil();
    one.socket.resetAndDestroy();
    await vi.waitFor(() => expect(request?.connection.closed).toBe(true), { interval: 2 });
    expect(request?.whole).toBe(false);
    await nextIsFine(made);
  });

  it.each([0, 1, 2, 3, 20])(
    'attack: a client that leaves when all was sent, and an answer %i turns later: nobody else gets it',
    async (turns) => {
      const made = await lab();
      const token = made.token();
      const asked: StrictRequest[] = [];
      made.plan(token, (request) => void asked.push(request));
      const one = await client(made);
      one.send(post(token) + rest);
      await vi.waitFor(() => expect(asked).toHaveLength(1), { interval: 2 });
      one.close();
      for (let i = 0; i < turns; i++) await turn();
      const [request] = asked;
      if (request?.connection.socket.writable === true) request.connection.socket.write(answerWith(token));
      await nextIsFine(made);
    },
  );
});

describe('an upstream that never comes to its point', () => {
  const SHORT = { timeouts: { connectMs: 300, headersMs: 300, idleMs: 300 } };

  it.each([
    ['100', 'HTTP/1.1 100 Continue\r\n\r\n'],
    ['102', 'HTTP/1.1 102 Processing\r\n\r\n'],
    ['103', 'HTTP/1.1 103 Early Hints\r\n\r\n'],
    ['the bytes of a header', 'X'],
  ])('attack: an upstream that sends %s without an end is not waited for without an end', async (what, bytes) => {
    const made = await lab(SHORT);
    const token = made.token();
    made.plan(token, ({ connection: { socket } }) => {
      if (what === 'the bytes of a header') socket.write('HTTP/1.1 200 OK\r\n');
      const flood = setInterval(() => (socket.writable ? socket.write(bytes) : clearInterval(flood)), 20);
      onEnd(() => clearInterval(flood));
    });
    const one = await client(made);
    one.send(`GET /free/${token} HTTP/1.1\r\nHost: h\r\n\r\n`);
    const final = async (): Promise<number> => {
      const { status } = await one.answer();
      return status < 200 ? final() : status;
    };
    expect([502, 504]).toContain(await final());
    await nextIsFine(made);
  });

  it('attack: a thousand answers of 100 in one go are read past, or refused', async () => {
    const made = await lab();
    const token = made.token();
    made.plan(token, ({ connection: { socket } }) => {
      socket.write('HTTP/1.1 100 Continue\r\n\r\n'.repeat(1000) + answerWith(token));
    });
    const one = await client(made);
    one.send(`GET /free/${token} HTTP/1.1\r\nHost: h\r\n\r\n`);
    const answer = await one.answer();
    expect([200, 502]).toContain(answer.status);
    if (answer.status === 200) expect(answer.body.toString()).toBe(token);
    await nextIsFine(made);
  });

  it.each([
    ['a body with a length', 'Content-Length: 9\r\n\r\nhalf'],
    ['chunks', 'Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n'],
    ['a body to the end', '\r\nhalf'],
  ])('behaviour: %s that stops in the middle is cut off in time', async (_, bytes) => {
    const made = await lab(SHORT);
    const token = made.token();
    made.plan(token, ({ connection: { socket } }) => void socket.write(`HTTP/1.1 200 OK\r\n${bytes}`));
    const one = await client(made);
    one.send(`GET /free/${token} HTTP/1.1\r\nHost: h\r\n\r\n`);
    expect(await answerOrCut(one)).toBeUndefined();
    await nextIsFine(made);
  });
});

describe('heads at the limit', () => {
  it.each([
    [ANSWER_HEAD_BYTES - 128, 200],
    [ANSWER_HEAD_BYTES + 128, 502],
  ])('refuses: an answer with a head of %i bytes: %i', async (size, status) => {
    const made = await lab();
    const token = made.token();
    made.plan(token, ({ connection: { socket } }) => void socket.write(headOf(size) + token));
    const one = await client(made);
    one.send(`GET /free/${token} HTTP/1.1\r\nHost: h\r\n\r\n`);
    const answer = await one.answer();
    expect(answer.status).toBe(status);
    if (status === 200) expect(headerOf(answer, 'x-long')?.length).toBeGreaterThan(size - 100);
    await nextIsFine(made);
  });

  it('attack: an answer of many headers crosses with all of them or is refused: none is dropped silently', async () => {
    const made = await lab();
    for (const many of [900, 1100, 1900, 2100, 3000, 5000]) {
      const token = made.token();
      made.plan(token, ({ connection: { socket } }) => {
        socket.write(`HTTP/1.1 200 OK\r\n${'A: 1\r\n'.repeat(many)}Content-Length: 8\r\nLast: 1\r\n\r\n${token}`);
      });
      const one = await client(made);
      one.send(`GET /free/${token} HTTP/1.1\r\nHost: h\r\n\r\n`);
      const answer = await one.answer();
      if (answer.status === 502) continue;
      expect(answer.headers.filter(([name]) => name === 'A')).toHaveLength(many);
      expect(headerOf(answer, 'last')).toBe('1');
    }
    await nextIsFine(made);
  });
});

describe('a 101 that was asked for', () => {
  const HANDSHAKE =
    'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n';
  const SWITCH = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n';

  async function tunnel(bytes: string, cut?: number): Promise<{ made: WireLab; one: RawClient; heard: () => string }> {
    const made = await lab();
    const token = made.token();
    let heard = '';
    made.plan(token, ({ connection }) => {
      connection.spoil();
      // Nothing of the client's may come before the last byte of the 101 was written.
      const at = cut ?? bytes.length;
      connection.socket.write(bytes.slice(0, at));
      void turn().then(() => {
        connection.tunnel((data) => (heard += data.toString('latin1')));
        if (at < bytes.length) connection.socket.write(bytes.slice(at));
      });
    });
    const one = await client(made);
    one.send(`GET /free/${token} HTTP/1.1\r\nHost: h\r\n${HANDSHAKE}early`);
    return { made, one, heard: () => heard };
  }

  it.each([
    ['alone', SWITCH],
    ['behind a 100', `HTTP/1.1 100 Continue\r\n\r\n${SWITCH}`],
    ['behind a 103', `HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n${SWITCH}`],
  ])(
    'behaviour: a 101 (%s), cut at every place, opens the tunnel, and nothing was sent before it',
    async (_, bytes) => {
      for (let at = 1; at < bytes.length; at += 3) {
        const { made, one, heard } = await tunnel(`${bytes}first`, at);
        expect((await one.answer()).status).toBe(101);
        await one.until('\r\n\r\nfirst');
        one.send('later');
        await vi.waitFor(() => expect(heard()).toBe('earlylater'), { interval: 2 });
        one.close();
        await vi.waitFor(() => expect(made.upstream.connections.every(({ closed }) => closed)).toBe(true), {
          interval: 2,
        });
        await nextIsFine(made);
        await closeAll();
      }
    },
  );

  it('attack: the bytes behind a 101 are never read as HTTP', async () => {
    const { made, one } = await tunnel(`${SWITCH}${SWITCH}${answerWith('k9999999')}`);
    expect((await one.answer()).status).toBe(101);
    await one.until('k9999999');
    expect(one.received().match(/101 Switching/g)).toHaveLength(2);
    one.close();
    await nextIsFine(made);
  });

  it.each([
    ['a length', 'Content-Length: 5\r\n'],
    ['a coding', 'Transfer-Encoding: chunked\r\n'],
  ])('attack: %s in a 101 frames nothing and does not cross', async (_, line) => {
    const { made, one } = await tunnel(SWITCH.replace('\r\n\r\n', `\r\n${line}\r\nhello there`));
    const answer = await one.answer();
    expect([101, 502]).toContain(answer.status);
    if (answer.status === 101) {
      expect([headerOf(answer, 'content-length'), headerOf(answer, 'transfer-encoding')]).toEqual([
        undefined,
        undefined,
      ]);
      await one.until('hello there');
    }
    one.close();
    await nextIsFine(made);
  });

  it.each([
    ['another protocol', SWITCH.replace('websocket', 'h2c')],
    ['no protocol', SWITCH.replace('Upgrade: websocket\r\n', '')],
    ['a folded protocol', SWITCH.replace('Upgrade: websocket', 'Upgrade:\r\n websocket')],
    ['a list of protocols', SWITCH.replace('websocket', 'websocket, h2c')],
    ['HTTP/1.0', SWITCH.replace('HTTP/1.1', 'HTTP/1.0')],
  ])('refuses: a 101 with %s', async (_, bytes) => {
    const { made, one } = await tunnel(`${bytes}stray`);
    expect((await one.answer()).status).toBe(502);
    await one.closed;
    expect(one.received()).not.toContain('stray');
    await vi.waitFor(() => expect(made.upstream.connections[0]?.closed).toBe(true), { interval: 2 });
    expect(made.upstream.connections[0]?.bytes()).not.toContain('early');
    await nextIsFine(made);
  });

  it.each(['end', 'resetAndDestroy'] as const)('behaviour: an upstream that leaves in a 101 (%s): 502', async (how) => {
    const made = await lab();
    const token = made.token();
    made.plan(token, ({ connection: { socket } }) => {
      socket.write(SWITCH.slice(0, -3));
      void turn().then(() => socket[how]());
    });
    const one = await client(made);
    one.send(`GET /free/${token} HTTP/1.1\r\nHost: h\r\n${HANDSHAKE}`);
    expect((await one.answer()).status).toBe(502);
    await nextIsFine(made);
  });
});
