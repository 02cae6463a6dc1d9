// Reports of a proxy that are faster than the ledger: an allow is in its hands before it is written that it was handed over.
import { expect, test } from 'vitest';
import { createTakeReport, type FailureReport } from '../../src/gateway/decision/failure-report.ts';
import type { Log } from '../../src/host/log.ts';
import { claimOf, proofOf, requestOf } from '../cases/claims.ts';
import { createMemoryLedger } from '../support/memory-ledger.ts';

const LEASE_MS = 10_000;
const TARGET = '/reports/1?key=value';
const REPORT: FailureReport = { chargeId: 'chg_test-1', dialect: 'nginx', method: 'GET', target: TARGET };

/** A charge that is allowed, and its report. `meanwhile` hears how long was waited, whenever the report waits. */
async function allowed(meanwhile: (waitedMs: number, owner: string) => Promise<unknown> = async () => undefined) {
  let now = Date.UTC(2030, 0, 1);
  let changes = 0;
  let waitedMs = 0;
  const ledger = createMemoryLedger(() => now);
  const owner = { owner: 'run/one' };
  const claim = claimOf(1, { asker: 'nginx', request: requestOf('GET', TARGET) });
  await ledger.claim(claim, { ...owner, leaseMs: LEASE_MS, maxUnsettledPerPayer: 9, settleVia: 'model' });
  await ledger.advance(claim.id, { kind: 'settled', proof: proofOf(claim), leaseMs: LEASE_MS }, owner);
  const take = createTakeReport({
    ...{ ledger, log: { error: () => undefined } as unknown as Log, newId: () => `change-${(changes += 1)}` },
    rail: { receiptHeader: () => ['PAYMENT-RESPONSE', 'x'] },
    options: { services: () => undefined, nameOf: () => 'USDC', support: undefined },
    chargeLog: { changed: () => undefined },
    pause: async (ms) => {
      now += ms;
      waitedMs += ms;
      await meanwhile(waitedMs, owner.owner);
    },
  });
  return {
    ...{ ledger, owner },
    take: (report: Partial<FailureReport> = {}) => take({ ...REPORT, ...report }),
    state: async () => (await ledger.findByChargeId(claim.id))?.state,
    waited: () => waitedMs,
  };
}

test('behaviour: a report that comes before its allow is written as handed over waits for that, and is believed', async () => {
  let isWritten = false;
  const all = await allowed(async (waitedMs, owner) => {
    if (isWritten || waitedMs < 300) return;
    isWritten = true;
    await all.ledger.advance(REPORT.chargeId, { kind: 'delivered', partial: false }, { owner });
  });
  expect(await all.take()).toMatchObject({ isAccepted: true, problem: { code: 'upstream_failed', retryAfter: 1 } });
  expect(await all.ledger.findByChargeId(REPORT.chargeId)).toMatchObject({
    ...{ state: 'settled', undelivered: 'upstream_failed', deliveredAt: null },
  });
});

test('refuses: a report of what is never written as handed over, after two seconds', async () => {
  const all = await allowed();
  expect(await all.take()).toMatchObject({ isAccepted: false, problem: { code: 'upstream_unreachable' } });
  expect(await all.state()).toBe('settled');
  expect(all.waited()).toBeGreaterThanOrEqual(1_500);
  expect(all.waited()).toBeLessThanOrEqual(3_000);
});

test.each([
  ['another method', { method: 'POST' }],
  ['another target', { target: '/reports/2' }],
  ['another dialect', { dialect: 'caddy' }],
  ['another charge', { chargeId: 'chg_test-2' }],
] as const)('refuses: at once a report of %s', async (_what, report) => {
  const all = await allowed();
  expect((await all.take(report)).isAccepted).toBe(false);
  expect(all.waited()).toBe(0);
});
