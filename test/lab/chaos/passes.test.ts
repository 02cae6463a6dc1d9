// Bounded runs of chaos on passes: `npm run chaos -- --passes` makes them as long as one likes, and plants faults, each of which it
// finds.
import { expect, test } from 'vitest';
import { runPasses } from './passes/pass-run.ts';

test(
  'attack: clients draw on passes while workers and their primary die: one transfer a pass, exact books, nobody has more than was bought',
  { timeout: 600_000 },
  async () => {
    const { violations, counts } = await runPasses({ topology: 'one', uses: 120, kills: 3, seed: 20_261_128 });
    expect(violations).toEqual([]);
    expect(counts['passes sold']).toBeGreaterThan(3);
    expect(counts['many: drawn']).toBe(120);
    expect(counts['kills']).toBeGreaterThan(1);
    expect(counts['held: killed between draw and answer']).toBeGreaterThan(0);
    expect(counts['looks at the books']).toBeGreaterThan(10);
  },
);
