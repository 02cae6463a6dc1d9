// What a start leaves behind is given back before anybody connects: the pages of the young generation, which no ordinary
// collection makes smaller, and what the start read and compiled.
import { getHeapSpaceStatistics } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { collectGarbage } from '../../src/host/collect-garbage.ts';

const MB = 1024 * 1024;

function sizeOf(space: string): number {
  return getHeapSpaceStatistics().find(({ space_name: name }) => name === space)?.space_size ?? Number.NaN;
}

test('behaviour: the young generation is small again, however large a start made it', () => {
  let kept: { number: number }[] = [];
  for (let number = 0; number < 500_000; number++) kept.push({ number });
  const grown = sizeOf('new_space');
  expect(grown).toBeGreaterThan(4 * MB);
  kept = [];
  collectGarbage();
  expect(sizeOf('new_space')).toBeLessThan(2 * MB);
  expect(kept).toEqual([]);
});

test('behaviour: nobody can collect by hand afterwards', () => {
  collectGarbage();
  expect(runInNewContext('typeof globalThis.gc')).toBe('undefined');
});
