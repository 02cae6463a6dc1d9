// Keeps a sidecar's routes in step with its registry: the file at the start, then polls, one at a time, with a bell in
// between. Whatever happens on the way the last good set stays in force: nothing here takes routes away, and no failure
// of the registry, the network or the disk reaches a request. Judging a set is hold.ts' and compiling it compile.ts'.
import type { Clock, Random, Schedule } from '../../host/clock.ts';
import type { Log } from '../../host/log.ts';
import type { Metrics } from '../../host/metrics.ts';
import type { Compiler } from './compile.ts';
import type { DiskSnapshot } from './disk.ts';
import { createBell } from './events.ts';
import { decideSet, describeHolding, type Holding, type Polled, type SetFacts } from './hold.ts';
import { bellWaitMs, pollWaitMs } from './pace.ts';
import type { Found, FoundSet, RouteSource } from './source.ts';
import { statusOf, type SyncStatus } from './status.ts';

export type SyncOptions = { readonly pollIntervalMs: number; readonly emptyAfterMs: number };

export type SyncDeps = {
  readonly source: RouteSource;
  readonly disk: DiskSnapshot;
  readonly compiler: Compiler;
  readonly metrics: Metrics;
  readonly clock: Clock;
  readonly schedule: Schedule;
  readonly random: Random;
  readonly log: Log;
};

/** The last good set, for whoever answers in the registry's place. */
export type LastGood = { readonly set: FoundSet; readonly confirmedAt: number };

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

type Result = 'updated' | 'unchanged' | 'held' | 'invalid' | 'unauthorized' | 'unavailable';

export function createSync(options: SyncOptions, deps: SyncDeps): Sync {
  const { source, disk, compiler, metrics, clock, schedule, random, log } = deps;
  const controller = new AbortController();
  let from: 'registry' | 'disk' = 'disk';
  let good: FoundSet | undefined;
  let confirmedAt: number | undefined;
  let holding: Holding | undefined;
  let lastError: string | undefined;
  let away = false;
  let failures = 0;
  let flight: Promise<void> | undefined;
  let lastFlight = { endedAt: -Infinity, ms: 0 };
  let rung = false;
  let cancel = (): void => undefined;

  const counts = metrics.counter('sync_total', 'Polls of the registry, by what they came to.', ['result']);
  metrics.observed(
    'gauge',
    'sync_last_success_timestamp_seconds',
    'When the registry last confirmed the routes in force.',
    [],
    (set) => {
      if (confirmedAt !== undefined) set({}, confirmedAt / 1000);
    },
  );

  const status = (): SyncStatus =>
    statusOf({ source: from, good: good && factsOf(good), holding, confirmedAt, lastError, away }, clock.now());

  const confirm = (set: FoundSet): void => {
    from = 'registry';
    good = set;
    holding = undefined;
    confirmedAt = clock.now();
    disk.keep(set, confirmedAt);
  };

  /** Why the last poll came to nothing: told once, not at every poll. */
  const fail = (level: 'warn' | 'error', msg: string, reason: string): void => {
    log[reason === lastError ? 'debug' : level](msg, { reason, routes: good?.routes.length });
    lastError = reason;
  };

  const take = async (set: FoundSet, waited: boolean): Promise<Result> => {
    if (set.routes !== good?.routes) {
      const { registryId = '', revision = 0, routes } = set;
      const taken = await compiler.take({ registryId, revision, routes });
      if (!taken.ok) {
        // It counts as a poll that came to nothing for a set that is held back.
        holding &&= { ...holding, lastMs: undefined };
        fail('error', 'route set refused, the last good one stays', taken.reason);
        return 'invalid';
      }
    }
    if (waited) log.warn('the set that was held back is taken: the registry kept saying so');
    if (lastError !== undefined || good === undefined || from === 'disk') {
      log.info('routes synced', { revision: set.revision, routes: set.routes.length });
    }
    lastError = undefined;
    confirm(set);
    return 'updated';
  };

  const judge = async (found: Found): Promise<Result> => {
    const situation = { good: good && factsOf(good), holding, emptyAfterMs: options.emptyAfterMs };
    const decision = decideSet(situation, polledOf(found), clock.monotonic());
    switch (decision.kind) {
      case 'take':
        return found.kind === 'set' ? take(found.set, decision.waited) : 'unavailable';
      case 'keep':
        if (lastError !== undefined) log.info('the registry answers again');
        if (holding !== undefined) log.info('the set that was held back is gone: the registry has the routes in force');
        lastError = undefined;
        if (good !== undefined) confirm(good);
        return 'unchanged';
      case 'hold': {
        const reason = describeHolding(decision.holding, situation.good);
        if (holding?.sinceMs !== decision.holding.sinceMs) {
          log.error('route set held back, the last good one stays', { reason, taken_after_ms: options.emptyAfterMs });
        }
        holding = decision.holding;
        lastError = undefined;
        return 'held';
      }
      case 'refuse':
        holding = decision.holding;
        return refused(found);
      default:
        return decision satisfies never;
    }
  };

  const refused = (found: Found): Result => {
    switch (found.kind) {
      case 'invalid':
        fail('error', 'route set refused, the last good one stays', found.reason);
        return 'invalid';
      case 'unauthorized':
        fail('error', 'the registry does not let us in, the last good routes stay', found.reason);
        return 'unauthorized';
      case 'unavailable':
        fail('warn', 'the registry is away, the last good routes stay', found.reason);
        return 'unavailable';
      case 'set':
      case 'unchanged':
        throw new Error(`a set that was found was refused: ${found.kind}`);
      default:
        return found satisfies never;
    }
  };

  /** How long the registry asks to be left alone, where it does. */
  const poll = async (): Promise<number | undefined> => {
    const startedAt = clock.monotonic();
    const found = await source.fetchSet(good, controller.signal);
    if (controller.signal.aborted) return undefined;
    const wasAway = away;
    const result = await judge(found);
    counts(result)(1);
    away = result === 'unavailable';
    const answered = !away && result !== 'unauthorized';
    failures = answered ? 0 : failures + 1;
    const endedAt = clock.monotonic();
    lastFlight = { endedAt, ms: endedAt - startedAt };
    if (wasAway && !away) bell.reconnect();
    return found.kind === 'unavailable' ? found.retryAfterMs : undefined;
  };

  const next = (retryAfterMs = 0): void => {
    cancel();
    const { ms, endedAt } = lastFlight;
    const waitMs = rung
      ? bellWaitMs({ ms, endedMs: clock.monotonic() - endedAt })
      : pollWaitMs({ pollIntervalMs: options.pollIntervalMs, failures, hasRoutes: good !== undefined }, random);
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

  const bell = createBell({ openEvents: source.openEvents, ring: nudge, clock, schedule, random, log });

  return {
    start: async () => {
      const stored = await disk.read();
      if (stored !== undefined) {
        const { registryId = '', revision = 0, routes } = stored.set;
        const taken = await compiler.take({ registryId, revision, routes });
        if (taken.ok) {
          good = stored.set;
          confirmedAt = stored.savedAt;
          log.info('routes loaded from the snapshot file', { revision: stored.set.revision, routes: routes.length });
        } else log.error('the snapshot file was refused', { reason: taken.reason });
      }
      fly();
      bell.start();
    },
    nudge,
    lastGood: () => (good === undefined || confirmedAt === undefined ? undefined : { set: good, confirmedAt }),
    status,
    close: async () => {
      controller.abort(new Error('closing'));
      bell.close();
      cancel();
      await flight;
      await disk.settled();
    },
  };
}

function factsOf({ registryId, revision, routes }: FoundSet): SetFacts {
  return { registryId, revision, size: routes.length };
}

function polledOf(found: Found): Polled {
  switch (found.kind) {
    case 'set':
      return { kind: 'set', facts: factsOf(found.set) };
    case 'unchanged':
    case 'invalid':
      return { kind: found.kind };
    case 'unauthorized':
    case 'unavailable':
      return { kind: 'nothing' };
    default:
      return found satisfies never;
  }
}
