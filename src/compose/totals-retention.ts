// Takes the sums away that are kept no longer: minutes after two days, hours and days as configured. A bounded part at a time, so
// that no claim waits for it.
import { LedgerUnavailable } from '../domain/payment/ledger.ts';
import { floorTo, MINUTES_KEPT_MS, STEP_MS, stepOf } from '../domain/totals/steps.ts';
import type { TotalsStore } from '../domain/totals/totals-store.ts';
import type { Clock, Schedule } from '../host/clock.ts';
import type { Log } from '../host/log.ts';
import type { Metrics } from '../host/metrics.ts';

type KeepTotalsDeps = {
  readonly clock: Pick<Clock, 'now'>;
  readonly schedule: Schedule;
  readonly log: Log;
  /** How long hours and days are kept; minutes are kept for two days. */
  readonly kept: () => { readonly hoursMs: number; readonly daysMs: number };
};

const FIRST_MS = 20_000;
const SELDOM_MS = 10 * STEP_MS.minute;
const OFTEN_MS = 200;
/** A source that was not heard of for so long will not give an old batch again. */
const SOURCES_KEPT_MS = 30 * STEP_MS.day;

/** Returns how to stop. */
export function keepTotals(
  store: Pick<TotalsStore, 'prune'>,
  { clock, schedule, log, kept }: KeepTotalsDeps,
): () => void {
  let stopped = false;
  let cancel = (): void => undefined;
  const prune = async (): Promise<void> => {
    const now = clock.now();
    const { hoursMs, daysMs } = kept();
    const before = {
      minute: stepOf(floorTo(now - MINUTES_KEPT_MS, 'hour'), 'minute'),
      hour: stepOf(floorTo(now - hoursMs, 'day'), 'hour'),
      day: stepOf(now - daysMs, 'day'),
      sourcesMs: now - SOURCES_KEPT_MS,
    };
    const more = await store.prune(before).catch((error: unknown) => {
      // A store that is away is told of by what needs it.
      if (!(error instanceof LedgerUnavailable)) log.error('sums that are over could not be taken away', { error });
      return false;
    });
    if (!stopped) cancel = schedule(more ? OFTEN_MS : SELDOM_MS, () => void prune());
  };
  cancel = schedule(FIRST_MS, () => void prune());
  return () => {
    stopped = true;
    cancel();
  };
}

/** Counted by the process that the counts should have come to. */
export function countLostTotals(metrics: Metrics): (batches: number) => void {
  const lost = metrics.counter('totals_lost_total', 'Batches of counts of requests that never came to the sums.', [])();
  lost(0);
  return lost;
}
