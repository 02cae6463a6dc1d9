// Two lists of charges as one: what was listed, and what the stream told since.
import type { ChargeRecord } from '../../wire/billing.ts';

/** Both lists as one, newest first, each charge as it was last told. */
export function mergeCharges(
  known: readonly ChargeRecord[],
  changed: readonly ChargeRecord[],
): readonly ChargeRecord[] {
  const all = new Map(known.map((charge) => [charge.id, charge]));
  for (const charge of changed) {
    const before = all.get(charge.id);
    if (before === undefined || before.updated_at <= charge.updated_at) all.set(charge.id, charge);
  }
  return [...all.values()].toSorted((a, b) => (a.created_at < b.created_at ? 1 : a.created_at > b.created_at ? -1 : 0));
}
