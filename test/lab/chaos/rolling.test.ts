// Restarts that nobody notices. `npm run chaos -- --rolling 3` is longer, and measures.
import { expect, test } from 'vitest';
import { hasPostgres } from '../../postgres/server.ts';
import { runRolling } from './rolling.ts';

test.skipIf(!hasPostgres)(
  'behaviour: registries, sidecars, all-in-ones and the database restart under load: no free request fails, no payment is lost',
  { timeout: 300_000 },
  async () => {
    const { restarts, free, payments, moved } = await runRolling(
      { rounds: 1, short: true, calmMs: 0 },
      () => undefined,
    );
    expect(Object.keys(restarts).toSorted()).toEqual(['all-in-one 1', 'database', 'registry 1', 'sidecar 1']);
    expect([...free.keys()]).toEqual(['200']);
    expect(payments.lost).toEqual([]);
    expect(moved.chain).toBe(moved.ledger);
    expect(moved.chain).toBe(BigInt(payments.atOnce + payments.later) * 100_000n);
  },
);
