// Counts of requests on their way from the proxy of this process, or of its workers, to the sums of its own registry.
import { startDelivery, type CountDelivery } from '../gateway/totals/delivery.ts';
import type { Tally } from '../gateway/totals/tally.ts';
import { systemSchedule, type Clock } from '../host/clock.ts';
import type { Log } from '../host/log.ts';
import type { TotalsBook } from '../registry/totals/totals-book.ts';

export type CountingDeps = {
  readonly tally: Tally;
  /** Names this life of the process. */
  readonly source: string;
  /** Whether workers count for it: what they counted is here a second later. */
  readonly hasWorkers: boolean;
  readonly clock: Clock;
  readonly log: Log;
};

/** A process that is killed loses as much as it counted in this time, with the second in which workers tell their counts. */
export function deliveryEveryMs({ hasWorkers }: Pick<CountingDeps, 'hasWorkers'>): number {
  return hasWorkers ? 9_000 : 10_000;
}

export function countForRegistry(book: Pick<TotalsBook, 'add'>, deps: CountingDeps): CountDelivery {
  return startDelivery({
    ...deps,
    take: async (batch) => {
      await book.add(batch);
      return 'taken';
    },
    everyMs: deliveryEveryMs(deps),
    schedule: systemSchedule,
  });
}
