// The small version of `npm run test:endurance`: every scenario, with numbers that take seconds. What only time or large
// numbers show (flat memory, percentiles) is judged by the long one.
import { expect, test } from 'vitest';
import { QUICK } from './plan.ts';
import { endure, SCENARIO_NAMES } from './run.ts';

test('attack: connections, unpaid requests, junk, bombs, a stalled facilitator and floods stay within their bounds', async () => {
  const findings = await endure(QUICK, SCENARIO_NAMES, () => undefined);
  expect(findings.filter(({ verdict }) => verdict === 'broken')).toEqual([]);
  expect(new Set(findings.map(({ scenario }) => scenario))).toEqual(new Set([...SCENARIO_NAMES, 'memory']));
}, 600_000);
