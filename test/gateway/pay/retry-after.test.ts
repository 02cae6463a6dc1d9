// When a payer is told to come back while another request uses its payment: soon, or when a lease ends whose owner missed a
// renewal. A living owner renews when a third of the lease is over.
import { expect, test } from 'vitest';
import type { Charge } from '../../../src/domain/payment/charge.ts';
import { paymentInUse } from '../../../src/gateway/pay/payment-problems.ts';

const LEASE_MS = 10_000;
const NOW = Date.parse('2026-01-01T00:00:00Z');

function retryAfter(restMs: number | undefined): unknown {
  const deps = { ledger: { now: () => NOW }, options: { leaseMs: LEASE_MS } };
  const charge = restMs === undefined ? undefined : ({ id: 'chg_1', leaseUntil: NOW + restMs } as Charge);
  return paymentInUse(deps, charge).retryAfter;
}

test.each([
  ['a lease that was just taken', LEASE_MS, 2],
  ['half of a lease left', LEASE_MS / 2, 2],
  ['one millisecond less', LEASE_MS / 2 - 1, 5],
  ['a missed renewal', 3_001, 4],
  ['its last millisecond', 1, 1],
  ['its end', 0, 2],
  ['a lease that is over', -5_000, 2],
  ['a charge that is not known', undefined, 2],
])('behaviour: a payer whose payment is in use is told when to come back: %s', (_what, restMs, seconds) => {
  expect(retryAfter(restMs)).toBe(seconds);
});
