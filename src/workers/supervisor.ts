// Keeps a number of workers alive. It starts them and replaces those that die, later each time if they die young. It
// kills a worker whose event loop stands still while the primary's own goes round.
import type { ChildProcess } from 'node:child_process';
import type { Clock, Schedule } from '../host/clock.ts';
import type { Log } from '../host/log.ts';
import { ALIVE_MS, type Report, type Order } from './channel.ts';
import { Member, type Life } from './member.ts';

/** Reason why a worker ended that was not asked to. `memory`: V8 had no more. */
export type EndReason = 'exit' | 'signal' | 'memory' | 'stalled';

type SupervisorOptions = {
  readonly count: number;
  /** Starts the process of a worker. */
  readonly fork: (worker: number) => ChildProcess;
  /** Names the `start`th life of a worker. */
  readonly nameRun: (worker: number, start: number) => string;
  /** Bootstrap text for a worker that starts now. */
  readonly given: () => string;
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly schedule: Schedule;
  readonly log: Log;
  readonly limits?: Partial<SupervisorLimits>;
};

export type SupervisorLimits = {
  /** Life after which a worker that ends is replaced at once. */
  readonly youngMs: number;
  /** First wait for a worker that died young; doubled each time. */
  readonly firstWaitMs: number;
  readonly longestWaitMs: number;
  /** Time without a word of a worker after which it counts as stalled. */
  readonly stalledMs: number;
};

const SUPERVISOR_LIMITS: SupervisorLimits = {
  youngMs: 10_000,
  firstWaitMs: 1_000,
  longestWaitMs: 30_000,
  stalledMs: 30_000,
};

export type SupervisorEvents = {
  readonly heard: (member: Member, message: Report) => void;
  /** A worker can take connections, or one more of them. */
  readonly able: () => void;
  /** Called when a worker ended and was not asked to. */
  readonly died: (member: Member, reason: EndReason) => void;
};

export type Supervisor = {
  /** Starts all; resolves when the first is ready, rejects with the reason of one that cannot start. */
  readonly start: (events: SupervisorEvents) => Promise<void>;
  /** Resolves when all were ready once; rejects with the reason of one that cannot start. */
  readonly allStarted: () => Promise<void>;
  readonly members: () => readonly Member[];
  /** Workers by number. */
  readonly lives: () => readonly WorkerLife[];
  readonly tell: (message: Order) => void;
  readonly replace: (member: Member) => void;
  /** No worker is replaced any more; resolves when all have ended, those that are late by force. */
  readonly end: (withinMs: number) => Promise<void>;
};

type WorkerLife = {
  readonly worker: number;
  /** Undefined: it is being replaced. */
  readonly life: Life | undefined;
  readonly isComplete: boolean;
  /** Whether this worker, or one that it replaces, was ready, and complete. */
  readonly wasReady: boolean;
  readonly wasComplete: boolean;
};

type Place = {
  readonly number: number;
  member: Member | undefined;
  starts: number;
  /** Lives in a row that were short. */
  young: number;
  wasReady: boolean;
  wasComplete: boolean;
};

export function createSupervisor(options: SupervisorOptions): Supervisor {
  const { count, fork, nameRun, given, clock, schedule, log } = options;
  const limits = { ...SUPERVISOR_LIMITS, ...options.limits };
  const places = Array.from({ length: count }, (_, index): Place => {
    return { number: index + 1, member: undefined, starts: 0, young: 0, wasReady: false, wasComplete: false };
  });
  const first = Promise.withResolvers<void>();
  const all = Promise.withResolvers<void>();
  all.promise.catch(() => undefined);
  first.promise.catch(() => undefined);
  let events: SupervisorEvents | undefined;
  let ending: (() => void) | undefined;
  let stopTurns = (): void => undefined;

  const begin = (place: Place): void => {
    place.starts++;
    const run = nameRun(place.number, place.starts);
    const member = new Member(place.number, run, fork(place.number), clock.monotonic(), {
      heard: (from, message) => {
        if (message.kind === 'ready') ready(place, from);
        if (message.kind === 'complete') place.wasComplete = true;
        events?.heard(from, message);
      },
      free: () => events?.able(),
      ended: (from, code, signal) => ended(place, from, code, signal),
    });
    place.member = member;
    member.send({ kind: 'start', worker: place.number, run, given: given() });
  };

  const ready = (place: Place, member: Member): void => {
    place.wasReady = true;
    log.info('a worker is ready', { number: member.number, pid: member.child.pid });
    first.resolve();
    if (places.every((each) => each.wasReady)) all.resolve();
    events?.able();
  };

  const ended = (place: Place, member: Member, code: number | null, signal: NodeJS.Signals | null): void => {
    place.member = undefined;
    if (ending !== undefined) {
      if (places.every((each) => each.member === undefined)) ending();
      return;
    }
    const how = signal === null ? `exit code ${code}` : signal;
    const reason = endReasonOf(member, signal);
    const livedMs = clock.monotonic() - member.startedAt;
    events?.died(member, reason);
    if (!place.wasReady) {
      const why = new Error(
        `worker ${member.number} could not start: ${member.failure ?? `it ended before it was ready (${how})`}`,
      );
      first.reject(why);
      all.reject(why);
      return;
    }
    place.young = livedMs < limits.youngMs ? place.young + 1 : 0;
    const waitMs = place.young === 0 ? 0 : Math.min(limits.longestWaitMs, limits.firstWaitMs * 2 ** (place.young - 1));
    const fields = { number: member.number, reason, how, failure: member.failure, lived_ms: Math.round(livedMs) };
    log.error('a worker ended and is replaced', { ...fields, in_ms: waitMs });
    const again = (): void => {
      if (ending === undefined) begin(place);
    };
    if (waitMs === 0) again();
    else schedule(waitMs, again);
  };

  const members = (): readonly Member[] => places.flatMap(({ member }) => member ?? []);

  /** Counts how long each was silent, but not over a time in which we stood still ourselves. */
  const watch = (): void => {
    let last = clock.monotonic();
    const turn = (): void => {
      const now = clock.monotonic();
      const passed = now - last;
      last = now;
      for (const member of members()) {
        if (passed > 2 * ALIVE_MS) member.silentMs = 0;
        else member.silentMs += passed;
        if (member.silentMs < limits.stalledMs) continue;
        member.stalled = true;
        log.error('a worker stands still and is killed', { number: member.number, pid: member.child.pid });
        member.kill();
      }
      stopTurns = schedule(ALIVE_MS, turn);
    };
    stopTurns = schedule(ALIVE_MS, turn);
  };

  return {
    start: (hears) => {
      events = hears;
      for (const place of places) begin(place);
      watch();
      return first.promise;
    },
    allStarted: () => all.promise,
    members,
    lives: () => places.map(lifeOf),
    tell: (message) => {
      for (const member of members()) member.send(message);
    },
    replace: (member) => {
      member.stalled = true;
      member.kill();
    },
    end: async (withinMs) => {
      stopTurns();
      if (members().length === 0) {
        ending = () => undefined;
        return;
      }
      const over = Promise.withResolvers<void>();
      ending = over.resolve;
      const cancel = schedule(withinMs, () => members().forEach((member) => member.kill()));
      await over.promise;
      cancel();
    },
  };
}

function lifeOf({ number, member, wasReady, wasComplete }: Place): WorkerLife {
  return { worker: number, life: member?.life, isComplete: member?.isComplete === true, wasReady, wasComplete };
}

function endReasonOf(member: Member, signal: NodeJS.Signals | null): EndReason {
  if (member.stalled) return 'stalled';
  // V8 ends a process that has no more memory with this signal.
  if (signal === 'SIGABRT') return 'memory';
  return signal === null ? 'exit' : 'signal';
}
