// Where a sidecar writes its charges: a store of its own, or its registry's ledger over HTTP.
import type { Config } from '../config/config.ts';
import type { Ledger, Reports } from '../domain/ledger.ts';
import type { Clock, Random } from '../host/clock.ts';
import type { Log } from '../host/log.ts';
import { openLedger } from '../registry/store/ledger.ts';

export type SidecarLedger = {
  readonly ledger: Ledger;
  /** Undefined where the ledger is elsewhere. */
  readonly reports: Reports | undefined;
  readonly close: () => Promise<void>;
};

export function ledgerOfSidecar(
  config: Config,
  { log, clock }: { readonly log: Log; readonly clock: Clock; readonly random: Random },
): SidecarLedger | undefined {
  const { store } = config.charges;
  if (store === undefined) return undefined;
  const ledger = openLedger(store.file, { now: clock.now, log });
  return { ledger, reports: ledger, close: ledger.close };
}
