// The ledger on SQLite: the port of domain/ledger over threads that own the file, so that a slow disk stalls nothing but
// payments. The writing thread commits in groups; the reading one serves dashboards and starts when it is first asked.
// The same serves a registry, in its store beside the routes, and a sidecar with a store of its own.
import { randomBytes } from 'node:crypto';
import { Worker } from 'node:worker_threads';
import { findClaimFault, LOCAL_RUN, type KeptAnswer } from '../../../domain/charge.ts';
import type { ChargeEvent } from '../../../domain/payment/transition.ts';
import type { LedgerOptions, StoredLedger } from '../ports.ts';
import type { WorkerOptions } from './ledger-messages.ts';
import { createSwaps } from './ledger-swaps.ts';
import { createThread, type Thread } from './ledger-thread.ts';

export type SqliteLedgerOptions = LedgerOptions & {
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

/** Opens `file` with the first call; makes it where there is none. */
export function openLedger(file: string, options: SqliteLedgerOptions): StoredLedger {
  const { now, log, timeoutMs = TIMEOUT_MS, busyMs = BUSY_MS, maxQueued = MAX_QUEUED } = options;
  const spawn = options.spawn ?? spawnWorker;
  const commitDelayMs = options.commitDelayMs ?? 0;
  const script = new URL(`./ledger-worker${import.meta.url.endsWith('.ts') ? '.ts' : '.js'}`, import.meta.url);
  const run = `${LOCAL_RUN}${randomBytes(12).toString('hex')}`;
  const alone = options.alone === true ? run : undefined;
  const thread = (role: WorkerOptions['role']): Thread =>
    createThread({
      // The reading thread opens what the writing one made: of a file that is taken away meanwhile it makes no new one.
      spawn: (first) => spawn(script, { role, file, create: first && role === 'write', busyMs, commitDelayMs, alone }),
      now,
      retentionMs: options.retentionMs ?? (() => undefined),
      maxQueued,
      timeoutMs,
      log,
    });
  const writer = thread('write');
  const swaps = createSwaps(writer, now);
  let reader: Thread | undefined;
  let closing = false;
  const reading = async (): Promise<Thread> => {
    if (reader === undefined) await writer.call('countByState');
    // Once closed nothing is opened again: the writing thread refuses for both.
    return closing ? writer : (reader ??= thread('read'));
  };

  return {
    run,
    answerLimitBytes: options.answerLimitBytes ?? ANSWER_BYTES,
    find: (payment) => writer.call('find', payment),
    findByChargeId: (id) => writer.call('findByChargeId', id),
    claim: async (claim, claimOptions) => {
      const fault = findClaimFault(claim);
      if (fault !== undefined) throw new TypeError(`a claim that cannot be written: ${fault}`);
      return swaps.claim(claim, claimOptions);
    },
    advance: (id, event, actor) => swaps.advance(id, ownEvent(event), actor),
    due: (limit) => writer.call('due', limit, now()),
    renew: (run, ids, leaseMs) => writer.call('renew', run, ids, leaseMs, now()),
    check: () => writer.call('check'),
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

/** A clone of a view takes all of the memory behind it along; a kept answer takes its own bytes alone. */
function ownEvent(event: ChargeEvent): ChargeEvent {
  if (event.kind !== 'answer_kept') return event;
  const { status, headers, body } = event.answer;
  const answer: KeptAnswer = { status, headers, body: new Uint8Array(body) };
  return { ...event, answer };
}
