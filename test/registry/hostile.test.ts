// What a client should not send, and what fails inside: every answer is a problem that tells nothing it should not.
import { connect } from 'node:net';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { FEED, LIST, MATCH, REGISTER, SDK_KEY, startRegistry, token, type Kit } from './kit.ts';

let kit: Kit;
beforeEach(async () => {
  kit = await startRegistry();
});
afterEach(() => kit.close());

const good = { route_pattern: '/a', method: 'GET', amount: '1' };
const padded = (bytes: number): string => {
  const text = JSON.stringify({ ...good, extra: '' });
  return text.replace('"extra":""', `"extra":"${'x'.repeat(bytes - text.length)}"`);
};

describe('bodies', () => {
  test('refuses: a body of one byte more than 64 KiB is 413, declared or chunked; 64 KiB is taken', async () => {
    const limit = 64 * 1024;
    expect(Buffer.byteLength(padded(limit))).toBe(limit);
    expect((await kit.sdk('POST', REGISTER, { body: padded(limit) })).status).toBe(201);
    for (const headers of [{}, { 'Transfer-Encoding': 'chunked' }]) {
      const reply = await kit.sdk('POST', REGISTER, { body: padded(limit + 1), headers });
      expect([reply.status, reply.json.code]).toEqual([413, 'body_too_large']);
      expect((await kit.sdk('POST', REGISTER, { body: padded(limit), headers })).status).toBe(200);
    }
  });

  test.each(['POST', 'PATCH'])('refuses: %s without a body is told so at once', async (method) => {
    const { json } = await kit.dashboard('POST', LIST, { body: good });
    const url = method === 'POST' ? LIST : `${LIST}/${json.id}`;
    for (const length of [[], ['Content-Length: 0']]) {
      const socket = connect(kit.port, '127.0.0.1');
      const head = [`${method} ${url} HTTP/1.1`, 'Host: x', `Authorization: Bearer ${await token()}`, ...length];
      socket.write([...head, 'Content-Type: application/json', 'Connection: close', '', ''].join('\r\n'));
      const text = (await socket.toArray()).join('');
      expect(text).toMatch(/^HTTP\/1\.1 400 /);
      expect(text).toContain('The body is empty; send a JSON object.');
    }
  });

  test('behaviour: after a 413 the connection still answers the next request', async () => {
    const big = 'x'.repeat(300_000);
    const head = `Host: x\r\nAuthorization: Bearer ${SDK_KEY}\r\n`;
    const socket = connect(kit.port, '127.0.0.1');
    socket.write(
      `POST ${REGISTER} HTTP/1.1\r\n${head}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n`,
    );
    socket.write(
      `${big.length.toString(16)}\r\n${big}\r\n0\r\n\r\nGET /v1/health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`,
    );
    let text = '';
    for await (const chunk of socket) text += String(chunk);
    expect(text.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 413', 'HTTP/1.1 200']);
  });

  const malformed: [string, string | Buffer][] = [
    ['nothing', ''],
    ['half an object', '{"amount":'],
    ['two values', '{} {}'],
    ['a trailing comma', '{"a":1,}'],
    ['single quotes', "{'a':1}"],
    ['NaN', '{"a":NaN}'],
    ['invalid UTF-8', Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d])],
    ['an overlong encoding', Buffer.from([0x22, 0xc0, 0xaf, 0x22])],
    ['UTF-16', Buffer.from('{}', 'utf16le')],
    ['a bomb of open brackets', '['.repeat(60_000)],
  ];
  test.each(malformed)('refuses: a body of %s, with 400', async (_what, body) => {
    const reply = await kit.sdk('POST', REGISTER, { body });
    expect([reply.status, reply.json.code, reply.headers['content-type']]).toEqual([
      400,
      'malformed',
      'application/problem+json',
    ]);
  });

  test.each(['[', '{"a":'])('attack: tens of thousands of levels of %s neither crash nor pass', async (open) => {
    const close = open === '[' ? ']' : '}';
    const levels = Math.floor(60_000 / (open.length + 1));
    const bomb = `${open.repeat(levels)}${open === '[' ? '' : '1'}${close.repeat(levels)}`;
    expect((await kit.sdk('POST', REGISTER, { body: bomb })).status).toBe(422);
    const inside = await kit.sdk('POST', REGISTER, { body: `{"route_pattern":${bomb},"method":"GET","amount":"1"}` });
    expect(inside.status).toBe(422);
    expect((await kit.ask('GET', '/v1/health')).status).toBe(200);
  });

  test.each(['gzip', 'br', 'x'])('refuses: a body of Content-Encoding %s, with 415', async (coding) => {
    const reply = await kit.sdk('POST', REGISTER, { body: good, headers: { 'Content-Encoding': coding } });
    expect([reply.status, reply.headers['accept-post']]).toEqual([415, 'application/json']);
  });

  test('attack: __proto__, constructor and prototype in a body change nothing but that body', async () => {
    const evil =
      '{"__proto__":{"status":"paused","polluted":1},"constructor":{"prototype":{"polluted":1}},"route_pattern":"/evil","method":"GET","amount":"1"}';
    const reply = await kit.sdk('POST', REGISTER, { body: evil });
    expect([reply.status, reply.json.status, Object.hasOwn(reply.json, 'polluted')]).toEqual([201, 'active', false]);
    const query = await kit.sdk('GET', `${MATCH}?path=/evil&method=GET&__proto__=1&constructor=2`);
    expect([query.status, query.json.code]).toEqual([400, 'malformed']);
    expect(Object.hasOwn(Object.prototype, 'polluted')).toBe(false);
  });

  test('behaviour: an error about thousands of members stays small', async () => {
    const names = Object.fromEntries(Array.from({ length: 3000 }, (_, index) => [`${'n'.repeat(10)}${index}`, 1]));
    const reply = await kit.dashboard('POST', LIST, { body: { ...good, ...names } });
    expect([reply.status, reply.json.errors.length]).toEqual([422, 20]);
    expect(reply.body.length).toBeLessThan(4096);
  });

  test('behaviour: a client that goes away in the middle of its body writes nothing', async () => {
    const text = JSON.stringify(good);
    const head = `POST ${REGISTER} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${SDK_KEY}\r\nContent-Type: application/json\r\n`;
    const socket = connect(kit.port, '127.0.0.1');
    socket.end(`${head}Content-Length: ${text.length + 1}\r\n\r\n${text}`);
    await new Promise((resolve) => socket.resume().once('close', resolve));
    expect(kit.registry.routeSet().routes).toEqual([]);
  });
});

describe('when something fails inside', () => {
  test('behaviour: a store that fails is 503 with Retry-After, and says nothing of the machine', async () => {
    kit.store.close();
    for (const [method, path, body] of [
      ['POST', LIST, good],
      ['GET', `${LIST}/00000000-0000-4000-8000-000000000000/changes`, undefined],
    ] as const) {
      const reply = await kit.dashboard(method, path, { body });
      expect([reply.status, reply.json.code, reply.headers['retry-after']]).toEqual([503, 'registry_unavailable', '5']);
      expect(reply.body.toString()).not.toMatch(/sqlite|database|node_modules|\/tmp/i);
    }
    expect(kit.logs.join('')).toContain('database is not open');
  });

  test('behaviour: while another process holds the lock a write waits, without stalling anybody', async () => {
    const other = new DatabaseSync(kit.file);
    other.exec('BEGIN IMMEDIATE');
    let done = false;
    const write = kit.sdk('POST', REGISTER, { body: good }).finally(() => (done = true));
    for (let round = 0; round < 5; round++) expect((await kit.sdk('GET', FEED)).status).toBe(200);
    expect(done).toBe(false);
    other.exec('COMMIT');
    other.close();
    expect((await write).status).toBe(201);
  });

  test('behaviour: routes that another process wrote are taken over with the next write, and listeners told to start anew', async () => {
    const changes: string[] = [];
    kit.registry.subscribe((change) => void changes.push(`${change.kind} ${change.revision}`));
    const mine = (await kit.sdk('POST', REGISTER, { body: good })).json;
    const other = new DatabaseSync(kit.file);
    other.exec("UPDATE routes SET amount = '5'; UPDATE meta SET revision = revision + 1, stamp = 'theirs'");
    other.close();
    await kit.sdk('POST', REGISTER, { body: { ...good, route_pattern: '/b' } });
    expect(changes).toEqual(['created 1', 'reset 3']);
    expect((await kit.sdk('GET', FEED)).list.map((each) => each.amount)).toEqual(['5', '1']);
    expect((await kit.dashboard('GET', `${LIST}/${mine.id}`)).json.amount).toBe('5');
  });

  test('behaviour: a listener that throws is logged; the write is made and the others hear of it', async () => {
    const heard: string[] = [];
    kit.registry.subscribe(() => {
      throw new Error('broken listener');
    });
    const stop = kit.registry.subscribe(({ kind }) => void heard.push(kind));
    expect((await kit.sdk('POST', REGISTER, { body: good })).status).toBe(201);
    stop();
    await kit.sdk('POST', REGISTER, { body: { ...good, method: 'POST' } });
    expect(heard).toEqual(['created']);
    expect(kit.logs.join('')).toContain('broken listener');
  });

  test('behaviour: listeners are called before the answer is sent', async () => {
    const order: string[] = [];
    kit.registry.subscribe(
      ({ kind }) => void order.push(`${kind} heard, ${kit.registry.routeSet().routes[0]?.amount}`),
    );
    const { json } = await kit.sdk('POST', REGISTER, { body: good });
    order.push('answered');
    await kit.dashboard('PATCH', `${LIST}/${json.id}`, { body: { amount: '2' } });
    order.push('answered');
    expect(order).toEqual(['created heard, 1', 'answered', 'updated heard, 2', 'answered']);
  });

  test('behaviour: a bug is a 500 that says nothing, and is logged', async () => {
    const broken = await startRegistry({
      snapshot: () => {
        throw new TypeError('secret detail of the machine');
      },
    });
    const reply = await broken.sdk('GET', `${MATCH}?path=/a&method=GET`);
    expect([reply.status, reply.json.code]).toEqual([500, 'internal']);
    expect(reply.body.toString()).not.toContain('secret detail');
    expect(broken.logs.join('')).toContain('secret detail');
    await broken.close();
  });
});
