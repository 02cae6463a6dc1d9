// Event streams by themselves: over a store that can tell nothing.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { createRandom } from '../../src/host/clock.ts';
import { REGISTRY_LIMITS } from '../../src/registry/registry.ts';
import { createStreams } from '../../src/registry/streams.ts';
import { openEvents } from './kit.ts';

test('behaviour: who has all that there is goes on without the store; who has not is sent away while it cannot tell', async () => {
  const streams = createStreams({
    routes: {
      head: () => ({ revision: 7, stamp: '' }),
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
