// The loop that takes away what a store keeps no longer: seldom, and soon again while there is more. A run takes a bounded part,
// so that no claim waits for it.
import { LedgerUnavailable } from '../domain/payment/ledger.ts';
import type { Schedule } from '../host/clock.ts';
import type { Log } from '../host/log.ts';
import { StoreUnavailable } from '../registry/store/ports.ts';

type PruningOptions = {
  readonly schedule: Schedule;
  readonly log: Log;
  /** Milliseconds until the first run. */
  readonly firstMs: number;
  /** Milliseconds between runs while there is nothing more. */
  readonly seldomMs: number;
  /** What is taken away, for the log: "charges". */
  readonly what: string;
  /** Takes a bounded part away; whether there is more. */
  readonly prune: () => Promise<boolean>;
};

const OFTEN_MS = 200;

/** Returns how to stop. */
export function keepPruning({ schedule, log, firstMs, seldomMs, what, prune }: PruningOptions): () => void {
  let stopped = false;
  let cancel = (): void => undefined;
  const run = async (): Promise<void> => {
    const more = await prune().catch((error: unknown) => {
      // A store that is away is told of by what needs it.
      const isAway = error instanceof LedgerUnavailable || error instanceof StoreUnavailable;
      if (!isAway) log.error(`${what} that are over could not be taken away`, { error });
      return false;
    });
    if (!stopped) cancel = schedule(more ? OFTEN_MS : seldomMs, () => void run());
  };
  cancel = schedule(firstMs, () => void run());
  return () => {
    stopped = true;
    cancel();
  };
}
