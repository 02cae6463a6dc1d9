// Queue of calls in front of a ledger's store. Calls that come together leave together when the event loop is idle, as the
// next batch of a carrier that is free: the thread of a SQLite file, a connection to PostgreSQL. The queue is bounded, and
// every call has a deadline: its caller is refused with LedgerUnavailable then. A call that no carrier has by its deadline
// is never carried out; of one that a carrier has nobody knows.
import { LedgerUnavailable } from '../../domain/payment/ledger.ts';
import { systemClock } from '../../host/clock.ts';
import type { Log } from '../../host/log.ts';

export type CallQueue<C, R> = {
  readonly call: (call: C) => Promise<R>;
  /** Queues a call that no caller waits for: it goes along with the next one, or by itself after a moment. */
  readonly callLater: CallQueue<C, R>['call'];
  /** Number of calls that no carrier has yet. */
  readonly waiting: () => number;
  readonly isClosed: () => boolean;
  /** Finishes what was called, refuses what comes later, and closes the carriers. */
  readonly close: () => Promise<void>;
};

/** Call whose caller waits until it is over. */
export type PendingCall<C, R> = {
  readonly call: C;
  /** Time by the monotonic clock, in milliseconds, at which the call is late. */
  readonly deadline: number;
  readonly resolve: (result: R) => void;
  readonly reject: (error: LedgerUnavailable) => void;
  /** Whether the caller has its answer. */
  isOver: boolean;
};

/** Answers of a carrier to single calls; a call that is over gets no second one. */
export type Answers<C, R> = {
  readonly finish: (pending: PendingCall<C, R>, result: R) => void;
  readonly refuse: (pending: PendingCall<C, R>, message: string) => void;
};

/** Carries batches to the store, one at a time. */
export type Carrier<C, R> = {
  /** Carries the calls out and answers them; resolves to those without an answer, which are made again. Never rejects. */
  readonly carry: (
    batch: readonly PendingCall<C, R>[],
    answers: Answers<C, R>,
  ) => Promise<readonly PendingCall<C, R>[]>;
  readonly close: () => Promise<void>;
};

export type CallQueueOptions<C, R> = {
  readonly carriers: readonly Carrier<C, R>[];
  /** Calls of one batch at most. */
  readonly maxBatch: number;
  /** Calls that wait at most. */
  readonly maxQueued: number;
  /** Milliseconds that a call may take. */
  readonly timeoutMs: number;
  /**
   * Moment at which a carrier that comes back takes its next batch; `idle`: after the callers that it just answered
   * made their next calls.
   */
  readonly next: 'at_once' | 'idle';
  readonly log: Log;
};

/** Milliseconds that a call without a waiting caller waits for company. */
const LATER_MS = 20;
/**
 * Milliseconds that calls wait for company while the process is busy: a commit costs more than all else that a paid
 * request does.
 */
const COMPANY_MS = 8;

type Lane<C, R> = { readonly carrier: Carrier<C, R>; batch: readonly PendingCall<C, R>[] | undefined };

export function createCallQueue<C, R>(options: CallQueueOptions<C, R>): CallQueue<C, R> {
  const { maxBatch, maxQueued, timeoutMs } = options;
  const lanes = options.carriers.map((carrier): Lane<C, R> => ({ carrier, batch: undefined }));
  const answers = createAnswers<C, R>(options.log);
  const whenIdle = createWhenIdle(COMPANY_MS);
  let queue: PendingCall<C, R>[] = [];
  let scheduled = false;
  /** Whether a call in the queue has a waiting caller. */
  let urgent = false;
  let sendingLater: NodeJS.Timeout | undefined;
  let expiry: NodeJS.Timeout | undefined;
  let drained: (() => void) | undefined;
  let closed: Promise<void> | undefined;

  const isFree = ({ batch }: Lane<C, R>): boolean => batch === undefined;
  const soon = (): void => {
    if (scheduled) return;
    scheduled = true;
    whenIdle(pump);
  };
  const later = (): void => {
    sendingLater ??= setTimeout(() => {
      sendingLater = undefined;
      soon();
    }, LATER_MS);
  };
  const pump = (): void => {
    scheduled = false;
    const free = lanes.find(isFree);
    if (free !== undefined) void send(free);
  };
  const send = async (lane: Lane<C, R>): Promise<void> => {
    clearTimeout(sendingLater);
    sendingLater = undefined;
    const batch = queue.splice(0, maxBatch);
    urgent = queue.length > 0;
    if (batch.length === 0) return rest();
    lane.batch = batch;
    const again = (await lane.carrier.carry(batch, answers)).filter(({ isOver }) => !isOver);
    lane.batch = undefined;
    queue.unshift(...again);
    if (queue.length === 0) return rest();
    if (options.next === 'at_once' || closed !== undefined) void send(lane);
    else if (urgent || again.length > 0) soon();
    else later();
  };
  /** Ends the waiting for deadlines once nothing is called any more. */
  const rest = (): void => {
    if (!lanes.every(isFree)) return;
    clearTimeout(expiry);
    expiry = undefined;
    drained?.();
  };

  const expire = (): void => {
    const at = performance.now();
    const sent = lanes.flatMap(({ batch }) => batch ?? []);
    const late = [...sent, ...queue].filter(({ deadline }) => deadline <= at);
    for (const each of late) answers.refuse(each, `The ledger did not answer within ${timeoutMs} milliseconds.`);
    // The calls that were not sent leave the queue, and are never carried out.
    queue = queue.filter(({ isOver }) => !isOver);
    const deadlines = [...sent, ...queue].flatMap(({ isOver, deadline }) => (isOver ? [] : [deadline]));
    expiry = deadlines.length === 0 ? undefined : setTimeout(expire, Math.max(1, Math.min(...deadlines) - at));
  };
  const enqueue = (call: C): Promise<R> => {
    const { promise, resolve, reject } = Promise.withResolvers<R>();
    if (closed !== undefined) reject(new LedgerUnavailable('The ledger is closed.'));
    else if (queue.length >= maxQueued) reject(new LedgerUnavailable('Too many calls wait for the ledger.'));
    else {
      queue.push({ call, deadline: performance.now() + timeoutMs, resolve, reject, isOver: false });
      expiry ??= setTimeout(expire, timeoutMs);
    }
    return promise;
  };

  return {
    call: (call) => {
      const result = enqueue(call);
      urgent = true;
      soon();
      return result;
    },
    callLater: (call) => {
      const result = enqueue(call);
      // A carrier that comes back takes it, and so does the batch of a call that hurries.
      if (!urgent && lanes.some(isFree)) later();
      return result;
    },
    waiting: () => queue.length,
    isClosed: () => closed !== undefined,
    close: () =>
      (closed ??= new Promise<void>((resolve) => {
        drained = resolve;
        pump();
      }).then(async () => {
        await Promise.all(lanes.map(({ carrier }) => carrier.close()));
      })),
  };
}

function createAnswers<C, R>(log: Log): Answers<C, R> {
  /** Message of the last fault, until a call succeeds. */
  let failing: string | undefined;
  return {
    finish: (pending, result) => {
      failing = undefined;
      pending.isOver = true;
      pending.resolve(result);
    },
    refuse: (pending, message) => {
      if (pending.isOver) return;
      // Every payment of an outage fails the same way; it is told once.
      if (message !== failing) log.error('the ledger refused a call', { error: message });
      failing = message;
      pending.isOver = true;
      pending.reject(new LedgerUnavailable(message));
    },
  };
}

/** Runs what it is given once. */
type IdleScheduler = (run: () => void) => void;

/** The event loop as far as it is looked at. */
type Loop = {
  /** Runs `run` after everything that the current turn brought. */
  readonly afterTurn: (run: () => void) => void;
  /** Events that sockets, threads and the like have brought so far. */
  readonly events: () => number;
  /** Clock that only ever grows, in milliseconds. */
  readonly now: () => number;
};

const eventLoop: Loop = {
  afterTurn: setImmediate,
  events: () => performance.nodeTiming.uvMetricsInfo.events,
  now: systemClock.monotonic,
};

/**
 * Makes a wait for an idle moment. `maxMs` bounds it while every turn of the loop brings events. An idle loop notices no
 * difference. A busy one does its other work first, which would have waited for the processor anyway.
 */
export function createWhenIdle(maxMs: number, { afterTurn, events, now }: Loop = eventLoop): IdleScheduler {
  return (run) => {
    const latest = now() + maxMs;
    let seen: number | undefined;
    const look = (): void => {
      const brought = events();
      if (brought === seen || now() >= latest) return run();
      seen = brought;
      afterTurn(look);
    };
    afterTurn(look);
  };
}
