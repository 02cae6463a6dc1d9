// Removes the charges that a store keeps no longer: every minute, and soon again while there are more. It takes a
// bounded part at a time, so that no claim waits for it.
import { LedgerUnavailable, type ChargeKeeping } from '../domain/payment/ledger.ts';
import { REDEEM_MS } from '../domain/payment/claim-policy.ts';
import type { Clock, Schedule } from '../host/clock.ts';
import type { Log } from '../host/log.ts';

type KeepingDeps = {
  readonly clock: Pick<Clock, 'now'>;
  readonly schedule: Schedule;
  readonly log: Log;
  /** Tells how long closed charges are kept; undefined: for ever. */
  readonly retentionMs: () => number | undefined;
};

/**
 * Milliseconds until the first run, not while a start goes on: V8 then makes slower code of `process.nextTick`, and a
 * 402 takes 1.05 times the CPU (`npm run bench -- --only payment-required --checkout ../without`).
 */
const FIRST_MS = 5_000;
const SELDOM_MS = 60_000;
const OFTEN_MS = 200;
const AT_ONCE = 100;
/** A released charge is kept as long as its credential may come again: longer than any quote lives. */
const RELEASED_KEPT_MS = 48 * 3_600_000;

/** Returns how to stop. */
export function keepCharges(store: ChargeKeeping, { clock, schedule, log, retentionMs }: KeepingDeps): () => void {
  let stopped = false;
  let cancel = (): void => undefined;
  const prune = async (): Promise<void> => {
    const now = clock.now();
    const retained = retentionMs();
    const before = {
      closedMs: retained === undefined ? undefined : now - retained,
      releasedMs: now - RELEASED_KEPT_MS,
      answersMs: now - REDEEM_MS,
    };
    const more = await store.prune(before, AT_ONCE).catch((error: unknown) => {
      // A store that is away is told of by what needs it.
      if (!(error instanceof LedgerUnavailable)) log.error('charges that are over could not be taken away', { error });
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
