// Bounded runs with an upstream that restarts: `npm run chaos -- --outages` makes them as long as one likes.
import { expect, test } from 'vitest';
import { hasPostgres } from '../../postgres/server.ts';
import { runOutages } from './outages.ts';

const scale = { payments: 60, seed: 20_261_125, awayMs: [200, 1_500], thereMs: [100, 600] } as const;

test.each([
  ['one process', 'one'],
  ['two processes on one PostgreSQL', 'postgres'],
] as const)(
  'attack: an upstream that restarts under payers without pauses: %s owe nobody, and charge nobody without an answer',
  { timeout: 600_000 },
  async (_, topology) => {
    if (topology === 'postgres' && !hasPostgres) return;
    const { violations, counts } = await runOutages({ ...scale, topology });
    expect(violations).toEqual([]);
    expect(counts['outages']).toBeGreaterThan(1);
    // Payers met some of them, however few requests a busy machine makes in one.
    const met = Object.entries(counts).filter(([what]) => what.startsWith('502 upstream_unreachable'));
    expect(met.reduce((sum, [, count]) => sum + count, 0)).toBeGreaterThan(5);
  },
);
