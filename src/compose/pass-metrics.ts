// Metric of the passes of a store: told by the process that has it, so that several workers tell it once.
import { CREDIT_SCALE } from '../domain/selling/pass-book.ts';
import type { PassStore } from '../domain/selling/pass-store.ts';
import type { Metrics } from '../host/metrics.ts';

/** Tells what was paid for by passes and not used yet. A store that is away tells nothing. */
export function observePasses(metrics: Metrics, { outstanding }: Pick<PassStore, 'outstanding'>): void {
  const help =
    'Money of sold passes by uses and credit that can be used still, an exact sum; the same from every process of a ledger.';
  metrics.exact('gauge', 'pass_outstanding', help, ['currency'], async (set) => {
    for (const { currency, units } of await outstanding()) set({ currency }, { units, scale: CREDIT_SCALE });
  });
}
