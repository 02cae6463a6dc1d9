// Counts of requests on their way from a sidecar to the registry that it follows, with what the sidecar says of itself.
import { hostname } from 'node:os';
import type { SyncConfig } from '../config/config.ts';
import type { SidecarStatus } from '../domain/totals/totals-wire.ts';
import { startDelivery, type CountDelivery } from '../gateway/totals/delivery.ts';
import { createRemoteTotals } from '../gateway/totals/remote-totals.ts';
import { systemSchedule } from '../host/clock.ts';
import type { Attention } from './attention.ts';
import { deliveryEveryMs, type CountingDeps } from './counting.ts';
import type { SyncPart } from './sync.ts';

type SidecarFacts = Pick<SyncPart, 'check' | 'status'> & {
  readonly section: SyncConfig;
  readonly version: string;
  readonly attention: Pick<Attention, 'latest'>;
};

/** Routes that the registry did not confirm for so long are named as a reason. */
const OLD_MS = 60_000;
const MOST_FOUND = 20;

export function countForSidecar(
  { section, version, status, attention }: SidecarFacts,
  deps: CountingDeps,
): CountDelivery {
  const { clock, log } = deps;
  const { registryUrl, apiKey } = section;
  const since = new Date(clock.now()).toISOString();
  const found = (): SidecarStatus['attention'] =>
    attention
      .latest()
      .slice(0, MOST_FOUND)
      .map(({ code, severity, subject, detail, count }) => ({
        ...{ code, severity, count, subject: subject.slice(0, 255), detail: detail.slice(0, 1_000).toWellFormed() },
      }));
  const say = (ending: boolean): string => {
    const { revision = null, source, ageMs = 0, lastError, held } = status();
    const reasons = [
      ...(source === 'none' ? ['no routes were loaded yet'] : []),
      ...(ageMs > OLD_MS ? [`the routes were confirmed ${Math.round(ageMs / 1000)} s ago`] : []),
      ...[held, lastError].filter((reason) => reason !== undefined),
    ].map((reason) => reason.slice(0, 500));
    const ready = source !== 'none' && ageMs <= OLD_MS;
    const said: SidecarStatus = {
      name: hostname(),
      version,
      since,
      revision,
      ready,
      reasons,
      ending,
      attention: found(),
    };
    return JSON.stringify(said);
  };
  const { take, close } = createRemoteTotals({ registryUrl, apiKey, version, schedule: systemSchedule, clock, log });
  const delivery = startDelivery({
    ...{ ...deps, take, status: say },
    ...{ everyMs: deliveryEveryMs(deps), schedule: systemSchedule },
  });
  return {
    ...delivery,
    close: async () => {
      await delivery.close();
      await close();
    },
  };
}
