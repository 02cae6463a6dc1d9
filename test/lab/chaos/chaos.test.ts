// Bounded runs of chaos: `npm run chaos` makes them as long as one likes.
import { describe, expect, it } from 'vitest';
import { runChaos } from './run.ts';

describe.each([
  ['with a chain to read', true],
  ['without a chain to read', false],
])('chaos %s', (_name, chain) => {
  it(
    'behaviour: after chaos money, answers, ledger and chain agree, and webhooks told what happened',
    { timeout: 600_000 },
    async () => {
      const { violations, counts } = await runChaos({
        topology: 'one',
        payments: 160,
        kills: 8,
        seed: 20_261_123,
        chain,
        webhooks: true,
      });
      expect(violations).toEqual([]);
      expect(counts['payments that moved money']).toBeGreaterThan(50);
      expect(counts['kills']).toBeGreaterThan(4);
      expect(counts['webhooks: events of charges that came again']).toBeGreaterThan(0);
      expect(counts['webhooks: charges told of']).toBeGreaterThan(50);
    },
  );
});
