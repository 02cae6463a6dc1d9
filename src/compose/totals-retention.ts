// Takes the sums away that are kept no longer: minutes after two days, hours and days as configured.
// Counts the batches that never came, too.
import { floorTo, MINUTES_KEPT_MS, STEP_MS, stepOf } from '../domain/totals/steps.ts';
import type { TotalsStore } from '../domain/totals/totals-store.ts';
import type { Clock, Schedule } from '../host/clock.ts';
import type { Log } from '../host/log.ts';
import type { Metrics } from '../host/metrics.ts';
import { keepPruning } from './pruning.ts';

type KeepTotalsDeps = {
  readonly clock: Pick<Clock, 'now'>;
  readonly schedule: Schedule;
  readonly log: Log;
  /** How long hours and days are kept; minutes are kept for two days. */
  readonly kept: () => { readonly hoursMs: number; readonly daysMs: number };
};

const FIRST_MS = 20_000;
const SELDOM_MS = 10 * STEP_MS.minute;
/** A source that was not heard of for so long will not give an old batch again. */
const SOURCES_KEPT_MS = 30 * STEP_MS.day;

/** Returns how to stop. */
export function keepTotals(
  store: Pick<TotalsStore, 'prune'>,
  { clock, schedule, log, kept }: KeepTotalsDeps,
): () => void {
  const prune = (): Promise<boolean> => {
    const now = clock.now();
    const { hoursMs, daysMs } = kept();
    return store.prune({
      minute: stepOf(floorTo(now - MINUTES_KEPT_MS, 'hour'), 'minute'),
      hour: stepOf(floorTo(now - hoursMs, 'day'), 'hour'),
      day: stepOf(now - daysMs, 'day'),
      sourcesMs: now - SOURCES_KEPT_MS,
    });
  };
  return keepPruning({ schedule, log, firstMs: FIRST_MS, seldomMs: SELDOM_MS, what: 'sums', prune });
}

/** Counted by the process that the counts should have come to. */
export function countLostTotals(metrics: Metrics): (batches: number) => void {
  const lost = metrics.counter('totals_lost_total', 'Batches of counts of requests that never came to the sums.', [])();
  lost(0);
  return lost;
}
