// A write is answered once it is on the disk, and nothing but its answer waits for that: the file is synced apart from the
// thread that serves requests. The disk is real but for being held up and for failing.
import { copyFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { createRandom } from '../../src/host/clock.ts';
import { openStore } from '../../src/registry/store/sqlite/store.ts';
import { StoreUnavailable } from '../../src/registry/store/ports.ts';
import { storedRoute } from '../cases/routes.ts';
import { RECEIVER } from '../cases/receivers.ts';
import { FEED, LIST, send, startRegistry, temporaryFolder, token, type Kit, type Reply } from './kit.ts';

const settings = { receivers: new Map([['default', RECEIVER]]) };
const wire = (pattern: string): object => ({ route_pattern: pattern, method: 'GET', amount: '0.10' });

/** A disk that takes as long as the test says. */
function slowDisk() {
  const started: { readonly file: string; readonly end: () => void; readonly fail: () => void }[] = [];
  let awaited: (() => void) | undefined;
  return {
    started,
    syncFile: (file: string): Promise<void> =>
      new Promise((resolve, reject) => {
        started.push({ file, end: resolve, fail: () => reject(new Error('EIO: i/o error, fdatasync')) });
        awaited?.();
      }),
    /** Resolves when there have been so many syncs. */
    reached: async (count: number): Promise<void> => {
      while (started.length < count) await new Promise<void>((resolve) => (awaited = resolve));
    },
  };
}

/** A way to the registry that tells how many bodies it has read: by then their writes wait for their turn. */
async function openDoor({ registry }: Kit) {
  let bodies = 0;
  const server = createServer((req, res) => {
    req.once('end', () => bodies++);
    registry.handle(req, res);
  });
  onTestFinished(() => void server.close());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    create: async (pattern: string): Promise<Reply> =>
      send(port, 'POST', LIST, { auth: await token(), body: wire(pattern) }),
    read: () => bodies,
  };
}

describe('a registry whose disk is slow', () => {
  let kit: Kit;
  let disk: ReturnType<typeof slowDisk>;
  const create = (pattern: string): Promise<Reply> => kit.dashboard('POST', LIST, { body: wire(pattern) });

  beforeEach(async () => {
    disk = slowDisk();
    kit = await startRegistry({ settings, syncFile: disk.syncFile });
  });
  afterEach(() => kit.close());

  test('behaviour: a write is in force and answered when it is on the disk; reads wait for nothing', async () => {
    // The first use of a key in an hour is written, and waits for no disk.
    await kit.sdk('GET', FEED);
    let answered = false;
    const creating = create('/slow').then((reply) => {
      answered = true;
      return reply;
    });
    await disk.reached(1);
    expect(disk.started[0]?.file).toBe(`${kit.file}-wal`);
    const listed = await kit.dashboard('GET', LIST);
    expect(listed.json['data']).toEqual([]);
    expect((await kit.sdk('GET', FEED)).status).toBe(200);
    expect([answered, disk.started.length]).toEqual([false, 1]);
    disk.started[0]?.end();
    expect((await creating).status).toBe(201);
    expect((await kit.dashboard('GET', LIST)).json['data']).toMatchObject([{ route_pattern: '/slow' }]);
    // What changed nothing waits for nothing.
    expect((await create('/slow')).status).toBe(409);
    expect(disk.started.length).toBe(1);
  });

  test('behaviour: writes that come while the disk is busy share the next sync, and none is answered by one that began before it', async () => {
    const first = create('/first');
    await disk.reached(1);
    const door = await openDoor(kit);
    const patterns = ['/second', '/third', '/fourth'];
    const others = patterns.map((pattern) => door.create(pattern));
    let answered = 0;
    for (const other of others) void other.then(() => answered++);
    await vi.waitFor(() => expect(door.read()).toBe(others.length), { interval: 1 });
    disk.started[0]?.end();
    expect((await first).status).toBe(201);
    await disk.reached(2);
    expect(answered).toBe(0);
    disk.started[1]?.end();
    expect((await Promise.all(others)).map(({ status }) => status)).toEqual([201, 201, 201]);
    expect(disk.started.length).toBe(2);
  });

  test('behaviour: if the disk fails the write is 503, and the next write saves both, with a new log', async () => {
    const failing = create('/first');
    await disk.reached(1);
    disk.started[0]?.fail();
    const { status, json, headers } = await failing;
    expect([status, json['code'], headers['retry-after']]).toEqual([503, 'registry_unavailable', '5']);
    expect(kit.logs.filter((line) => line.includes('the store of the registry failed'))).toHaveLength(1);
    const next = create('/second');
    await disk.reached(2);
    // What failed is not in force before it is on the disk, although the file holds it.
    expect((await kit.dashboard('GET', LIST)).json['data']).toEqual([]);
    disk.started[1]?.end();
    await disk.reached(3);
    expect((await kit.dashboard('GET', LIST)).json['data']).toMatchObject([{ route_pattern: '/first' }]);
    disk.started[2]?.end();
    expect((await next).status).toBe(201);
    const copied = join(kit.folder, 'copy.db');
    copyFileSync(`${kit.file}-wal`, `${copied}-wal`);
    copyFileSync(kit.file, copied);
    const copy = openStore(copied, { random: createRandom() });
    expect((await copy.routes.load()).routes.map(({ pattern }) => pattern)).toEqual(['/first', '/second']);
    copy.close();
  });
});

test('behaviour: a write that was answered is in the files, whatever becomes of the process', async () => {
  const { folder, remove } = temporaryFolder();
  const kit = await startRegistry({ settings });
  for (const pattern of ['/one', '/two']) await kit.dashboard('POST', LIST, { body: wire(pattern) });
  for (const end of ['', '-wal']) copyFileSync(kit.file + end, join(folder, `copy.db${end}`));
  const copy = openStore(join(folder, 'copy.db'), { random: createRandom() });
  expect((await copy.routes.load()).routes.map(({ pattern }) => pattern)).toEqual(['/one', '/two']);
  copy.close();
  await kit.close();
  remove();
});

test('behaviour: a store that waits with each commit has nothing left to wait for', async () => {
  const { folder, remove } = temporaryFolder();
  const disk = slowDisk();
  const { syncFile } = disk;
  const store = openStore(join(folder, 'a.db'), { random: createRandom(), syncFile });
  await store.routes.write([{ kind: 'insert', route: storedRoute('GET /a'), key: '/a' }], { maxRoutes: 1 });
  expect(disk.started.length).toBe(0);
  store.close();
  remove();
});

test('behaviour: a log that is gone is a failure of the store', async () => {
  const { folder, remove } = temporaryFolder();
  const file = join(folder, 'a.db');
  const store = openStore(file, { random: createRandom(), writesApart: true });
  rmSync(`${file}-wal`);
  const key = {
    id: '1',
    name: 'a',
    scopes: [],
    createdAt: '2026-01-01T00:00:00.000Z',
    createdBy: null,
    digest: Buffer.alloc(32),
  };
  const written = store.apiKeys.insert(key, 9);
  await expect(written).rejects.toThrow(StoreUnavailable);
  await expect(written).rejects.toThrow('What was written may not be on the disk.');
  store.close();
  remove();
});
