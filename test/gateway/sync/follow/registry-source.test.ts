// A registry over real HTTP: what is asked, what is believed, and what every kind of broken other side comes to.
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { gzipSync } from 'node:zlib';
import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { systemSchedule, type Schedule } from '../../../../src/host/clock.ts';
import {
  createEventParser,
  readEvents,
  type ServerSentEvent,
} from '../../../../src/gateway/sync/follow/event-reader.ts';
import {
  createRegistrySource,
  type RegistrySourceLimits,
} from '../../../../src/gateway/sync/follow/registry-source.ts';
import type { FoundSet, SetRequest } from '../../../../src/gateway/sync/follow/route-source.ts';
import { toWire } from '../../../../src/domain/routing/route.ts';
import { startRegistry } from '../../../registry/kit.ts';

const KEY = 'the-api-key-of-the-sidecar';
const ROUTE = { id: '3f0b3d0e-3b55-4d4f-9a0e-6c2f5f1c7a11', route_pattern: '/a', method: 'GET', amount: '0.10' };
/** For sides that never answer; one that does may take longer on a busy machine. */
const QUICK = { answerMs: 300 };
const FEED = JSON.stringify([ROUTE]);
setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;
const NEVER = new AbortController().signal;

const servers: Server[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
});

async function serve(
  handle: RequestListener,
  limits: Partial<RegistrySourceLimits> = {},
  base = '',
  schedule: Schedule = systemSchedule,
) {
  const seen: IncomingMessage[] = [];
  const server = createServer((req, res) => {
    seen.push(req);
    handle(req, res);
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const remote = createRegistrySource({
    registryUrl: `http://127.0.0.1:${port}${base}`,
    apiKey: KEY,
    version: '1.2.3',
    fetch: globalThis.fetch,
    schedule,
    limits,
  });
  const ask = (known?: FoundSet, want: SetRequest['want'] = 'changed') => remote.fetchSet({ known, want }, NEVER);
  const connections = (): Promise<number> =>
    new Promise((resolve, reject) => server.getConnections((error, count) => (error ? reject(error) : resolve(count))));
  return { remote, ask, seen, port, connections };
}

/** Time that goes by only where a test says so. */
function stillTime(): { readonly schedule: Schedule; readonly pass: (ms: number) => void } {
  let now = 0;
  const timers = new Set<{ readonly at: number; readonly run: () => void }>();
  return {
    schedule: (ms, run) => {
      const timer = { at: now + ms, run };
      timers.add(timer);
      return () => void timers.delete(timer);
    },
    pass: (ms) => {
      now += ms;
      for (const timer of timers) if (timer.at <= now && timers.delete(timer)) timer.run();
    },
  };
}

const answer =
  (status: number, headers: Record<string, string> = {}, body: string | Buffer = '') =>
  (_req: IncomingMessage, res: ServerResponse): void =>
    void res.writeHead(status, headers).end(body);

async function setOf(asked: ReturnType<Awaited<ReturnType<typeof serve>>['ask']>): Promise<FoundSet> {
  const result = await asked;
  if (result.kind !== 'set') throw new Error(JSON.stringify(result));
  return result.set;
}

describe('the set', () => {
  test('behaviour: the set is asked for with our key below the path of the registry, compressed if it likes', async () => {
    const { ask, seen } = await serve(
      answer(
        200,
        { 'Content-Encoding': 'gzip', ETag: '"7.x.gzip"', 'Tollgate-Registry': 'reg-a', 'Tollgate-Revision': '7' },
        gzipSync(FEED),
      ),
      {},
      '/tenants/a',
    );
    expect(await setOf(ask())).toMatchObject({
      registryId: 'reg-a',
      revision: 7,
      etag: '"7.x.gzip"',
      routes: [{ pattern: '/a' }],
    });
    expect(seen[0]?.url).toBe('/tenants/a/v1/protected-routes/routes');
    expect(seen[0]?.headers).toMatchObject({
      authorization: `Bearer ${KEY}`,
      'user-agent': 'tollgate/1.2.3',
      'accept-encoding': expect.stringContaining('gzip') as string,
    });
    expect(seen[0]?.headers['if-none-match']).toBeUndefined();
  });

  test('behaviour: the tag of the set we have is sent, and 304 means that we have it', async () => {
    const { ask, seen } = await serve((req, res) => {
      if (req.headers['if-none-match'] === '"t"') res.writeHead(304, { ETag: '"t"' }).end();
      else res.writeHead(200, { ETag: '"t"' }).end(FEED);
    });
    const set = await setOf(ask());
    expect(await ask(set)).toEqual({ kind: 'unchanged' });
    expect(seen[1]?.headers['if-none-match']).toBe('"t"');
  });

  test('behaviour: a bare array without any header of ours is enough for a set; the same bytes are the same set', async () => {
    let body = FEED;
    const { ask } = await serve((_req, res) => void res.end(body));
    const set = await setOf(ask());
    expect(set).toMatchObject({ registryId: undefined, revision: undefined, etag: undefined });
    expect(await ask(set)).toEqual({ kind: 'unchanged' });
    body = `${FEED} `;
    expect(await ask(set)).toMatchObject({ kind: 'set' });
  });

  test('behaviour: a set of the same bytes under another tag is the same routes under it', async () => {
    let tag = '"a"';
    const { ask } = await serve((_req, res) => void res.writeHead(200, { ETag: tag }).end(FEED));
    const set = await setOf(ask());
    expect(await ask(set)).toEqual({ kind: 'unchanged' });
    tag = '"b"';
    const renamed = await setOf(ask(set));
    expect(renamed).toEqual({ ...set, etag: tag });
    expect(renamed.routes).toBe(set.routes);
  });

  test('behaviour: a set of the same bytes under other names keeps the very routes, so that nothing is compiled again', async () => {
    let revision = 1;
    const { ask } = await serve(
      (_req, res) => void res.writeHead(200, { 'Tollgate-Revision': String(revision++) }).end(FEED),
    );
    const first = await setOf(ask());
    const second = await setOf(ask(first));
    expect(second).toMatchObject({ revision: 2 });
    expect(second.routes).toBe(first.routes);
  });

  test.each<[string, Record<string, string>]>([
    ['an id with spaces', { 'Tollgate-Registry': 'a b' }],
    ['a revision that is no number', { 'Tollgate-Revision': '-1' }],
    ['a revision beyond exact integers', { 'Tollgate-Revision': '9'.repeat(16) }],
    ['a tag without quotes', { ETag: 'abc' }],
  ])('refuses: a name of the set that is none counts as absent: %s', async (_what, headers) => {
    const { ask } = await serve(answer(200, headers, FEED));
    expect(await setOf(ask())).toMatchObject({ registryId: undefined, revision: undefined, etag: undefined });
  });

  test('behaviour: our own registry serves its set compressed, and says that it is unchanged after that', async () => {
    const kit = await startRegistry();
    try {
      for (let i = 0; i < 40; i++)
        await kit.sdk('POST', '/v1/protected-routes/routes/register', {
          body: { route_pattern: `/r/${i}`, method: 'GET', amount: '0.10' },
        });
      const remote = createRegistrySource({
        registryUrl: `http://127.0.0.1:${kit.port}`,
        apiKey: 'configured-sdk-key-1',
        version: '0',
        fetch: globalThis.fetch,
        schedule: systemSchedule,
      });
      const result = await remote.fetchSet({ known: undefined, want: 'changed' }, NEVER);
      if (result.kind !== 'set') throw new Error(result.kind);
      expect(result.set).toMatchObject({
        registryId: kit.store.routes.registryId,
        revision: 40,
        etag: expect.stringContaining('gzip') as string,
      });
      expect(result.set.routes.map(toWire)).toEqual(kit.registry.routeSet().routes.map(toWire));
      const known = result.set;
      expect(await remote.fetchSet({ known, want: 'changed' }, NEVER)).toEqual({ kind: 'unchanged' });
      const { registryId, revision } = known;
      expect(await remote.fetchSet({ known, want: 'name' }, NEVER)).toEqual({ kind: 'named', registryId, revision });
      expect(await remote.fetchSet({ known, want: 'anew' }, NEVER)).toMatchObject({ kind: 'set', set: { revision } });
    } finally {
      await kit.close();
    }
  });
});

describe('answers that are no set', () => {
  test.each<[string, RequestListener, Record<string, unknown>]>([
    ['garbage', answer(200, {}, '<html>'), { kind: 'invalid', reason: 'it is not a JSON array' }],
    [
      'an array that is cut off',
      answer(200, {}, FEED.slice(0, -1)),
      { kind: 'invalid', reason: 'the JSON array is cut off' },
    ],
    ['a 304 that nobody asked for', answer(304), { kind: 'unavailable' }],
    ['204', answer(204), { kind: 'unavailable', reason: 'the registry answered 204' }],
    ['a key that is not taken', answer(401), { kind: 'unauthorized' }],
    ['a key without the scope', answer(403), { kind: 'unauthorized' }],
    [
      'a wrong address',
      answer(404),
      { kind: 'unavailable', reason: expect.stringContaining('sync.registry_url') as string },
    ],
    ['a registry in trouble', answer(503, { 'Retry-After': '7' }), { kind: 'unavailable', retryAfterMs: 7000 }],
    [
      'a Retry-After of a year',
      answer(429, { 'Retry-After': '31536000' }),
      { kind: 'unavailable', retryAfterMs: 300_000 },
    ],
    ['a coding that does not decode', answer(200, { 'Content-Encoding': 'gzip' }, 'not gzip'), { kind: 'unavailable' }],
    [
      'a connection that is cut',
      (_req, res) => void res.destroy(),
      { kind: 'unavailable', reason: expect.stringContaining('could not be reached') as string },
    ],
    [
      'a body that breaks off',
      (_req, res) => {
        res.writeHead(200, { 'Content-Length': '1000' });
        res.write('[', () => res.destroy());
      },
      { kind: 'unavailable' },
    ],
  ])('refuses: %s as an answer to the question for the set', async (_what, handle, expected) => {
    const { ask } = await serve(handle);
    expect(await ask()).toMatchObject(expected);
  });

  test('attack: a redirect is not followed, so our key goes nowhere else', async () => {
    const thief = await serve(answer(200, {}, FEED));
    const { ask } = await serve(answer(302, { Location: `http://127.0.0.1:${thief.port}/v1/protected-routes/routes` }));
    expect(await ask()).toMatchObject({
      kind: 'unavailable',
      reason: expect.stringContaining('redirects (302)') as string,
    });
    expect(thief.seen).toHaveLength(0);
  });

  test('attack: a small answer that unpacks to a large one is read no further than the limit', async () => {
    const limits = { bodyBytes: FEED.length };
    const { ask } = await serve(answer(200, { 'Content-Encoding': 'gzip' }, gzipSync(FEED)), limits);
    const known = await setOf(ask());
    const bomb = await serve(
      answer(200, { 'Content-Encoding': 'gzip' }, gzipSync(Buffer.alloc(50_000_000, ' '))),
      limits,
    );
    const refused = { kind: 'invalid', reason: `the answer is larger than ${FEED.length} bytes` };
    expect(await bomb.ask()).toEqual(refused);
    // Without a tag its bytes are seen whole before any is believed.
    expect(await bomb.ask(known)).toEqual(refused);
  });

  test('attack: a side that accepts and says nothing, or drips, costs its time-out and no more', async () => {
    // `fetch` forgets who may abort it when garbage is collected; a poll that never ends would be the last one.
    const collecting = setInterval(collectGarbage, 20);
    onTestFinished(() => clearInterval(collecting));
    const silent = await serve(() => undefined, QUICK);
    expect(await silent.ask()).toEqual({
      kind: 'unavailable',
      reason: 'the registry did not answer in time',
      retryAfterMs: undefined,
    });
    const halfway = await serve((_req, res) => void res.writeHead(200).write('['), QUICK);
    expect(await halfway.ask()).toMatchObject({ reason: 'the registry did not answer in time' });
    // Or the connections of every poll that came to nothing would pile up; `fetch` itself keeps up to two.
    for (const side of [silent, halfway]) {
      for (let i = 0; i < 3; i++) await side.ask();
      await vi.waitFor(async () => expect(await side.connections()).toBeLessThanOrEqual(2));
    }
    const dripping = await serve(
      (_req, res) => {
        res.writeHead(200);
        const timer = setInterval(() => res.write(' '), 50);
        res.on('close', () => clearInterval(timer));
      },
      { answerMs: 5000, totalMs: 500 },
    );
    expect(await dripping.ask()).toMatchObject({ reason: 'the registry did not answer in time' });
  });

  test('behaviour: an address where nobody listens is told as a registry that is away', async () => {
    const { ask, port } = await serve(() => undefined);
    const [server] = servers.splice(0);
    await new Promise((resolve) => server?.close(resolve));
    expect(port).toBeGreaterThan(0);
    expect(await ask()).toMatchObject({
      kind: 'unavailable',
      reason: 'the registry could not be reached (ECONNREFUSED)',
    });
  });
});

describe('events', () => {
  const EVENTS = { 'Content-Type': 'text/event-stream; charset=utf-8', 'Tollgate-Registry': 'A' };
  const AFTER = { registryId: 'A', revision: 41 };

  test('behaviour: the event stream opens with the last id, gives the bytes as they come, and ends when told to', async () => {
    const { remote, seen } = await serve((_req, res) => {
      res.writeHead(200, EVENTS);
      res.write(': hello\n\n');
    });
    const controller = new AbortController();
    const opened = await remote.openEvents(AFTER, controller.signal);
    if (opened.kind !== 'open') throw new Error(opened.kind);
    expect(seen[0]?.headers).toMatchObject({
      accept: 'text/event-stream',
      'last-event-id': '41',
      'tollgate-revision': '41',
      authorization: `Bearer ${KEY}`,
    });
    const chunks = opened.chunks[Symbol.asyncIterator]();
    expect(Buffer.from((await chunks.next()).value as Uint8Array).toString()).toBe(': hello\n\n');
    controller.abort();
    await expect(chunks.next()).rejects.toThrow();
  });

  test('behaviour: an event stream that goes quiet is given up, heartbeats keep it', async () => {
    const time = stillTime();
    let beat = (): void => undefined;
    const { remote } = await serve(
      (_req, res) => {
        res.writeHead(200, EVENTS).flushHeaders();
        beat = () => void res.write(':\n');
      },
      { quietMs: 1_000 },
      '',
      time.schedule,
    );
    const opened = await remote.openEvents(AFTER, NEVER);
    if (opened.kind !== 'open') throw new Error(opened.kind);
    const chunks = opened.chunks[Symbol.asyncIterator]();
    for (let beats = 0; beats < 4; beats++) {
      const chunk = chunks.next();
      time.pass(999);
      beat();
      expect(Buffer.from((await chunk).value ?? []).toString()).toBe(':\n');
    }
    const quiet = chunks.next();
    time.pass(1_000);
    await expect(quiet).rejects.toThrow('nothing arrived in time');
  });

  test.each<[string, RequestListener, string]>([
    ['a registry that serves only the interface', answer(404), 'not_offered'],
    ['a method it does not know there', answer(405), 'not_offered'],
    ['a page instead of a stream', answer(200, { 'Content-Type': 'text/html' }, '<html>'), 'not_offered'],
    ['a stream that is of no registry', answer(200, { 'Content-Type': 'text/event-stream' }), 'not_offered'],
    ['a stream of another registry', answer(200, { ...EVENTS, 'Tollgate-Registry': 'B' }), 'stranger'],
    ['a key that is not taken just now', answer(401), 'unavailable'],
    ['too many streams', answer(429), 'refused'],
    ['a registry in trouble', answer(503), 'unavailable'],
    ['silence', () => undefined, 'unavailable'],
    ['a connection that is cut', (_req, res) => void res.destroy(), 'unavailable'],
  ])('behaviour: the event stream is not opened by %s', async (_what, handle, kind) => {
    const { remote } = await serve(handle, kind === 'unavailable' ? QUICK : {});
    expect(await remote.openEvents(AFTER, NEVER)).toMatchObject({ kind });
  });
});

describe('reading events', () => {
  const events = (text: string, size = text.length): readonly ServerSentEvent[] => {
    const parser = createEventParser();
    const bytes = Buffer.from(text);
    const found: ServerSentEvent[] = [];
    for (let at = 0; at < bytes.length; at += size) found.push(...parser.push(bytes.subarray(at, at + size)));
    return found;
  };
  const LONG = 'x'.repeat(1_000_000);

  test.each<[string, string, readonly (readonly [string, string | undefined, string | undefined])[]]>([
    ['an event', 'event: x\nid: 5\ndata: {}\n\n', [['x', '5', '{}']]],
    ['an event of one line, without spaces', 'data\n\n', [['', undefined, '']]],
    [
      'lines that end in CR LF, and in CR',
      'id:7\r\ndata:x\r\n\r\ndata:y\r\r',
      [
        ['', '7', 'x'],
        ['', undefined, 'y'],
      ],
    ],
    ['data in several lines', 'data: a\ndata:b\n\n', [['', undefined, 'a\nb']]],
    ['an id that is not its own', 'id: 9\n\ndata: x\n\n', [['', undefined, 'x']]],
    ['a comment and a retry', ': hi\nretry: 10\n\n', []],
    ['an event that has not ended', 'id: 3\ndata: x\n', []],
    ['an id that could not be sent back', 'id: a\u0000b\ndata: x\n\n', [['', undefined, 'x']]],
    ['an id that is too long', `id: ${'9'.repeat(200)}\ndata: x\n\n`, [['', undefined, 'x']]],
    ['a field that only looks like data', 'database: x\n\n', []],
    ['letters of several bytes', 'data: é€😀\n\n', [['', undefined, 'é€😀']]],
    [
      'data that is longer than a route may be, said and not kept',
      `data: ${LONG}\n\ndata: y\n\n`,
      [
        ['', undefined, undefined],
        ['', undefined, 'y'],
      ],
    ],
    ['too much data in many lines', `${`data: ${'x'.repeat(1000)}\n`.repeat(1000)}\n`, [['', undefined, undefined]]],
  ])('behaviour: events are read from %s', (_what, text, expected) => {
    const whole = events(text).map(({ name, id, data }) => [name, id, data]);
    expect(whole).toEqual(expected);
    for (const size of text.length > 10_000 ? [65_536] : [1, 3]) expect(events(text, size)).toEqual(events(text));
  });

  test.each<[string, string, object]>([
    ['a route', `event: route.created\nid: 2\ndata: ${FEED.slice(1, -1)}\n\n`, { kind: 'created', revision: 2 }],
    ['a deleted one', `event: route.deleted\nid: 3\ndata: {"id":"${ROUTE.id}"}\n\n`, { kind: 'deleted', id: ROUTE.id }],
    ['a reset', 'event: reset\nid: 3\ndata: {"revision":3}\n\n', { kind: 'reset' }],
    [
      'a head',
      `event: head\nid: 3\ndata: {"revision":3,"routes":1,"digest":"${'0'.repeat(64)}"}\n\n`,
      { kind: 'head', revision: 3, routes: 1 },
    ],
    ['a route without a number', `event: route.created\ndata: ${FEED.slice(1, -1)}\n\n`, { kind: 'unreadable' }],
    ['what is no route', 'event: route.updated\nid: 2\ndata: {"id":7}\n\n', { kind: 'unreadable' }],
    ['what is no JSON', 'event: route.updated\nid: 2\ndata: {\n\n', { kind: 'unreadable' }],
    ['a route that was too long', `event: route.updated\nid: 2\ndata: ${LONG}\n\n`, { kind: 'unreadable' }],
    ['a head without its digest', 'event: head\ndata: {"revision":3,"routes":1}\n\n', { kind: 'unreadable' }],
  ])(
    'behaviour: an event is read from %s, and an event of a later version is passed over',
    async (_what, text, expected) => {
      async function* chunks(): AsyncGenerator<Uint8Array, void, undefined> {
        yield Buffer.from(`event: later\nid: 1\ndata: x\n\n${text}`);
      }
      const read: object[] = [];
      for await (const event of readEvents(chunks())) read.push(event);
      expect(read).toMatchObject([expected]);
      expect(read).toHaveLength(1);
    },
  );
});
