// The two ends of a copy: rows of tables that every kind of store has, under whatever name.

export type CopiedTable =
  | 'meta'
  | 'routes'
  | 'changes'
  | 'api_keys'
  | 'api_key_uses'
  | 'audit'
  | 'charges'
  | 'charge_answers'
  | 'passes'
  | 'pass_draws'
  | 'charge_counts'
  | 'charge_sums'
  | 'charge_totals'
  | 'refund_proofs'
  | 'refund_sums'
  | 'request_totals'
  | 'overhead_totals'
  | 'sale_totals'
  | 'totals_sources'
  | 'webhook_endpoints'
  | 'webhook_wants'
  | 'webhook_events'
  | 'webhook_deliveries';
export type CopyValue = string | number | null | Uint8Array;
export type CopyRow = readonly CopyValue[];

/** Stands in the source from before its first row leaves it. `copiedAt`: the target has all of it. Times are RFC 3339. */
export type CopyMark = { readonly target: string; readonly since: string; readonly copiedAt: string | null };

/** Synchronous: it is a file. */
export type CopySource = {
  readonly mark: () => CopyMark | undefined;
  /** Durable when it returns. */
  readonly setMark: (mark: CopyMark | undefined) => void;
  readonly count: (table: CopiedTable) => number;
  /** Yields the rows in the order of their key. */
  readonly rows: (table: CopiedTable) => Iterable<CopyRow>;
  /** The number of the next charge. */
  readonly nextSeq: () => number;
  readonly close: () => void;
};

export type CopyTarget = {
  /** Name for people; it tells one target from another. */
  readonly name: string;
  /** Runs `work` in one transaction, as the only copy into it. Rejects if it is not known how it ended. */
  readonly transact: <T>(work: (session: CopySession) => Promise<CopyEnd<T>>) => Promise<T>;
  readonly close: () => Promise<void>;
};
/** End of a copy. `keeps`: what was written is committed; else it is undone. */
export type CopyEnd<T> = { readonly keeps: boolean; readonly result: T };
export type CopySession = {
  /** State of the target. `used`: anything was kept in it, or a server ran on it. */
  readonly state: () => Promise<'gone' | 'empty' | 'used'>;
  /** Holds the target: until its transaction ends, no other one reads or writes what is there. */
  readonly hold: () => Promise<void>;
  /** Makes its schema, or brings it up to date. */
  readonly make: () => Promise<void>;
  readonly write: (table: CopiedTable, rows: readonly CopyRow[]) => Promise<void>;
  /** Finishes the copy: all rows are there, and the next charge gets the number `nextSeq`. */
  readonly finish: (nextSeq: number) => Promise<void>;
  /** Yields the rows in the order of their key. */
  readonly rows: (table: CopiedTable) => AsyncIterable<readonly CopyRow[]>;
  /** Writes what changes nothing, so that the commit says that what was read before it is durable. */
  readonly touch: () => Promise<void>;
};
