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
      payments: 110,
      kills: 6,
      seed: 20_261_123,
      chain,
    });
    expect(violations).toEqual([]);
    expect(counts['payments that moved money']).toBeGreaterThan(35);
    expect(counts['kills']).toBeGreaterThan(3);
  });
});

it(
  'behaviour: through a front that asks, nobody pays for a failure that it reported, and the ledger has what the chain has',
  { timeout: 600_000 },
  async () => {
    const scale = { topology: 'one', payments: 40, kills: 2, seed: 5, chain: true, asked: true } as const;
    const { violations, counts } = await runChaos(scale);
    expect(violations).toEqual([]);
    expect(counts['payments that moved money']).toBeGreaterThan(15);
    expect(counts['kills']).toBeGreaterThan(0);
    expect(counts['front: allowed']).toBeGreaterThan(15);
    expect(counts['front: reported']).toBeGreaterThan(0);
  },
);
