// Metrics of a ledger's store: charges by state, what is owed, and how late the oldest settlement is.
import { CHARGE_STATES } from '../domain/payment/charge-fields.ts';
import type { Alarms, ChargeReports, RefundedSum } from '../domain/payment/reports.ts';
import { FAULTS } from '../domain/payment/claim-policy.ts';
import type { ObserveLeases } from '../domain/payment/ledger.ts';
import { addDecimals, type Decimal } from '../host/decimal.ts';
import type { Metrics } from '../host/metrics.ts';

/** Time after the end of a payment in which it should have been settled or failed. */
const END_MARGIN_MS = 60_000;

/** Counts leases in the process with the store, for all processes whose ledger it is. */
export function countLeases(metrics: Metrics): ObserveLeases {
  const lostHelp = 'Charges whose request went on with them and found that they are not its own any more.';
  const takenHelp = 'Charges that were taken from an owner whose lease had run out.';
  const [lost, takenOver] = [
    metrics.counter('leases_lost_total', lostHelp, [])(),
    metrics.counter('takeovers_total', takenHelp, [])(),
  ];
  return { lost: () => lost(1), takenOver: () => takenOver(1) };
}

/** Exports what the returned function read last. */
export function exportCharges(
  reports: Pick<ChargeReports, 'countByState' | 'alarms' | 'refunded'>,
  metrics: Metrics,
  now: () => number,
): () => Promise<void> {
  let counts: Awaited<ReturnType<ChargeReports['countByState']>> | undefined;
  let alarms: Alarms | undefined;
  let refunded: readonly RefundedSum[] = [];
  metrics.observed('gauge', 'charges', 'Charges in the ledger, by state.', ['state'], (set) => {
    for (const state of CHARGE_STATES) if (counts !== undefined) set({ state }, counts[state]);
  });
  const owedHelp =
    'Money of charges that were paid for and can be delivered no more, by currency and whose fault it is.';
  metrics.exact('gauge', 'owed', owedHelp, ['currency', 'because'], (set) => {
    const sums = new Map<string, { readonly labels: { currency: string; because: string }; sum: Decimal }>();
    for (const { currency, because, amount: units, assetDecimals: scale } of alarms?.owed ?? []) {
      const name = `${currency} ${because}`;
      const known = sums.get(name)?.sum ?? { units: 0n, scale };
      sums.set(name, { labels: { currency, because }, sum: addDecimals(known, { units, scale }) });
    }
    for (const { labels, sum } of sums.values()) set(labels, sum);
  });
  const refundsHelp = 'Money of charges that was given back, by currency; the same from every process of a ledger.';
  metrics.exact('counter', 'refunds_total', refundsHelp, ['currency'], (set) => {
    for (const [currency, sums] of Map.groupBy(refunded, (sum) => sum.currency)) {
      const parts = sums.map(({ amount: units, assetDecimals: scale }) => ({ units, scale }));
      set({ currency }, parts.reduce(addDecimals, { units: 0n, scale: 0 }));
    }
  });
  const chargesHelp = 'Charges that were paid for and can be delivered no more, by whose fault it is.';
  metrics.observed('gauge', 'owed_charges', chargesHelp, ['because'], (set) => {
    if (alarms === undefined) return;
    for (const because of FAULTS) {
      const own = alarms.owed.filter((sum) => sum.because === because);
      set(
        { because },
        own.reduce((total, { charges }) => total + charges, 0),
      );
    }
  });
  const lateHelp = 'How long ago the oldest payment should have been settled or failed; 0 where none is late.';
  metrics.observed('gauge', 'settling_overdue_seconds', lateHelp, [], (set) => {
    if (alarms === undefined) return;
    const { settlingEndsAt } = alarms;
    set({}, settlingEndsAt === null ? 0 : Math.max(0, now() - settlingEndsAt - END_MARGIN_MS) / 1000);
  });
  return async () => {
    [counts, alarms, refunded] = await Promise.all([reports.countByState(), reports.alarms(), reports.refunded()]);
  };
}
