// Calls a thread of the ledger: calls that come while a commit runs, and after it until the event loop has nothing else to
// do, go out as the next batch and share its fsync. A call that is not answered in time, or whose thread died, is refused with
// LedgerUnavailable; a thread that died is replaced. The queue is bounded.
import type { Worker } from 'node:worker_threads';
import { LedgerUnavailable } from '../../../domain/payment/ledger.ts';
import type { Log } from '../../../host/log.ts';
import { createWhenIdle } from '../../../host/when-idle.ts';
import {
  writeBatch,
  type Arguments,
  type Call,
  type CallName,
  type FromWorker,
  type ToWorker,
  type Value,
} from './thread-messages.ts';
import { UPGRADING } from '../ports.ts';

export type Thread = {
  readonly call: <N extends CallName>(name: N, ...args: Arguments<N>) => Promise<Value<N>>;
  /** The same for a call without a waiting caller: it goes along with the next one, or by itself after a moment. */
  readonly callLater: Thread['call'];
  /** Finishes what was called, refuses what comes later, closes the file. */
  readonly close: () => Promise<void>;
};

export type ThreadOptions = {
  /** Starts the thread; told whether it is the first. */
  readonly spawn: (first: boolean) => Worker;
  /** Milliseconds since the epoch: the ledger's clock. */
  readonly now: () => number;
  /** Calls that wait at most. */
  readonly maxQueued: number;
  readonly timeoutMs: number;
  readonly log: Log;
};

type Waiting = Call & {
  readonly deadline: number;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: Error) => void;
};

const MAX_BATCH = 512;
/** How long a call without a waiting caller waits for company. */
const LATER_MS = 20;
/** How long calls wait for company while the process is busy: a commit costs more than all else that a paid request does. */
const COMPANY_MS = 8;
/** A thread that dies within this time after its start is not replaced for as long. */
const RESTART_MS = 1000;

export function createThread({ spawn, now, maxQueued, timeoutMs, log }: ThreadOptions): Thread {
  const whenIdle = createWhenIdle(COMPANY_MS);
  let worker: Worker | undefined;
  let started = 0;
  let spawnedAt = -Infinity;
  let restartAt = -Infinity;
  let queue: Waiting[] = [];
  /** The batch that the thread works on; calls of it that were refused meanwhile are undefined. */
  let running: (Waiting | undefined)[] | undefined;
  let scheduled = false;
  /** A call in the queue has a waiting caller. */
  let urgent = false;
  let sendingLater: NodeJS.Timeout | undefined;
  /** What went wrong last, until something goes right. */
  let failing: string | undefined;
  let timer: NodeJS.Timeout | undefined;
  let closing: (() => void) | undefined;
  let closed: Promise<void> | undefined;

  const start = (): Worker => {
    const next = spawn(started === 0);
    started += 1;
    spawnedAt = performance.now();
    next.on('message', (message: FromWorker) => {
      if (worker !== next) return;
      switch (message.kind) {
        case 'results':
          return finish(message);
        case 'upgrading':
          return log.info(UPGRADING, message.upgrade);
        case 'closed':
          return void next.terminate();
        default:
          message satisfies never;
      }
    });
    next.on('error', (error) => log.error('a thread of the ledger failed', { error }));
    next.on('messageerror', () => void next.terminate());
    next.on('exit', () => {
      if (worker === next) lost();
    });
    return next;
  };

  const lost = (): void => {
    worker = undefined;
    if (performance.now() - spawnedAt < RESTART_MS) restartAt = performance.now() + RESTART_MS;
    const dropped = running ?? [];
    running = undefined;
    for (const waiting of dropped) waiting?.reject(new LedgerUnavailable('The thread of the ledger died.'));
    if (closing !== undefined && queue.length === 0) closing();
    else pump();
  };

  const pump = (): void => {
    scheduled = false;
    if (running !== undefined) return;
    urgent = false;
    clearTimeout(sendingLater);
    sendingLater = undefined;
    if (queue.length === 0) return idle();
    if (worker === undefined && performance.now() < restartAt) {
      refuseAll(queue.splice(0), 'The thread of the ledger keeps dying.');
      return idle();
    }
    const batch = queue.splice(0, MAX_BATCH);
    urgent = queue.length > 0;
    running = batch;
    try {
      worker ??= start();
      worker.ref();
      post(worker, writeBatch(batch, now()));
    } catch (error) {
      running = undefined;
      log.error('the ledger could not be called', { error });
      refuseAll(batch, 'The thread of the ledger could not be called.');
      pump();
    }
  };

  const idle = (): void => {
    clearTimeout(timer);
    timer = undefined;
    worker?.unref();
    if (closing === undefined) return;
    if (worker === undefined) closing();
    else {
      worker.ref();
      post(worker, { kind: 'close' });
    }
  };

  const finish = ({ values, failures }: Extract<FromWorker, { kind: 'results' }>): void => {
    const done = running ?? [];
    running = undefined;
    for (const [index, waiting] of done.entries()) {
      const message = index < values.length ? failures?.get(index) : 'The ledger gave no answer.';
      if (message === undefined) {
        failing = undefined;
        waiting?.resolve(values[index]);
        continue;
      }
      // Every payment of an outage fails the same way; it is told once.
      if (message !== failing) log.error('the ledger refused a call', { error: message });
      failing = message;
      waiting?.reject(new LedgerUnavailable(message));
    }
    // A caller that was just answered may have its next call ready: it goes along.
    if (urgent || closing !== undefined) soon();
    else if (queue.length === 0) idle();
    else later();
  };

  const later = (): void => {
    sendingLater ??= setTimeout(soon, LATER_MS);
  };

  const soon = (): void => {
    if (scheduled) return;
    scheduled = true;
    whenIdle(pump);
  };

  /** Refuses what waited too long; what was not sent yet is never carried out. */
  const expire = (): void => {
    const at = performance.now();
    const late = (waiting: Waiting | undefined): waiting is Waiting => waiting !== undefined && waiting.deadline <= at;
    const expired = [...(running ?? []), ...queue].filter(late);
    running = running?.map((waiting) => (late(waiting) ? undefined : waiting));
    queue = queue.filter((waiting) => !late(waiting));
    refuseAll(expired, `The ledger did not answer within ${timeoutMs} milliseconds.`);
    const next = [...(running ?? []), ...queue].find((waiting) => waiting !== undefined);
    timer = next && setTimeout(expire, Math.max(1, next.deadline - at));
  };

  const enqueue = <N extends CallName>(name: N, args: Arguments<N>): Promise<Value<N>> => {
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    if (closed !== undefined) reject(new LedgerUnavailable('The ledger is closed.'));
    else if (queue.length >= maxQueued) reject(new LedgerUnavailable('Too many calls wait for the ledger.'));
    else {
      queue.push({ name, args, deadline: performance.now() + timeoutMs, resolve, reject });
      timer ??= setTimeout(expire, timeoutMs);
    }
    return promise as Promise<Value<N>>;
  };

  return {
    call: (name, ...args) => {
      const answer = enqueue(name, args);
      urgent = true;
      soon();
      return answer;
    },
    callLater: (name, ...args) => {
      const answer = enqueue(name, args);
      if (running === undefined) later();
      return answer;
    },
    close: () =>
      (closed ??= new Promise<void>((resolve) => {
        closing = resolve;
        pump();
      })),
  };
}

function post(worker: Worker, message: ToWorker): void {
  worker.postMessage(message, []);
}

function refuseAll(all: readonly Waiting[], message: string): void {
  for (const { reject } of all) reject(new LedgerUnavailable(message));
}
