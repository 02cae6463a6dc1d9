// What is loaded when it is first needed, and limits that take memory for the keys that they have seen alone.
import { expect, test } from 'vitest';
import { loadOnce } from '../../src/host/load-once.ts';
import { createRateLimit } from '../../src/host/rate-limit.ts';

test('behaviour: everybody who asks gets what one load made, also while it runs', async () => {
  let loads = 0;
  const ask = loadOnce(() => Promise.resolve(++loads));
  expect(loads).toBe(0);
  expect(await Promise.all([ask(), ask()])).toEqual([1, 1]);
  expect(await ask()).toBe(1);
});

test('behaviour: a load that failed is told to all who waited for it, and the next who asks begins another', async () => {
  let loads = 0;
  const ask = loadOnce(() => (++loads === 1 ? Promise.reject(new Error('no file')) : Promise.resolve(loads)));
  const ends = await Promise.allSettled([ask(), ask()]);
  expect(ends.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  expect(await ask()).toBe(2);
  expect(await ask()).toBe(2);
});

test('behaviour: a rate limit for ten million keys takes no memory before it has seen any', () => {
  const taken = (): number => {
    const { heapUsed, external } = process.memoryUsage();
    return heapUsed + external;
  };
  const before = taken();
  const limit = createRateLimit({ perMinute: 1, burst: 1, keys: 10_000_000 }, () => 0);
  expect(taken() - before).toBeLessThan(32 * 1024 * 1024);
  expect([limit.takeMs('a'), limit.takeMs('a')]).toEqual([0, 60_000 - 0.001 * 60_000]);
});
