// Changes in the order of their numbers. Several processes write them, so that one with a lower number may arrive later: what
// comes behind a number that is missing waits a moment for it.
import type { ChargeChange } from '../../domain/payment/reports.ts';

/** The part of `changes` that can be told; `after` is the number before them. */
type ChangeOrder = (changes: readonly ChargeChange[], after: number) => readonly ChargeChange[];

/** `missingMs`: longest wait for a number, whose change may never have been written. */
export function createChangeOrder(missingMs: number): ChangeOrder {
  let missing: { readonly after: number; readonly since: number } | undefined;
  return (changes, after) => {
    let last = after;
    for (const [index, { n }] of changes.entries()) {
      if (n !== last + 1) {
        if (missing?.after !== last) missing = { after: last, since: performance.now() };
        if (performance.now() - missing.since < missingMs) return changes.slice(0, index);
      }
      last = n;
    }
    return changes;
  };
}
