// The short form of bench/sidecars.ts: every change is in force at every sidecar, and a registry that comes back is asked
// for what changed and for no whole set. How long it takes is for the long form to say.
import { expect, test } from 'vitest';
import { runSidecars } from '../../bench/sidecars.ts';

const SIDECARS = 10;
const CHANGES = 3;
/** Larger than what is sent to all at once. */
const ROUTES = 4000;

test('behaviour: sidecars take each change from the stream, and come back to a registry with a small request each', async () => {
  const { effectMs, start, changes, back } = await runSidecars({
    ...{ sidecars: SIDECARS, processes: 1, routes: ROUTES, changes: CHANGES },
    ...{ awayMs: 500, backMs: 0 },
  });
  expect(effectMs).toHaveLength(SIDECARS * CHANGES);
  expect(start.wholeSets).toBeGreaterThanOrEqual(SIDECARS);
  expect([changes.wholeSets, back.wholeSets]).toEqual([0, 0]);
  expect(back.bytes).toBeLessThan(start.bytes / 2);
}, 300_000);
