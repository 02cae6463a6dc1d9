// Removes the charges that a store keeps no longer, every minute: those that closed long ago, released ones, and answers that
// nobody may fetch any more.
import type { ChargeKeeping } from '../domain/payment/ledger.ts';
import { REDEEM_MS } from '../domain/payment/claim-policy.ts';
import type { PassStore } from '../domain/selling/pass-store.ts';
import type { Clock, Schedule } from '../host/clock.ts';
import type { Log } from '../host/log.ts';
import { keepPruning } from './pruning.ts';

type KeptStore = ChargeKeeping & { readonly passes?: Pick<PassStore, 'endLost'> };

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
const DRAWS_MS = 10_000;
const AT_ONCE = 100;
/** A released charge is kept as long as its credential may come again: longer than any quote lives. */
const RELEASED_KEPT_MS = 48 * 3_600_000;

/** Keeps charges, and ends reservations of passes that nobody works on any more. Returns how to stop. */
export function keepCharges(store: KeptStore, { clock, schedule, log, retentionMs }: KeepingDeps): () => void {
  const prune = (): Promise<boolean> => {
    const now = clock.now();
    const retained = retentionMs();
    const before = {
      closedMs: retained === undefined ? undefined : now - retained,
      releasedMs: now - RELEASED_KEPT_MS,
      answersMs: now - REDEEM_MS,
    };
    return store.prune(before, AT_ONCE);
  };
  const stopPruning = keepPruning({ schedule, log, firstMs: FIRST_MS, seldomMs: SELDOM_MS, what: 'charges', prune });
  const { passes } = store;
  if (passes === undefined) return stopPruning;
  const stopEnding = keepPruning({
    ...{ schedule, log, firstMs: FIRST_MS, seldomMs: DRAWS_MS, what: 'reservations of passes' },
    prune: () => passes.endLost(AT_ONCE),
  });
  return () => {
    stopPruning();
    stopEnding();
  };
}
