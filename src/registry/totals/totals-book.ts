// The sums of a registry: its store, what is known of how complete they are, and a word in the log for counts that never came.
import type { TotalsBatch, TotalsStore } from '../../domain/totals/totals-store.ts';
import type { Clock } from '../../host/clock.ts';
import type { Log } from '../../host/log.ts';
import { keepClosedDays } from './closed-days.ts';

export type TotalsBook = TotalsStore & {
  /** How long hours are kept, in milliseconds. */
  readonly hoursKeptMs: () => number;
  /** The moment up to which the proxy of this process has handed its counts over; undefined if it has none. */
  readonly countedUntil: () => number | undefined;
};

type BookDeps = Pick<TotalsBook, 'hoursKeptMs' | 'countedUntil'> & {
  readonly log: Log;
  /** Told how many batches never came. */
  readonly lost: (batches: number) => void;
  readonly clock: Pick<Clock, 'now' | 'monotonic'>;
};

export function createTotalsBook(store: TotalsStore, { log, lost, clock, ...known }: BookDeps): TotalsBook {
  const add = async (batch: TotalsBatch): ReturnType<TotalsStore['add']> => {
    const added = await store.add(batch);
    if (added.kind === 'added' && added.missing > 0) {
      lost(added.missing);
      log.warn('counts of requests are missing: batches of this source never came', {
        source: batch.source,
        before: batch.seq,
        missing: added.missing,
      });
    }
    return added;
  };
  return { ...store, ...known, add, sumsByRoute: keepClosedDays(store.sumsByRoute, clock) };
}
