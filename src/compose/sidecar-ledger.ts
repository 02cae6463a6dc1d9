// Where a sidecar writes its charges: a store of its own where the configuration names one, else its registry's ledger
// over HTTP. A registry that has none answers so, and then no payment is taken.
import type { Config } from '../config/config.ts';
import type { Ledger, Reports } from '../domain/ledger.ts';
import { createRemoteLedger } from '../gateway/sync/ledger-remote.ts';
import { systemSchedule, type Clock, type Random } from '../host/clock.ts';
import type { Log } from '../host/log.ts';
import { openLedger } from '../registry/store/ledger.ts';
import { ledgerReadiness, storeReadiness, type Readiness } from './readiness.ts';

export type SidecarLedger = {
  readonly ledger: Ledger;
  /** Undefined where the ledger is elsewhere. */
  readonly reports: Reports | undefined;
  readonly readiness: Readiness;
  readonly close: () => Promise<void>;
};

export type SidecarLedgerDeps = {
  readonly log: Log;
  readonly clock: Clock;
  readonly random: Random;
  readonly version: string;
};

export function ledgerOfSidecar(
  { charges, sync }: Config,
  { log, clock, random, version }: SidecarLedgerDeps,
): SidecarLedger | undefined {
  if (charges.store !== undefined) {
    const ledger = openLedger(charges.store.file, {
      ...{ now: clock.now, log, alone: true },
      retentionMs: () => charges.retentionMs,
    });
    return { ledger, reports: ledger, readiness: storeReadiness(ledger.check, { clock, log }), close: ledger.close };
  }
  if (sync === undefined) return undefined;
  const { registryUrl, apiKey } = sync;
  const ledger = createRemoteLedger({
    ...{ registryUrl, apiKey, version, random },
    ...{ fetch: globalThis.fetch, schedule: systemSchedule },
  });
  const readiness = ledgerReadiness(ledger.check, { clock, log });
  return { ledger, reports: undefined, readiness, close: async () => undefined };
}
