// Metrics of the counters of a store: told by the process that has it, so that several workers tell them once.
import type { Config } from '../config/config.ts';
import type { CounterStore } from '../domain/selling/counter.ts';
import { freeScope } from '../domain/selling/plan.ts';
import type { Metrics } from '../host/metrics.ts';

/** Tells how many identities have free requests in the windows that go on. A store that is away tells nothing. */
export function observeCounters(metrics: Metrics, { identities }: CounterStore, config: () => Config): void {
  const help = 'Identities that have free requests in the windows that go on, by plan.';
  metrics.observed('gauge', 'free_identities', help, ['plan'], async (set) => {
    const plans = [...config().selling.plans.byId.values()].filter(({ free }) => free !== undefined);
    if (plans.length === 0) return;
    const counted = await identities().catch(() => undefined);
    for (const { id } of plans) if (counted !== undefined) set({ plan: id }, counted.get(freeScope(id)) ?? 0);
  });
}
