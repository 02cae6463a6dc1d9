// What the main thread and the ledger's threads say to each other. Everything crosses as a structured clone, so only
// data: no functions, and errors as sentences.
import type { LedgerReports } from './ledger-reports.ts';
import type { LedgerWrites } from './ledger-writes.ts';

/** Calls of the writing thread, which share a commit, and of the reading thread. */
export type Calls = Omit<LedgerWrites, 'prune' | 'begin' | 'finish'> & LedgerReports;
export type CallName = keyof Calls;
export type Arguments<N extends CallName> = Parameters<Calls[N]>;
export type Value<N extends CallName> = ReturnType<Calls[N]>;

export type Call = { readonly name: CallName; readonly args: readonly unknown[] };

/** `now`: the ledger's clock when the batch was sent. */
export type Batch = { readonly kind: 'batch'; readonly now: number; readonly calls: readonly Call[] };
export type ToWorker = Batch | { readonly kind: 'close' };

export type CallResult =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly message: string };
/** In the order of the batch's calls. */
export type FromWorker =
  | { readonly kind: 'results'; readonly results: readonly CallResult[] }
  | { readonly kind: 'closed' };

export type WorkerOptions = {
  readonly role: 'write' | 'read';
  readonly file: string;
  /** Whether a file that is not there may be made: at the first start alone. */
  readonly create: boolean;
  /** How long a transaction waits for another process that writes. */
  readonly busyMs: number;
  /** For tests: how long a commit takes longer, as on a slow disk. */
  readonly commitDelayMs: number;
};
