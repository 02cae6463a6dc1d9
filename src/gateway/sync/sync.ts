// Keeps a sidecar's routes in step with its registry. At the start it reads the file. Then it follows the event stream,
// and beside that polls which set the registry has. The machine (machine/step.ts) decides; this runs it: it hands one
// input after the other in and performs what comes out. The last good set stays in force whatever happens. No failure
// of the registry, the network or the disk reaches a request.
import { setImmediate as breathe } from 'node:timers/promises';
import { createSetProver } from '../../domain/routing/set-proof.ts';
import type { Clock, Random, Schedule } from '../../host/clock.ts';
import type { Log } from '../../host/log.ts';
import type { Metrics } from '../../host/metrics.ts';
import type { Compiler } from '../routes/snapshot-compiler.ts';
import { readEvents } from './follow/event-reader.ts';
import type { FollowedName, FoundSet, RouteSource, SetRequest } from './follow/route-source.ts';
import type { SnapshotFile } from './keep/snapshot-file.ts';
import { firstState, type Effect, type Input, type PollResult, type SyncOptions, type Work } from './machine/state.ts';
import { step } from './machine/step.ts';
import { statusOf, type SyncStatus } from './status.ts';

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

/** Last good set, for what answers in the registry's place. */
export type LastGoodSet = { readonly set: FoundSet; readonly confirmedAt: number };

export type Sync = {
  /** Resolves when the file was read and the first poll is on its way; does not wait for the registry. */
  readonly start: () => Promise<void>;
  /** Asks the registry now, or once more when the poll that runs is over. */
  readonly nudge: () => void;
  readonly lastGood: () => LastGoodSet | undefined;
  readonly status: () => SyncStatus;
  /** Resolves when nothing runs any more. */
  readonly close: () => Promise<void>;
};

export function createSync(options: SyncOptions, deps: SyncDeps): Sync {
  const { source, snapshotFile, clock, schedule, random, log } = deps;
  const closing = new AbortController();
  let state = firstState(options);
  let flight: Promise<void> | undefined;
  let stream = new AbortController();
  let cancelPoll = (): void => undefined;
  let cancelStream = (): void => undefined;
  const count = countResults(deps.metrics, () => statusOf(state.set, clock.now()));
  const perform = createWork(deps, () => state.set.good);

  /** Performs an effect. Gives the work that the next input waits for, if the effect is one. */
  const run = (effect: Effect): Work | undefined => {
    switch (effect.kind) {
      case 'fetch':
        cancelPoll();
        flight = fetchSet(effect.request);
        return undefined;
      case 'poll_in':
        cancelPoll();
        cancelPoll = schedule(effect.ms, () => void handle({ kind: 'poll_due' }));
        return undefined;
      case 'open_stream':
        void follow(effect.id, effect.after);
        return undefined;
      case 'open_stream_in':
        cancelStream = schedule(effect.ms, () => void handle({ kind: 'stream_due' }));
        return undefined;
      case 'end_stream':
        cancelStream();
        stream.abort();
        return undefined;
      case 'keep':
        snapshotFile.keep(effect.set, effect.confirmedAt);
        return undefined;
      case 'count':
        count(effect.result);
        return undefined;
      case 'log':
        log[effect.level](effect.msg, effect.fields);
        return undefined;
      case 'compile_stored':
      case 'compile_set':
      case 'compile_change':
      case 'prove':
        return effect;
      default:
        return effect satisfies never;
    }
  };

  const advance = (input: Input): Work | undefined => {
    if (closing.signal.aborted) return undefined;
    const moment = { monotonicMs: clock.monotonic(), epochMs: clock.now(), chance: fractionOf(random) };
    const [next, effects] = step(state, input, moment);
    state = next;
    let work: Work | undefined;
    for (const effect of effects) work = run(effect) ?? work;
    return work;
  };
  const handle = createInbox(advance, perform);

  const fetchSet = async (request: SetRequest): Promise<void> => {
    try {
      await handle({ kind: 'polled', found: await source.fetchSet(request, closing.signal) });
    } catch (error) {
      await handle({ kind: 'poll_failed', error });
    }
  };

  const follow = async (id: number, after: FollowedName): Promise<void> => {
    const controller = new AbortController();
    const { signal } = controller;
    stream = controller;
    let broke: unknown;
    try {
      const opened = await source.openEvents(after, signal);
      await handle({ kind: 'stream_opened', id, opened });
      if (opened.kind !== 'open') return;
      for await (const event of readEvents(opened.chunks)) {
        if (signal.aborted) return;
        await handle({ kind: 'event', id, event });
        if (signal.aborted) return;
      }
    } catch (error) {
      broke = error;
    }
    await handle({ kind: 'stream_ended', id, error: broke });
  };

  return {
    start: async () => handle({ kind: 'started', stored: await snapshotFile.read() }),
    nudge: () => void handle({ kind: 'nudged' }),
    lastGood: () => state.set.good,
    status: () => statusOf(state.set, clock.now()),
    close: async () => {
      closing.abort(new Error('closing'));
      stream.abort();
      cancelStream();
      cancelPoll();
      await flight;
      await snapshotFile.settled();
    },
  };
}

/**
 * Hands one input after the other to `advance`, in the order in which they came. Work that an input asks for is performed
 * before the next, and its result is the next. The promise is over when the input and what it asked for are.
 */
function createInbox(
  advance: (input: Input) => Work | undefined,
  perform: (work: Work) => Promise<Input>,
): (input: Input) => Promise<void> {
  type QueuedInput = { readonly input: Input; readonly done: PromiseWithResolvers<void> };
  const waiting: QueuedInput[] = [];
  let isBusy = false;
  const empty = async (): Promise<void> => {
    isBusy = true;
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      try {
        let work = advance(next.input);
        while (work !== undefined) work = advance(await perform(work));
        next.done.resolve();
      } catch (error) {
        next.done.reject(error);
      }
    }
    isBusy = false;
  };
  return (input) => {
    const done = Promise.withResolvers<void>();
    waiting.push({ input, done });
    if (!isBusy) void empty();
    return done.promise;
  };
}

/** Performs work on the set in force; gives the input that says what came of it. */
function createWork(
  { compiler }: SyncDeps,
  inForce: () => { readonly set: FoundSet; readonly size: number } | undefined,
): (work: Work) => Promise<Input> {
  const prover = createSetProver(
    {
      routes: () => inForce()?.set.routes ?? [],
      head: () => ({ revision: inForce()?.set.revision ?? 0, routes: inForce()?.size ?? 0 }),
    },
    breathe,
  );
  const compile = async ({ registryId = '', revision = 0, routes }: FoundSet): ReturnType<Compiler['take']> => {
    const taken = await compiler.take({ registryId, revision, routes });
    if (taken.ok) prover.replace();
    return taken;
  };
  return async (work) => {
    switch (work.kind) {
      case 'compile_stored':
        return { kind: 'stored_compiled', stored: work.stored, taken: await compile(work.stored.set) };
      case 'compile_set':
        return { kind: 'set_compiled', set: work.set, waited: work.waited, taken: await compile(work.set) };
      case 'compile_change': {
        const { revision } = work.change;
        const taken = await compiler.takeChange(work.change);
        if (!taken.ok) return { kind: 'change_compiled', revision, taken };
        prover.change(taken.was, taken.is);
        const { size, list } = taken.snapshot.matcher;
        return { kind: 'change_compiled', revision, taken: { ok: true, size, list } };
      }
      case 'prove':
        return { kind: 'proven', head: work.head, proof: await prover.prove() };
      default:
        return work satisfies never;
    }
  };
}

function countResults(metrics: Metrics, status: () => SyncStatus): (result: PollResult) => void {
  const counts = metrics.counter('sync_total', 'What the registry said of the routes, by what it came to.', ['result']);
  const confirmedHelp = 'When the registry last confirmed the routes in force.';
  metrics.observed('gauge', 'sync_last_success_timestamp_seconds', confirmedHelp, [], (set) => {
    const { lastSuccess } = status();
    if (lastSuccess !== undefined) set({}, lastSuccess / 1000);
  });
  return (result) => counts(result)(1);
}

/** A number from 0 to 1, 1 left out. */
function fractionOf(random: Random): number {
  return random(4).readUInt32BE(0) / 2 ** 32;
}
