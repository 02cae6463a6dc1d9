// What is remembered by method and path, and what is not.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createPathCache } from '../../../src/domain/routing/path-cache.ts';

const echoing = () => createPathCache((method, path) => ({ method, path }));

describe('the path cache', () => {
  test('attack: whatever is asked in whatever order, the answer is that of the very method and path', () => {
    // The last 32 characters say where a path stands: these crowd into few places.
    const path = fc.tuple(fc.nat(40), fc.constantFrom('', 'x'.repeat(31), 'x'.repeat(32), 'x'.repeat(33)));
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.constantFrom('GET', 'GOT', 'PUT'), path), { minLength: 50, maxLength: 300 }),
        (asked) => {
          const { resolve } = echoing();
          for (const [method, [n, tail]] of asked)
            expect(resolve(method, `/${n}${tail}`)).toEqual({ method, path: `/${n}${tail}` });
        },
      ),
      { numRuns: 100 },
    );
  });

  test('behaviour: a path is remembered when it comes for the second time', () => {
    const { resolve, cache } = echoing();
    const [first, second, third] = [resolve('GET', '/a'), resolve('GET', '/a'), resolve('GET', '/a')];
    expect([first === second, second === third]).toEqual([false, true]);
    expect(cache).toEqual({ hits: 1, misses: 2 });
  });

  test('attack: paths that come once each push out nothing, and two that share a place live side by side', () => {
    const { resolve, cache } = echoing();
    const twins = ['/1'.padEnd(64, 'x'), '/2'.padEnd(64, 'x')];
    for (let i = 0; i < 2; i++) for (const twin of twins) for (let n = 0; n < 2; n++) resolve('GET', twin);
    for (let i = 0; i < 50_000; i++) resolve('GET', `/once/${i}`);
    const { hits } = cache;
    for (const twin of twins) resolve('GET', twin);
    expect(cache.hits).toBe(hits + 2);
  });

  test.each([
    [512, 1],
    [513, 0],
  ])(
    'attack: a path of %i characters asked for three times is remembered %i times: memory has a bound',
    (length, hits) => {
      const { resolve, cache } = echoing();
      for (let i = 0; i < 3; i++) resolve('GET', '/'.padEnd(length, 'a'));
      expect(cache.hits).toBe(hits);
    },
  );
});
