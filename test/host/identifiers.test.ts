// Identifiers that Tollgate makes itself.
import { expect, test } from 'vitest';
import { createRandom } from '../../src/host/clock.ts';
import { createTraceReader } from '../../src/host/identifiers.ts';

test('behaviour: request ids that Tollgate makes stand in the order of time, and no two are the same', () => {
  let now = Date.UTC(2026, 0, 1);
  const readTrace = createTraceReader(createRandom(), () => now);
  const newIds = (): string[] =>
    Array.from({ length: 500 }, () => readTrace(undefined, undefined, undefined).requestId);
  const ids = [0, 1, 1_000, 86_400_000].map((ms) => {
    now += ms;
    return newIds();
  });
  for (const id of ids.flat()) expect(id).toMatch(/^[0-9a-f]{32}$/);
  expect(new Set(ids.flat()).size).toBe(2000);
  for (const [index, later] of ids.slice(1).entries())
    for (const id of later) expect(ids[index]?.every((earlier) => earlier < id)).toBe(true);
});

test('behaviour: a clock that stands before the epoch, or between two milliseconds, still gives an id of the same form', () => {
  for (const now of [-5, 0, 0.5, 1_766_000_000_000.25])
    expect(createTraceReader(createRandom(), () => now)(undefined, undefined, undefined).requestId).toMatch(
      /^[0-9a-f]{32}$/,
    );
});
