// Metrics and readiness of the facilitators of all receivers: for Prometheus and /readyz?verbose. They are third parties
// and never make the process unready, because free routes have to go on.
import type { Config } from '../config/config.ts';
import type { AttentionFinding } from '../domain/attention/attention.ts';
import { judgeFacilitator } from '../domain/attention/judgements.ts';
import type { FacilitatorStanding } from '../gateway/rails/x402/facilitator-calls.ts';
import type { Facilitator, ReceiverWay } from '../domain/payment/offer.ts';
import { facilitatorKey, type FacilitatorHealth, type FacilitatorHealths } from '../domain/payment/service-health.ts';
import type { Check } from '../host/admin.ts';
import type { Metrics } from '../host/metrics.ts';

export type FacilitatorState = {
  readonly check: Check;
  /** What needs somebody. */
  readonly findings: () => readonly AttentionFinding[];
  /** Whether some way to pay has a facilitator that may be called; true if there is no way at all. */
  readonly isCallable: () => boolean;
};

export function watchFacilitators(
  config: () => Pick<Config, 'receivers'>,
  standing: (facilitators: readonly Facilitator[]) => readonly FacilitatorStanding[],
  metrics: Metrics,
): FacilitatorState {
  const all = (): readonly FacilitatorStanding[] =>
    standing(waysOf(config()).flatMap(({ facilitators }) => facilitators));
  const left = (): readonly FacilitatorStanding[] => all().filter(({ open }) => open !== undefined);
  metrics.observed(
    'gauge',
    'facilitator_open',
    '1 while a facilitator is left alone, after calls in a row that it did not take or was slow to answer.',
    ['facilitator', 'reason'],
    (set) => left().forEach(({ name, open = '' }) => set({ facilitator: name, reason: open }, 1)),
  );
  return {
    check: {
      name: 'facilitators',
      run: () => {
        const open = left();
        if (open.length === 0)
          return { ok: true, detail: 'none is left alone; whether they answer stands under services' };
        const named = open.map(({ name, open: reason }) => `${name} (${reason})`).join(', ');
        return { ok: false, isTolerated: true, detail: `left alone for a while, one call at a time tries: ${named}` };
      },
    },
    findings: () => {
      const ways = waysOf(config()).map(({ facilitators }) => standing(facilitators));
      return left().flatMap(({ name, open }) => {
        const isAlone = ways.some(
          (way) => way.some((each) => each.name === name) && way.every((each) => each.open !== undefined),
        );
        return judgeFacilitator(name, open, isAlone);
      });
    },
    isCallable: () => {
      const ways = waysOf(config());
      return (
        ways.length === 0 ||
        ways.some(({ facilitators }) => standing(facilitators).some(({ open }) => open === undefined))
      );
    },
  };
}

/** Health of every facilitator of the receivers, as `healthOf` knows each. */
export function healthsOf(
  config: Pick<Config, 'receivers'>,
  healthOf: (facilitator: Facilitator) => FacilitatorHealth,
): FacilitatorHealths {
  const all = waysOf(config).flatMap(({ facilitators }) => facilitators);
  return Object.fromEntries(all.map((each) => [facilitatorKey(each), healthOf(each)]));
}

function waysOf({ receivers }: Pick<Config, 'receivers'>): readonly ReceiverWay[] {
  return receivers.flatMap(({ ways }) => ways);
}
