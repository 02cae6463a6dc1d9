// Whether this process drains: finishes what is in flight and takes nothing new. Readiness ends with it, and a metric
// says so.
import type { Check } from '../host/admin.ts';
import type { Metrics } from '../host/metrics.ts';

type DrainSwitch = { readonly check: Check; readonly begin: () => void };

export function createDraining(metrics: Pick<Metrics, 'observed'>): DrainSwitch {
  let isDraining = false;
  const help = '1 while the process finishes what is in flight and takes nothing new.';
  metrics.observed('gauge', 'draining', help, [], (set) => set({}, isDraining ? 1 : 0));
  return {
    check: {
      name: 'draining',
      run: () => ({ ok: !isDraining, detail: isDraining ? 'finishing what is in flight' : 'no' }),
    },
    begin: () => {
      isDraining = true;
    },
  };
}
