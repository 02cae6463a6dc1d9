// A thread of the ledger: runs batches of calls on its SQLite file and answers after the commit, never before. All
// writes of a batch share one transaction, and so one fsync. If the file fails, is gone or was replaced, every call of
// the batch is refused, and the file is opened anew for the next one. A ledger that has lost its file must not say that
// it knows no such payment.
import { statSync, type BigIntStats } from 'node:fs';
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { parentPort, workerData } from 'node:worker_threads';
import {
  type Batch,
  type Call,
  type CallName,
  type CallOutcome,
  type Calls,
  type ThreadReply,
  type ThreadCommand,
  type WorkerOptions,
} from './thread-messages.ts';
import { createChargeReads } from './charge-reports.ts';
import { createChargeWrites, type ChargeWrites } from './charge-writes.ts';
import { isBusy, isConstraint, isStoreFailure, openDatabase } from './database.ts';
import { createCounterRows } from './counter-rows.ts';
import { createPassReads, createPassWrites } from './pass-rows.ts';
import { createTotalsReads, createTotalsWrites } from './request-totals.ts';
import { createWebhookReads } from './webhook-rows.ts';

type OpenDatabase = {
  readonly db: DatabaseSync;
  readonly begin: StatementSync;
  readonly commit: StatementSync;
  readonly calls: Calls;
  readonly writes: ChargeWrites;
  readonly files: Files;
};
type Files = { readonly main: bigint; readonly wal: bigint };

/** The clock was set if it and the machine's own time differ by more than this between two batches. */
const STEP_MS = 1_500;

function run(options: WorkerOptions, send: (message: ThreadReply) => void): (message: ThreadCommand) => void {
  let opened: OpenDatabase | undefined;
  let mayCreate = options.create;
  /** Whether leases of earlier runs were ended. */
  let alone = options.alone === undefined;
  let last: { readonly clock: number; readonly machine: number } | undefined;

  const open = (): OpenDatabase => {
    if (!mayCreate && (statOf(options.file)?.size ?? 0n) === 0n) {
      throw new StoreGone(`The ledger's file ${options.file} is gone; put it back, or restart to begin a new one.`);
    }
    const db = openDatabase(options.file, options.busyMs, (upgrade) => send({ kind: 'upgrading', upgrade }));
    if (options.role === 'read') db.exec('PRAGMA query_only = ON');
    else db.exec("BEGIN IMMEDIATE; UPDATE charge_counts SET charges = charges WHERE state = 'claimed'; COMMIT");
    mayCreate = false;
    const writes = createChargeWrites(db);
    const begin = db.prepare(options.role === 'read' ? 'BEGIN' : 'BEGIN IMMEDIATE');
    const commit = db.prepare('COMMIT');
    return {
      db,
      begin,
      commit,
      calls: {
        ...{ ...writes, ...createChargeReads(db), ...createWebhookReads(db) },
        ...{ ...createCounterRows(db), ...createTotalsWrites(db), ...createTotalsReads(db) },
        ...{ ...createPassWrites(db), ...createPassReads(db) },
      },
      writes,
      files: filesOf(options.file),
    };
  };

  const close = (): void => {
    const closing = opened;
    opened = undefined;
    if (closing?.db.isOpen) closing.db.close();
  };

  const transact = (
    { db, begin, commit, calls, writes, files }: OpenDatabase,
    asked: readonly Call[],
    at: number,
  ): CallOutcome[] => {
    const reads = options.role === 'read';
    const machine = performance.now();
    begin.run();
    writes.begin();
    try {
      if (!reads && options.alone !== undefined) {
        if (!alone) writes.endRunsBut(options.alone, at);
        const step = last === undefined ? 0 : Math.round(at - last.clock - (machine - last.machine));
        if (last !== undefined && Math.abs(step) > STEP_MS) writes.moveLeases(last.clock, step);
      }
      const results = asked.map((call): CallOutcome => ({ ok: true, value: perform(calls, call) }));
      writes.finish(at);
      if (options.commitDelayMs > 0) pause(options.commitDelayMs);
      commit.run();
      const now = filesOf(options.file);
      // Commits to a file that no path leads to are lost with this process.
      if (now.main !== files.main || (!reads && now.wal !== files.wal)) {
        throw new StoreGone(`The ledger's file ${options.file} was taken away or replaced while it was open.`);
      }
      alone = true;
      last = { clock: at, machine };
      return results;
    } finally {
      if (db.isOpen && db.isTransaction) db.exec('ROLLBACK');
    }
  };

  const serve = (asked: readonly Call[], at: number): CallOutcome[] => {
    try {
      opened ??= open();
      return transact(opened, asked, at);
    } catch (error) {
      if (isDefect(error) && opened !== undefined) {
        // A call may be one that cannot be carried out. The others must not suffer: each gets a transaction of its own.
        return asked.length === 1 ? [refused(error)] : asked.flatMap((call) => serve([call], at));
      }
      if (!isBusy(error)) quietly(close);
      return asked.map(() => refused(error));
    }
  };

  return (message) => {
    switch (message.kind) {
      case 'batch':
        send(resultsOf(serve(readBatch(message), message.now)));
        return;
      case 'close':
        quietly(close);
        send({ kind: 'closed' });
        return;
      default:
        message satisfies never;
    }
  };
}

class StoreGone extends Error {}

function resultsOf(results: readonly CallOutcome[]): ThreadReply {
  const values = results.map((result) => (result.ok ? result.value : undefined));
  const failures = results.flatMap((result, index): [number, string][] => (result.ok ? [] : [[index, result.message]]));
  return { kind: 'results', values, failures: failures.length === 0 ? undefined : new Map(failures) };
}

function readBatch({ text, others }: Batch): readonly Call[] {
  const calls = JSON.parse(text) as readonly (readonly [CallName, ...unknown[]] | null)[];
  return calls.map((call, index): Call => {
    const other = others?.get(index);
    if (other !== undefined) return other;
    if (call === null) throw new TypeError('a batch that lacks one of its calls');
    const [name, ...args] = call;
    return { name, args };
  });
}

function perform(calls: Calls, { name, args }: Call): unknown {
  return (calls[name] as (...args: readonly unknown[]) => unknown)(...args);
}

/** Whether the store is not at fault: a call that breaks a constraint, a row that says no charge, our mistake. */
function isDefect(error: unknown): boolean {
  if (error instanceof StoreGone) return false;
  return !isStoreFailure(error) || isConstraint(error);
}

function refused(error: unknown): CallOutcome {
  return { ok: false, message: error instanceof Error ? error.message : String(error) };
}

function filesOf(file: string): Files {
  return { main: statOf(file)?.ino ?? 0n, wal: statOf(`${file}-wal`)?.ino ?? 0n };
}

function statOf(file: string): BigIntStats | undefined {
  return statSync(file, { bigint: true, throwIfNoEntry: false });
}

/** The file may be broken in a way that closing it fails too; it is forgotten then. */
function quietly(action: () => void): void {
  try {
    action();
  } catch {
    // The call that met the fault has told it.
  }
}

function pause(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

const port = parentPort;
if (port === null) throw new Error('charge-worker runs as a thread of the ledger alone');
port.on(
  'message',
  run(workerData as WorkerOptions, (message) => port.postMessage(message)),
);
