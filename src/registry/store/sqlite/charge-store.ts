// Charges on SQLite: the ports of the ledger's store, and the calls to the threads that own the file. A slow disk
// stalls nothing but payments. The writing thread commits in groups. The reading one serves dashboards and starts when
// it is first asked. A registry keeps its charges so, beside its routes, and so does a sidecar with a store of its own.
import { randomBytes } from 'node:crypto';
import { Worker } from 'node:worker_threads';
import type { Change, UpdateResult } from '../../../domain/payment/ledger.ts';
import type { AuditCause } from '../../../domain/audit.ts';
import { LOCAL_RUN } from '../../../domain/payment/run-names.ts';
import { changeToText } from '../../../domain/selling/draw-text.ts';
import { type ChargesOptions, type ChargesStore, UPGRADING } from '../ports.ts';
import { revocationValues } from '../pass-values.ts';
import { keptBy, toRowChange, toRowInsert, type UpdateRefusal } from '../charge-values.ts';
import { createCallQueue, type CallQueueOptions, type Carrier } from '../call-queue.ts';
import {
  type Arguments,
  type Batch,
  type Call,
  type CallName,
  type CallValue,
  type ThreadReply,
  type ThreadCommand,
  type WorkerOptions,
} from './thread-messages.ts';
import type { Log } from '../../../host/log.ts';

export type SqliteChargesOptions = ChargesOptions & {
  /** Milliseconds that a call may take. */
  readonly timeoutMs?: number;
  /** Milliseconds that a commit waits for another process that writes. */
  readonly busyMs?: number;
  readonly answerLimitBytes?: number;
  readonly maxQueued?: number;
  /** Milliseconds that every commit takes longer in tests, as on a slow disk. */
  readonly commitDelayMs?: number;
  /** Starts a thread; for tests. */
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
    queueBefore(
      createLedgerThread({
        // The reading thread opens what the writing one made: of a file that is taken away meanwhile it makes no new one.
        spawn: (first) =>
          spawn(script, { role, file, create: first && role === 'write', busyMs, commitDelayMs, alone }),
        now,
        log,
      }),
      { maxQueued, timeoutMs, log },
    );
  const writer = thread('write');
  let reader: Thread | undefined;
  let closing = false;
  const reading = async (): Promise<Thread> => {
    if (reader === undefined) await writer.call('countByState');
    // A closed store opens nothing again: the writing thread refuses for both.
    return closing ? writer : (reader ??= thread('read'));
  };

  const write = (change: Change): Promise<UpdateRefusal | undefined> => {
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
    update: async (change): Promise<UpdateResult> => {
      const refused = await write(change);
      const { before, after } = change;
      return refused ?? { kind: 'written', charge: { charge: after, version: before.version + 1 } };
    },
    due: (limit) => writer.call('due', limit, now()),
    renew: (owner, ids, leaseMs) => writer.call('renew', owner, ids, leaseMs, now()),
    endRun: (owner) => writer.call('endRun', owner, now()),
    check: () => writer.call('check'),
    prune: async (before, limit) => {
      const more = await Promise.all([
        writer.call('prune', before, limit, now()),
        writer.call('pruneCounters', limit, now()),
        writer.call('prunePasses', before.closedMs, limit, now()),
      ]);
      return more.includes(true);
    },
    counters: {
      change: (changes) => writer.call('changeCounters', changes, now()),
      identities: async () => new Map(await writer.call('counterIdentities', now())),
    },
    passes: {
      run,
      change: (change) => writer.call('changeDraws', changeToText(change), now()),
      renew: (owner, ids, leaseMs) => writer.call('renewDraws', owner, ids, leaseMs, now()),
      ofPayer: (payer) => writer.call('passesOfPayer', payer, now()),
      revoked: (after, limit) => writer.call('revokedPasses', after, limit, now()),
      list: async (filter) => (await reading()).call('listPasses', filter, now()),
      get: async (id) => (await reading()).call('getPass', id),
      revoke: (id, cause) => writer.call('revokePass', ...revocationOf(id, cause, now())),
      outstanding: async () => (await reading()).call('outstandingPasses', now()),
      endLost: (limit) => writer.call('endLostDraws', limit, now()),
    },
    list: async (filter) => (await reading()).call('list', filter, now()),
    get: async (id) => (await reading()).call('get', id, now()),
    history: async (id) => (await reading()).call('history', id, now()),
    watchChanges: () => writer.call('watchChanges', now()),
    changesAfter: async (n, limit) => (await reading()).call('changesAfter', n, limit),
    search: async (search, limit) => (await reading()).call('search', search, limit, now()),
    alarms: async () => (await reading()).call('alarms', now()),
    summary: async (query) => (await reading()).call('summary', query),
    refunded: () => writer.call('refunded'),
    // Counts are kept beside the charges and cheap to read; a thread of its own for it would cost memory in every
    // sidecar.
    countByState: () => writer.call('countByState'),
    totals: {
      add: (batch) => writer.call('addTotals', batch, now()),
      sums: async (query) => (await reading()).call('totals', query),
      sumsByRoute: async ({ spans }) => (await reading()).call('totalsByRoute', spans),
      sales: async ({ spans }) => (await reading()).call('totalsOfSales', spans),
      sources: async () => (await reading()).call('totalsSources'),
      prune: (before) => writer.call('pruneTotals', before),
    },
    webhooks: {
      now,
      declare: (endpoints, forgetBefore) => writer.call('declareWebhooks', endpoints, forgetBefore, now()),
      tell: (event, cause) => writer.call('tellWebhooks', event, now(), cause),
      turn: (turn) => writer.call('takeTurn', turn, now()),
      resign: async () => undefined,
      endpoints: async () => (await reading()).call('webhookEndpoints'),
      deliveries: async (query) => (await reading()).call('webhookDeliveries', query),
      enable: (id, cause) => writer.call('enableWebhook', id, now(), cause),
      retry: (id, eventId, cause) => writer.call('retryDelivery', { endpointId: id, eventId, cause }, now()),
      prune: () => writer.call('pruneDeliveries', now()),
    },
    close: async () => {
      closing = true;
      await Promise.all([writer.close(), reader?.close()]);
    },
  };
}

/** Arguments that revoke a pass: one time stands in the pass and in the audit log. */
function revocationOf(id: string, cause: AuditCause | undefined, at: number): Arguments<'revokePass'> {
  return [id, revocationValues(id, at, cause), at];
}

/** A thread needs no secrets of the environment, and flags of this process may not be meant for it. */
function spawnWorker(script: URL, options: WorkerOptions): Worker {
  return new Worker(script, { workerData: options, env: {}, execArgv: [], name: `ledger ${options.role}` });
}

// A thread of the ledger, as the main thread sees it: started with its first batch, replaced if it died, and no reason
// for the process to go on while it has nothing to do.

type Thread = {
  readonly call: <N extends CallName>(name: N, ...args: Arguments<N>) => Promise<CallValue<N>>;
  /** Makes a call that no caller waits for. */
  readonly callLater: Thread['call'];
  /** Finishes what was called, refuses what comes later, closes the file. */
  readonly close: () => Promise<void>;
};

const MAX_BATCH = 512;
/** A thread that dies within this time after its start is not replaced for as long. */
const RESTART_MS = 1000;

function queueBefore(
  thread: Carrier<Call, unknown>,
  options: Pick<CallQueueOptions<Call, unknown>, 'maxQueued' | 'timeoutMs' | 'log'>,
): Thread {
  const queue = createCallQueue({ carriers: [thread], maxBatch: MAX_BATCH, next: 'idle', ...options });
  return {
    call: <N extends CallName>(name: N, ...args: Arguments<N>) => queue.call({ name, args }) as Promise<CallValue<N>>,
    callLater: <N extends CallName>(name: N, ...args: Arguments<N>) =>
      queue.callLater({ name, args }) as Promise<CallValue<N>>,
    close: queue.close,
  };
}

type Results = Extract<ThreadReply, { kind: 'results' }>;

type ThreadOptions = {
  /** Starts the thread; told whether it is the first. */
  readonly spawn: (first: boolean) => Worker;
  /** Clock of the ledger, in milliseconds since the epoch. */
  readonly now: () => number;
  readonly log: Log;
};

function createLedgerThread({ spawn, now, log }: ThreadOptions): Carrier<Call, unknown> {
  let worker: Worker | undefined;
  let started = 0;
  let spawnedAt = -Infinity;
  let restartAt = -Infinity;
  /** Hears of the batch that the thread works on: its results, or why there are none. */
  let hear: ((results: Results | string) => void) | undefined;
  let closed: (() => void) | undefined;

  const tell = (results: Results | string): void => {
    hear?.(results);
    hear = undefined;
  };
  const start = (): Worker => {
    const next = spawn(started === 0);
    started += 1;
    spawnedAt = performance.now();
    next.on('message', (message: ThreadReply) => {
      if (worker !== next) return;
      switch (message.kind) {
        case 'results':
          return tell(message);
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
      if (worker !== next) return;
      worker = undefined;
      if (performance.now() - spawnedAt < RESTART_MS) restartAt = performance.now() + RESTART_MS;
      tell('The thread of the ledger died.');
      closed?.();
    });
    return next;
  };
  const ask = (calls: readonly Call[]): Promise<Results | string> | string => {
    if (worker === undefined && performance.now() < restartAt) return 'The thread of the ledger keeps dying.';
    try {
      worker ??= start();
      worker.ref();
      post(worker, writeBatch(calls, now()));
    } catch (error) {
      log.error('the ledger could not be called', { error });
      return 'The thread of the ledger could not be called.';
    }
    return new Promise((resolve) => (hear = resolve));
  };

  return {
    carry: async (batch, { finish, refuse }) => {
      const results = await ask(batch.map(({ call }) => call));
      worker?.unref();
      for (const [index, pending] of batch.entries()) {
        const message = typeof results === 'string' ? results : failureOf(results, index);
        if (message !== undefined) refuse(pending, message);
        else if (typeof results !== 'string') finish(pending, results.values[index]);
      }
      return [];
    },
    close: async () => {
      const closing = worker;
      if (closing === undefined) return;
      const { promise, resolve } = Promise.withResolvers<void>();
      closed = resolve;
      closing.ref();
      post(closing, { kind: 'close' });
      await promise;
    },
  };
}

/** Calls whose arguments are JSON as they are: no bigint, no bytes. */
const AS_TEXT: ReadonlySet<CallName> = new Set<CallName>([
  ...(['find', 'insert', 'update', 'changeCounters', 'changeDraws'] as const),
]);

/** Writes what `readBatch` of the thread reads. */
function writeBatch(calls: readonly Call[], now: number): Batch {
  let others: Map<number, Call> | undefined;
  const texts: (readonly unknown[] | null)[] = [];
  for (const { name, args } of calls) {
    const isText = AS_TEXT.has(name);
    if (!isText) (others ??= new Map()).set(texts.length, { name, args });
    texts.push(isText ? [name, ...args] : null);
  }
  return { kind: 'batch', now, text: JSON.stringify(texts), others };
}

function failureOf({ values, failures }: Results, index: number): string | undefined {
  return index < values.length ? failures?.get(index) : 'The ledger gave no answer.';
}

function post(worker: Worker, message: ThreadCommand): void {
  worker.postMessage(message, []);
}
