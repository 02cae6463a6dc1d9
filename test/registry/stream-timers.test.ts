// Heartbeats and questions about keys: an idle registry is not woken for streams that nobody has open.
import { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';
import { afterEach, expect, test, vi } from 'vitest';
import { createRandom } from '../../src/host/clock.ts';
import { createStreams } from '../../src/registry/stream/open-streams.ts';

afterEach(() => void vi.useRealTimers());

test('behaviour: timers of streams run from the first stream to the last', () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  const streams = createStreams({
    routes: {
      head: () => ({ revision: 0, stamp: '' }),
      count: () => 0,
      subscribe: () => () => undefined,
      prove: () => Promise.reject(new Error('not now')),
      changesAfter: async () => [],
    },
    stillAllowed: async () => true,
    random: createRandom(),
    limits: { streams: 9, streamsPerKey: 9, streamBuffer: 1000, heartbeatMs: 1000, keysMs: 1000 },
  });
  const open = (): EventEmitter => {
    const res = Object.assign(new EventEmitter(), { writableLength: 0, write: () => true, end: () => undefined });
    const principal = { kind: 'api_key', id: undefined, name: 'a', scopes: [], digest: Buffer.alloc(0) } as const;
    streams.open(res as unknown as ServerResponse, principal, undefined);
    return res;
  };
  expect(vi.getTimerCount()).toBe(0);
  const [first, second] = [open(), open()];
  expect(vi.getTimerCount()).toBe(2);
  // A digest that is not known is no end of the process.
  vi.advanceTimersByTime(1000);
  first.emit('close');
  expect(vi.getTimerCount()).toBe(2);
  second.emit('close');
  expect(vi.getTimerCount()).toBe(0);
  open();
  expect(vi.getTimerCount()).toBe(2);
  streams.close();
  expect(vi.getTimerCount()).toBe(0);
});
