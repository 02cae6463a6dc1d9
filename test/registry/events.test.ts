// The event stream: every change once and in order, resuming, and what happens to readers that should not stay.
import { createHash } from 'node:crypto';
import { connect } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import {
  declared,
  EVENTS,
  FEED,
  LEDGER_KEY,
  LIST,
  openEvents,
  REGISTER,
  SDK_KEY,
  startRegistry,
  type Kit,
  type Wire,
} from './kit.ts';

const opened: { close: () => void }[] = [];
let kit: Kit;
afterEach(async () => {
  for (const stream of opened.splice(0)) stream.close();
  await kit.close();
});

async function start(options: Parameters<typeof startRegistry>[0] = {}): Promise<void> {
  kit = await startRegistry(options);
}
async function listen(headers: Record<string, string> = {}, key = SDK_KEY): ReturnType<typeof openEvents> {
  const stream = await openEvents(kit.port, { Authorization: `Bearer ${key}`, ...headers });
  opened.push(stream);
  return stream;
}
const register = async (pattern: string, rest: object = {}): Promise<Wire> =>
  (await kit.sdk('POST', REGISTER, { body: { route_pattern: pattern, method: 'GET', amount: '1', ...rest } })).json;

const large = (index: number) => ({
  route_pattern: `/r/${index}`,
  method: 'GET',
  amount: '1',
  description: 'x'.repeat(1000),
});

describe('events', () => {
  test('behaviour: a stream tells what is created, updated and deleted, with the revision as id', async () => {
    await start();
    const stream = await listen();
    expect(stream.status).toBe(200);
    expect(stream.headers).toMatchObject({
      ...{ 'content-type': 'text/event-stream', 'x-accel-buffering': 'no', 'cache-control': 'no-store' },
      ...{ 'tollgate-registry': kit.store.routes.registryId, 'tollgate-revision': '0' },
    });
    await stream.until('\nid: 0\n\n');
    const [, retry] = /^retry: (\d+)\nid: 0\n\n/.exec(stream.text()) ?? [];
    expect(Number(retry)).toBeGreaterThanOrEqual(1000);
    expect(Number(retry)).toBeLessThanOrEqual(10_000);
    const route = await register('/a', { name: 'line\nbreak' });
    expect(await stream.next()).toEqual({ event: 'route.created', id: '1', data: route });
    const patched = (await kit.dashboard('PATCH', `${LIST}/${route.id}`, { body: { amount: '2' } })).json;
    expect(await stream.next()).toEqual({ event: 'route.updated', id: '2', data: patched });
    await kit.dashboard('PATCH', `${LIST}/${route.id}`, { body: {} });
    await register('/a');
    await kit.dashboard('DELETE', `${LIST}/${route.id}`);
    expect(await stream.next()).toEqual({ event: 'route.deleted', id: '3', data: { id: route.id } });
  });

  test('behaviour: Last-Event-ID resumes a stream with what was missed, the same as it was sent, then it goes on live', async () => {
    await start();
    const live = await listen();
    for (const name of ['/a', '/b', '/c']) await register(name);
    const sent = [await live.next(), await live.next(), await live.next()];
    const resumed = await listen({ 'Last-Event-ID': '1' });
    expect([await resumed.next(), await resumed.next()]).toEqual(sent.slice(1));
    const current = await listen({ 'Last-Event-ID': '3' });
    await register('/d');
    const next = await live.next();
    expect([await resumed.next(), await current.next()]).toEqual([next, next]);
  });

  test.each(['0', '6', '99999999999', 'x', '-1', '1.5', '9'.repeat(40)])(
    'behaviour: a stream that resumes from %s, which the log does not reach, is told a reset',
    async (id) => {
      await start({ changesKept: 2 });
      for (const name of ['/1', '/2', '/3', '/4', '/5']) await register(name);
      const stream = await listen({ 'Last-Event-ID': id });
      expect(await stream.next()).toEqual({ event: 'reset', id: '5', data: { revision: 5 } });
      await register('/6');
      expect((await stream.next()).id).toBe('6');
    },
  );

  test('behaviour: a stream resumes after a restart from the log on disk', async () => {
    await start();
    await register('/a');
    await register('/b');
    const again = await startRegistry({ file: kit.file });
    const stream = await openEvents(again.port, { Authorization: `Bearer ${SDK_KEY}`, 'Last-Event-ID': '1' });
    expect(await stream.next()).toMatchObject({ event: 'route.created', id: '2', data: { route_pattern: '/b' } });
    stream.close();
    await again.close();
  });

  test('behaviour: thousands of missed changes arrive in order while new ones are made', async () => {
    await start();
    const patterns = Array.from({ length: 1000 }, (_, index) => ({
      route_pattern: `/r/${index}`,
      method: 'GET',
      amount: '1',
    }));
    await kit.registry.declare(declared(patterns), 'start');
    const stream = await listen({ 'Last-Event-ID': '1' });
    await register('/new');
    const ids: string[] = [];
    while (ids.at(-1) !== '1001') ids.push((await stream.next()).id);
    expect(ids).toEqual(Array.from({ length: 1000 }, (_, index) => String(index + 2)));
  });

  test('behaviour: a heartbeat says the set by its digest, whatever became of it and in whatever order', async () => {
    await start({ limits: { heartbeatMs: 5 } });
    const stream = await listen();
    const digests = async (revision: string): Promise<unknown> => {
      for (;;) {
        const { id, data } = await stream.head();
        if (id === revision) return data;
      }
    };
    const expected = async (): Promise<unknown> => {
      const { list, headers } = await kit.sdk('GET', FEED);
      return {
        revision: Number(headers['tollgate-revision']),
        routes: list.length,
        digest: digestOf(list.map((route) => JSON.stringify(route))),
      };
    };
    expect(await digests('0')).toEqual({ revision: 0, routes: 0, digest: '0'.repeat(64) });
    const routes = [await register('/a', { name: 'É' }), await register('/b'), await register('/c')];
    await kit.dashboard('PATCH', `${LIST}/${routes[1]?.id}`, { body: { amount: '7', route_pattern: '/d' } });
    await kit.dashboard('DELETE', `${LIST}/${routes[0]?.id}`);
    expect(await digests('5')).toEqual(await expected());
    const again = await startRegistry({ file: kit.file, limits: { heartbeatMs: 5 } });
    const fresh = await openEvents(again.port, { Authorization: `Bearer ${SDK_KEY}` });
    expect((await fresh.head()).data).toEqual(await expected());
    fresh.close();
    await again.close();
  });

  test('behaviour: a stream that resumes is told the head at once, after what was missed', async () => {
    await start({ limits: { heartbeatMs: 3_600_000 } });
    await register('/a');
    await register('/b');
    const resumed = await listen({ 'Last-Event-ID': '1' });
    expect(await resumed.head()).toMatchObject({ id: '2', data: { revision: 2, routes: 2 } });
    expect(await resumed.next()).toMatchObject({ event: 'route.created', id: '2' });
    expect(resumed.text().indexOf('event: route.created')).toBeLessThan(resumed.text().indexOf('event: head'));
  });

  test('behaviour: HEAD of a stream answers the headers and ends', async () => {
    await start();
    const reply = await kit.sdk('HEAD', EVENTS);
    expect([reply.status, reply.headers['content-type']]).toEqual([200, 'text/event-stream']);
  });
});

describe('readers that should not stay', () => {
  test('refuses: one more stream than the limit is 429 with Retry-After; a closed one makes room', async () => {
    await start({ limits: { streams: 2 } });
    const first = await listen();
    await listen();
    const refused = await kit.sdk('GET', EVENTS);
    expect([refused.status, refused.json.code, refused.headers['retry-after']]).toEqual([
      429,
      'too_many_requests',
      '60',
    ]);
    first.close();
    let status = 429;
    while (status === 429) {
      const stream = await listen();
      status = stream.status;
    }
    expect(status).toBe(200);
  });

  test('refuses: one more stream of one API key than its limit, and its connection; other keys have room', async () => {
    await start({ limits: { streams: 4, streamsPerKey: 2 } });
    const { key } = await kit.createKey('sidecar', ['sdk']);
    await listen();
    await listen();
    const refused = await kit.sdk('GET', EVENTS);
    expect([refused.status, refused.json.code, refused.headers.connection]).toEqual([
      429,
      'too_many_requests',
      'close',
    ]);
    expect((await listen({}, key)).status).toBe(200);
    expect((await listen({}, key)).status).toBe(200);
    expect((await kit.sdk('GET', EVENTS, { auth: key })).status).toBe(429);
  });

  test('behaviour: a revoked key hears nothing more, others go on', async () => {
    await start({ limits: { heartbeatMs: 60_000 } });
    const { key, stored } = await kit.createKey('sidecar', ['sdk']);
    const [doomed, other] = [await listen({}, key), await listen()];
    await register('/a');
    expect((await doomed.next()).id).toBe('1');
    await kit.revokeKey(stored.id);
    await register('/b');
    await doomed.closed;
    expect(doomed.text()).not.toContain('/b');
    expect([(await other.next()).id, (await other.next()).id]).toEqual(['1', '2']);
  });

  test('behaviour: a revoked key loses a stream on which nothing is told', async () => {
    await start({ limits: { heartbeatMs: 3_600_000, keysMs: 5 } });
    const { key, stored } = await kit.createKey('sidecar', ['sdk']);
    const doomed = await listen({}, key);
    await kit.revokeKey(stored.id);
    await doomed.closed;
  });

  test('attack: a reader that does not read is dropped, and the others hear everything', async () => {
    await start({ limits: { streamBuffer: 300_000, heartbeatMs: 60_000, streams: 2 } });
    const other = await listen();
    await openAndNeverRead();
    const hasRoom = async (): Promise<boolean> => (await kit.sdk('HEAD', EVENTS)).status === 200;
    while (await hasRoom());
    let made = 0;
    // The kernel's buffers fill first, then ours.
    while (!(await hasRoom()) && made < 40_000) {
      made += 100;
      await kit.registry.declare(declared(Array.from({ length: made }, (_, index) => large(index))), 'reload');
    }
    expect(made).toBeLessThan(40_000);
    for (let id = 1; id <= made; id++) expect((await other.next()).id).toBe(String(id));
  });

  test('attack: a reader that resumes and does not read gives its place up', async () => {
    await start({ limits: { streams: 1, heartbeatMs: 5 } });
    const batch = Array.from({ length: 9_000 }, (_, index) => large(index));
    await kit.registry.declare(declared(batch), 'start');
    await openAndNeverRead('Last-Event-ID: 1\r\n');
    const statuses = new Set<number>();
    while (!(statuses.has(429) && statuses.has(200))) {
      const { status } = await kit.sdk('HEAD', EVENTS);
      if (status === 429 || statuses.has(429)) statuses.add(status);
    }
    expect([...statuses]).toEqual([429, 200]);
  });

  test('behaviour: closing the registry ends every stream', async () => {
    await start();
    const streams = [await listen(), await listen({ 'Last-Event-ID': '0' })];
    await kit.registry.close();
    await Promise.all(streams.map(({ closed }) => closed));
  });

  test('refuses: a stream for a key without the scope', async () => {
    await start();
    expect((await listen({}, LEDGER_KEY)).status).toBe(403);
  });
});

async function openAndNeverRead(header = ''): Promise<void> {
  const socket = connect(kit.port, '127.0.0.1');
  socket.pause();
  socket.on('error', () => undefined);
  opened.push({ close: () => socket.destroy() });
  await new Promise<void>((resolve) => socket.once('connect', resolve));
  socket.write(`GET ${EVENTS} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${SDK_KEY}\r\n${header}\r\n`);
}

/** As it is said for anyone to reckon. */
function digestOf(routes: readonly string[]): string {
  const sum = routes.reduce((all, json) => all + BigInt(`0x${createHash('sha256').update(json).digest('hex')}`), 0n);
  return (sum % 2n ** 256n).toString(16).padStart(64, '0');
}
