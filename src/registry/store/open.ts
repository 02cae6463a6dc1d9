// Chooses the kind of store by what the configuration says of it: the one place that knows which kinds there are. Each is
// loaded when it is asked for, so that a command without a store starts without one.
import type { ChargeReports } from '../../domain/payment/charge-reports.ts';
import type { CanonicalPayment } from '../../domain/charge.ts';
import { createLedger, type ChargeStore, type Ledger } from '../../domain/payment/ledger.ts';
import type { ChargesStore, StorePlace } from './ports.ts';

export async function storeAt({ file }: { readonly file: string }): Promise<StorePlace> {
  const { sqlitePlace } = await import('./sqlite/place.ts');
  return sqlitePlace(file);
}

export type StoredLedger = Ledger & ChargeReports & Pick<ChargeStore, 'check' | 'close'>;

/** The ledger over a store of this process, and what it reports. */
export function ledgerOf(store: ChargesStore, canonicalPayment: CanonicalPayment): StoredLedger {
  const { list, get, search, summary, alarms, countByState, check, close } = store;
  return { ...createLedger(store, canonicalPayment), list, get, search, summary, alarms, countByState, check, close };
}
