// What a worker tells its primary every second, and when it ends: what it counted since the last time, for metrics and for sums.
import type { CountedRow } from '../../domain/totals/totals-store.ts';
import type { Family } from '../../host/metrics.ts';

export type WorkerReport = { readonly families: readonly Family[]; readonly counted: readonly CountedRow[] };

/** Reads what a worker of the same program wrote. */
export function readReport(text: string): WorkerReport {
  return JSON.parse(text) as WorkerReport;
}
