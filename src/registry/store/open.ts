// Chooses the kind of store by what the configuration says of it: the one place that knows which kinds there are. Each is
// loaded when it is asked for, so that a command without a store starts without one.
import type { ChargeReports } from '../../domain/payment/reports.ts';
import type { Spelling } from '../../domain/payment/charge.ts';
import { createLedger, type Ledger, type ObserveLeases } from '../../domain/payment/ledger.ts';
import type { StoreSettings } from '../../domain/store-settings.ts';
import type { ChargesStore, StorePlace } from './ports.ts';

export async function storeAt(named: StoreSettings): Promise<StorePlace> {
  if (named.kind === 'postgres') {
    const { postgresPlace } = await import('./postgres/place.ts');
    return postgresPlace(named);
  }
  const { sqlitePlace } = await import('./sqlite/place.ts');
  return sqlitePlace(named.file);
}

export type StoredLedger = Ledger & ChargeReports & Pick<ChargesStore, 'check' | 'close' | 'endRun'>;

/** The ledger over a store of this process, and what it reports, in whatever spelling it is asked for. */
export function ledgerOf(
  store: Omit<ChargesStore, 'prune' | 'load'>,
  spelling: Spelling,
  observe?: ObserveLeases,
): StoredLedger {
  const { get, summary, alarms, countByState, check, close, endRun } = store;
  const spell = (text: string | undefined): string | undefined => text && spelling.identifier(text);
  return {
    ...createLedger(store, spelling, undefined, observe),
    ...{ get, summary, alarms, countByState, check, close, endRun },
    list: (filter) => store.list({ ...filter, payer: spell(filter.payer) }),
    search: (search, limit) => store.search({ ...search, transaction: spell(search.transaction) }, limit),
  };
}
