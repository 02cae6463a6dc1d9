// The ledger over a SQLite file with all that its store can do, as tests want it in one piece.
import { SPELLING } from '../../src/gateway/rails/rails.ts';
import type { ChargeKeeping } from '../../src/domain/payment/ledger.ts';
import { ledgerOf, type StoredLedger } from '../../src/registry/store/stored-ledger.ts';
import type { ChargesStore } from '../../src/registry/store/ports.ts';
import { openCharges, type SqliteChargesOptions } from '../../src/registry/store/sqlite/charge-store.ts';

export type SqliteLedger = StoredLedger & ChargeKeeping & { readonly store: ChargesStore };

/** Patience of a call, if no test says another: a thread that starts on a busy machine takes longer than a call may. */
const PATIENCE_MS = 30_000;

/** What a SQLite file keeps of charges, for a test that has time. */
export function openPatientCharges(file: string, options: SqliteChargesOptions): ChargesStore {
  return openCharges(file, { timeoutMs: PATIENCE_MS, ...options });
}

export function openLedger(file: string, options: SqliteChargesOptions): SqliteLedger {
  const store = openPatientCharges(file, options);
  return { ...store, ...ledgerOf(store, SPELLING), store };
}
