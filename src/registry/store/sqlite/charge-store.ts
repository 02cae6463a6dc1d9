// Charges on SQLite: the ports of the ledger's store, and the calls to the threads that own the file. A slow disk
// stalls nothing but payments. The writing thread commits in groups. The reading one serves dashboards and starts when
// it is first asked. A registry keeps its charges so, beside its routes, and so does a sidecar with a store of its own.
import { randomBytes } from 'node:crypto';
import { Worker } from 'node:worker_threads';
import { LOCAL_RUN } from '../../../domain/payment/charge.ts';
import { type Change, type Updated, LedgerUnavailable } from '../../../domain/payment/ledger.ts';
import { type ChargesOptions, type ChargesStore, UPGRADING } from '../ports.ts';
import { keptBy, toRowChange, toRowInsert, type NotUpdated } from '../charge-values.ts';
import {
  type WorkerOptions,
  writeBatch,
  type Arguments,
  type Call,
  type CallName,
  type CallValue,
  type FromWorker,
  type ToWorker,
} from './thread-messages.ts';
import type { Log } from '../../../host/log.ts';
import { createWhenIdle } from '../../../host/clock.ts';

export type SqliteChargesOptions = ChargesOptions & {
  /** How long a call may take. */
  readonly timeoutMs?: number;
  /** How long a commit waits for another process that writes. */
  readonly busyMs?: number;
  readonly answerLimitBytes?: number;
  readonly maxQueued?: number;
  /** For tests: how long every commit takes longer, as on a slow disk. */
  readonly commitDelayMs?: number;
  /** For tests: starts a thread. */
  readonly spawn?: (script: URL, options: WorkerOptions) => Worker;
};

const TIMEOUT_MS = 5_000;
const BUSY_MS = 2_000;
const ANSWER_BYTES = 16 * 1024 * 1024;
const MAX_QUEUED = 20_000;

/** Opens `file` with the first call; makes it if there is none. */
export function openCharges(file: string, options: SqliteChargesOptions): ChargesStore {
  const { now, log, timeoutMs = TIMEOUT_MS, busyMs = BUSY_MS, maxQueued = MAX_QUEUED } = options;
  const spawn = options.spawn ?? spawnWorker;
  const commitDelayMs = options.commitDelayMs ?? 0;
  const script = new URL(`./charge-worker${import.meta.url.endsWith('.ts') ? '.ts' : '.js'}`, import.meta.url);
  const run = `${LOCAL_RUN}${randomBytes(12).toString('hex')}`;
  const alone = options.alone === true ? run : undefined;
  const thread = (role: WorkerOptions['role']): Thread =>
    createThread({
      // The reading thread opens what the writing one made: of a file that is taken away meanwhile it makes no new one.
      spawn: (first) => spawn(script, { role, file, create: first && role === 'write', busyMs, commitDelayMs, alone }),
      now,
      maxQueued,
      timeoutMs,
      log,
    });
  const writer = thread('write');
  let reader: Thread | undefined;
  let closing = false;
  const reading = async (): Promise<Thread> => {
    if (reader === undefined) await writer.call('countByState');
    // Once closed nothing is opened again: the writing thread refuses for both.
    return closing ? writer : (reader ??= thread('read'));
  };

  const write = (change: Change): Promise<NotUpdated | undefined> => {
    const row = toRowChange(change, now());
    const kept = keptBy(change);
    if (kept !== undefined) return writer.call('updateKeeping', row, kept);
    // No caller waits for the word that an answer arrived: it shares the next commit.
    const waits = !('event' in change.because && change.because.event.kind === 'delivered');
    return waits ? writer.call('update', row) : writer.callLater('update', row);
  };

  return {
    run,
    now,
    keptBodyBytes: options.answerLimitBytes ?? ANSWER_BYTES,
    find: (by) => writer.call('find', by),
    insert: async (entry) => {
      const refused = await writer.call('insert', toRowInsert(entry, now()));
      return refused ?? { kind: 'written', charge: { charge: entry.charge, version: 1 } };
    },
    update: async (change): Promise<Updated> => {
      const refused = await write(change);
      const { before, after } = change;
      return refused ?? { kind: 'written', charge: { charge: after, version: before.version + 1 } };
    },
    due: (limit) => writer.call('due', limit, now()),
    renew: (owner, ids, leaseMs) => writer.call('renew', owner, ids, leaseMs, now()),
    endRun: (owner) => writer.call('endRun', owner, now()),
    check: () => writer.call('check'),
    prune: (before, limit) => writer.call('prune', before, limit, now()),
    list: async (filter) => (await reading()).call('list', filter, now()),
    get: async (id) => (await reading()).call('get', id, now()),
    search: async (search, limit) => (await reading()).call('search', search, limit, now()),
    alarms: async () => (await reading()).call('alarms', now()),
    summary: async (query) => (await reading()).call('summary', query),
    // Kept beside the charges and cheap to read; a thread of its own for it would cost memory in every sidecar.
    countByState: () => writer.call('countByState'),
    close: async () => {
      closing = true;
      await Promise.all([writer.close(), reader?.close()]);
    },
  };
}

/** A thread needs no secrets of the environment, and flags of this process may not be meant for it. */
function spawnWorker(script: URL, options: WorkerOptions): Worker {
  return new Worker(script, { workerData: options, env: {}, execArgv: [], name: `ledger ${options.role}` });
}

// Calls a thread. Calls that come while a commit runs, and after it until the event loop is idle, go out as the next batch and
// share its fsync. A call that is not answered in time, or whose thread died, is refused with LedgerUnavailable. A thread that
// died is replaced. The queue is bounded.

type Thread = {
  readonly call: <N extends CallName>(name: N, ...args: Arguments<N>) => Promise<CallValue<N>>;
  /** The same for a call without a waiting caller: it goes along with the next one, or by itself after a moment. */
  readonly callLater: Thread['call'];
  /** Finishes what was called, refuses what comes later, closes the file. */
  readonly close: () => Promise<void>;
};

type ThreadOptions = {
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

function createThread(options: ThreadOptions): Thread {
  return new LedgerThread(options);
}

class LedgerThread implements Thread {
  private readonly options: ThreadOptions;
  private readonly whenIdle = createWhenIdle(COMPANY_MS);
  private worker: Worker | undefined;
  private started = 0;
  private spawnedAt = -Infinity;
  private restartAt = -Infinity;
  private queue: Waiting[] = [];
  /** The batch that the thread works on; calls of it that were refused meanwhile are undefined. */
  private running: (Waiting | undefined)[] | undefined;
  private scheduled = false;
  /** A call in the queue has a waiting caller. */
  private urgent = false;
  private sendingLater: NodeJS.Timeout | undefined;
  /** The last fault, until a call succeeds. */
  private failing: string | undefined;
  private timer: NodeJS.Timeout | undefined;
  private closing: (() => void) | undefined;
  private closed: Promise<void> | undefined;

  constructor(options: ThreadOptions) {
    this.options = options;
  }

  readonly call: Thread['call'] = (name, ...args) => {
    const value = this.enqueue(name, args);
    this.urgent = true;
    this.soon();
    return value;
  };

  readonly callLater: Thread['call'] = (name, ...args) => {
    const value = this.enqueue(name, args);
    if (this.running === undefined) this.later();
    return value;
  };

  readonly close = (): Promise<void> =>
    (this.closed ??= new Promise<void>((resolve) => {
      this.closing = resolve;
      this.pump();
    }));

  private enqueue<N extends CallName>(name: N, args: Arguments<N>): Promise<CallValue<N>> {
    const { maxQueued, timeoutMs } = this.options;
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    if (this.closed !== undefined) reject(new LedgerUnavailable('The ledger is closed.'));
    else if (this.queue.length >= maxQueued) reject(new LedgerUnavailable('Too many calls wait for the ledger.'));
    else {
      this.queue.push({ name, args, deadline: performance.now() + timeoutMs, resolve, reject });
      this.timer ??= setTimeout(this.expire, timeoutMs);
    }
    return promise as Promise<CallValue<N>>;
  }

  private readonly later = (): void => {
    this.sendingLater ??= setTimeout(this.soon, LATER_MS);
  };

  private readonly soon = (): void => {
    if (this.scheduled) return;
    this.scheduled = true;
    this.whenIdle(this.pump);
  };

  private readonly pump = (): void => {
    this.scheduled = false;
    if (this.running !== undefined) return;
    this.urgent = false;
    clearTimeout(this.sendingLater);
    this.sendingLater = undefined;
    if (this.queue.length === 0) return this.idle();
    if (this.worker === undefined && performance.now() < this.restartAt) {
      refuseAll(this.queue.splice(0), 'The thread of the ledger keeps dying.');
      return this.idle();
    }
    const batch = this.queue.splice(0, MAX_BATCH);
    this.urgent = this.queue.length > 0;
    this.running = batch;
    try {
      this.worker ??= this.start();
      this.worker.ref();
      post(this.worker, writeBatch(batch, this.options.now()));
    } catch (error) {
      this.running = undefined;
      this.options.log.error('the ledger could not be called', { error });
      refuseAll(batch, 'The thread of the ledger could not be called.');
      this.pump();
    }
  };

  private start(): Worker {
    const { spawn, log } = this.options;
    const next = spawn(this.started === 0);
    this.started += 1;
    this.spawnedAt = performance.now();
    next.on('message', (message: FromWorker) => {
      if (this.worker !== next) return;
      switch (message.kind) {
        case 'results':
          return this.finish(message);
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
      if (this.worker === next) this.lost();
    });
    return next;
  }

  private finish({ values, failures }: Extract<FromWorker, { kind: 'results' }>): void {
    const done = this.running ?? [];
    this.running = undefined;
    for (const [index, waiting] of done.entries()) {
      const message = index < values.length ? failures?.get(index) : 'The ledger gave no answer.';
      if (message === undefined) {
        this.failing = undefined;
        waiting?.resolve(values[index]);
        continue;
      }
      // Every payment of an outage fails the same way; it is told once.
      if (message !== this.failing) this.options.log.error('the ledger refused a call', { error: message });
      this.failing = message;
      waiting?.reject(new LedgerUnavailable(message));
    }
    // A caller that was just answered may have its next call ready: it goes along.
    if (this.urgent || this.closing !== undefined) this.soon();
    else if (this.queue.length === 0) this.idle();
    else this.later();
  }

  private lost(): void {
    this.worker = undefined;
    if (performance.now() - this.spawnedAt < RESTART_MS) this.restartAt = performance.now() + RESTART_MS;
    const dropped = this.running ?? [];
    this.running = undefined;
    for (const waiting of dropped) waiting?.reject(new LedgerUnavailable('The thread of the ledger died.'));
    if (this.closing !== undefined && this.queue.length === 0) this.closing();
    else this.pump();
  }

  private idle(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.worker?.unref();
    if (this.closing === undefined) return;
    if (this.worker === undefined) this.closing();
    else {
      this.worker.ref();
      post(this.worker, { kind: 'close' });
    }
  }

  /** Refuses what waited too long; what was not sent yet is never carried out. */
  private readonly expire = (): void => {
    const at = performance.now();
    const late = (waiting: Waiting | undefined): waiting is Waiting => waiting !== undefined && waiting.deadline <= at;
    const expired = [...(this.running ?? []), ...this.queue].filter(late);
    this.running = this.running?.map((waiting) => (late(waiting) ? undefined : waiting));
    this.queue = this.queue.filter((waiting) => !late(waiting));
    refuseAll(expired, `The ledger did not answer within ${this.options.timeoutMs} milliseconds.`);
    const next = [...(this.running ?? []), ...this.queue].find((waiting) => waiting !== undefined);
    this.timer = next && setTimeout(this.expire, Math.max(1, next.deadline - at));
  };
}

function post(worker: Worker, message: ToWorker): void {
  worker.postMessage(message, []);
}

function refuseAll(all: readonly Waiting[], message: string): void {
  for (const { reject } of all) reject(new LedgerUnavailable(message));
}
