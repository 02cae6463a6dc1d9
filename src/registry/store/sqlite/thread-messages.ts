// The messages between the main thread and the ledger's threads. Everything crosses as a structured clone, so only
// data: no functions, and errors as sentences. The calls of every payment cross as one text for the whole batch,
// because cloning an object takes several times as long as JSON.
import type { ChargeReads } from './charge-reports.ts';
import type { ChargeWrites } from './charge-writes.ts';
import type { Upgrade } from '../ports.ts';
import type { CounterRows } from './counter-rows.ts';
import type { PassReads, PassWrites } from './pass-rows.ts';
import type { TotalsReads, TotalsWrites } from './request-totals.ts';
import type { WebhookReads } from './webhook-rows.ts';

/** Calls of the writing thread, which share a commit, and of the reading thread. */
export type Calls = Omit<ChargeWrites, 'begin' | 'finish' | 'endRunsBut' | 'moveLeases'> &
  ChargeReads &
  CounterRows &
  PassWrites &
  PassReads &
  TotalsWrites &
  TotalsReads &
  WebhookReads;
export type CallName = keyof Calls;
export type Arguments<N extends CallName> = Parameters<Calls[N]>;
export type CallValue<N extends CallName> = ReturnType<Calls[N]>;

export type Call = { readonly name: CallName; readonly args: readonly unknown[] };

/**
 * Batch of calls. `text` is the JSON of all of them in their order, each as `[name, ...args]`; null for one that stands
 * in `others` by its position. `now` is the ledger's clock when the batch was sent.
 */
export type Batch = {
  readonly kind: 'batch';
  readonly now: number;
  readonly text: string;
  readonly others: ReadonlyMap<number, Call> | undefined;
};

export type ThreadCommand = Batch | { readonly kind: 'close' };

export type CallOutcome =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly message: string };
export type ThreadReply =
  /** Results of a batch. `values` are in the order of its calls; those that failed have a message by their position. */
  | {
      readonly kind: 'results';
      readonly values: readonly unknown[];
      readonly failures: ReadonlyMap<number, string> | undefined;
    }
  /** Comes before the file of an older version is migrated. */
  | { readonly kind: 'upgrading'; readonly upgrade: Upgrade }
  | { readonly kind: 'closed' };

export type WorkerOptions = {
  readonly role: 'write' | 'read';
  readonly file: string;
  /** Whether a file that is not there may be made: at the first start alone. */
  readonly create: boolean;
  /** Milliseconds that a transaction waits for another process that writes. */
  readonly busyMs: number;
  /** Milliseconds that a commit takes longer in tests, as on a slow disk. */
  readonly commitDelayMs: number;
  /** The run of the process if it holds the file alone. */
  readonly alone: string | undefined;
};
