// Charges on SQLite: the ports of the ledger's store over threads that own the file, so that a slow disk stalls nothing but
// payments. The writing thread commits in groups; the reading one serves dashboards and starts when it is first asked.
// The same serves a registry, in its store beside the routes, and a sidecar with a store of its own.
import { randomBytes } from 'node:crypto';
import { Worker } from 'node:worker_threads';
import { LOCAL_RUN } from '../../../domain/charge.ts';
import type { Change, Updated } from '../../../domain/payment/ledger.ts';
import type { ChargesOptions, ChargesStore } from '../ports.ts';
import { keptBy, toRowChange, toRowInsert, type NotUpdated } from '../charge-changes.ts';
import { createThread, type Thread } from './thread.ts';
import type { WorkerOptions } from './thread-messages.ts';

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

/** Secrets of the environment are none of a thread's business, and flags of this process may not be meant for it. */
function spawnWorker(script: URL, options: WorkerOptions): Worker {
  return new Worker(script, { workerData: options, env: {}, execArgv: [], name: `ledger ${options.role}` });
}
