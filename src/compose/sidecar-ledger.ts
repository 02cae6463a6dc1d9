// Where a sidecar writes its charges: a store of its own where the configuration names one, else its registry's ledger
// over HTTP. A registry that has none answers so, and then no payment is taken.
import type { Config } from '../config/config.ts';
import type { Ledger, Reports } from '../domain/payment/ledger.ts';
import { createRemoteLedger } from '../gateway/sync/ledger-remote.ts';
import { systemSchedule, type Clock, type Random } from '../host/clock.ts';
import type { Log } from '../host/log.ts';
import { storeAt } from '../registry/store/open.ts';
import type { StorePlace } from '../registry/store/ports.ts';
import { ledgerReadiness, storeReadiness, type Readiness } from './readiness.ts';

export type SidecarLedger = {
  readonly ledger: Ledger;
  /** Undefined where the ledger is elsewhere. */
  readonly reports: Reports | undefined;
  readonly readiness: Readiness;
  /** Of its own store; undefined where the ledger is elsewhere. */
  readonly stats: StorePlace['stats'] | undefined;
  readonly close: () => Promise<void>;
};

export type SidecarLedgerDeps = {
  readonly log: Log;
  readonly clock: Clock;
  readonly random: Random;
  readonly version: string;
};

export async function ledgerOfSidecar(
  { charges, sync }: Config,
  { log, clock, random, version }: SidecarLedgerDeps,
): Promise<SidecarLedger | undefined> {
  if (charges.store !== undefined) {
    const place = await storeAt(charges.store);
    const ledger = place.openLedger({
      ...{ now: clock.now, log, alone: true },
      retentionMs: () => charges.retentionMs,
    });
    const readiness = storeReadiness(ledger.check, { clock, log });
    return { ledger, reports: ledger, readiness, stats: place.stats, close: ledger.close };
  }
  if (sync === undefined) return undefined;
  const { registryUrl, apiKey } = sync;
  const ledger = createRemoteLedger({ registryUrl, apiKey, version, schedule: systemSchedule, clock, random });
  const readiness = ledgerReadiness(ledger.check, { clock, log });
  return { ledger, reports: undefined, readiness, stats: undefined, close: async () => ledger.close() };
}
