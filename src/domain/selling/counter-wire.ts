// Changes of counters between a sidecar and the ledger of its registry, as JSON. Both ends validate with these schemas.
import { z } from 'zod';
import { COUNTER_RESULTS, MOST_COUNTER_CHANGES, type CounterChange, type CounterResult } from './counter.ts';

const text = (max: number) =>
  z
    .string()
    .min(1)
    .max(max)
    .regex(/^[\x20-\x7e]*$/, 'visible ASCII characters');
const place = {
  scope: text(128),
  window_start: z.int().min(0),
  window_end: z.int().min(0),
  identity: text(64),
  change_id: text(64),
};
const changeWire = z.union([
  z.object({
    kind: z.literal('take'),
    ...place,
    limit: z.int().min(0),
    identities: z.int().min(0),
    group: text(64).nullable(),
    group_identities: z.int().min(0),
  }),
  z.object({ kind: z.literal('give_back'), ...place }),
]);

export const counterChangesWire = z.object({ changes: z.array(changeWire).min(1).max(MOST_COUNTER_CHANGES) });
export const counterResultsWire = z.object({
  results: z
    .array(z.object({ kind: z.enum(COUNTER_RESULTS), used: z.int().min(0).optional() }))
    .max(MOST_COUNTER_CHANGES),
});
type ChangeWire = z.output<typeof changeWire>;
type ResultWire = z.output<typeof counterResultsWire>['results'][number];

export function counterToWire(change: CounterChange): ChangeWire {
  const { scope, startMs, endMs, identity, changeId } = change;
  const at = { scope, window_start: startMs, window_end: endMs, identity, change_id: changeId };
  if (change.kind === 'give_back') return { kind: change.kind, ...at };
  const { limit, identities, group, groupIdentities } = change;
  return { kind: change.kind, ...at, limit, identities, group, group_identities: groupIdentities };
}

export function counterFromWire(wire: ChangeWire): CounterChange {
  const { scope, window_start: startMs, window_end: endMs, identity, change_id: changeId } = wire;
  const at = { scope, startMs, endMs, identity, changeId };
  if (wire.kind === 'give_back') return { kind: wire.kind, ...at };
  const { limit, identities, group, group_identities: groupIdentities } = wire;
  return { kind: wire.kind, ...at, limit, identities, group, groupIdentities };
}

export function resultToWire(result: CounterResult): ResultWire {
  return result.kind === 'counted' ? { kind: result.kind, used: result.used } : { kind: result.kind };
}

/** Reads a result; undefined if it is none that a ledger gives. */
export function resultFromWire({ kind, used }: ResultWire): CounterResult | undefined {
  if (kind !== 'counted') return { kind };
  return used === undefined ? undefined : { kind, used };
}
