// Keeps a sidecar's routes in step with its registry: the file at the start, then polls, one at a time, and sooner after a
// change event. Whatever happens on the way the last good set stays in force (last-good.ts), and no failure of the registry, the
// network or the disk reaches a request.
import type { Clock, Random, Schedule } from '../../host/clock.ts';
import type { Log } from '../../host/log.ts';
import type { Metrics } from '../../host/metrics.ts';
import type { Compiler } from './compile.ts';
import type { SnapshotFile } from './snapshot-file.ts';
import { createChangeEvents } from './events.ts';
import { LastGoodSet, type LastGood } from './last-good.ts';
import { eventWaitMs, pollWaitMs } from './poll-schedule.ts';
import type { RouteSource } from './source.ts';
import type { SyncStatus } from './status.ts';

export type SyncOptions = { readonly pollIntervalMs: number; readonly emptyAfterMs: number };

export type SyncDeps = {
  readonly source: RouteSource;
  readonly snapshotFile: SnapshotFile;
  readonly compiler: Compiler;
  readonly metrics: Metrics;
  readonly clock: Clock;
  readonly schedule: Schedule;
  readonly random: Random;
  readonly log: Log;
};

export type Sync = {
  /** Resolves when the file was read and the first poll is on its way; does not wait for the registry. */
  readonly start: () => Promise<void>;
  /** Asks the registry now, or once more when the poll that runs is over. */
  readonly nudge: () => void;
  readonly lastGood: () => LastGood | undefined;
  readonly status: () => SyncStatus;
  /** Resolves when nothing runs any more. */
  readonly close: () => Promise<void>;
};

export function createSync({ pollIntervalMs, emptyAfterMs }: SyncOptions, deps: SyncDeps): Sync {
  const { source, snapshotFile, compiler, metrics, clock, schedule, random, log } = deps;
  const controller = new AbortController();
  const inForce = new LastGoodSet({ snapshotFile, compiler, clock, log, emptyAfterMs });
  let failures = 0;
  let flight: Promise<void> | undefined;
  let lastFlight = { endedAt: -Infinity, ms: 0 };
  let rung = false;
  let cancel = (): void => undefined;

  const counts = metrics.counter('sync_total', 'Polls of the registry, by what they came to.', ['result']);
  const confirmedHelp = 'When the registry last confirmed the routes in force.';
  metrics.observed('gauge', 'sync_last_success_timestamp_seconds', confirmedHelp, [], (set) => {
    const { lastSuccess } = inForce.status();
    if (lastSuccess !== undefined) set({}, lastSuccess / 1000);
  });

  /** How long the registry asks to be left alone, if it does. */
  const poll = async (): Promise<number | undefined> => {
    const startedAt = clock.monotonic();
    const found = await source.fetchSet(inForce.known, controller.signal);
    if (controller.signal.aborted) return undefined;
    const wasAway = inForce.isAway;
    const result = await inForce.judge(found);
    counts(result)(1);
    const answered = !inForce.isAway && result !== 'unauthorized';
    failures = answered ? 0 : failures + 1;
    const endedAt = clock.monotonic();
    lastFlight = { endedAt, ms: endedAt - startedAt };
    if (wasAway && !inForce.isAway) changeEvents.reconnect();
    return found.kind === 'unavailable' ? found.retryAfterMs : undefined;
  };

  const next = (retryAfterMs = 0): void => {
    cancel();
    const { ms, endedAt } = lastFlight;
    const waitMs = rung
      ? eventWaitMs({ ms, endedMs: clock.monotonic() - endedAt })
      : pollWaitMs({ pollIntervalMs, failures, hasRoutes: inForce.known !== undefined }, random);
    cancel = schedule(Math.max(rung ? 0 : retryAfterMs, waitMs), fly);
  };

  const fly = (): void => {
    if (controller.signal.aborted) return;
    cancel();
    rung = false;
    flight = pollSafely();
  };

  const pollSafely = async (): Promise<void> => {
    let retryAfterMs: number | undefined;
    try {
      retryAfterMs = await poll();
    } catch (error) {
      // A defect of ours: the routes stay, and so does the polling.
      log.error('a poll of the registry failed', { error });
      failures++;
    }
    flight = undefined;
    if (!controller.signal.aborted) next(retryAfterMs);
  };

  const nudge = (): void => {
    if (rung || controller.signal.aborted) return;
    rung = true;
    // A poll that runs may have read the state before the one we hear of: it is followed by another.
    if (flight === undefined) next();
  };

  const changeEvents = createChangeEvents({
    openEvents: source.openEvents,
    onChange: nudge,
    clock,
    schedule,
    random,
    log,
  });

  return {
    start: async () => {
      await inForce.load();
      fly();
      changeEvents.start();
    },
    nudge,
    lastGood: () => inForce.lastGood,
    status: () => inForce.status(),
    close: async () => {
      controller.abort(new Error('closing'));
      changeEvents.close();
      cancel();
      await flight;
      await snapshotFile.settled();
    },
  };
}
