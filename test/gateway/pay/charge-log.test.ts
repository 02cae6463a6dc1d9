// What metrics and log say of charges: by route and by network, to the last unit.
import { describe, expect, it } from 'vitest';
import type { Charge } from '../../../src/domain/payment/charge.ts';
import { decideClaim } from '../../../src/domain/payment/claim-policy.ts';
import { createChargeLog } from '../../../src/gateway/pay/recorder.ts';
import { createLog } from '../../../src/host/log.ts';
import { createMetrics } from '../../../src/host/metrics.ts';
import { abroad, address, claimOf, NETWORK, ROUTE_ID } from '../../cases/claims.ts';

const ELSEWHERE = 'eip155:8453';
const OPTIONS = { owner: 'run/one', leaseMs: 1_000, maxUnsettledPerPayer: 8 };
const settledOf = (claim = claimOf(1)): Charge => ({
  ...decideClaim(undefined, claim, OPTIONS, 0).charge,
  state: 'settled',
});

function stage(): ReturnType<typeof createChargeLog> & {
  readonly series: (name: string) => Promise<string[]>;
  readonly lines: () => Record<string, unknown>[];
} {
  const metrics = createMetrics();
  const lines: string[] = [];
  const log = createLog('info', (line) => void lines.push(line), Date.now);
  return {
    ...createChargeLog(metrics, log, (id) => id.slice(0, 2)),
    series: async (name) =>
      (await metrics.text())
        .split('\n')
        .filter((line) => line.startsWith(`tollgate_${name}{`))
        .toSorted(),
    lines: () => lines.map((line) => JSON.parse(line) as Record<string, unknown>),
  };
}

describe('metrics of charges', () => {
  it('behaviour: money is summed for each network, and settlements are counted for each as well', async () => {
    const { changed, series } = stage();
    for (const claim of [claimOf(1), abroad(claimOf(2)), abroad(claimOf(3, { amount: 1n }))])
      changed(settledOf(claim), 'settled');
    expect(await series('revenue_total')).toEqual([
      `tollgate_revenue_total{route_id="11",currency="USD",network="${ELSEWHERE}"} 0.100001`,
      `tollgate_revenue_total{route_id="11",currency="USD",network="${NETWORK}"} 0.1`,
    ]);
    expect(await series('payments_total')).toEqual([
      `tollgate_payments_total{route_id="11",result="settled",network="${ELSEWHERE}"} 2`,
      `tollgate_payments_total{route_id="11",result="settled",network="${NETWORK}"} 1`,
    ]);
  });

  it('behaviour: a payment that chose no way is counted under no network', async () => {
    const { counted, series } = stage();
    counted(ROUTE_ID, 'refused', undefined);
    counted(ROUTE_ID, 'refused', NETWORK);
    expect(await series('payments_total')).toEqual([
      `tollgate_payments_total{route_id="11",result="refused",network="${NETWORK}"} 1`,
      'tollgate_payments_total{route_id="11",result="refused",network="none"} 1',
    ]);
  });
});

it('behaviour: the line of a settlement says the way that was paid in', () => {
  const { changed, lines } = stage();
  changed(settledOf(claimOf(1, { x402Version: 1 })), 'settled');
  expect(lines()).toMatchObject([
    {
      ...{ msg: 'charge settled', network: NETWORK, scheme: 'exact', pay_to_address: address(0xbeef) },
      ...{ asset: claimOf(1).way.asset, x402_version: 1, flow: 'upfront', amount_atomic: '100000' },
    },
  ]);
});
