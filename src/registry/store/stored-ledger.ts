// The ledger over a store of this process, with what the store reports of its charges.
import type { Spelling } from '../../domain/payment/charge.ts';
import { createLedger, type Ledger, type ObserveLeases } from '../../domain/payment/ledger.ts';
import type { ChargeReports } from '../../domain/payment/reports.ts';
import type { ChargesStore } from './ports.ts';

export type StoredLedger = Ledger &
  ChargeReports &
  Pick<ChargesStore, 'check' | 'close' | 'endRun' | 'counters' | 'passes'>;

/** Makes the ledger over `store`. It takes a payer or a transaction in any spelling. */
export function ledgerOf(
  store: Omit<ChargesStore, 'prune' | 'load' | 'totals' | 'webhooks'>,
  spelling: Spelling,
  observe?: ObserveLeases,
): StoredLedger {
  const { get, history, watchChanges, changesAfter, summary, alarms, countByState, check, close, endRun } = store;
  const { counters, passes, refunded } = store;
  const spell = (text: string | undefined): string | undefined => text && spelling.identifier(text);
  return {
    ...createLedger(store, spelling, undefined, observe),
    ...{ get, history, watchChanges, changesAfter, summary, alarms, countByState, check, close, endRun },
    ...{ counters, passes, refunded },
    list: (filter) => store.list({ ...filter, payer: spell(filter.payer), transaction: spell(filter.transaction) }),
    search: (search, limit) => store.search({ ...search, transaction: spell(search.transaction) }, limit),
  };
}
