// What was sold and what everybody saw of it: each pass, each request on it, each run of the upstream for it. With the journal of
// faults this, the chain and the books are all that the oracle reads.
import type { Conclusion } from '../journal.ts';
import type { Conduct } from '../plan.ts';

/** What a pass is for. `many`, `money`: everybody draws on it; `few`: a crowd does; `held`: those who wait while somebody is killed. */
export type PassRole = 'many' | 'few' | 'money' | 'held';

/** A pass that was bought. */
export type BoughtPass = {
  /** Its number among the sales. */
  readonly index: number;
  readonly role: PassRole;
  readonly kind: 'uses' | 'credit';
  /** Id in the books. */
  readonly id: string;
  readonly payer: string;
  /** Price, as the chain moves it. */
  readonly atomic: bigint;
  readonly token: string;
  /** The payment that bought it. */
  readonly credential: string;
  /** Nonces of all payments for it that were signed. */
  readonly nonces: readonly string[];
  /** A client was told that it is used up. */
  isOver: boolean;
};

/** The books of a pass, in their unit: uses, or 10^-18 of the currency. */
export type Books = Readonly<Record<'sold' | 'drawn' | 'left' | 'reserved' | 'lapsed', bigint>>;

/** What a run of chaos judges of a pass at its end. */
export type PassEnding = {
  readonly pass: BoughtPass;
  readonly books: Books | undefined;
  /** Answers of all doors to one more request. */
  readonly told: readonly string[];
};

/** What somebody wants of a pass, once or, with a key, until it is there. */
export type Order = {
  /** `p1.17`: the pass, and a number. The upstream sees it in the path. */
  readonly name: string;
  readonly pass: number;
  readonly method: 'GET' | 'POST';
  readonly conduct: Conduct | 'held';
  /** What it takes, in the unit of the books. */
  readonly amount: bigint;
  readonly isLarge: boolean;
  readonly key: string | undefined;
  readonly shows: 'token' | 'payment';
  readonly leavesAfterMs: number | undefined;
  /** It pays for the pass itself. */
  readonly buys: boolean;
};

/** `refused`: nobody took the connection. */
export type PassEnd = Conclusion | { readonly kind: 'refused' };

export type PassRequest = {
  readonly order: Order;
  /** The process that was asked. */
  readonly who: string;
  readonly from: number;
  readonly to: number;
  /** What its answer says that is left of the pass. */
  readonly left: string | undefined;
  readonly end: PassEnd;
};

/** A run of the upstream's handler. */
export type PassRun = {
  readonly run: number;
  readonly order: string;
  readonly who: string;
  readonly at: number;
  readonly useId: string;
  /** The first byte of its answer was sent. */
  hasBegun: boolean;
  endedAt: number;
};

export type PassJournal = {
  readonly passes: BoughtPass[];
  /** Number of sales that were begun. */
  sales: number;
  readonly orders: Map<string, Order>;
  readonly requests: PassRequest[];
  readonly runs: PassRun[];
  /** Looks at the books of a pass while everything went on. */
  looks: number;
  /** Rules that were seen broken while everything went on. */
  readonly violations: string[];
};

export function createPassJournal(): PassJournal {
  return { passes: [], sales: 0, orders: new Map(), requests: [], runs: [], looks: 0, violations: [] };
}
