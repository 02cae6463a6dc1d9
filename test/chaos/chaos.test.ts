// Bounded runs of chaos: `npm run chaos` makes them as long as one likes.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it, test } from 'vitest';
import { hasPostgres } from '../postgres/server.ts';
import { FAULTS } from './faults.ts';
import { runChaos } from './run.ts';

describe.each([
  ['with a chain to read', true],
  ['without a chain to read', false],
])('chaos %s', (_name, chain) => {
  it('behaviour: money, answers, ledger and chain agree', { timeout: 600_000 }, async () => {
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

describe.skipIf(!hasPostgres)('chaos among registries and sidecars over one PostgreSQL', () => {
  it(
    'attack: 5 to 50 copies of each payment at four sidecars are delivered once and settled once, whatever dies',
    { timeout: 600_000 },
    async () => {
      const scale = { topology: 'postgres', payments: 60, kills: 4, seed: 20_261_123, chain: true } as const;
      const { violations, counts } = await runChaos(scale);
      expect(violations).toEqual([]);
      expect(counts['payments that moved money']).toBeGreaterThan(20);
      expect(counts['kills']).toBeGreaterThan(0);
    },
  );
});

test.each(Object.entries(FAULTS))('behaviour: what a planted fault changes is there once: %s', (_name, changes) => {
  for (const { file, text } of changes) {
    const source = readFileSync(path.join(import.meta.dirname, '../../src', file), 'utf8');
    expect([file, source.split(text).length - 1]).toEqual([file, 1]);
  }
});
