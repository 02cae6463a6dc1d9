// Payers whose settlement has an unknown end and who insist. Whatever the pace of the chain, each is answered soon after the
// chain proves the payment: what was searched is never searched again. A planted fault that forgets it has to be seen.
import { expect, test } from 'vitest';
import { SLOW_BUGS } from './bugs.ts';
import { latest, runInsisting } from './insist.ts';

const RATES = [4, 5, 8, 12];
const PAUSES_MS = [1_000, 2_000];
/** At once, and long after the claim. */
const MINED_AFTER_MS = [1_000, 120_000];
/** A chain whose clock agrees with ours is searched from the claim on, another from ten minutes before it. */
const BEHIND_MS = [0, 45_000];
const ALONE = { payers: 1, processes: 1 };
const MINUTE = 60;

test.each(RATES)(
  'behaviour: on a chain of %d blocks a second a payer who insists is answered within a minute of the proof',
  async (blocksPerSecond) => {
    for (const pauseMs of PAUSES_MS)
      for (const minedAfterMs of MINED_AFTER_MS)
        for (const behindMs of BEHIND_MS)
          for (let seed = 1; seed <= 3; seed++) {
            const wanted = { ...ALONE, seed, blocksPerSecond, pauseMs, minedAfterMs, behindMs };
            const insisted = await runInsisting(wanted);
            const { seed: _, ...told } = wanted;
            expect(insisted.violations, JSON.stringify(told)).toEqual([]);
            expect(latest(insisted), `${seed} of ${JSON.stringify(told)}`).toBeLessThan(MINUTE);
            expect(insisted.callsASecond).toBeLessThanOrEqual(5);
          }
  },
  120_000,
);

test.each(RATES.flatMap((rate) => BEHIND_MS.map((behindMs) => [rate, behindMs] as const)))(
  'behaviour: all of 100 payers who insist over five processes, on a chain of %d blocks a second that is %d ms behind, are answered within ten minutes',
  async (blocksPerSecond, behindMs) => {
    const wanted = { payers: 100, processes: 5, blocksPerSecond, pauseMs: 1_000, minedAfterMs: 1_000, behindMs };
    const insisted = await runInsisting({ ...wanted, seed: 1 });
    expect(insisted.violations).toEqual([]);
    expect(latest(insisted)).toBeLessThan(10 * MINUTE);
    expect(insisted.callsASecond).toBeLessThanOrEqual(5);
  },
  180_000,
);

test.each(Object.entries(SLOW_BUGS))(
  'behaviour: a planted fault that makes payers wait is found: %s',
  async (_name, bug) => {
    const wanted = { ...ALONE, blocksPerSecond: 12, pauseMs: 1_000, minedAfterMs: 1_000, behindMs: 45_000 };
    expect(latest(await runInsisting({ ...wanted, seed: 1, bug }))).toBeGreaterThan(MINUTE);
  },
);
