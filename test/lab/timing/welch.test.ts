// The arithmetic of the timing test: it must see a shift that is small beside the noise, and none where there is none.
import { describe, expect, test } from 'vitest';
import { LIMIT_T, welch } from './welch.ts';

/** Numbers between 0 and 1 that are the same in every run (a linear congruential generator). */
function numbers(seed: number): () => number {
  let state = seed;
  return () => (state = (state * 1_664_525 + 1_013_904_223) % 2 ** 32) / 2 ** 32;
}

/** Times around 1,000 with noise of 200 and, now and then, a pause of the machine; the second kind takes `shift` longer. */
function sampled(count: number, shift: number): ReturnType<typeof welch> {
  const next = numbers(7);
  const times = new Float64Array(count);
  const kinds = new Uint8Array(count);
  for (let nth = 0; nth < count; nth++) {
    const kind = next() < 0.5 ? 0 : 1;
    kinds[nth] = kind;
    times[nth] = 900 + 200 * next() + (kind === 1 ? shift : 0) + (next() < 0.05 ? 1e6 * next() : 0);
  }
  return welch(times, kinds);
}

describe('Welch’s t', () => {
  test('behaviour: Welch’s t finds nothing where nothing is', () => {
    expect(Math.abs(sampled(50_000, 0).t)).toBeLessThan(LIMIT_T);
  });

  test('behaviour: Welch’s t finds a shift of a twentieth of the noise among 50,000', () => {
    const { t, means, kept } = sampled(50_000, 10);
    expect(t).toBeLessThan(-LIMIT_T);
    expect(means[1] - means[0]).toBeGreaterThan(4);
    expect(kept).toBe(45_001);
  });

  test('behaviour: a difference without any spread is certain for Welch’s t, and none is none', () => {
    const kinds = Uint8Array.from([0, 1, 0, 1, 0, 1, 0, 1, 0, 1]);
    expect(welch(new Float64Array(10).fill(5), kinds).t).toBe(0);
    expect(
      Math.abs(
        welch(
          Float64Array.from(kinds, (kind) => 5 + kind),
          kinds,
        ).t,
      ),
    ).toBe(Infinity);
  });
});
