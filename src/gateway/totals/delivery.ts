// Hands counts of requests over, every few seconds and at a stop, outside of requests. A batch that was not taken for certain is
// given again under its number until it is, so that nothing counts twice; meanwhile counts gather. Numbers of batches go on
// without a gap, unless counts had to be dropped: then one is left out, and whoever adds them up sees it.
import type { TotalsBatch } from '../../domain/totals/totals-store.ts';
import { BATCH_ROWS } from '../../domain/totals/totals-wire.ts';
import { STEP_MS } from '../../domain/totals/steps.ts';
import type { Clock, Schedule } from '../../host/clock.ts';
import type { Log } from '../../host/log.ts';
import type { Tally } from './tally.ts';

/** Takes a batch. `refused`: nobody wants it, and it is not given again. Rejects if it is not known whether it was taken. */
export type TakeBatch = (batch: TotalsBatch) => Promise<'taken' | 'refused'>;

type DeliveryDeps = {
  readonly tally: Tally;
  readonly take: TakeBatch;
  /** Names this life of the process. */
  readonly source: string;
  /** Time between two batches, and so the most that is lost if the process is killed. */
  readonly everyMs: number;
  /** What the process says of itself; it then hands over batches without counts too. */
  readonly status?: (ending: boolean) => string;
  readonly clock: Pick<Clock, 'now'>;
  readonly schedule: Schedule;
  readonly log: Log;
};

export type CountDelivery = {
  /** The moment up to which all that was counted here has been taken. */
  readonly completeUntil: () => number;
  /** Hands over what is left, if that is taken at once. */
  readonly close: () => Promise<void>;
};

/** Time that the last batches may take. */
const LAST_MS = 5_000;

export function startDelivery(deps: DeliveryDeps): CountDelivery {
  const { tally, source, everyMs, status, clock, schedule, log } = deps;
  let seq = 0;
  /** A batch that was perhaps taken. */
  let open: TotalsBatch | undefined;
  let closedAt = clock.now();
  let takenUntil = closedAt;
  let failing = false;
  let stopped = false;

  const closeMoment = (): void => {
    tally.close();
    closedAt = clock.now();
    if (tally.forgetOld()) seq += 1;
  };
  const nextBatch = (isFirst: boolean): TotalsBatch | undefined => {
    const rows = tally.take(BATCH_ROWS);
    if (rows.length === 0 && !(isFirst && status !== undefined)) return undefined;
    seq += 1;
    return { source, seq, rows, status: status?.(stopped) };
  };
  /** One batch after the other, until nothing is left or one is not taken. */
  const handOver = async (): Promise<void> => {
    const until = closedAt;
    for (let isFirst = true; ; isFirst = false) {
      open ??= nextBatch(isFirst);
      if (open === undefined) break;
      const given = open.seq;
      const taken = await deps.take(open);
      open = undefined;
      // Who refuses has not added it: the number is free again.
      if (taken === 'refused' && seq === given) seq -= 1;
    }
    takenUntil = until;
  };
  let running = Promise.resolve();
  const run = async (): Promise<void> => {
    closeMoment();
    try {
      await handOver();
      failing = false;
    } catch (error) {
      if (!failing) log.warn('counts of requests could not be handed over; they are kept and given again', { error });
      failing = true;
    }
  };

  let cancelRun = (): void => undefined;
  const wait = (): void => {
    cancelRun = schedule(everyMs, () => {
      running = run().then(() => {
        if (!stopped) wait();
      });
    });
  };
  let cancelMinute = (): void => undefined;
  // No moment lies in two minutes.
  const untilMinute = (): void => {
    cancelMinute = schedule(STEP_MS.minute - (clock.now() % STEP_MS.minute), () => {
      closeMoment();
      untilMinute();
    });
  };
  wait();
  untilMinute();
  return {
    completeUntil: () => takenUntil,
    close: async () => {
      stopped = true;
      cancelRun();
      cancelMinute();
      const late = Promise.withResolvers<void>();
      const cancel = schedule(LAST_MS, late.resolve);
      await Promise.race([running.then(run), late.promise]);
      cancel();
    },
  };
}
