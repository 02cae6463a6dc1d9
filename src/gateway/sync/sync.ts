// Keeps a sidecar's routes in step with its registry. At the start it reads the file. Then it follows the event stream,
// and beside that polls which set the registry has. The whole set is fetched if there is none yet, if the stream cannot
// tell what is missing, or if the digest says that ours differs. Without a stream, polls fetch it. The last good set
// stays in force whatever happens (last-good.ts). No failure of the registry, the network or the disk reaches a
// request.
import type { Clock, Random, Schedule } from '../../host/clock.ts';
import type { Log } from '../../host/log.ts';
import type { Metrics } from '../../host/metrics.ts';
import type { Compiler } from '../routes/snapshot-compiler.ts';
import type { SnapshotFile } from './keep/snapshot-file.ts';
import { createFollower } from './follow.ts';
import { createHearing } from './hearing.ts';
import { LastGoodSet, type LastGood, type PollResult } from './last-good.ts';
import { eventWaitMs, pollWaitMs } from './follow/poll-schedule.ts';
import type { RouteSource, SetRequest } from './follow/route-source.ts';
import type { SyncStatus } from './status.ts';

export type SyncOptions = { readonly pollIntervalMs: number; readonly emptyAfterMs: number };

type SyncDeps = {
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
  /** The whole set is to be taken before anything else. */
  let whole: 'changed' | 'anew' | undefined;
  let lastWant: SetRequest['want'] = 'changed';

  const count = countResults(metrics, inForce);

  /** How long the registry asks to be left alone, if it does. */
  const poll = async (): Promise<number | undefined> => {
    const startedAt = clock.monotonic();
    const { known } = inForce;
    const want = whole ?? (follower.isExpected() ? 'name' : 'changed');
    lastWant = want;
    const found = await source.fetchSet({ known, want }, controller.signal);
    if (controller.signal.aborted) return undefined;
    const wasAway = inForce.isAway;
    const result = await hearing.judge(found, known?.revision);
    if (result !== undefined) count(result);
    const answered = !inForce.isAway && result !== 'unauthorized';
    failures = answered ? 0 : failures + 1;
    const endedAt = clock.monotonic();
    lastFlight = { endedAt, ms: endedAt - startedAt };
    if (result === 'updated' || (result === 'unchanged' && found.kind !== 'named')) {
      if (want === 'anew') hearing.takenAnew();
      whole = undefined;
      follower.start();
    }
    if (wasAway && !inForce.isAway) follower.reconnect();
    return found.kind === 'unavailable' ? found.retryAfterMs : undefined;
  };

  const takeWhole = (want: 'changed' | 'anew'): void => {
    whole = want;
    follower.stop();
    nudge();
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

  const reconnect = (): void => follower.reconnect();
  const hearing = createHearing({ inForce, takeWhole, reconnect, count, clock, log });
  const follower = createFollower({
    openEvents: source.openEvents,
    known: () => inForce.known,
    onEvent: hearing.hear,
    onStranger: () => takeWhole('changed'),
    onOpen: () => {
      if (inForce.isAway) nudge();
    },
    onNone: () => {
      if (lastWant === 'name') nudge();
    },
    ...{ clock, schedule, random, log },
  });

  return {
    start: async () => {
      await inForce.load();
      follower.start();
      fly();
    },
    nudge,
    lastGood: () => inForce.lastGood,
    status: () => inForce.status(),
    close: async () => {
      controller.abort(new Error('closing'));
      follower.close();
      cancel();
      await flight;
      await snapshotFile.settled();
    },
  };
}

function countResults(metrics: Metrics, inForce: LastGoodSet): (result: PollResult) => void {
  const counts = metrics.counter('sync_total', 'What the registry said of the routes, by what it came to.', ['result']);
  const confirmedHelp = 'When the registry last confirmed the routes in force.';
  metrics.observed('gauge', 'sync_last_success_timestamp_seconds', confirmedHelp, [], (set) => {
    const { lastSuccess } = inForce.status();
    if (lastSuccess !== undefined) set({}, lastSuccess / 1000);
  });
  return (result) => counts(result)(1);
}
