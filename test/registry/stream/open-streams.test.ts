// Event streams by themselves: over a store that can tell nothing, and with readers that are held by the test.
import { EventEmitter } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test, vi } from 'vitest';
import { createRandom } from '../../../src/host/clock.ts';
import type { RouteEvent } from '../../../src/registry/routes/route-index.ts';
import { REGISTRY_LIMITS } from '../../../src/registry/registry.ts';
import { createStreams } from '../../../src/registry/stream/open-streams.ts';
import { route } from '../../cases/routes.ts';
import { openEvents } from '../kit.ts';

test('behaviour: while the store is away, a stream that has all goes on, and one that has not is sent away', async () => {
  const streams = createStreams({
    routes: {
      head: () => ({ revision: 7, stamp: '' }),
      count: () => 0,
      subscribe: () => () => undefined,
      changesAfter: () => Promise.reject(new Error('the store is away')),
      prove: () => Promise.resolve({ revision: 7, routes: 0, digest: '0'.repeat(64) }),
    },
    stillAllowed: () => Promise.resolve(true),
    random: createRandom(),
    limits: REGISTRY_LIMITS,
  });
  const server = createServer((req, res) => {
    res.writeHead(200, { 'Content-Type': 'text/event-stream' });
    streams.open(res, { kind: 'anonymous' }, Number(req.headers['last-event-id']));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const abreast = await openEvents(port, { 'Last-Event-ID': '7' });
  expect((await abreast.head()).id).toBe('7');
  const behind = await openEvents(port, { 'Last-Event-ID': '6' });
  await behind.closed;
  expect(streams.count()).toBe(1);
  streams.close();
  await abreast.closed;
  await new Promise((resolve) => server.close(resolve));
});

const CHANGES = 1_000;
const PRINCIPAL = { kind: 'api_key', id: undefined, name: 'a', scopes: [], digest: Buffer.alloc(0) } as const;
const LOG = Array.from({ length: CHANGES }, (_, index): RouteEvent => {
  return { kind: 'created', revision: index + 1, route: route(`GET /${index}`) };
});

/** A reader that takes nothing until `drain`. */
type Reader = {
  readonly text: () => string;
  readonly writes: () => number;
  readonly drain: () => void;
  isGone: boolean;
};

function start(rest: { count?: number; stillAllowed?: () => Promise<boolean> } = {}) {
  let reads = 0;
  let revision = CHANGES;
  let listener: (change: RouteEvent) => void = () => undefined;
  const streams = createStreams({
    routes: {
      head: () => ({ revision, stamp: '' }),
      count: () => rest.count ?? CHANGES,
      subscribe: (hear) => {
        listener = hear;
        return () => undefined;
      },
      changesAfter: async (after, limit) => {
        reads++;
        return LOG.slice(after, after + limit);
      },
      prove: () => Promise.resolve({ revision, routes: CHANGES, digest: '0'.repeat(64) }),
    },
    stillAllowed: rest.stillAllowed ?? (async () => true),
    random: createRandom(),
    // Who may listen is asked when something is told, and then alone.
    limits: { ...REGISTRY_LIMITS, keysMs: 3_600_000, heartbeatMs: 3_600_000 },
  });
  const open = (lastSeen: number): Reader => {
    const written: string[] = [];
    const res = Object.assign(new EventEmitter(), {
      ...{ writableLength: 0, destroyed: false },
      end: () => undefined,
      write: (text: string | Buffer) => {
        written.push(text.toString());
        // What opens a stream is taken at once.
        return written.length === 1;
      },
      destroy: () => {
        reader.isGone = true;
        res.destroyed = true;
        res.emit('close');
      },
    });
    const reader: Reader = {
      text: () => written.slice(1).join(''),
      writes: () => written.length - 1,
      drain: () => void res.emit('drain'),
      isGone: false,
    };
    streams.open(res as unknown as ServerResponse, PRINCIPAL, lastSeen);
    return reader;
  };
  const change = (next: RouteEvent): void => {
    ({ revision } = next);
    listener(next);
  };
  return { streams, open, change, reads: () => reads };
}

const idsOf = (text: string): number[] =>
  [...text.matchAll(/^event: route.*\nid: (\d+)$/gm)].map(([, id]) => Number(id));
const after = (seen: number, last = CHANGES): number[] => Array.from({ length: last - seen }, (_, at) => seen + at + 1);

test('behaviour: changes that many streams missed are read once for all of them', async () => {
  const { open, reads, streams } = start();
  const readers = Array.from({ length: 100 }, () => open(1));
  while (readers.some((reader) => !reader.text().includes('event: head'))) {
    for (const reader of readers) reader.drain();
    await new Promise((resolve) => setImmediate(resolve));
  }
  for (const reader of readers) expect(idsOf(reader.text())).toEqual(after(1));
  // 64 changes at a time.
  expect(reads()).toBeLessThanOrEqual(Math.ceil(CHANGES / 64));
  streams.close();
});

test('attack: readers that take nothing have one page each, and keep nobody else waiting', async () => {
  const { open, streams } = start();
  const slow = Array.from({ length: 100 }, (_, index) => open(index));
  const quick = open(1);
  while (!quick.text().includes('event: head')) {
    quick.drain();
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect(idsOf(quick.text())).toEqual(after(1));
  await vi.waitFor(() => expect(slow.map((reader) => reader.writes())).toEqual(slow.map(() => 1)));
  streams.close();
});

test('behaviour: a stream that is resuming gets the changes that are made meanwhile after what it missed', async () => {
  const { open, change, streams } = start();
  const reader = open(CHANGES - 300);
  for (let made = 0; made < 20 || !reader.text().includes(`id: ${CHANGES + 20}\n`); made++) {
    const next: RouteEvent = { kind: 'created', revision: CHANGES + made + 1, route: route(`GET /new/${made}`) };
    if (made < 20) {
      LOG.push(next);
      change(next);
    }
    reader.drain();
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect(idsOf(reader.text())).toEqual(after(CHANGES - 300, CHANGES + 20));
  LOG.length = CHANGES;
  streams.close();
});

test('behaviour: a set that was read anew while a stream resumes is told as a reset', async () => {
  const { open, change, streams } = start();
  const reader = open(1);
  await vi.waitFor(() => expect(reader.writes()).toBe(1));
  change({ kind: 'reset', revision: CHANGES });
  reader.drain();
  await vi.waitFor(() => expect(reader.text()).toContain(`event: reset\nid: ${CHANGES}\n`));
  expect(idsOf(reader.text()).at(-1)).toBeLessThanOrEqual(64);
  streams.close();
});

test('attack: a key that was revoked while its stream resumes is told nothing more', async () => {
  let allowed = true;
  const { open, streams } = start({ stillAllowed: async () => allowed });
  const reader = open(1);
  await vi.waitFor(() => expect(reader.writes()).toBe(1));
  allowed = false;
  reader.drain();
  await vi.waitFor(() => expect(reader.isGone).toBe(true));
  expect(reader.writes()).toBe(1);
  expect(streams.count()).toBe(0);
  streams.close();
});
