// Counters in memory, by the same rule as those of the stores.
import { decideTake, type CounterResult, type CounterStore } from '../../src/domain/selling/counter.ts';

export function createMemoryCounters(): CounterStore {
  const used = new Map<string, number>();
  const known = new Map<string, CounterResult>();
  const sizeOf = (start: string): number => [...used.keys()].filter((name) => name.startsWith(start)).length;
  return {
    change: async (changes) =>
      changes.map((change): CounterResult => {
        const window = `${change.scope}\n${change.startMs}\n`;
        const name = window + change.identity;
        const before = known.get(change.changeId);
        if (change.kind === 'give_back') {
          if (before?.kind === 'counted') used.set(name, Math.max(0, (used.get(name) ?? 0) - 1));
          known.set(change.changeId, { kind: 'given_back' });
          return { kind: 'given_back' };
        }
        if (before !== undefined) return before;
        const result = decideTake(change, { used: used.get(name), identities: sizeOf(window), groupIdentities: 0 });
        if (result.kind === 'counted') used.set(name, result.used);
        known.set(change.changeId, result);
        return result;
      }),
    identities: async () => new Map(),
  };
}
