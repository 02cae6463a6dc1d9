// A bounded run among several processes: `npm run chaos -- --topology postgres` makes it as long as one likes, and plants
// faults, each of which it finds.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it, test } from 'vitest';
import { hasPostgres } from '../../postgres/server.ts';
import { FAULTS } from './faults.ts';
import { runChaos } from './run.ts';

describe.skipIf(!hasPostgres)('chaos among registries and sidecars over one PostgreSQL', () => {
  it(
    'attack: 5 to 50 copies of each payment at four sidecars are delivered once and settled once, whatever dies',
    { timeout: 600_000 },
    async () => {
      const scale = {
        topology: 'postgres',
        payments: 48,
        kills: 4,
        seed: 20_261_123,
        chain: true,
        webhooks: true,
      } as const;
      const { violations, counts } = await runChaos(scale);
      expect(violations).toEqual([]);
      expect(counts['payments that moved money']).toBeGreaterThan(20);
      expect(counts['kills']).toBeGreaterThan(0);
      expect(counts['webhooks: charges told of']).toBeGreaterThan(20);
    },
  );
});

test.each(Object.entries(FAULTS))('behaviour: a planted fault finds its place once: %s', (_name, changes) => {
  for (const { file, text } of changes) {
    const source = readFileSync(path.join(import.meta.dirname, '../../../src', file), 'utf8');
    expect([file, source.split(text).length - 1]).toEqual([file, 1]);
  }
});
