// Opens the ledger of a sidecar: a store of its own if the configuration names one, else its registry's ledger over
// HTTP. A registry that has none answers so, and then no payment is taken.
import type { Config } from '../config/config.ts';
import type { CounterChanger } from '../domain/selling/counter.ts';
import type { PassLedger } from '../domain/selling/pass-store.ts';
import { createLedger, type Ledger } from '../domain/payment/ledger.ts';
import { SPELLING } from '../gateway/rails/rails.ts';
import { createRemoteCharges } from '../gateway/ledger/remote-ledger.ts';
import { systemSchedule, type Clock, type Random } from '../host/clock.ts';
import type { Log } from '../host/log.ts';
import { storeAt } from '../registry/store/store-kinds.ts';
import { ledgerOf, type StoredLedger } from '../registry/store/stored-ledger.ts';
import type { ChargesStore, StorePlace } from '../registry/store/ports.ts';
import type { Tracing } from '../gateway/tracing/tracing.ts';
import type { Metrics } from '../host/metrics.ts';
import { observeCalls } from './store-metrics.ts';
import { countLeases } from './charge-metrics.ts';
import { keepCharges } from './retention.ts';
import type { Settings } from './settings.ts';
import { keepTotals } from './totals-retention.ts';
import { startWebhooks } from './webhook-part.ts';
import { ledgerReadiness, storeReadiness, type Readiness } from './readiness.ts';

export type SidecarLedger = {
  readonly ledger: Ledger;
  /** Reports; undefined if the ledger is elsewhere. */
  readonly reports: StoredLedger | undefined;
  readonly counters: CounterChanger;
  readonly passes: PassLedger;
  readonly readiness: Readiness;
  /** Reads the size of its own store; undefined if the ledger is elsewhere. */
  readonly stats: StorePlace['stats'] | undefined;
  /** Load of its own store, if others share it. */
  readonly load: ChargesStore['load'];
  readonly close: () => Promise<void>;
};

type SidecarLedgerDeps = {
  readonly log: Log;
  readonly clock: Clock;
  readonly random: Random;
  readonly version: string;
  readonly metrics: Metrics;
  /** Tracing, if the requests of this process are traced. */
  readonly tracing?: Tracing | undefined;
  readonly settings: Settings;
  /** The registry whose routes it serves; null while it is not known. */
  readonly registryId: () => string | null;
};

/** The store may be a registry's, which says itself how long its sums are kept: a sidecar takes minutes away alone. */
const OWN_TOTALS_MS = 3660 * 24 * 3_600_000;

export async function ledgerOfSidecar(
  { charges, sync }: Config,
  { log, clock, random, version, metrics, tracing, settings, registryId }: SidecarLedgerDeps,
): Promise<SidecarLedger | undefined> {
  if (charges.store !== undefined) {
    const place = await storeAt(charges.store);
    const store = place.openCharges({ now: clock.now, log, alone: true, observe: observeCalls(metrics, place) });
    const ledger = ledgerOf(store, SPELLING, countLeases(metrics));
    const readiness = storeReadiness(ledger.check, { clock, log }, { isShared: place.isShared, hasProxy: true });
    const stopKeeping = keepCharges(store, {
      ...{ clock, log, schedule: systemSchedule },
      retentionMs: () => charges.retentionMs,
    });
    const stopPruning = keepTotals(store.totals, {
      ...{ clock, log, schedule: systemSchedule },
      kept: () => ({ hoursMs: OWN_TOTALS_MS, daysMs: OWN_TOTALS_MS }),
    });
    const { close: closeWebhooks } = await startWebhooks({
      ...{ store: store.webhooks, isShared: place.isShared, run: store.run, registryId, config: () => settings.config },
      ...{ metrics, log, clock, random, version },
    });
    const close = async (): Promise<void> => {
      stopKeeping();
      stopPruning();
      await closeWebhooks();
      await ledger.close();
    };
    return {
      ledger,
      reports: ledger,
      counters: ledger.counters,
      passes: ledger.passes,
      readiness,
      stats: place.stats,
      load: store.load,
      close,
    };
  }
  if (sync === undefined) return undefined;
  const { registryUrl, apiKey } = sync;
  const store = createRemoteCharges({
    ...{ registryUrl, apiKey, version, schedule: systemSchedule, clock, random },
    aroundCalls: tracing?.ledgerCalls,
  });
  const readiness = ledgerReadiness(store.check, { clock, log });
  return {
    ledger: createLedger(store, SPELLING),
    reports: undefined,
    counters: store.counters,
    passes: store.passes,
    readiness,
    stats: undefined,
    load: undefined,
    close: store.close,
  };
}
