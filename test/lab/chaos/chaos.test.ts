// Bounded runs of chaos: `npm run chaos` makes them as long as one likes.
import { describe, expect, it } from 'vitest';
import { runChaos } from './run.ts';

describe.each([
  ['with a chain to read', true],
  ['without a chain to read', false],
])('chaos %s', (_name, chain) => {
  it('behaviour: after chaos money, answers, ledger and chain agree', { timeout: 600_000 }, async () => {
    const { violations, counts } = await runChaos({
      topology: 'one',
      payments: 160,
      kills: 8,
      seed: 20_261_123,
      chain,
    });
    expect(violations).toEqual([]);
    expect(counts['payments that moved money']).toBeGreaterThan(50);
    expect(counts['kills']).toBeGreaterThan(4);
  });
});
