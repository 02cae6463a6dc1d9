// An answer as one text: what goes over the wire is what node:http would have written, the connection goes on behind it,
// and nothing leaves that could break a head or come second.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import {
  createWriteBatch,
  arePlain,
  createDate,
  linesOf,
  sendInOneWrite,
  takesOneWrite,
  oneWriteText,
} from '../../src/host/write-batch.ts';
import { respond, type OwnResponse } from '../../src/host/respond.ts';

const NOW = Date.UTC(2026, 10, 22, 1, 2, 3, 900);
const opened: (Server | Socket)[] = [];

afterEach(() => {
  for (const it of opened.splice(0)) {
    if ('listen' in it) it.close();
    else it.destroy();
  }
});

async function serve(handle: (req: IncomingMessage, res: ServerResponse) => void): Promise<number> {
  const server = createServer({ keepAliveTimeout: 0, optimizeEmptyRequests: true }, handle);
  opened.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return (server.address() as AddressInfo).port;
}

/** Sends each of `texts` when `enough` was read of the one before, and reads until that is so of all or the connection ends. */
async function talk(port: number, texts: readonly string[], enough: (read: string) => boolean): Promise<string> {
  const [first = '', ...rest] = texts;
  const socket = connect(port, '127.0.0.1');
  opened.push(socket);
  socket.write(first);
  let read = '';
  for await (const chunk of socket.setEncoding('latin1')) {
    read += String(chunk);
    if (!enough(read)) continue;
    const next = rest.shift();
    if (next === undefined) break;
    socket.write(next);
  }
  return read;
}

const GET = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n';
const DATE = 'Sun, 22 Nov 2026 01:02:03 GMT';
const ends = (text: string) => (read: string) => read.endsWith(text);
const writeBatch = createWriteBatch(setImmediate, () => NOW);

const ANSWERS: readonly (readonly [string, OwnResponse])[] = [
  ['a body', { status: 402, headers: ['Content-Type', 'application/json'], body: '{"a":1}' }],
  ['no body at all', { status: 404, headers: [], body: '' }],
  ['a status that forbids a body', { status: 204, headers: ['Allow', 'GET'], body: '' }],
  ['a status without a name', { status: 299, headers: [], body: 'x' }],
  ['headers twice and a character above ASCII', { status: 200, headers: ['A', '\u00e9', 'a', 'b'], body: 'x' }],
];

describe('over the wire', () => {
  for (const method of ['GET', 'HEAD']) {
    test.each(ANSWERS)(
      `behaviour: a ${method} answered with %s gets the same bytes as node:http writes`,
      async (_, answer) => {
        const own = await serve((req, res) => {
          expect(takesOneWrite(res)).toBe(true);
          respond(res, answer, req.method === 'HEAD', ['X-Request-Id', 'r'], writeBatch);
          // Nothing went to node:http.
          expect(res.headersSent).toBe(false);
        });
        const nodes = await serve((req, res) => respond(res, answer, req.method === 'HEAD', ['X-Request-Id', 'r']));
        const sent = method === 'HEAD' ? '' : String(answer.body);
        const request = `${method} / HTTP/1.1\r\nHost: a\r\n\r\n`;
        const read = await talk(own, [request], ends(`\r\n\r\n${sent}`));
        const expected = await talk(nodes, [request], ends(`\r\n\r\n${sent}`));
        expect(read).toContain(`Date: ${DATE}\r\n`);
        expect(read.replace(/Date: .*/, 'Date:')).toBe(expected.replace(/Date: .*/, 'Date:'));
      },
    );
  }

  test('behaviour: a connection serves request after request, also those that came in one packet', async () => {
    let handled = 0;
    const port = await serve((_, res) =>
      respond(res, { status: 200, headers: [], body: `answer ${++handled};` }, false, [], writeBatch),
    );
    const read = await talk(port, [GET.repeat(3)], ends('answer 3;'));
    expect(read.match(/answer \d;/g)).toEqual(['answer 1;', 'answer 2;', 'answer 3;']);
  });

  test('behaviour: finish and close of an answer in one write are told as of any other, once', async () => {
    const told: string[] = [];
    const port = await serve((_, res) => {
      res.on('finish', () => told.push('finish')).on('close', () => told.push('close'));
      respond(res, { status: 200, headers: [], body: 'answer;' }, false, [], writeBatch);
    });
    await talk(port, [GET, GET, GET], ends('answer;'));
    expect(told.slice(0, 5)).toEqual(['finish', 'close', 'finish', 'close', 'finish']);
  });

  const others: readonly (readonly [string, string, OwnResponse])[] = [
    ['HTTP/1.0', 'GET / HTTP/1.0\r\n\r\n', { status: 200, headers: [], body: 'x' }],
    [
      'Connection: close',
      'GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n',
      { status: 200, headers: [], body: 'x' },
    ],
    ['an answer that ends the connection', GET, { status: 200, headers: ['Connection', 'close'], body: 'x' }],
  ];
  test.each(others)('behaviour: %s goes through node:http', async (_, request, answer) => {
    const port = await serve((_req, res) => {
      respond(res, answer, false, [], writeBatch);
      expect(res.headersSent).toBe(true);
    });
    const read = await talk(port, [request], () => false);
    expect(read).toContain('Connection: close\r\n');
    expect(Buffer.from(read.slice(read.indexOf('\r\n\r\n') + 4), 'latin1')).toEqual(Buffer.from(answer.body));
  });

  test.each<[string, string | Buffer]>([
    ['a body beyond one byte a character', 'x\u20ac'],
    ['a body of bytes', Buffer.from([0x78, 0xff])],
  ])('behaviour: %s goes through node:http, though the response would take a text in one write', async (_, body) => {
    const port = await serve((_req, res) => {
      expect(takesOneWrite(res)).toBe(true);
      respond(res, { status: 200, headers: [], body }, false, [], writeBatch);
      expect(res.headersSent).toBe(true);
    });
    const expected = Buffer.from(body);
    const read = await talk(port, [GET], ends(`\r\n\r\n${expected.toString('latin1')}`));
    expect(read).toContain(`Content-Length: ${expected.length}\r\n`);
  });
});

describe('what must not happen', () => {
  test.each([
    ['a line break in a value', ['X-A', 'b\r\nX-B: c']],
    ['a bare line feed', ['X-A', 'b\nX-B: c']],
    ['a null byte', ['X-A', 'b\u0000']],
    ['a character that would be cut down to a line feed', ['X-A', 'b\u010aX-B: c']],
    ['a colon in a name', ['X-A: b\r\nX', 'c']],
    ['no name', ['', 'c']],
  ])('attack: a header with %s is left to node:http, which refuses it', async (_, headers) => {
    expect(arePlain(headers)).toBe(false);
    let refused: unknown;
    const port = await serve((_req, res) => {
      try {
        respond(res, { status: 200, headers, body: 'x' }, false, [], writeBatch);
      } catch (error) {
        refused = error;
        res.destroy();
      }
    });
    expect(await talk(port, [GET], () => false).catch(() => '')).toBe('');
    expect(refused).toBeInstanceOf(TypeError);
  });

  test('attack: the first of two answers to one request to leave is the only one', async () => {
    const port = await serve((_, res) => {
      respond(res, { status: 402, headers: [], body: 'first;' }, false, [], writeBatch);
      respond(res, { status: 200, headers: [], body: 'second;' }, false, [], writeBatch);
    });
    const read = await talk(port, [GET, GET], ends('first;'));
    expect(read).not.toContain('second');
    expect(read.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 402', 'HTTP/1.1 402']);
  });

  test('behaviour: an answer that node:http began meanwhile is not written into', async () => {
    const port = await serve((_, res) => {
      respond(res, { status: 402, headers: [], body: 'whole' }, false, [], writeBatch);
      res.writeHead(200, ['Content-Length', '5', 'Connection', 'close']).end('other');
    });
    const read = await talk(port, [GET], () => false);
    expect(read.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200']);
    expect(read.endsWith('other')).toBe(true);
  });

  test('behaviour: a client that is gone gets nothing, and its response is closed', async () => {
    let closed: (() => void) | undefined;
    const done = new Promise<void>((resolve) => (closed = resolve));
    let finished = false;
    const port = await serve((_, res) => {
      res.on('finish', () => (finished = true)).on('close', () => closed?.());
      respond(res, { status: 200, headers: [], body: 'x' }, false, [], writeBatch);
      res.socket?.destroy();
    });
    await talk(port, [GET], () => false).catch(() => '');
    await done;
    expect(finished).toBe(false);
  });

  test('behaviour: an answer that the client does not take yet is not through, and the next request waits', async () => {
    const events: string[] = [];
    const body = 'x'.repeat(8 * 1024 * 1024);
    let handled = 0;
    let began: (() => void) | undefined;
    const begun = new Promise<void>((resolve) => (began = resolve));
    const port = await serve((_, res) => {
      const mine = ++handled;
      res.on('finish', () => events.push(`${mine} through`));
      const { socket } = res;
      respond(res, { status: 200, headers: [], body }, false, [], writeBatch);
      setImmediate(() => {
        events.push(`${mine} ${socket !== null && socket.writableLength > 0 ? 'waits' : 'left'}`);
        began?.();
      });
    });
    const client = connect(port, '127.0.0.1');
    opened.push(client);
    client.pause();
    client.write(GET);
    await begun;
    expect(events).toEqual(['1 waits']);
    let bytes = 0;
    for await (const chunk of client) {
      bytes += (chunk as Buffer).length;
      if (bytes > body.length) break;
    }
    expect(events).toEqual(['1 waits', '1 through']);
  });

  test('behaviour: nothing is sent on a response that was detached', () => {
    const res = { socket: null, headersSent: false } as unknown as ServerResponse;
    expect(() => sendInOneWrite(res, 'x')).not.toThrow();
  });
});

test('behaviour: a Date of the upstream is kept, and a second one never added', () => {
  expect(linesOf(['date', 'yesterday'], () => DATE)).toBe('date: yesterday\r\n');
  expect(linesOf(['etag', '1'], () => DATE)).toBe(`etag: 1\r\nDate: ${DATE}\r\n`);
  expect(linesOf(['CONNECTION', 'close'], () => DATE)).toBeUndefined();
  expect(oneWriteText(200, 'A: b\r\n', 'x')).toBe('HTTP/1.1 200 OK\r\nA: b\r\nConnection: keep-alive\r\n\r\nx');
});

test('behaviour: the date is the second that the clock shows', () => {
  let now = NOW;
  const date = createDate(() => now);
  expect(date()).toBe(DATE);
  now += 99;
  expect(date()).toBe(DATE);
  now += 1;
  expect(date()).toBe('Sun, 22 Nov 2026 01:02:04 GMT');
});
